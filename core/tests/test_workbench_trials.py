"""Trying test cases: what passes, what fails and how that is told, and what could not fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.errors import InvalidPolicy, Position
from licet.policy import PolicyStack
from licet.policy.cases import KEYS, parse_cases
from licet.policy.yaml import load
from licet.rules import SEVERITY
from licet.testing.strategies import document_of
from licet.workbench.trials.asking import ask
from licet.workbench.trials.trial import Trial, rules_of, try_case

StackOf = Callable[..., PolicyStack]

REFUNDS = """\
allow: [read ./data, tool refund]
deny: [read ./data/secrets]
tools: {refund: {order: string, amount: decimal, when: date?}}
rules:
  - id: big-refund
    ask: tool refund
    if: args.amount > 100
    unless: {group: cfo}
    approval: {count: 2, from: [finance]}
  - id: weekend
    deny: run
    during: {days: [sat, sun], zone: UTC}
  - id: free-plan
    unless: {property.plan: pro}
    limits: {memory: 128MiB}
"""

BY_CFO = "tool: refund, args: {order: A, amount: 250}, subject: {id: a, groups: [cfo]}"


def tried(stack: PolicyStack, text: str) -> Trial:
    [case] = parse_cases(load(f"- {{{text}}}".encode(), "t"), "t", Position("t", 1))
    return try_case(case, stack)


def told(trial: Trial) -> list[str]:
    return [f"{one.what}: {one.expected}, {one.found}" for one in trial.shortfalls]


@pytest.mark.parametrize(
    ("text", "shortfalls"),
    [
        ("tool: refund, args: {order: A, amount: 250}, expect: ask", []),
        ("tool: refund, args: {order: A, amount: 100}, expect: allow", []),
        ("tool: refund, args: {order: A, amount: 100.01}, expect: {effect: ask, by: big-refund}", []),
        ("tool: refund, args: {order: A, amount: 250}, expect: deny", ["effect: deny, ask"]),
        ("tool: delete, expect: deny", []),
        ("run: true, expect: allow", []),
        ("run: true, at: 2026-03-07T12:00:00Z, expect: {effect: deny, by: weekend}", []),
        # the run is denied, so that nothing is ever called
        ("tool: refund, args: {order: A, amount: 1}, at: 2026-03-07T12:00:00Z, expect: deny", []),
        ("read: /p/data/x, expect: allow", []),
        ("read: /p/data/secrets/x, expect: allow", ["effect: allow, deny"]),
        ("read: /p/data, expect: {opened: [read /p/data/x], closed: [read /p/data/secrets]}", []),
        (
            "read: /p/data, expect: {opened: [read /p/data/secrets], closed: [read /p/data/x]}",
            ["opened: read /p/data/secrets, closed", "closed: read /p/data/x, opened"],
        ),
        # what is denied opens nothing
        ("read: [/p/data, /etc], expect: {opened: [read /p/data]}", ["opened: read /p/data, closed"]),
        ("read: workdir/x, workdir: /p/data, expect: allow", []),
        ("code: 'import subprocess', expect: deny", []),
        ("run: true, expect: {limits: {memory: 128MiB}}", []),
        ("run: true, expect: {limits: {memory: 1MiB}}", [f"limits.memory: {1 << 20}, {128 << 20}"]),
        (
            "run: true, subject: {properties: {plan: pro}}, expect: {limits: {memory: 1}}",
            ["limits.memory: 1, none"],
        ),
        ("run: true, limits: {memory: 5MiB}, expect: {limits: {memory: 5MiB}}", []),
        (
            "tool: refund, args: {order: A, amount: 250}, expect: {demands: [{count: 2, from: [finance]}]}",
            [],
        ),
        (
            "tool: refund, args: {order: A, amount: 250}, expect: {demands: [{count: 1}]}",
            ["demands: {count: 1}, {count: 2}"],
        ),
        (
            "tool: refund, args: {order: A, amount: 250}, expect: {demands: []}",
            ["demands: none, 2 persons of finance"],
        ),
        ("tool: refund, args: {order: A, amount: 1}, expect: {demands: []}", []),
        (
            "run: true, expect: {by: weekend}",
            ["by: `weekend`, nothing, it is allow"],
        ),
        # about one rule
        ("rule: big-refund, tool: refund, args: {order: A, amount: 250}, expect: ask", []),
        ("rule: big-refund, tool: refund, args: {order: A, amount: 250}, expect: hit", []),
        (
            "rule: big-refund, tool: refund, args: {order: A, amount: 1}, expect: ask",
            ["effect: ask, allow (miss)"],
        ),
        ("rule: big-refund, tool: delete, expect: miss", []),
        ("rule: big-refund, run: true, expect: pending", []),
        ("rule: big-refund, run: true, expect: miss", ["rule: miss, pending"]),
        (
            f"rule: big-refund, {BY_CFO}, expect: miss",
            [],
        ),
        ("rule: weekend, run: true, expect: allow", []),
        ("rule: weekend, run: true, at: 2026-03-07T12:00:00Z, expect: deny", []),
        # the rule itself does not deny it, although the policy does
        ("rule: weekend, read: /etc, expect: allow", []),
        ("rule: free-plan, run: true, expect: {rule: hit, limits: {memory: 128MiB}}", []),
        (
            "rule: free-plan, run: true, subject: {properties: {plan: pro}}, expect: {limits: {memory: 1}}",
            ["limits.memory: 1, none"],
        ),
        (
            "rule: big-refund, tool: refund, args: {order: A, amount: 250}, expect: {demands: [{count: 2}]}",
            [],
        ),
    ],
)
def test_what_is_expected_is_compared(stack_of: StackOf, text: str, shortfalls: list[str]) -> None:
    trial = tried(stack_of(REFUNDS), text)
    assert told(trial) == shortfalls
    assert trial.passed is (not shortfalls)


@pytest.mark.parametrize(
    ("text", "message", "advice"),
    [
        (
            "rule: weekand, run: true, expect: hit",
            "this tests the rule `weekand`, and there is none of that name",
            "did you mean `weekend`?",
        ),
        (
            "run: true, expect: {effect: allow, by: weekand}",
            "there is no rule `weekand` that could decide",
            "did you mean `weekend`?",
        ),
        (
            "rule: free-plan, run: true, expect: allow",
            "`free-plan` denies nothing and asks about nothing, so that this could not fail",
            "expect `hit` or `miss`, or the `limits` that it sets",
        ),
        ("tool: refund, args: {order: A}, expect: ask", "`refund` misses the argument `amount`", None),
        (
            "tool: refund, args: {order: A, amuont: 1}, expect: ask",
            "`refund` takes no argument `amuont`; did you mean `amount`?",
            None,
        ),
        (
            "tool: refund, args: {order: A, amount: 1, when: soon}, expect: ask",
            "`when` is no date: Invalid isoformat string: 'soon'",
            None,
        ),
        ("code: 'x = (', expect: allow", "line 1 of the code: ", None),
        (
            "network: 'http://h/', expect: deny",
            "`network http://h/` can't be understood: ",
            None,
        ),
    ],
)
def test_what_could_not_be_tried_is_an_error(
    stack_of: StackOf, text: str, message: str, advice: str | None
) -> None:
    with pytest.raises(InvalidPolicy) as raised:
        tried(stack_of(REFUNDS), text)
    assert raised.value.message.startswith(message)
    assert raised.value.advice == advice
    assert raised.value.where is not None
    assert raised.value.where.file == "t"


def test_a_failure_tells_each_leaf(stack_of: StackOf) -> None:
    trial = tried(
        stack_of(REFUNDS),
        f"rule: big-refund, {BY_CFO}, expect: ask",
    )
    assert trial.notes == (
        "`if` `args.amount > 100` is true",
        "`unless` `group: cfo` is true: the groups are `cfo`",
    )


def test_what_the_rest_of_the_policy_says_is_a_note(stack_of: StackOf) -> None:
    trial = tried(stack_of(REFUNDS), "rule: weekend, read: /etc, expect: allow")
    assert trial.passed
    assert trial.notes[-1] == "with the rest of the policy it is deny: nothing allows it"


def test_a_rule_of_a_bound_can_be_tested_unless_two_have_that_name(stack_of: StackOf) -> None:
    bound = "rules: [{id: freeze, deny: run, if: {tenant: a}}]"
    text = "rule: freeze, run: true, subject: {tenant: a}, expect: deny"
    assert tried(stack_of("", bound), text).passed
    with pytest.raises(InvalidPolicy, match=r"`freeze` could be the rule of bound1:2:9 and bound2:2:9"):
        tried(stack_of("", bound, bound), text)
    own = "rules: [{id: freeze, ask: run}]"
    assert not tried(stack_of(own, bound, bound), text).passed  # it is the root's that is meant


def test_a_rule_that_is_only_rehearsed_can_be_tested(stack_of: StackOf) -> None:
    rehearsed = document_of("licet: 1\nmode: dry_run\nrules: [{id: freeze, deny: run}]\n", "next", "/p")
    stack = PolicyStack(stack_of("").root, rehearsed=(rehearsed,))
    trial = tried(stack, "rule: freeze, run: true, expect: deny")
    assert (trial.passed, trial.answer.effect) == (True, "allow")


def test_signatures_of_a_case_stand_in_for_those_of_python(stack_of: StackOf) -> None:
    stack = stack_of("allow: [tool pay]\nrules: [{id: big, ask: tool pay, if: args.sum > 5}]")
    assert tried(stack, "tool: pay, args: {sum: 5}, tools: {pay: {sum: int}}, expect: allow").passed
    # without a signature nobody knows what `args.sum` is, so the rule applies
    unknown = tried(stack, "tool: pay, args: {sum: 5}, expect: ask")
    assert unknown.passed
    assert "applies since `args.sum > 5` is not known" in unknown.notes[0]


def test_what_a_case_says_of_a_tool_has_to_fit_the_policy(stack_of: StackOf) -> None:
    stack = stack_of("rules: [{id: big, ask: tool pay, if: args.sum > 5}]")
    with pytest.raises(InvalidPolicy, match="`sum` is no field of `args`") as raised:
        tried(stack, "tool: pay, args: {total: 5}, tools: {pay: {total: int}}, expect: ask")
    assert str(raised.value.where) == "root:2:42"
    with pytest.raises(InvalidPolicy, match="the tool `refund` is not what `tools` of root declares"):
        tried(stack_of(REFUNDS), "run: true, tools: {refund: {sum: int}}, expect: allow")


def test_a_managed_bound_that_decides_is_named(tmp_path: Path) -> None:
    managed = str(tmp_path / "10-org.yaml")
    root = document_of("licet: 1\n", "root", "/p")
    bound = document_of("licet: 1\ndeny: [run]\n", managed, str(tmp_path))
    trial = tried(PolicyStack(root, (bound,), managed=(managed,)), "run: true, expect: deny")
    assert trial.managed == (managed,)


_INTENTS = ("run", "read /a", "read /a/b", "shell")
_CONDITIONS = ("", "if: {group: g}", "unless: {group: g}", "if: {tenant: t}")
_RULES = st.lists(
    st.tuples(st.sampled_from(("deny", "ask")), st.sampled_from(_INTENTS), st.sampled_from(_CONDITIONS)),
    max_size=4,
)
_ASKED = st.sampled_from(("run: true", "read: /a", "read: /a/b", "shell: true", "read: [/a, /c]"))
_SUBJECTS = st.sampled_from(("{id: a}", "{id: a, groups: [g]}", "{tenant: t}", "{id: a, tenant: u}"))


@given(_RULES, _ASKED, _SUBJECTS)
def test_what_a_rule_asks_or_denies_is_at_least_asked_or_denied(
    rules: list[tuple[str, str, str]], asked: str, subject: str
) -> None:
    lines = "".join(
        f"  - {{id: r{number}, {effect}: {target}{', ' if condition else ''}{condition}}}\n"
        for number, (effect, target, condition) in enumerate(rules)
    )
    text = f"licet: 1\nallow: [read /a, shell]\n{f'rules:{chr(10)}{lines}' if rules else ''}"
    stack = PolicyStack(document_of(text, "root", "/"))
    items = load(f"- {{{asked}, subject: {subject}, expect: allow}}".encode(), "t")
    [case] = parse_cases(items, "t", Position("t", 1))
    answer = ask(case, stack)
    hits = {hit.rule.id for hit in answer.prepared.decision.hits}
    for rule in rules_of(stack):
        assert SEVERITY[answer.own(rule)] <= SEVERITY[answer.effect]
        assert (answer.state(rule) == "hit") is (rule.id in hits)


_ODD = st.sampled_from(
    [
        "null",
        "true",
        "0",
        "-1.5",
        "''",
        "x",
        r'"\0"',
        r'"\uD800"',
        "[]",
        "[null]",
        "{}",
        "{a: null}",
        "{id: 1}",
        "{id: a}",
        "[{a: b}]",
        "hit",
        "ask",
        "refund",
        "big-refund",
        "'*'",
        "/p/data",
        "99999999999999999999",
        "{refund: {a: int}}",
        "{refund: {order: int}}",
        "[refund]",
        "2026-03-07T12:00:00Z",
        "{effect: ask}",
        "{by: weekend}",
        "[read x]",
        "{memory: 0}",
        "{memory: 1MiB}",
        "'../..'",
        '{"x y": z}',
        "{order: {a: [{b: c}]}, amount: .nan}",
        "h.example:80",
    ]
)


@given(st.dictionaries(st.sampled_from((*KEYS, "odd")), _ODD, max_size=6))
def test_whatever_a_case_holds_it_is_tried_or_refused_in_words(fields: dict[str, str]) -> None:
    stack = PolicyStack(document_of(f"licet: 1\n{REFUNDS}", "root", "/p"))
    text = ", ".join(f"{key}: {value}" for key, value in ({"expect": "allow"} | fields).items())
    try:
        trial = tried(stack, text)
    except InvalidPolicy as problem:
        assert problem.where is not None
        assert problem.message
    else:
        assert isinstance(trial.passed, bool)
