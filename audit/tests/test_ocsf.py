"""Events are valid in the schema of OCSF 1.8.0, and say what the records say."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from licet.errors import UsageError
from licet.record import Entry, MemoryLog, Record
from licet.state import StateDirectory
from licet_audit.exports import Export
from licet_audit.ocsf.mapping import Mapper
from licet_audit.ocsf.writing import write
from licet_audit.reader import LogReader
from licet_audit.selection import Selection

SCHEMA = json.loads((Path(__file__).parent / "data" / "ocsf-1.8.0.json").read_text("utf-8"))
VALIDATORS = {
    int(uid): Draft202012Validator(one | {"$defs": SCHEMA["$defs"]}) for uid, one in SCHEMA["classes"].items()
}
SUBJECT = {"type": "service", "id": "ada", "groups": ["ops"], "session": "s1"}
REQUEST = {"subject": SUBJECT, "code_bytes": 7, "digests": {"code": "hmac-sha256:ab"}}
DECISION = {"effect": "allow", "policy": "p@1", "policy_digest": "sha256:cd"}


def step(kind: str, phase: str | None = None, **body: Any) -> Entry:
    return Entry(kind, "run1", body, "2026-11-29T17:00:00.123456789Z", 1, phase=phase)  # type: ignore[arg-type]


def events(*entries: Entry) -> list[dict[str, Any]]:
    records: Sequence[Record] = asyncio.run(MemoryLog().append(entries))
    mapper = Mapper()
    found = [event for record in records for event in mapper.feed(record)]
    assert_valid(found)
    return found


def assert_valid(found: Sequence[Mapping[str, Any]]) -> None:
    for event in found:
        json.dumps(event, allow_nan=False)
        problems = [f"{p.json_path}: {p.message}" for p in VALIDATORS[event["class_uid"]].iter_errors(event)]
        assert problems == []
    uids = [event["metadata"]["uid"] for event in found]
    assert len(set(uids)) == len(uids)


def shape(found: Sequence[Mapping[str, Any]]) -> list[tuple[int, Any, int]]:
    return [(event["type_uid"], event.get("disposition_id"), event["status_id"]) for event in found]


def test_code_in_a_process_is_launched_and_terminated() -> None:
    found = events(
        step("request", **REQUEST),
        step("decision", **DECISION),
        step("execution", "before", backend="controlled_process", isolation="kernel"),
        step("result", "after", termination="exited", success=True, exit_code=0),
    )
    assert shape(found) == [(100701, 1, 1), (100702, None, 1)]
    assert found[0]["process"] == {"uid": "run1", "name": "python", "sandbox": "controlled_process"}
    assert found[0]["time"] == 1795971600123
    assert found[0]["policy"] == {"name": "p@1", "is_applied": True, "uid": "sha256:cd"}
    assert found[0]["actor"]["user"] == {
        "uid": "ada", "type_id": 4, "type": "service", "groups": [{"name": "ops"}]
    }  # fmt: skip
    assert (found[1]["exit_code"], found[1]["status_code"]) == (0, "exited")
    assert found[1]["unmapped"]["licet.audit.seq"] == 3


def test_code_in_an_interpreter_is_a_script_without_its_text() -> None:
    found = events(
        step("request", **REQUEST),
        step("decision", **DECISION),
        step("execution", "before", backend="monty", isolation="language"),
        step("result", "after", termination="timeout", success=False),
    )
    assert shape(found) == [(100901, 1, 1), (100999, None, 2)]
    assert found[0]["script"] == {
        "type_id": 3,
        "type": "Python",
        "uid": "run1",
        "hashes": [{"algorithm_id": 99, "algorithm": "hmac-sha256", "value": "ab"}],
        "script_content": {"value": "", "is_truncated": True, "untruncated_size": 7},
    }


def test_a_refused_run_is_a_launch_that_was_blocked_and_has_no_end() -> None:
    result = step("result", "after", termination="policy_denied", success=False, detail="no")
    [found] = events(step("request", **REQUEST), step("decision", **DECISION | {"effect": "deny"}), result)
    assert (found["type_uid"], found["action_id"], found["disposition_id"]) == (100701, 2, 2)
    assert (found["status_id"], found["status_detail"], found["severity"]) == (2, "no", "Medium")


def test_a_run_whose_end_nobody_knows_is_no_success() -> None:
    found = events(
        step("execution", "before", backend="b", isolation="kernel"),
        step("tool_call", "before", sequence=1, tool="pay", call_digest="d", effect="allow"),
        step("result", "after", termination="unknown"),
    )
    assert shape(found) == [(100701, 1, 1), (600399, 1, 0), (100702, None, 0)]
    assert [event["severity"] for event in found] == ["Informational", "Informational", "High"]


@pytest.mark.parametrize(
    ("effect", "outcome", "disposition", "status"),
    [
        ("allow", "returned", 1, 1),
        ("allow", "raised", 1, 2),
        ("allow", "withheld", 1, 2),
        ("allow", "timed_out", 1, 0),
        ("allow", "unknown", 1, 0),
        ("deny", "denied", 2, 2),
        ("ask", "denied", 2, 2),
    ],
)
def test_a_call_has_the_decision_on_it(effect: str, outcome: str, disposition: int, status: int) -> None:
    [found] = events(
        step("decision", **DECISION),
        step("tool_call", "before", sequence=1, tool="pay", call_digest="d", effect=effect),
        step("tool_call", "after", sequence=1, tool="pay", outcome=outcome),
    )
    assert shape([found]) == [(600399, disposition, status)]
    assert found["authorizations"][0]["decision"] == effect
    assert found["api"]["operation"] == "pay"


def test_a_call_that_could_not_be_made_is_one_event() -> None:
    [found] = events(step("tool_call", "after", sequence=1, tool="pay", outcome="refused"))
    assert shape([found]) == [(600399, 2, 2)]
    assert found["authorizations"][0]["decision"] == "refused"


def test_only_a_refuted_claim_is_a_finding() -> None:
    results = [
        {"attack": "network_deny/a", "outcome": "leaked", "claimed": True},
        {"attack": "network_deny/b", "outcome": "leaked", "claimed": True},
        {"attack": "network_deny/c", "outcome": "leaked", "claimed": False},
        {"attack": "network_deny/d", "outcome": "held", "claimed": True},
    ]
    found = events(step("probe", "after", backend="boaster", version="1", results=results))
    assert [event["finding_info"]["analytic"]["name"] for event in found] == [
        "network_deny/a",
        "network_deny/b",
    ]
    assert {(event["class_uid"], event["is_alert"]) for event in found} == {(2004, True)}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
_KINDS = "request decision execution tool_call probe result log access"
_FIELDS = (
    "subject results backend version isolation termination success exit_code detail tool sequence effect"
    " outcome policy policy_digest digests code_bytes call_digest verdicts verdict rules opened candidates"
    " metadata"
)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(_KINDS.split()),
            st.sampled_from([None, "before", "after"]),
            st.dictionaries(st.sampled_from(_FIELDS.split()), _JSON, max_size=6),
        ),
        max_size=6,
    )
)
def test_whatever_records_hold_the_events_are_valid(made: list[tuple[str, Any, dict[str, Any]]]) -> None:
    events(*(step(kind, phase, **body) for kind, phase, body in made))


def export(state: StateDirectory, output: Path | None) -> tuple[int, str]:
    out = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(out):
        options = {"output": None if output is None else str(output)}
        code = write(Export(LogReader(state), Selection(), options))
    out.seek(0)
    return code, out.read()


def test_a_tampered_log_is_the_first_event(
    state: StateDirectory, append: Callable[..., list[Record]], tmp_path: Path
) -> None:
    result = step("result", "after", termination="policy_denied", executed=False)
    append([step("request", **REQUEST), step("decision", **DECISION | {"effect": "deny"}), result])
    code, said = export(state, None)
    assert (code, [json.loads(line)["class_uid"] for line in said.splitlines()]) == (0, [1007])
    segment = state.path / "log" / "seg-00000000000000000000.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b"policy_denied", b"exited_abcdef"))
    file = tmp_path / "events.ndjson"
    assert export(state, file) == (1, "")
    found = [json.loads(line) for line in file.read_text("ascii").splitlines()]
    assert_valid(found)
    assert (found[0]["class_uid"], found[0]["severity"]) == (2004, "Critical")


def test_no_file_is_replaced_and_none_lies_beside_the_segments(
    state: StateDirectory, append: Callable[..., list[Record]], tmp_path: Path
) -> None:
    append([step("request", **REQUEST)])
    there = tmp_path / "there.json"
    there.write_text("mine")
    for taken in (there, state.path / "log" / "x.jsonl"):
        with pytest.raises(UsageError):
            export(state, taken)
    assert there.read_text() == "mine"
