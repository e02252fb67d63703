"""A call of a tool is bound as Python binds it, whatever the signature and the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import toolkit
from licet.policy.signatures import bind, of_callable
from licet.stubs import stub_of

_NAMES = "abcdef"
_KINDS = inspect.Parameter


@st.composite
def signatures(draw: Any) -> inspect.Signature:
    """Any order and kind of parameters that Python allows."""
    names = list(draw(st.permutations(_NAMES)))
    counts = [draw(st.integers(0, 2)) for _ in range(3)]
    made, optional = [], False
    for kind, count in zip((_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD), counts[:2], strict=True):
        for _ in range(count):
            optional = optional or draw(st.booleans())
            made.append(_KINDS(names.pop(), kind, default=0 if optional else _KINDS.empty))
    if draw(st.booleans()):
        made.append(_KINDS("rest", _KINDS.VAR_POSITIONAL))
    for _ in range(counts[2]):
        default = draw(st.sampled_from([0, _KINDS.empty]))
        made.append(_KINDS(names.pop(), _KINDS.KEYWORD_ONLY, default=default))
    if draw(st.booleans()):
        made.append(_KINDS("extra", _KINDS.VAR_KEYWORD))
    return inspect.Signature(made)


class _Unset:
    """Stands for a default, and tells that nothing was given."""

    def __repr__(self) -> str:
        return "_unset"


def given_to(signature: inspect.Signature, args: list[int], kwargs: dict[str, int]) -> dict[str, Any]:
    """What Python itself binds; `inspect` refuses names of positional parameters that `**extra` takes."""
    unset = _Unset()
    parameters = [
        one if one.default is _KINDS.empty else one.replace(default=unset)
        for one in signature.parameters.values()
    ]
    scope: dict[str, Any] = {"_unset": unset}
    exec(f"def tool{signature.replace(parameters=parameters)}: return locals()", scope)
    bound = scope["tool"](*args, **kwargs)
    variable = {"rest": (), "extra": {}}
    return {
        name: value
        for name, value in bound.items()
        if value is not unset and not (name in variable and value == variable[name])
    }


def taking(signature: inspect.Signature) -> Callable[..., Any]:
    def tool(*args: Any, **kwargs: Any) -> Any:
        return signature.bind(*args, **kwargs).arguments

    tool.__signature__ = signature  # type: ignore[attr-defined]
    return tool


_ARGS = st.lists(st.integers(), max_size=5)
_KWARGS = st.dictionaries(st.sampled_from([*_NAMES, "rest", "extra", "other"]), st.integers(), max_size=4)


@given(signatures(), _ARGS, _KWARGS)
def test_binding_is_pythons(signature: inspect.Signature, args: list[int], kwargs: dict[str, int]) -> None:
    known = of_callable(taking(signature))
    try:
        expected = given_to(signature, args, kwargs)
    except TypeError:
        with pytest.raises(ValueError, match=r"takes|misses|twice"):
            bind(known, args, kwargs)
        return
    bound = bind(known, args, kwargs)
    assert bound == {
        name: list(value) if isinstance(value, tuple) else value for name, value in expected.items()
    }


@given(signatures())
def test_a_stub_has_the_parameters_of_its_tool(signature: inspect.Signature) -> None:
    [tool] = toolkit({"tool": taking(signature)}).values()
    scope: dict[str, Any] = {"Any": Any}
    exec(stub_of(tool, of_callable(tool.handler)), scope)
    shown = inspect.signature(scope["tool"]).parameters.values()
    assert [(one.name, one.kind, one.default is _KINDS.empty) for one in shown] == [
        (one.name, one.kind, one.default is _KINDS.empty) for one in signature.parameters.values()
    ]
