"""Tools of a request against what the policy says of them, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from licet.calling import check_tools, signature_of
from licet.errors import InvalidPolicy, InvalidRequest
from licet.policy import PolicyStack
from licet.tooling import toolkit

StackOf = Callable[..., PolicyStack]

DECLARED = "tools: {refund: {order: string, amount: decimal}}"
RULE = """\
allow: [tool refund]
rules:
  - id: large
    ask: tool refund
    if: args.amount > 100
"""


def refund(order: str, amount: Decimal) -> None: ...


def test_the_policy_is_believed_before_python(stack_of: StackOf) -> None:
    known = signature_of("refund", stack_of(DECLARED), lambda amount, order: None)
    assert known is not None
    assert list(known.types) == ["order", "amount"]


def test_python_is_believed_where_the_policy_is_silent(stack_of: StackOf) -> None:
    known = signature_of("refund", stack_of(""), refund)
    assert known is not None
    assert {name: str(kind) for name, kind in known.types.items()} == {"order": "string", "amount": "decimal"}


def test_nobody_may_know(stack_of: StackOf) -> None:
    assert signature_of("refund", stack_of(""), None) is None
    assert signature_of("refund", stack_of(""), min) is None


def test_a_tool_as_declared_passes(stack_of: StackOf) -> None:
    check_tools(toolkit({"refund": refund}), stack_of(DECLARED))


@pytest.mark.parametrize(
    ("tool", "how"),
    [
        (
            lambda amount, order: None,
            "its parameters are declared as `order`, `amount` and stand as `amount`, `order` in Python",
        ),
        (lambda order: None, "it takes no `amount`; its parameters are `order`"),
        (lambda order, amount, why: None, "it needs `why`, which is not declared"),
    ],
)
def test_a_tool_that_contradicts_its_declaration_is_refused(
    stack_of: StackOf, tool: Callable[..., Any], how: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_tools(toolkit({"refund": tool}), stack_of(DECLARED))
    assert caught.value.message == f"the tool `refund` is not what `tools` of root declares: {how}"


def test_a_rule_is_checked_against_a_tool_that_only_python_knows(stack_of: StackOf) -> None:
    check_tools(toolkit({"refund": refund}), stack_of(RULE))

    def other(order: str, sum: Decimal) -> None: ...

    with pytest.raises(InvalidPolicy) as caught:
        check_tools(toolkit({"refund": other}), stack_of(RULE))
    assert caught.value.message == "for the tool `refund`: `amount` is no field of `args`"
    assert str(caught.value.where) == "root:6:13"


def test_a_tool_that_no_hash_tells_from_others_is_looked_at(stack_of: StackOf) -> None:
    class Odd:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, order: str) -> None: ...

    with pytest.raises(InvalidRequest, match="it takes no `amount`"):
        check_tools(toolkit({"refund": Odd()}), stack_of(DECLARED))
