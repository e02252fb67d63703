"""Stubs: what a tool, an input and a file are to a type checker."""

import ast
import datetime
import functools
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import Tool, toolkit
from licet.calling import signature_of
from licet.policy import PolicyStack
from licet.stubs import shown_signature, stub_of, stubs_of

StackOf = Callable[..., PolicyStack]


class Order:
    """Nothing that code could name."""


def many(
    a: str,
    /,
    b: Optional[int],  # noqa: UP045
    c: Annotated[Decimal, "EUR"] = Decimal(1),
    *rest: int,
    d: Literal["x", 2, None],
    e: Sequence[dict[str, list[float]]] = (),
    **more: datetime.datetime,
) -> tuple[int, ...]: ...


def odd(order: Order, call: Callable[[], int], either: int | Order, kind: type, word: "Missing") -> Order: ...  # type: ignore[name-defined] # noqa: F821


def plain(a, b=1, *, c):  # type: ignore[no-untyped-def]
    ...


async def lookup(wallet: int) -> dict[str, int]: ...
async def unsure(x: int) -> int | None: ...
async def nothing() -> None: ...


def stub(function: Callable[..., Any], stack: PolicyStack | None = None) -> str:
    made = toolkit({"f": function})["f"]
    signature = signature_of("f", stack, made.handler) if stack else None
    return stub_of(made, signature)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            many,
            "def f(a: str, /, b: int | None, c: Decimal = ..., *rest: int, d: Literal['x', 2, None], "
            "e: list[dict[str, list[float]]] = ..., **more: datetime) -> tuple[int, ...]:\n    ...",
        ),
        (odd, "def f(order: Any, call: Any, either: Any, kind: Any, word: Any) -> Any:\n    ..."),
        (plain, "def f(a: Any, b: Any = ..., *, c: Any) -> Any:\n    ..."),
        (
            lookup,
            "class f_result(dict[str, int]):\n"
            "    def __await__(self) -> Generator[Any, Any, dict[str, int]]: ...\n"
            "def f(wallet: int) -> f_result:\n    ...",
        ),
        (unsure, "def f(x: int) -> Any:\n    ..."),
        (nothing, "def f() -> Any:\n    ..."),
        (functools.partial(lookup, 1), "class f_result(dict[str, int]):\n"
            "    def __await__(self) -> Generator[Any, Any, dict[str, int]]: ...\n"
            "def f() -> f_result:\n    ..."),
    ],
)  # fmt: skip
def test_a_stub_says_what_a_call_is_held_to(
    stack_of: StackOf, function: Callable[..., Any], text: str
) -> None:
    assert stub(function, stack_of("")) == text


def test_nobody_knows_the_parameters() -> None:
    assert stub(plain) == "def f(*args: Any, **kwargs: Any) -> Any:\n    ..."


def test_the_policy_names_the_parameters_and_the_types_that_python_does_not(stack_of: StackOf) -> None:
    stack = stack_of("tools: {f: {a: string, more: list of int?}}")

    def loose(a, more=(), hidden=None):  # type: ignore[no-untyped-def]
        ...

    def gathers(**anything: Any) -> None: ...

    assert stub(loose, stack) == "def f(a: str, more: list[int] = ...) -> Any:\n    ..."
    assert stub(gathers, stack) == "def f(*, a: str, more: list[int] = ...) -> None:\n    ..."


def test_a_description_cannot_end_what_it_stands_in(stack_of: StackOf) -> None:
    said = 'Ends """\nimport os\\"""\0'
    made = Tool("f", plain, description=said)
    tree = ast.parse(stub_of(made, None))
    [function] = tree.body
    assert isinstance(function, ast.FunctionDef)
    assert ast.get_docstring(function, clean=False) == 'Ends """\nimport os\\""" '


def test_inputs_have_the_types_of_their_values(stack_of: StackOf) -> None:
    inputs = {
        "a": 1,
        "b": [{"x": 1.0}],
        "c": [1, "x"],
        "d": None,
        "e": {},
        "f": {"k": (True, False)},
        "g": [[[[[[1]]]]]],
        "h": Order(),
    }
    lines = stubs_of((), stack_of(""), inputs, opens_files=False).splitlines()
    assert lines[lines.index("a: int") :] == [
        "a: int",
        "b: list[dict[str, float]]",
        "c: list[Any]",
        "d: None",
        "e: dict[Any, Any]",
        "f: dict[str, tuple[bool, ...]]",
        "g: list[list[list[list[list[Any]]]]]",
        "h: Any",
    ]


def test_open_is_known_only_where_files_are(stack_of: StackOf) -> None:
    texts = [stubs_of((), stack_of(""), {}, opens_files=opens) for opens in (True, False)]
    assert ["def open(" in text for text in texts] == [True, False]


def test_a_parameter_that_python_cannot_spell_does_not_break_the_stub(stack_of: StackOf) -> None:
    def anything(**more: Any) -> None: ...

    shown = stub(anything, stack_of("tools: {f: {from: string, to: string}}"))
    assert shown == "def f(*, to: str, **kwargs: Any) -> None:\n    ..."


_PARAMETERS = st.lists(
    st.tuples(st.sampled_from(["placed", "plain", "rest", "named", "extra"]), st.booleans()), max_size=6
)


@given(_PARAMETERS)
def test_every_signature_of_python_makes_a_stub_that_python_reads(parameters: list[tuple[str, bool]]) -> None:
    from licet.policy.signatures import Parameter, Signature

    made = [Parameter(f"p{n}", required=required, role=role) for n, (role, required) in enumerate(parameters)]
    seen = {one.role: one for one in made if one.role in ("rest", "extra")}
    kept = [one for one in made if one.role not in ("rest", "extra") or seen[one.role] is one]
    [f] = toolkit({"f": plain}).values()
    ast.parse(f"def {shown_signature(f, Signature(tuple(kept)))}: ...")
