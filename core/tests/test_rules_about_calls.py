"""What a rule can say of the call of a tool, and what comes too late for one."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from licet.applying import facts_of
from licet.decide import Decision, decide_call
from licet.errors import InvalidPolicy
from licet.policy import PolicyStack
from licet.policy.facts import CallFacts
from licet.request import NormalizedRequest, ScreenReport, Subject

StackOf = Callable[..., PolicyStack]
Normalized = Callable[..., NormalizedRequest]

AT = datetime(2026, 3, 4, tzinfo=UTC)
TOOLS = "tools: {pay: {amount: int}, send: {to: string}}\n"


@pytest.fixture
def called(normalized: Normalized) -> Callable[..., Decision]:
    def make(stack: PolicyStack, tool: str, **args: Any) -> Decision:
        request = normalized(stack=stack, subject=Subject(id="ann", groups=("staff",)))
        facts = facts_of(request, ScreenReport(), AT, stack)
        made = CallFacts(tool, args, stack.tools.get(tool))
        return decide_call(replace(facts, call=made), stack)

    return make


def test_a_call_is_told_of_rules_about_its_tool_alone(
    stack_of: StackOf, called: Callable[..., Decision]
) -> None:
    stack = stack_of(
        TOOLS + "allow: [tool *]\n"
        "rules:\n"
        "  - {id: mine, ask: tool pay, if: args.amount > 1}\n"
        "  - {id: other, deny: tool send, if: args.to == 'x'}\n"  # nobody knows it of a call of `pay`
        "  - {id: also-other, deny: tool send}\n"
        "  - {id: every, ask: 'tool *'}\n"
    )
    assert [hit.rule.id for hit in called(stack, "pay", amount=2).hits] == ["mine", "every"]
    assert [hit.rule.id for hit in called(stack, "pay", amount=1).hits] == ["every"]


def test_a_rule_that_only_demands_an_approval_demands_it_of_calls_too(
    stack_of: StackOf, called: Callable[..., Decision]
) -> None:
    stack = stack_of(
        "allow: [tool find]\nask: [tool pay]\n"
        "rules:\n"
        "  - {id: two-for-staff, if: {group: staff}, approval: {count: 2}}\n"
        "  - {id: three-for-guests, if: {group: guests}, approval: {count: 3}}\n"
    )
    assert [demand.count for demand in called(stack, "pay").demands] == [1, 2]
    assert called(stack, "find").demands == ()


@pytest.mark.parametrize(
    ("setting", "column"),
    [
        ("limits: {memory: 1MiB}", 51),
        ("sandbox: {evidence: probed}", 51),
        ("audit: {mode: required}", 51),
    ],
)
def test_settings_come_too_late_for_a_call(stack_of: StackOf, setting: str, column: int) -> None:
    key = setting.partition(":")[0]
    with pytest.raises(InvalidPolicy) as problem:
        stack_of(TOOLS + f"rules:\n  - {{id: big, ask: tool pay, if: args.amount > 1, {setting}}}")
    assert problem.value.message == (
        f"`{key}` of the rule `big` would come too late: its condition waits for a call"
    )
    assert str(problem.value.where) == f"root:4:{column}"
    assert problem.value.advice == (
        "put it into a rule of its own, whose condition reads no `args` and no `tool`"
    )


def test_an_approval_comes_too_late_where_the_rule_does_not_ask(stack_of: StackOf) -> None:
    with pytest.raises(InvalidPolicy, match="`approval` of the rule `big` would come too late"):
        stack_of(TOOLS + "rules: [{id: big, deny: tool pay, if: args.amount > 1, approval: {count: 2}}]")
    stack_of(TOOLS + "rules: [{id: big, ask: tool pay, if: args.amount > 1, approval: {count: 2}}]")
    stack_of(TOOLS + "rules: [{id: big, ask: tool pay, if: {group: x}, limits: {memory: 1MiB}}]")
