"""Which changes of a rule tests notice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from licet.errors import Position
from licet.policy import PolicyStack
from licet.policy.cases import parse_cases
from licet.policy.yaml import load
from licet.workbench.trials.mutants import count, unnoticed
from licet.workbench.trials.trial import try_case

StackOf = Callable[..., PolicyStack]

POLICY = "rules: [{id: a, deny: run, if: {tenant: t}, unless: {group: g}}]"
ALL = [
    "`a` that never applies",
    "`a` that always applies",
    "`a` with `tenant: t` turned round",
    "`a` with `group: g` turned round",
]
HIT = "run: true, subject: {id: x, tenant: t}, expect: deny"
OTHER_TENANT = "run: true, subject: {id: x, tenant: u}, expect: allow"
EXCEPTED = "run: true, subject: {id: x, tenant: t, groups: [g]}, expect: allow"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], ALL),
        ([HIT], [ALL[1]]),
        ([OTHER_TENANT], [ALL[0], ALL[3]]),
        ([EXCEPTED], [ALL[0], ALL[2]]),
        ([HIT, EXCEPTED], []),
        # what fails already can't notice anything
        ([HIT.replace("deny", "allow")], ALL),
    ],
)
def test_a_change_is_noticed_if_a_test_fails_by_it(
    stack_of: StackOf, texts: list[str], expected: list[str]
) -> None:
    stack = stack_of(POLICY)
    items = load("".join(f"- {{{text}}}\n" for text in texts).encode() or b"[]", "t")
    trials = [try_case(case, stack) for case in parse_cases(items, Position("t", 1))]
    heard: list[None] = []
    assert [str(one) for one in unnoticed(stack, trials, lambda: heard.append(None))] == expected
    assert len(heard) == count(stack) == 4


def test_tests_of_a_rule_that_is_switched_off_fail_for_that_alone(stack_of: StackOf) -> None:
    stack = stack_of(
        "rules: [{id: a, deny: run, tests: [{run: true, expect: deny}]}, {id: b, limits: {memory: 1}}]"
    )
    [case] = stack.root.rules[0].tests
    assert [str(one) for one in unnoticed(stack, [try_case(case, stack)])] == ["`b` that never applies"]


def test_a_rule_that_reads_a_call_still_waits_for_one(stack_of: StackOf) -> None:
    stack = stack_of(
        "allow: [tool pay]\ntools: {pay: {sum: int}}\n"
        "rules: [{id: a, deny: tool pay, if: args.sum > 5, tests: [{run: true, expect: pending}]}]"
    )
    [case] = stack.root.rules[0].tests
    assert len(unnoticed(stack, [try_case(case, stack)])) == count(stack) == 3
