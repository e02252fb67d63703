"""A recorded decision told again: the same as when it was made, and never a crash over odd records."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import bodies
from licet.backend import Descriptor, Language
from licet.cli.recorded import rows_of
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.policy import PolicyStack
from licet.prepare import Prepared, prepare
from licet.record import Entry, Record
from licet.report import exit_code
from licet.request import ExecutionRequest, Intent
from licet.select import Offer
from licet.testing.strategies import document_of
from licet.workbench.history.recounting import recounted

HELD = SandboxEnforcementContract(
    **{control: Enforcement(Level.enforced, "kernel", evidence=Evidence.probed) for control in Control}
)
FULL = Descriptor("full", "1", HELD, Language("python"), frozenset({"read", "shell"}))
POLICY = """\
licet: 1
allow: [read ./a b, shell]
ask: [read ./q]
deny: [read ./a b/x]
approval: {count: 2, from: [finance]}
rules:
  - {id: acme, ask: shell, if: {tenant: acme}}
  - {id: never, deny: run, if: {language: rust}}
"""


def prepared(backends: tuple[Descriptor, ...] = (FULL,), **fields: Any) -> Prepared:
    root = document_of(POLICY, "my policy:7.yaml", "/p")
    rehearsed = document_of("licet: 1\nmode: dry_run\ndeny: [shell]\n", "next.yaml", "/p")
    return prepare(
        ExecutionRequest(code="1", **fields),
        PolicyStack(root, rehearsed=(rehearsed,)),
        [Offer(backend) for backend in backends],
        at=datetime(2026, 11, 30, 10, tzinfo=UTC),
        directory="/",
        host_environment={},
        digest=lambda name, content: name,
    )


def records(found: Prepared) -> list[Record]:
    told = {
        "request": bodies.request(found),
        "decision": bodies.decision(found.decision, found.stack),
        "selection": bodies.selection(found.selection),
        "result": {"termination": "exited"},
    }
    return [
        Record("log", seq, "", {}, Entry(kind, "01RUN", json.loads(json.dumps(body, default=str)), "T", 0))  # type: ignore[arg-type]
        for seq, (kind, body) in enumerate(told.items())
    ]


@pytest.mark.parametrize(
    ("intents", "backends", "code"),
    [
        ((), (FULL,), 0),
        (("read /p/a b",), (FULL,), 0),
        (("read /p/a b/x",), (FULL,), 3),
        (("read /p/q", "shell"), (FULL,), 4),
        (("shell",), (), 5),
        (("read /etc",), (), 3),
    ],
)
def test_a_record_tells_what_was_decided(
    intents: tuple[str, ...], backends: tuple[Descriptor, ...], code: int
) -> None:
    asked = tuple(Intent(*text.split(" ", 1)) for text in intents)  # type: ignore[arg-type]
    found = prepared(backends, intents=asked)
    told, live = recounted(records(found)), found.explanation.as_json()
    assert told is not None
    assert exit_code(told["effect"], told["selection"]["backend"]) == found.explanation.exit_code == code
    for name in ("effect", "policy", "policy_digest", "plan_digest", "at", "rules", "licet", "screen"):
        assert told[name] == live[name], name
    for verdict in live["verdicts"]:
        del verdict["demands"]
    assert told["verdicts"] == live["verdicts"]
    assert told["selection"]["backend"] == live["selection"]["backend"]
    assert [one["effect"] for one in told["rehearsals"]] == [one["effect"] for one in live["rehearsals"]]
    assert told["documents"] == [{"file": "my policy:7.yaml", "role": "root"}]
    assert (told["run_id"], told["recorded"]["seq"], told["termination"]) == ("01RUN", 1, "exited")


def test_approvals_and_rules_are_told_as_they_were() -> None:
    told = recounted(records(prepared(intents=(Intent("read", "/p/q"), Intent("shell")))))
    assert told is not None
    assert told["demands"] == ["2 persons of finance"]
    [rule] = told["rules"]
    assert (rule["rule"], rule["outcome"]) == ("acme", "unknown")
    assert rule["leaves"][0]["why"] == "nobody said the tenant"


def test_without_a_decision_there_is_nothing_to_tell() -> None:
    assert recounted(records(prepared())[2:]) is None
    assert recounted([]) is None


ANYTHING = st.recursive(
    st.sampled_from([None, True, 7, "allow", "unknown", "read x", "a:1 b"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["effect", "verdicts", "rules", "leaves", "by", "intent", "document", "backend"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["effect", "verdicts", "documents", "rules", "pending", "rehearsals", "ballots", "demands"]
        ),
        ANYTHING,
    ),
    st.dictionaries(st.sampled_from(["backend", "candidates"]), ANYTHING),
)
def test_odd_records_are_told_as_far_as_they_can_be_read(
    decision: dict[str, Any], selection: dict[str, Any]
) -> None:
    entries = [Entry("decision", "01RUN", decision, "T", 0), Entry("selection", "01RUN", selection, "T", 0)]
    told = recounted([Record("log", seq, "", {}, entry) for seq, entry in enumerate(entries)])
    assert told is not None
    json.dumps(told)
    now = {"changed": None, "problem": "gone"}
    for everything in (False, True):
        assert list(rows_of({**told, "policy_now": now}, everything=everything))
    code = exit_code(told["effect"], told["selection"]["backend"])
    assert code in (0, 3, 4, 5)
    if decision.get("effect") not in ("allow", "ask"):
        assert code == 3
