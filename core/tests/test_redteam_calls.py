"""Attacks on calls of tools: an argument that a rule reads as another one than the tool gets."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.applying import facts_of
from licet.calling import check_tools, signature_of
from licet.decide import decide_call
from licet.errors import InvalidRequest
from licet.policy import PolicyStack
from licet.policy.facts import CallFacts
from licet.policy.signatures import as_taken, bind, mismatch, of_callable
from licet.request import NormalizedRequest, ScreenReport, Subject
from licet.tooling import toolkit

StackOf = Callable[..., PolicyStack]
Normalized = Callable[..., NormalizedRequest]
TOOLS = "tools: {wipe: {path: string, scope: string?}}\nallow: [tool wipe]\n"


def skips(path: str, recursive: bool = False, scope: str = "all") -> dict[str, Any]:
    return {"path": path, "scope": scope}


def behind_rest(path: str, *rest: str, scope: str = "all") -> dict[str, Any]:
    return {"path": path, "scope": scope}


def placed(path: str, scope: str = "all", /, **more: Any) -> dict[str, Any]:
    return {"path": path, "scope": scope}


def gathers(path: str, *rest: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "scope": more.get("scope", "all")}


def honest(path: str, scope: str = "all") -> dict[str, Any]:
    return {"path": path, "scope": scope}


def named(path: str, *, scope: str = "all") -> dict[str, Any]:
    return {"path": path, "scope": scope}


def test_a_declaration_that_skips_a_position_is_refused(stack_of: StackOf) -> None:
    assert skips("x", "one") == {"path": "x", "scope": "all"}  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest) as problem:
        check_tools(toolkit({"wipe": skips}), stack_of(TOOLS))
    assert problem.value.message == (
        "the tool `wipe` is not what `tools` of root declares: it takes `recursive`, which is not declared, "
        "before `scope`"
    )
    check_tools(toolkit({"wipe": lambda path, scope="all", recursive=False: None}), stack_of(TOOLS))


@pytest.mark.parametrize(
    ("tool", "args", "kwargs"),
    [
        (behind_rest, ("x", "one"), {}),
        (placed, ("x",), {"scope": "one"}),
        (gathers, ("x", "one"), {}),
        (named, ("x", "one"), {}),
    ],
)
def test_what_a_rule_would_read_under_another_name_is_no_call(
    stack_of: StackOf, tool: Callable[..., Any], args: tuple[str, ...], kwargs: dict[str, str]
) -> None:
    stack = stack_of(TOOLS)
    check_tools(toolkit({"wipe": tool}), stack)
    signature = signature_of("wipe", stack, tool)
    assert signature is not None
    with pytest.raises(ValueError, match=r"positional|takes no argument"):
        bind(signature, args, kwargs)


def test_a_name_that_only_a_position_reaches_is_gathered_as_python_does() -> None:
    signature = of_callable(placed)
    assert bind(signature, ("x",), {"scope": "one"}) == {"path": "x", "more": {"scope": "one"}}
    assert bind(signature, ("x", "one"), {}) == {"path": "x", "scope": "one"}


@given(
    st.sampled_from([behind_rest, placed, gathers, honest, named]),
    st.lists(st.sampled_from("abc"), max_size=4),
    st.dictionaries(st.sampled_from(["path", "scope", "more", "rest"]), st.sampled_from("abc"), max_size=2),
)
def test_a_rule_reads_what_the_tool_gets(
    tool: Callable[..., Any], args: list[str], kwargs: dict[str, str]
) -> None:
    """What is bound is what Python does; what is not is the default, and a rule knows that it is missing."""
    declared = of_callable(honest)
    python = of_callable(tool)
    assert mismatch(declared, python) is None
    try:
        seen = bind(as_taken(declared, python), args, kwargs)
    except ValueError:
        return
    try:
        got = tool(*args, **kwargs)
    except TypeError:
        return
    assert {"scope": "all", **seen} == got


def test_a_rehearsed_bound_is_rehearsed_for_calls_too(stack_of: StackOf, normalized: Normalized) -> None:
    root, strict = stack_of(
        TOOLS,
        "mode: dry_run\nrules:\n  - {id: all, deny: tool wipe, if: 'args.scope == \"all\"'}\n"
        "  - {id: other, deny: tool find}\n",
    ).documents
    stack = PolicyStack(root, rehearsed=(strict,))
    request = normalized(stack=stack, subject=Subject(id="ann"))

    def called(scope: str) -> Any:
        made = CallFacts("wipe", {"path": "x", "scope": scope}, stack.tools["wipe"])
        facts = facts_of(request, ScreenReport(), datetime(2026, 3, 4, tzinfo=UTC), stack)
        return decide_call(replace(facts, call=made), stack)

    wide, narrow = called("all"), called("one")
    assert (wide.effect, narrow.effect) == ("allow", "allow")
    assert wide.hits == ()
    [told] = wide.rehearsals
    assert (told.document, told.effect) == ("bound1", "deny")
    assert [one.effect for one in told.verdicts] == ["deny"]
    assert [hit.rule.id for hit in told.hits] == ["all"]
    [told] = narrow.rehearsals
    assert (told.effect, told.verdicts, told.hits) == ("allow", (), ())
