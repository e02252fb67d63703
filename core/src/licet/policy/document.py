"""One policy file as a typed value, with the place of everything in it.

Rules this module keeps:

- an unknown key is an error with its place and the nearest known key;
- keys that the language has but this version does not act on are refused by name, never ignored;
- building a document needs no IO beyond resolving the links of the paths it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, Field, GetPydanticSchema, ValidationError, ValidationInfo, field_validator
from pydantic_core import core_schema

from licet.environments.python import PythonWish
from licet.errors import InvalidPolicy, Position
from licet.policy.layers import Entries
from licet.policy.parts import DEFAULT_APPROVAL, Approval, AuditPolicy, SandboxPolicy, ScreenPolicy, Strict
from licet.policy.patterns import Effect, Pattern, parse
from licet.policy.problems import HIDDEN, explain, unknown
from licet.policy.references import PACK_PREFIX, Reference, reference
from licet.policy.rule import Rule, refuse_repetition
from licet.policy.signatures import Signature, parse_tools
from licet.policy.yaml import Fields, Items
from licet.request import Limits
from licet.surroundings import Clock, Randomness

RESERVED = {
    "secrets": "secrets",
    "session": "sessions",
}
"""Keys of the language that this version knows and refuses, with what they are for."""

_NOT_INHERITED = ("licet", "name", "extends", "mode", "file")

# Values that a validator of the document has made of what stands there: nothing is left to validate.
_MADE_HERE = GetPydanticSchema(lambda source, handler: core_schema.any_schema())


class PolicyDocument(Strict):
    """One file after `extends` was joined in. Order and repetition of entries mean nothing.

    `tools` None states nothing of tools. `python` says which interpreter and packages code is given, the
    default ones where it is None. `clock` and `random` say what code sees of the world. `learn` lets
    `licet run --learn` collect what a run would need. `places` says where each setting stands, by the keys
    that lead to it; after `extends` that can be another file. Entries and rules know their own places.
    """

    file: str
    places: Annotated[Mapping[tuple[str, ...], Position], _MADE_HERE] = Field(
        default_factory=dict, exclude=True, repr=False
    )
    licet: Literal[1]
    name: str | None = None
    extends: str | None = None
    within: Annotated[tuple[Reference, ...], _MADE_HERE] = ()
    allow: Annotated[tuple[Pattern, ...], _MADE_HERE] = ()
    ask: Annotated[tuple[Pattern, ...], _MADE_HERE] = ()
    deny: Annotated[tuple[Pattern, ...], _MADE_HERE] = ()
    limits: Limits = Limits()
    env: Mapping[str, str] | None = None
    screen: ScreenPolicy = ScreenPolicy()
    sandbox: SandboxPolicy = SandboxPolicy()
    approval: Approval = Approval()
    audit: AuditPolicy = AuditPolicy()
    tools: Annotated[Mapping[str, Signature] | None, _MADE_HERE] = None
    python: Annotated[PythonWish | None, _MADE_HERE] = None
    rules: Annotated[tuple[Rule, ...], _MADE_HERE] = ()
    learn: bool | None = None
    clock: Clock | None = None
    random: Randomness | None = None
    mode: Literal["enforce", "dry_run"] = "enforce"

    @field_validator("allow", "ask", "deny", mode="before")
    @classmethod
    def _entries(cls, value: object, info: ValidationInfo) -> tuple[Pattern, ...]:
        return _context(info).entries(value, cast("Effect", info.field_name))

    @field_validator("rules", mode="before")
    @classmethod
    def _rules(cls, value: object, info: ValidationInfo) -> tuple[Rule, ...]:
        from licet.policy.rule_reader import parse_rules  # conditions cost a run without rules nothing

        context = _context(info)
        return parse_rules(value, context.file, context.entries)

    @field_validator("tools", mode="before")
    @classmethod
    def _tools(cls, value: object, info: ValidationInfo) -> Mapping[str, Signature]:
        return parse_tools(value, _context(info).file, _context(info).place("tools"))

    @field_validator("python", mode="before")
    @classmethod
    def _python(cls, value: object, info: ValidationInfo) -> PythonWish:
        from licet.policy.interpreters import parse_python

        return parse_python(value, _context(info).place("python"), _context(info).base)

    @field_validator("licet", mode="before")
    @classmethod
    def _version(cls, value: object) -> object:
        if type(value) is int and value == 1:
            return value
        kind = "the text " if isinstance(value, str) else ""
        raise ValueError(f"this licet reads version 1, found {kind}`{value}`")

    @field_validator("within", mode="before")
    @classmethod
    def _references(cls, value: object, info: ValidationInfo) -> tuple[Reference, ...]:
        context = _context(info)
        items = value if isinstance(value, list) else [value]
        places = items.places if isinstance(items, Items) else [context.places["within"]]
        spots = (Position(context.file, *place) for place in places)
        return tuple(reference(*one, context.base) for one in zip(items, spots, strict=True))

    @field_validator("extends")
    @classmethod
    def _anchored_unless_pack(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None or value.startswith(PACK_PREFIX):
            return value
        return str(_context(info).base / value)

    @field_validator("env", mode="before")
    @classmethod
    def _environment(cls, value: object) -> object:
        if isinstance(value, dict):
            for name, content in value.items():
                _check_variable(name, content)
        return value

    @property
    def entries(self) -> tuple[Pattern, ...]:
        """All entries, whatever their effect."""
        return (*self.allow, *self.ask, *self.deny)

    def of(self, effect: Effect) -> tuple[Pattern, ...]:
        """The entries of one effect."""
        return {"allow": self.allow, "ask": self.ask, "deny": self.deny}[effect]

    @cached_property
    def index(self) -> Entries:
        """The entries, found by target."""
        return Entries(self.entries)

    @cached_property
    def demands(self) -> Approval:
        """The approval that each asking entry of this document demands."""
        return self.approval.over(DEFAULT_APPROVAL)


def build(tree: Any, *, file: str, base: Path) -> PolicyDocument:
    """Make a document of what the YAML loader built.

    Raises:
        InvalidPolicy: with the place of the first problem and what to write instead.
    """
    if not isinstance(tree, Fields):
        raise InvalidPolicy(
            "a policy is a mapping that begins with `licet: 1`",
            where=Position(file),
            advice="see `licet policy init`",
        )
    _refuse_reserved(tree, file)
    for key in HIDDEN & tree.keys():  # a field of the value, but no key of the language
        known = (set(PolicyDocument.model_fields) | set(RESERVED)) - HIDDEN
        raise unknown(f"unknown key `{key}`", key, known, Position(file, *tree.places[key]))
    if "licet" not in tree:
        raise InvalidPolicy("the version is missing", where=Position(file, 1), advice="begin with `licet: 1`")
    try:
        return PolicyDocument.model_validate(
            {**tree, "file": file, "places": dict(_places(tree, file))},
            context=_Context(file, base, tree.places),
        )
    except ValidationError as problem:
        raise explain(problem, tree, file, PolicyDocument, besides=RESERVED) from None


def _places(
    tree: Fields, file: str, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Position]]:
    for key, value in tree.items():
        here = (*path, key)
        yield here, Position(file, *tree.places[key])
        if isinstance(value, Fields) and path[:1] != ("tools",):
            yield from _places(value, file, here)


def settled(document: PolicyDocument) -> PolicyDocument:
    """`document`, once all that it extends is in it, with what its rules take from it.

    Raises:
        InvalidPolicy: a condition reads arguments that no declared tool has.
    """
    rules = tuple(_settled(rule, document) for rule in document.rules)
    return document.model_copy(update={"rules": rules}) if rules else document


def _settled(rule: Rule, document: PolicyDocument) -> Rule:
    from licet.policy.conditions import check_calls

    declared = document.tools or {}
    check_calls(rule.condition, {name: declared[name] for name in declared if rule.matches_tool(name)})
    if rule.approval is None and not rule.ask:
        return rule
    own = rule.approval or Approval()
    return replace(rule, approval=own.over(document.demands))


def join(mine: PolicyDocument, parent: PolicyDocument) -> PolicyDocument:
    """`extends`: lists of entries join, mappings merge by key, every other value is mine if I state it."""
    joined = {
        name: getattr(mine, name) + getattr(parent, name)
        for name in ("allow", "ask", "deny", "within", "rules")
    }
    stated = {rule.id: rule for rule in parent.rules}
    for rule in mine.rules:
        refuse_repetition(stated.get(rule.id), rule)
    update = _merge(mine, parent) | joined
    for name in _NOT_INHERITED:
        update.pop(name, None)
    theirs = {path: place for path, place in parent.places.items() if path[0] not in _NOT_INHERITED}
    update["places"] = {**theirs, **mine.places}
    return mine.model_copy(update=update)


def _merge(mine: BaseModel, parent: BaseModel) -> dict[str, Any]:
    """What of `parent` holds in `mine`: fields that mine does not state, and inside those that both do."""
    update: dict[str, Any] = {}
    for name in parent.model_fields_set:
        ours, theirs = getattr(mine, name), getattr(parent, name)
        if name not in mine.model_fields_set:
            update[name] = theirs
        elif isinstance(ours, BaseModel):
            update[name] = ours.model_copy(update=_merge(ours, theirs))
        elif isinstance(ours, Mapping):
            update[name] = {**theirs, **ours}
    return update


@dataclass(frozen=True)
class _Context:
    """What validators need to know: the file's shown name, the directory of its relative paths, its keys."""

    file: str
    base: Path
    places: Mapping[str, tuple[int, int]]

    def place(self, key: str) -> Position:
        """Where a key of the document stands."""
        return Position(self.file, *self.places[key])

    def entries(self, value: object, effect: Effect) -> tuple[Pattern, ...]:
        """Read a list of entries of one effect."""
        if not isinstance(value, list):
            raise ValueError("expected a list of entries such as `read ./data`")
        places = value.places if isinstance(value, Items) else [(0, 0)] * len(value)
        spots = (Position(self.file, *place) for place in places)
        return tuple(_entry(*one, effect, self) for one in zip(value, spots, strict=True))


def _context(info: ValidationInfo) -> _Context:
    assert isinstance(info.context, _Context)
    return info.context


def _entry(item: object, where: Position, effect: Effect, context: _Context) -> Pattern:
    if not isinstance(item, str):
        raise InvalidPolicy(f"expected an entry such as `read ./data`, found `{item}`", where=where)
    try:
        return parse(item, effect, base=str(context.base), where=where)
    except ValueError as problem:
        raise InvalidPolicy(str(problem), where=where) from None


def _check_variable(name: str, content: object) -> None:
    if not name or "=" in name or "\0" in name:
        raise ValueError(f"`{name}` is no name of an environment variable")
    if not isinstance(content, str):
        raise ValueError(f"`{name}` needs a text, or `pass`; put `{content}` in quotes")
    if "\0" in content:
        raise ValueError(f"the value of `{name}` holds a NUL byte")


def _refuse_reserved(tree: Fields, file: str) -> None:
    for key in tree:
        if key in RESERVED:
            raise InvalidPolicy(
                f"`{key}` ({RESERVED[key]}) is not yet supported",
                where=Position(file, *tree.places[key]),
                advice="take it out; licet refuses what it would not enforce",
            )
