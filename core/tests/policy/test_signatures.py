"""What tools take: as a policy declares it, as Python says it, and whether the two agree."""

import functools
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.errors import InvalidPolicy, Position
from licet.policy.signatures import (
    KINDS,
    Parameter,
    Signature,
    Type,
    bind,
    mismatch,
    of_callable,
    parse_tools,
)
from licet.policy.yaml import load


def declared(text: str) -> dict[str, Signature]:
    tree = load(f"tools:\n  {text}".encode(), "p.yaml")
    return parse_tools(tree["tools"], "p.yaml", Position("p.yaml", 1, 1))


def refusal(text: str) -> tuple[str, str | None]:
    with pytest.raises(InvalidPolicy) as problem:
        declared(text)
    return str(problem.value), problem.value.advice


def test_a_declaration_keeps_the_order_and_the_types() -> None:
    read = declared("refund: {order: string, amount: decimal, tags: list of list of int?, note: any?}")
    assert read["refund"].parameters == (
        Parameter("order", Type("string")),
        Parameter("amount", Type("decimal")),
        Parameter("tags", Type("list", Type("list", Type("int"))), required=False),
        Parameter("note", Type("any"), required=False),
    )
    assert str(read["refund"].types["tags"]) == "list of list of int"


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_is_known(kind: str) -> None:
    assert declared(f"t: {{x: {kind}}}")["t"].types == {"x": Type(kind)}


@pytest.mark.parametrize(
    ("text", "message", "advice"),
    [
        ("t: {x: strin}", "p.yaml:2:7: `t.x`: unknown type `strin`", "did you mean `string`?"),
        ("t: {x: Decimal}", "p.yaml:2:7: `t.x`: unknown type `Decimal`", "did you mean `decimal`?"),
        ("t: {x: 7}", "p.yaml:2:7: `t.x`: a type is a text, found `7`", f"known are {', '.join(KINDS)}"),
        (
            "t: {x: map of int}",
            "p.yaml:2:7: `t.x`: only a `list` is `of` something, found `map of int`",
            "write `list of TYPE`",
        ),
        (
            "t: [x]",
            "p.yaml:2:3: the tool `t` needs a mapping of its parameters to their types",
            "such as `t: {order: string, amount: decimal}`, or `t: {}` if it has none",
        ),
        ("'a b': {}", "p.yaml:2:3: `a b` is no name of a tool", None),
        ("t: {a-b: int}", "p.yaml:2:7: `a-b` is no name of a parameter", None),
    ],
)
def test_what_is_no_declaration_is_refused_at_its_place(text: str, message: str, advice: str | None) -> None:
    assert refusal(text) == (message, advice)


def test_tools_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(InvalidPolicy, match="`tools` is a mapping of tools to their parameters"):
        parse_tools(["refund"], "p.yaml", Position("p.yaml", 1, 1))


def every_type(
    a: str,
    b: int,
    c: Decimal,
    d: float,
    e: bool,
    f: bytes,
    g: date,
    h: datetime,
    i: timedelta,
    j: list[int],
    k: dict[str, int],
    m: "Sequence[str]",
    n: int | None,
    o: Optional[str],  # noqa: UP045 — both spellings are to be read
    p: Literal["x", "y"],
    q: Annotated[int, "metres"],
    r: Mapping[str, Any],
    s: tuple[int, ...],
    t: tuple[int, str],
    u: int | str,
    v: object,
    w,  # type: ignore[no-untyped-def]
    *rest: int,
    x: int = 1,
    **extra: Any,
) -> None: ...


def test_annotations_become_types() -> None:
    shown = {name: str(kind) for name, kind in of_callable(every_type).types.items()}
    assert shown == {
        "a": "string",
        "b": "int",
        "c": "decimal",
        "d": "float",
        "e": "bool",
        "f": "bytes",
        "g": "date",
        "h": "datetime",
        "i": "duration",
        "j": "list of int",
        "k": "map",
        "m": "list of string",
        "n": "int",
        "o": "string",
        "p": "string",
        "q": "int",
        "r": "map",
        "s": "list of int",
        "t": "list",
        "u": "any",
        "v": "any",
        "w": "any",
        "rest": "list of int",
        "x": "int",
        "extra": "map",
    }


def test_the_role_and_need_of_each_parameter_is_known() -> None:
    found = of_callable(every_type)
    last = {one.name: (one.role, one.required) for one in found.parameters[-4:]}
    assert last == {
        "w": ("plain", True),
        "rest": ("rest", False),
        "x": ("named", False),
        "extra": ("extra", False),
    }


class Tool:
    def __call__(self, order: str) -> None: ...

    def method(self, amount: int) -> None: ...


def test_objects_methods_and_partials_are_tools_too() -> None:
    assert of_callable(Tool()).types == {"order": Type("string")}
    assert of_callable(Tool().method).types == {"amount": Type("int")}
    assert next(iter(of_callable(functools.partial(every_type, "a")).types)) == "b"


def test_an_annotation_that_can_not_be_resolved_is_any() -> None:
    def tool(order: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert of_callable(tool).types == {"order": Type("any")}


def test_what_is_not_callable_has_no_signature() -> None:
    with pytest.raises(ValueError, match="3 is not a callable object"):
        of_callable(3)  # type: ignore[arg-type]


def refund(order: str, amount: Decimal, currency: str = "EUR") -> None: ...


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{order: string, amount: decimal, currency: string}", None),
        ("{order: any, amount: decimal}", None),
        (
            "{order: string, amount: float}",
            "`amount` is declared as float and is decimal in Python",
        ),
        (
            "{order: string, amout: decimal}",
            "it takes no `amout`; its parameters are `order`, `amount`, `currency`",
        ),
        ("{order: string}", "it needs `amount`, which is not declared"),
        (
            "{amount: decimal, order: string}",
            "its parameters are declared as `amount`, `order` and stand as `order`, `amount` in Python",
        ),
    ],
)
def test_a_contradiction_is_said_in_words(text: str, words: str | None) -> None:
    assert mismatch(declared(f"refund: {text}")["refund"], of_callable(refund)) == words


def test_lists_agree_by_their_items() -> None:
    ints, texts = Type("list", Type("int")), Type("list", Type("string"))
    assert not ints.agrees_with(texts)
    assert ints.agrees_with(Type("list"))
    assert Type("list").agrees_with(texts)


def test_a_parameter_that_only_kwargs_would_take_is_no_contradiction() -> None:
    def tool(order: str, **more: Any) -> None: ...

    assert mismatch(declared("t: {order: string, amount: int}")["t"], of_callable(tool)) is None


SIGNATURE = of_callable(refund)


def test_positions_get_names_and_nothing_is_filled_in() -> None:
    assert bind(SIGNATURE, ("A1",), {"amount": 5}) == {"order": "A1", "amount": 5}


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((1, 2, 3, 4), {}, "takes 3 positional arguments, and 4 were given"),
        ((1,), {"order": 2}, "got `order` twice, by position and by name"),
        ((1, 2), {"curency": "EUR"}, "takes no argument `curency`; did you mean `currency`?"),
        ((1,), {}, "misses the argument `amount`"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(
    args: Sequence[Any], kwargs: Mapping[str, Any], words: str
) -> None:
    with pytest.raises(ValueError) as problem:
        bind(SIGNATURE, args, kwargs)
    assert str(problem.value) == words


NAMES = st.sampled_from(["a", "b", "c", "x", "y"])


def _f1(a, b, *rest, x, y=1):  # type: ignore[no-untyped-def]
    return {"a": a, "b": b, **({"rest": list(rest)} if rest else {}), "x": x, "y": y}


def _f2(a, b=2, **extra):  # type: ignore[no-untyped-def]
    return {"a": a, "b": b, **({"extra": extra} if extra else {})}


@given(
    st.sampled_from([_f1, _f2]), st.lists(st.integers(), max_size=4), st.dictionaries(NAMES, st.integers())
)
def test_binding_names_what_python_would_name(tool: Any, args: list[int], kwargs: dict[str, int]) -> None:
    """The slow reference is the call itself; what it fills in is absent here."""
    try:
        expected = tool(*args, **kwargs)
    except TypeError:
        expected = None
    try:
        bound: dict[str, Any] | None = bind(of_callable(tool), args, kwargs)
    except ValueError:
        bound = None
    if bound is None or expected is None:
        assert bound is None and expected is None
        return
    defaults = {"y": 1} if tool is _f1 else {"b": 2}
    assert {**defaults, **bound} == expected
