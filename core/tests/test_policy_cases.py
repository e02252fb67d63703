"""Test cases as they are written: what they say, and what is refused at which place."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from licet.errors import InvalidPolicy, Position
from licet.policy.cases import DEFAULT_AT, Case, check_circumstances, parse_cases
from licet.policy.yaml import load
from licet.testing.strategies import document_of


def cases(text: str, rule: str | None = None) -> tuple[Case, ...]:
    return parse_cases(load(text.encode(), "t"), Position("t", 1), rule=rule)


def case(text: str, rule: str | None = None) -> Case:
    [one] = cases(f"- {{{text}}}", rule)
    return one


def test_a_call_is_read_with_its_arguments() -> None:
    one = case("tool: refund, args: {order: A1, amount: 250}, expect: ask", rule="big-refund")
    assert one.call is not None
    assert (one.call.tool, one.call.args) == ("refund", {"order": "A1", "amount": 250})
    assert (one.rule, one.expect.effect, one.intents) == (("big-refund", Position("t", 1, 3)), "ask", None)
    assert one.label == "big-refund: tool refund, args {order: A1, amount: 250}"


def test_intents_in_short_and_in_full_are_one_list() -> None:
    one = case(
        "read: ./a, write: [./b, workdir/c], network: 'h.example:443', shell: true, "
        "intents: [read ./d], expect: deny"
    )
    assert [str(wish) for wish in one.intents or ()] == [
        "read ./a",
        "write ./b",
        "write workdir/c",
        "network h.example:443",
        "shell",
        "read ./d",
    ]


def test_what_is_not_stated_is_the_same_everywhere() -> None:
    one = case("run: true, expect: allow")
    assert one.at == DEFAULT_AT == datetime(2026, 1, 7, 12, tzinfo=UTC)
    assert DEFAULT_AT.strftime("%A") == "Wednesday"
    assert (one.subject.id, one.intents, one.code, one.workdir) == ("unknown", None, "", None)


def test_an_instant_is_read_with_its_offset() -> None:
    one = case("run: true, at: 2026-03-07T12:00:00+01:00, expect: allow")
    assert one.at == datetime(2026, 3, 7, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "message", "column", "advice"),
    [
        ("run: true, expct: deny", "unknown key `expct` in a test case", 15, "did you mean `expect`?"),
        ("run: true", "a test case needs `expect`", 3, "such as `expect: deny`: without it nothing fails"),
        (
            "expect: deny",
            "this case asks nothing",
            3,
            "such as `run: true`, `read: ./data`, `tool: NAME` with `args`, or `code`",
        ),
        ("run: true, expect: denied", "nothing can be expected to be `denied`", 15, "did you mean `deny`?"),
        (
            "run: true, expect: hit",
            "this expects something of a rule and names none",
            15,
            "add `rule: ID`, or expect `allow`, `ask` or `deny`",
        ),
        ("run: false, expect: deny", "`run` can only be `true` in a case", 4, None),
        (
            "run: true, read: ./a, expect: deny",
            "`run` adds nothing to listed intents, since every request runs",
            4,
            None,
        ),
        ("args: {a: 1}, expect: deny", "`args` are those of a `tool`", 4, "name the `tool`"),
        ("tool: a, read: ./a, expect: deny", "a call is a case of its own", 13, "make two cases of it"),
        ("tool: a b, expect: deny", "`a b` is no name of a tool", 4, None),
        ("read: '', expect: deny", "`read` needs a target", 4, None),
        ("read: [3], expect: deny", "`read` needs a target or a list of them, found `3`", 4, None),
        (
            "intents: [tool refund], expect: deny",
            "a tool is decided when it is called",
            14,
            "make it a case of its own: `tool: refund`, with `args`",
        ),
        (
            "intents: [raed ./a], expect: deny",
            "expected an intent such as `read ./data`, found `raed ./a`",
            14,
            "did you mean `read`?",
        ),
        (
            "run: true, at: 2026-03-07, expect: deny",
            "`at` is an instant, and `2026-03-07` is a day",
            15,
            "write `2026-03-07T12:00:00Z`",
        ),
        (
            "run: true, subject: {groups: [a]}, expect: deny",
            "`groups` of a subject without an `id` would not count: nobody has said who it is",
            15,
            "write `{id: alice, groups: …}`",
        ),
        (
            "run: true, subject: {id: a, tennant: b}, expect: deny",
            "unknown key `subject.tennant`",
            32,
            "did you mean `tenant`?",
        ),
        ("run: true, metadata: {a: 1}, expect: deny", "`metadata` holds texts, found `1`", 26, None),
        ("run: true, tools: [1], expect: deny", "`1` is no name of a tool", 23, None),
        (
            "run: true, expect: {efect: deny}",
            "unknown key `efect` in `expect`",
            24,
            "did you mean `effect`?",
        ),
        ("run: true, expect: {effect: hit}", "`effect` can't be `hit`", 24, "known are allow, ask, deny"),
        (
            "run: true, expect: {demands: 2}",
            "`demands` is a list of approvals, found `2`",
            24,
            "such as `[{count: 2, from: [finance]}]`; `[]` demands none",
        ),
        (
            "run: true, expect: {demands: [{cuont: 2}]}",
            "unknown key `expect.demands.cuont`",
            35,
            "did you mean `count`?",
        ),
    ],
)
def test_a_mistake_is_told_at_its_place(text: str, message: str, column: int, advice: str | None) -> None:
    with pytest.raises(InvalidPolicy) as raised:
        case(text)
    assert (raised.value.message, raised.value.where, raised.value.advice) == (
        message,
        Position("t", 1, column),
        advice,
    )


@pytest.mark.parametrize("key", ["by", "opened", "closed"])
def test_a_case_about_a_rule_expects_nothing_of_the_whole_policy(key: str) -> None:
    with pytest.raises(InvalidPolicy, match=f"`{key}` is about the whole policy"):
        case(f"run: true, expect: {{{key}: x}}", rule="a")


def test_a_case_inside_a_rule_names_no_rule() -> None:
    with pytest.raises(InvalidPolicy, match="this case names its rule, and is about the one it stands in"):
        case("run: true, rule: b, expect: hit", rule="a")


def test_a_case_states_its_own_circumstances_over_those_given() -> None:
    given = check_circumstances(load(b"{at: 2026-03-07T12:00:00Z, subject: {id: a}}", "t"), Position("t", 1))
    items = load(b"- {run: true, subject: {id: b}, expect: allow}", "t")
    [one] = parse_cases(items, Position("t", 1), given=given)
    assert (one.subject.id, one.at) == ("b", datetime(2026, 3, 7, 12, tzinfo=UTC))
    with pytest.raises(InvalidPolicy, match="unknown key `read` in `given`"):
        check_circumstances(load(b"{read: ./a}", "t"), Position("t", 1))


def test_a_malformed_case_in_a_rule_is_an_error_when_the_policy_is_read() -> None:
    text = "licet: 1\nrules:\n  - id: a\n    deny: run\n    tests:\n      - {run: true, expect: no}\n"
    with pytest.raises(InvalidPolicy, match="nothing can be expected to be `no`") as raised:
        document_of(text, "root", "/p")
    assert str(raised.value.where) == "root:6:21"
