"""What a tool takes: parameter names in order, with types.

Rules this module keeps:

- a policy and the Python signature of a tool may both say it, and then they have to agree;
- an unknown type is an error; a parameter without an annotation, or with one that has no word here, is `any`;
- positional arguments get the names of their parameters, so that a condition never reads a position, and
  what it reads under a name is what the tool gets under that name;
- nothing is filled in: a parameter that a call leaves out is absent, whatever its default.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from licet.errors import InvalidPolicy, Position
from licet.policy.advice import nearest
from licet.policy.yaml import Fields

KINDS = (
    "string", "int", "decimal", "float", "bool", "bytes",
    "date", "datetime", "duration", "list", "map", "any",
)  # fmt: skip
"""The types of parameters; `list of TYPE` and `TYPE?` (may be left out) are made of them."""

_OF_PYTHON: Mapping[Any, str] = {
    str: "string",
    int: "int",
    Decimal: "decimal",
    float: "float",
    bool: "bool",
    bytes: "bytes",
    date: "date",
    datetime: "datetime",
    timedelta: "duration",
}
_LISTS = (list, tuple, Sequence, collections.abc.Iterable, collections.abc.Collection)
_MAPS = (dict, Mapping, collections.abc.MutableMapping)


@dataclass(frozen=True, slots=True)
class Type:
    """One of `KINDS`; `item` is the type of a list's items, where that is said."""

    kind: str
    item: Type | None = None

    def __str__(self) -> str:
        return f"list of {self.item}" if self.item is not None else self.kind

    def agrees_with(self, other: Type) -> bool:
        """Whether both can be true of one parameter."""
        if "any" in (self.kind, other.kind):
            return True
        if self.item is not None and other.item is not None:
            return self.item.agrees_with(other.item)
        return self.kind == other.kind


ANY = Type("any")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `required` is false where a call may leave it out.

    `role` is `plain`, or `named` for one that no position reaches, `placed` for one that no name reaches, or
    `rest` and `extra` for `*args` and `**kwargs`, which gather what has no parameter of its own.
    """

    name: str
    type: Type = ANY
    required: bool = True
    role: str = "plain"


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of one tool, in order."""

    parameters: tuple[Parameter, ...] = ()
    _hash: int = field(default=0, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.parameters))

    def __hash__(self) -> int:
        return self._hash  # kept, because every evaluation looks its program up by the signature

    @property
    def types(self) -> dict[str, Type]:
        """The type of each parameter, by name."""
        return {one.name: one.type for one in self.parameters}

    def as_json(self) -> list[dict[str, Any]]:
        """Its parameters as records have them."""
        return [
            {"name": one.name, "type": str(one.type), "required": one.required, "role": one.role}
            for one in self.parameters
        ]

    def named(self, name: str) -> Parameter | None:
        """The parameter of that name."""
        return next((one for one in self.parameters if one.name == name), None)


def parse_tools(tree: object, file: str, where: Position) -> dict[str, Signature]:
    """Read the policy key `tools`, which the YAML loader built; `where` is the place of the key.

    Raises:
        InvalidPolicy: it is no mapping of tool names to mappings of parameters to types; with the place.
    """
    if not isinstance(tree, Fields):
        raise InvalidPolicy(
            "`tools` is a mapping of tools to their parameters",
            where=where,
            advice="such as `tools: {refund: {order: string, amount: decimal}}`",
        )
    return {name: _declared(name, tree[name], file, Position(file, *tree.places[name])) for name in tree}


def _declared(tool: str, tree: object, file: str, where: Position) -> Signature:
    if not tool.isidentifier():
        raise InvalidPolicy(f"`{tool}` is no name of a tool", where=where)
    if not isinstance(tree, Fields):
        raise InvalidPolicy(
            f"the tool `{tool}` needs a mapping of its parameters to their types",
            where=where,
            advice=f"such as `{tool}: {{order: string, amount: decimal}}`, or `{tool}: {{}}` if it has none",
        )
    found = []
    for name, text in tree.items():
        place = Position(file, *tree.places[name])
        if not name.isidentifier():
            raise InvalidPolicy(f"`{name}` is no name of a parameter", where=place)
        parsed, required = _type(text, f"{tool}.{name}", place)
        found.append(Parameter(name, parsed, required))
    return Signature(tuple(found))


def _type(text: object, of: str, where: Position) -> tuple[Type, bool]:
    if not isinstance(text, str):
        raise InvalidPolicy(
            f"`{of}`: a type is a text, found `{text}`", where=where, advice=f"known are {', '.join(KINDS)}"
        )
    plain = text.strip()
    required = not plain.endswith("?")
    *lists, kind = (part.strip() for part in plain.removesuffix("?").split(" of "))
    if any(part != "list" for part in lists):
        raise InvalidPolicy(
            f"`{of}`: only a `list` is `of` something, found `{text}`",
            where=where,
            advice="write `list of TYPE`",
        )
    if kind not in KINDS:
        raise InvalidPolicy(f"`{of}`: unknown type `{kind}`", where=where, advice=nearest(kind, KINDS))
    found = Type(kind)
    for _ in lists:
        found = Type("list", found)
    return found, required


def of_callable(tool: Callable[..., Any]) -> Signature:
    """What Python says of a tool.

    Raises:
        ValueError: Python knows no signature of it, as of some built-in functions.
    """
    try:
        found = inspect.signature(tool)
    except Exception as problem:  # a callable can say anything of itself, and fail at it
        raise ValueError(str(problem)) from None
    hints = _hints(tool)
    return Signature(
        tuple(_parameter(one, hints.get(one.name, one.annotation)) for one in found.parameters.values())
    )


def annotations_of(tool: Callable[..., Any]) -> dict[str, Any]:
    """What Python says of each parameter's type, and of `return`; what can't be had is left out."""
    try:
        found = inspect.signature(tool)
    except Exception:
        return {}
    said = {one.name: one.annotation for one in found.parameters.values()}
    said["return"] = found.return_annotation
    hints = _hints(tool)
    known = {name: hints.get(name, annotation) for name, annotation in said.items()}
    return {name: one for name, one in known.items() if one is not inspect.Parameter.empty}


def _hints(tool: Callable[..., Any]) -> dict[str, Any]:
    while isinstance(tool, functools.partial):
        tool = tool.func
    function = tool if inspect.isroutine(tool) else getattr(tool, "__call__", tool)  # noqa: B004
    try:
        return typing.get_type_hints(function)
    except Exception:  # an annotation is code of the tool's author, and can raise anything
        return {}


_ROLES = {
    inspect.Parameter.POSITIONAL_ONLY: "placed",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "plain",
    inspect.Parameter.KEYWORD_ONLY: "named",
    inspect.Parameter.VAR_POSITIONAL: "rest",
    inspect.Parameter.VAR_KEYWORD: "extra",
}


def _parameter(one: inspect.Parameter, annotation: Any) -> Parameter:
    role = _ROLES[one.kind]
    if role == "rest":
        return Parameter(one.name, Type("list", _of_annotation(annotation)), False, role)
    if role == "extra":
        return Parameter(one.name, Type("map"), False, role)
    return Parameter(one.name, _of_annotation(annotation), one.default is inspect.Parameter.empty, role)


def _of_annotation(annotation: Any) -> Type:
    if annotation in (list, tuple):
        return Type("list")
    if annotation is dict:
        return Type("map")
    if isinstance(annotation, type) and annotation in _OF_PYTHON:
        return Type(_OF_PYTHON[annotation])
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _of_annotation(args[0])
    if origin is typing.Literal:
        kinds = {_of_annotation(type(value)) for value in args}
        return kinds.pop() if len(kinds) == 1 else ANY
    if origin in (typing.Union, types.UnionType):
        kinds = {_of_annotation(arm) for arm in args if arm is not type(None)}
        return kinds.pop() if len(kinds) == 1 else ANY
    if origin in _LISTS:
        whole = origin is not tuple or (len(args) == 2 and args[1] is Ellipsis)
        return Type("list", _of_annotation(args[0])) if whole and args else Type("list")
    return Type("map") if origin in _MAPS else ANY


def stand_in(told: object, act: Callable[..., Any]) -> Callable[..., Any]:
    """`act`, of which Python says what `Signature.as_json` told of another tool.

    Raises:
        ValueError: nothing told so.
    """
    try:
        parameters = [_told_parameter(**one) for one in told] if isinstance(told, list) else None
        if parameters is None:
            raise ValueError("no list of parameters")
        act.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    except (TypeError, KeyError) as problem:
        raise ValueError(f"no parameters: {problem}") from None
    return act


def _told_parameter(*, name: str, type: str, required: bool, role: str) -> inspect.Parameter:
    kind = next(one for one, word in _ROLES.items() if word == role) if role in _ROLES.values() else None
    if kind is None:
        raise ValueError(f"no role: {role!r}")
    if role in ("rest", "extra"):
        item = type.removeprefix("list of ")
        return inspect.Parameter(name, kind, annotation=_annotation(item if role == "rest" else "any"))
    default = inspect.Parameter.empty if required else None
    return inspect.Parameter(name, kind, default=default, annotation=_annotation(type))


def _annotation(type: str) -> Any:
    if type.startswith("list of "):
        return list[_annotation(type.removeprefix("list of "))]  # type: ignore[misc]
    if type in ("list", "map"):
        return list if type == "list" else dict
    return next((one for one, word in _OF_PYTHON.items() if word == type), Any)


def mismatch(declared: Signature, python: Signature) -> str | None:
    """How a callable contradicts what a policy declares of it, in words; None if it does not."""
    roles = {one.role for one in python.parameters}
    plain = [one.name for one in python.parameters if one.role in ("plain", "placed", "named")]
    for one in declared.parameters:
        theirs = python.named(one.name)
        if theirs is None and "extra" not in roles:
            return f"it takes no `{one.name}`; its parameters are {_listed(plain)}"
        if theirs is not None and not one.type.agrees_with(theirs.type):
            return f"`{one.name}` is declared as {one.type} and is {theirs.type} in Python"
    for theirs in python.parameters:
        if theirs.required and declared.named(theirs.name) is None:
            return f"it needs `{theirs.name}`, which is not declared"
    ours = [one.name for one in declared.parameters if one.name in plain]
    order = [name for name in plain if name in ours]
    if ours != order:
        return f"its parameters are declared as {_listed(ours)} and stand as {_listed(order)} in Python"
    return _skipped(ours, [one.name for one in python.parameters if one.role in ("plain", "placed")])


def _skipped(declared: Sequence[str], positional: Sequence[str]) -> str | None:
    """A position that a declaration leaves out, so that it would count all later ones wrong."""
    for place, name in enumerate(positional):
        if name not in declared:
            later = [one for one in positional[place:] if one in declared]
            return f"it takes `{name}`, which is not declared, before `{later[0]}`" if later else None
    return None


@functools.lru_cache(maxsize=256)
def as_taken(declared: Signature, python: Signature) -> Signature:
    """What a policy declares, by the ways in which Python lets each parameter be reached.

    A parameter that `**kwargs` gathers is reached by its name alone.
    """
    found = []
    for one in declared.parameters:
        theirs = python.named(one.name)
        role = "named" if theirs is None else theirs.role
        found.append(replace(one, role=role, required=one.required and role not in ("rest", "extra")))
    return Signature(tuple(found))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def bind(signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by the name of their parameter; what is left out is absent.

    Raises:
        ValueError: the call does not fit the signature; the message says how.
    """
    bound: dict[str, Any] = {}
    plain = [one.name for one in signature.parameters if one.role in ("plain", "placed")]
    rest = next((one.name for one in signature.parameters if one.role == "rest"), None)
    extra = next((one.name for one in signature.parameters if one.role == "extra"), None)
    if len(args) > len(plain) and rest is None:
        raise ValueError(f"takes {len(plain)} positional arguments, and {len(args)} were given")
    bound.update(zip(plain, args, strict=False))
    if rest is not None and len(args) > len(plain):
        bound[rest] = list(args[len(plain) :])
    known = {one.name for one in signature.parameters if one.role in ("plain", "named")}
    unknown = [name for name in kwargs if name not in known]
    if unknown and extra is None:
        raise ValueError(f"takes no argument `{unknown[0]}`; {nearest(unknown[0], known)}")
    for name in kwargs.keys() & known:
        if name in bound:
            raise ValueError(f"got `{name}` twice, by position and by name")
        bound[name] = kwargs[name]
    if extra is not None and unknown:
        bound[extra] = {name: kwargs[name] for name in unknown}
    missing = [one.name for one in signature.parameters if one.required and one.name not in bound]
    if missing:
        raise ValueError(f"misses the argument `{missing[0]}`")
    return bound
