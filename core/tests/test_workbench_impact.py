"""Recorded runs decided again: what flips, what is asked, what can't be said, and what no log can break."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from licet import Intent, Limits, Subject
from licet.backend import Access, ToolCall
from licet.errors import Position
from licet.policy import PolicyStack
from licet.policy.conditions import Condition, Leaf
from licet.policy.facts import Facts
from licet.policy.truth import Truth
from licet.record import MemoryLog, Record, from_json
from licet.screen import VERSION
from licet.tooling import tool
from licet.workbench.history.impact import Impact
from licet.workbench.history.recorded import NotReplayable, RecordedRun, restore, runs
from licet.workbench.history.replay import Replayer
from puppet import Puppetry


def refund(order: str, amount: int) -> None:
    """A tool."""


class Past(Puppetry):
    """Runs that happened under a policy, and what another one would have done to them."""

    def run(self, policy: str, *wishes: Access | ToolCall, **fields: Any) -> str:
        return self.run_under("old.yaml", policy, *wishes, **fields).run_id

    def stack(self, policy: str) -> PolicyStack:
        return self.runtime(self.write("new.yaml", policy)).stack

    def impact(self, policy: str) -> Impact:
        return self.under(self.stack(policy))

    def under(self, stack: PolicyStack, records: list[Record] | None = None) -> Impact:
        with self.runtime("old.yaml") as runtime:
            found = Impact(stack, runtime.offers(), VERSION)
        for run in runs("log", records if records is not None else self.log.records()):
            found.add(run)
        return found


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Past:
    return Past(tmp_path, monkeypatch)


def counts(found: Impact) -> dict[str, int]:
    kinds = {**found.changes, **found.calls, **found.accesses}
    return {name: kind.count for name, kind in kinds.items()}


READ = "open('/srv/a').read()"
ALLOWED = "allow: [read /srv, tool refund]"


@pytest.mark.parametrize(
    ("old", "new", "change", "reason"),
    [
        (ALLOWED, "", "allowed → denied", "{new} no `read`"),
        (ALLOWED, ALLOWED + "\ndeny: [read /srv/a]", "allowed → denied", "{new}:4 deny: read /srv/a"),
        (ALLOWED, "ask: [read /srv]", "allowed → asks", "{new}:3 ask: read /srv"),
        (ALLOWED, ALLOWED + "\nrules: [{id: r, deny: run}]", "allowed → denied", "{new}:4 r"),
        ("", ALLOWED, "denied → allowed", "no more: {old} no `read`"),
        ("ask: [read /srv]", ALLOWED, "asks → allowed", "no more: {old}:3 ask: read /srv"),
        ("ask: [read /srv]", "", "asks → denied", "{new} no `read`"),
        (
            "ask: [read /srv]",
            "ask: [read /srv]\napproval: {count: 2}",
            "asks → asks others",
            "needs 2 persons",
        ),
    ],
)
def test_what_flips_is_counted_with_its_reason(
    past: Past, old: str, new: str, change: str, reason: str
) -> None:
    run_id = past.run(old, code=READ, subject=Subject(id="ada", tenant="acme"))
    found = past.impact(new)
    assert counts(found) == {change: 1}
    [kind] = found.changes.values()
    files = {"old": past.folder / "old.yaml", "new": past.folder / "new.yaml"}
    told = reason.format(**files)
    assert kind.reasons.as_json() == {told: 1}
    assert (kind.subjects.as_json(), kind.tenants.as_json()) == ({"ada": 1}, {"acme": 1})
    assert [(one.log, one.run_id) for one in kind.examples] == [("log", run_id)]
    assert (found.runs, found.replayed, found.changed) == (1, 1, True)


def test_the_same_policy_changes_nothing(past: Past) -> None:
    for policy in (ALLOWED, "ask: [run]"):
        past.log = MemoryLog()
        past.run(policy, Access("read", "/srv/a"), Access("read", "/etc"), code=READ, stdin="x")
        past.run(policy, ToolCall("refund", ("A", 1)), code="1", tools={"refund": refund})
        found = past.impact(policy)
        assert (found.changed, found.replayed, found.as_json()["changes"]) == (False, 2, {})


def test_approvals_a_day_are_counted_by_person_and_group(past: Past) -> None:
    for _ in range(3):
        past.run(ALLOWED, code=READ)
    rules = "rules: [{id: two, ask: 'read /srv', approval: {count: 2, from: [finance, legal]}}]"
    found = past.impact(f"{ALLOWED}\nask: [run]\n{rules}")
    assert found.newly_asking == 3
    assert found.load.newly.as_json() == {"finance or legal": 6, "anybody": 3}
    assert found.as_json()["approvals"] == {
        "runs": 3,
        "newly": 9,
        "newly_per_day": 9.0,
        "in_all_per_day": 9.0,
        "by_group": {
            "finance or legal": {"newly": 6, "in_all": 6},
            "anybody": {"newly": 3, "in_all": 3},
        },
    }


def test_days_are_those_that_the_runs_cover(past: Past) -> None:
    past.run("")
    early = list(past.log.records())
    past.run("")
    late = [record for record in past.log.records() if record not in early]
    moved = [replace(one, entry=replace(one.entry, time="2020-01-01T00:00:00.000000000Z")) for one in early]
    moved += [replace(one, entry=replace(one.entry, time="2020-01-05T12:00:00.000000000Z")) for one in late]
    assert past.under(past.stack(""), moved).days == 4.5


def test_only_other_backends_leaves_nothing_to_run_it(past: Past) -> None:
    past.run("")
    found = past.impact("ask: [run]\nrules: [{id: only, sandbox: {only: [other]}}]")
    assert counts(found) == {"allowed → unrunnable": 1}
    [(why, _)] = found.changes["allowed → unrunnable"].reasons.top()
    assert why == "puppet: sandbox.only: asked other, offered puppet"


def test_accesses_are_held_against_what_would_be_open(past: Past) -> None:
    past.run(ALLOWED, Access("read", "/srv/a"), Access("read", "/srv/b"), Access("read", "/etc/x"))
    found = past.impact("allow: [read /srv except /srv/b, read /etc]")
    assert counts(found) == {"access allowed → denied": 1, "access denied → allowed": 1}
    assert found.accesses["access allowed → denied"].reasons.as_json() == {"read /srv/b": 1}


def test_calls_are_decided_again_as_far_as_that_goes_without_arguments(past: Past) -> None:
    past.run(ALLOWED, ToolCall("refund", ("A", 1)), ToolCall("refund", ("B", 2)), tools={"refund": refund})
    assert counts(past.impact("ask: [tool refund]")) == {"call allowed → asks": 2}
    assert counts(past.impact("")) == {"call allowed → denied": 2}
    assert counts(past.impact(ALLOWED)) == {}


def test_a_call_is_decided_again_with_what_its_tool_touches(past: Past) -> None:
    tools = {"refund": tool(touches="network pay.example.com:443")(refund)}
    past.run(ALLOWED, ToolCall("refund", ("A", 1)), tools=tools)
    assert counts(past.impact(f"{ALLOWED}\ndeny: [network example.com]")) == {}
    assert counts(past.impact(f"{ALLOWED}\ndeny: [network pay.example.com]")) == {"call allowed → denied": 1}


class ReadsArguments:
    """A leaf about the arguments of a call."""

    reads_call = True

    def truth(self, facts: Facts) -> Truth:
        assert facts.call is None, "nobody knows the arguments"
        return Truth.unknown

    def why(self, facts: Facts) -> str:
        raise AssertionError("nobody knows the arguments")


@pytest.mark.parametrize(
    ("policy", "depends", "changes"),
    [
        (ALLOWED, {"big": 1}, {}),
        ("allow: [read /srv]\nask: [tool refund]", {}, {"call allowed → asks": 1}),
        ("", {}, {"call allowed → denied": 1}),
    ],
)
def test_what_depends_on_arguments_is_counted_apart(
    past: Past, policy: str, depends: dict[str, int], changes: dict[str, int]
) -> None:
    past.run(ALLOWED, ToolCall("refund", ("A", 1)), tools={"refund": refund})
    stack = past.stack(f"{policy}\nrules: [{{id: big, ask: tool refund}}]")
    condition = Condition((Leaf("if", "args.amount > 100", Position("new.yaml"), 0),), (ReadsArguments(),))
    [rule] = stack.root.rules
    root = stack.root.model_copy(update={"rules": (replace(rule, condition=condition),)})
    found = past.under(replace(stack, root=root))
    assert (found.on_arguments.as_json(), counts(found)) == (depends, changes)


@pytest.mark.parametrize(
    ("condition", "depends", "changes"),
    [
        ("if: args.amount > 100", {"big": 1}, {}),
        ("if: [args.amount > 100, {tenant: acme}]", {"big": 1}, {}),
        ("if: [args.amount > 100, {tenant: globex}]", {}, {}),
        ("if: {tenant: acme}", {}, {"call allowed → asks": 1}),
    ],
)
def test_conditions_are_read_as_far_as_they_can_be(
    past: Past, condition: str, depends: dict[str, int], changes: dict[str, int]
) -> None:
    tools = "tools: {refund: {order: string, amount: int}}"
    who = Subject(id="ada", tenant="acme")
    call = ToolCall("refund", ("A", 1))
    past.run(f"{ALLOWED}\n{tools}", call, tools={"refund": refund}, subject=who)
    found = past.impact(f"{ALLOWED}\n{tools}\nrules: [{{id: big, ask: tool refund, {condition}}}]")
    assert (found.on_arguments.as_json(), counts(found), found.differences) == (depends, changes, {})


def test_a_policy_that_answers_otherwise_than_it_did_is_a_difference(past: Past) -> None:
    past.run(ALLOWED, code=READ)
    records = [_changed(record, "decision", "effect", "deny") for record in past.log.records()]
    found = past.under(past.stack(ALLOWED), records)
    assert {name: kind.count for name, kind in found.differences.items()} == {"denied → allowed": 1}
    assert not found.changes and found.changed


def test_limits_and_sizes_are_worked_out_anew(past: Past) -> None:
    past.run("limits: {memory: 1GiB}", code="1 + 1", stdin="12345", limits=Limits(wall_time=7.5))
    assert counts(past.impact("limits: {code: 4}")) == {"allowed → denied": 1}
    assert counts(past.impact("limits: {stdin: 4}")) == {"allowed → denied": 1}
    [run] = runs("log", past.log.records())
    again = Replayer(past.stack("limits: {wall_time: 9s}"), ()).request(run)
    assert (again.request.limits.wall_time, again.request.limits.memory) == (7.5, None)


def test_denied_modules_are_worked_out_anew(past: Past) -> None:
    code = "try:\n    import csv\nexcept ImportError:\n    pass"
    past.run("screen: {modules: {deny: [json]}}", code=code)
    assert counts(past.impact("screen: {modules: {deny: [csv]}}")) == {"allowed → denied": 1}
    past.log = MemoryLog()
    past.run("screen: {modules: {deny: [csv]}}", code=code)
    assert counts(past.impact("")) == {"denied → allowed": 1}


def test_votes_of_other_deciders_are_those_that_were_recorded(past: Past) -> None:
    past.run("")
    ballot = {"decider": "opa", "effect": "deny", "reason": "no", "policy_digest": None}
    records = [_changed(record, "decision", "ballots", [ballot]) for record in past.log.records()]
    found = past.under(past.stack("deny: [shell]"), records)
    assert found.changes["allowed → denied"].reasons.as_json() == {"decider opa": 1}


def _changed(record: Record, kind: str, key: str, value: Any) -> Record:
    if record.entry.kind != kind:
        return record
    return replace(record, entry=replace(record.entry, body={**record.entry.body, key: value}))


NEEDED = {
    "request": [
        "at", "asked_limits", "intents", "code_bytes", "stdin_bytes", "inputs", "workdir", "tools", "subject",
        "requirements", "metadata", "learn", "imports", "needs", "numbers",
    ],
    "decision": ["verdicts", "violations", "ballots"],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, keys in NEEDED.items() for key in keys])
def test_what_a_record_lacks_is_told_and_never_guessed(past: Past, kind: str, key: str) -> None:
    past.run("")
    records = [_without(record, kind, key) for record in past.log.records()]
    found = past.under(past.stack(""), records)
    assert found.not_replayed.as_json() == {f"its record does not say `{key}`: an older licet wrote it": 1}
    assert (found.runs, found.replayed, found.changed) == (1, 0, False)


def _without(record: Record, kind: str, key: str) -> Record:
    if record.entry.kind != kind:
        return record
    body = {name: value for name, value in record.entry.body.items() if name != key}
    return replace(record, entry=replace(record.entry, body=body))


def test_code_that_nobody_looked_at_is_not_replayed(past: Past) -> None:
    past.run("limits: {code: 4}", code="1 + 1 + 1")
    assert not past.impact("limits: {code: 5}").changed
    found = past.impact("")
    assert found.not_replayed.as_json() == {
        "its code was refused for its size, so that nobody looked at what it does": 1
    }


def test_a_name_that_records_escape_is_not_replayed(past: Past) -> None:
    past.run("", subject=Subject(id="a\ud800"))
    assert past.impact("").not_replayed.as_json() == {"a name in it holds characters that records escape": 1}


def test_runs_are_given_when_they_end_and_attacks_are_none(past: Past) -> None:
    past.run("")
    whole = list(past.log.records())
    cut = [record for record in whole if record.entry.kind != "result"]
    assert [run.backend for run in runs("log", cut)] == ["puppet"]
    probes = [replace(one, entry=replace(one.entry, kind="probe")) for one in whole]
    assert list(runs("log", probes)) == []


def test_memory_holds_only_what_has_not_ended(past: Past) -> None:
    past.run("")
    records = list(past.log.records())

    def endless() -> Iterator[Record]:
        for number in range(50):
            for record in records:
                yield replace(record, entry=replace(record.entry, run_id=f"R{number}"))
        raise AssertionError("the last run was given before the log was at its end")

    given_ones = runs("log", endless())
    assert [next(given_ones).run_id for _ in range(50)] == [f"R{number}" for number in range(50)]


JUNK = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "x", "read", "network a", "-1"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["code", "effect", "x"]), inner, max_size=2),
    ),
    max_leaves=4,
)


def test_no_record_breaks_a_replay(past: Past) -> None:
    past.run(
        ALLOWED, Access("read", "/srv/a"), ToolCall("refund", ("A", 1)), code=READ, tools={"refund": refund}
    )
    records = [json.loads(json.dumps(record.as_json())) for record in past.log.records()]
    stack = past.stack("deny: [read /srv]")

    @settings(max_examples=300, deadline=None)
    @given(st.data())
    def broken(data: st.DataObject) -> None:
        spoiled = copy.deepcopy(records)
        for _ in range(data.draw(st.integers(1, 2))):
            place = data.draw(st.sampled_from(spoiled))["body"]
            while place and isinstance(place, (dict, list)):
                key = data.draw(
                    st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place)))
                )
                if data.draw(st.booleans()) or not isinstance(place[key], (dict, list)):
                    place[key] = data.draw(JUNK)
                    break
                place = place[key]
        found = past.under(stack, [from_json(one) for one in spoiled])
        found.as_json()
        assert found.runs == 1

    broken()


def test_a_run_without_a_request_is_no_run_to_restore(past: Past) -> None:
    with pytest.raises(NotReplayable, match=r"^the log has no request, or no decision, of it$"):
        restore(RecordedRun("log", "R", "2020-01-01T00:00:00Z"), past.stack(""))


def test_intents_that_a_request_lists_are_restored_with_it(past: Past) -> None:
    listed = (
        Intent("read", "/srv/a"),
        Intent("tool", "refund"),
        Intent("shell"),
        Intent("network", "a.com:1"),
    )
    past.run("allow: [read /srv, tool refund, shell, network any]", intents=listed, tools={"refund": refund})
    [run] = runs("log", past.log.records())
    request = restore(run, past.stack("")).request
    assert request.intents == tuple(replace(i, when="call") if i.action == "tool" else i for i in listed)
