"""One policy file as a typed value, with the place of everything in it.

Rules this module keeps:

- an unknown key is an error with its place and the nearest known key;
- keys that the language has but this version does not act on are refused by name, never ignored;
- building a document needs no IO beyond resolving the links of the paths it names.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from licet.contract import Control, Evidence, Level
from licet.errors import InvalidPolicy, Position
from licet.policy.patterns import Effect, Pattern, parse
from licet.policy.references import PACK_PREFIX, Reference, reference
from licet.policy.yaml import Fields, Items
from licet.request import Limits

RESERVED = {
    "rules": "rules and conditions",
    "python": "packages and interpreters",
    "secrets": "secrets",
    "tools": "declared tools",
    "approval": "approvals",
    "session": "sessions",
    "clock": "the clock of a run",
    "random": "the randomness of a run",
    "learn": "learning runs",
}
"""Keys of the language that this version knows and refuses, with what they are for."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class ScreenModules(_Strict):
    """Modules that code may not import."""

    deny: tuple[str, ...] = ()


class ScreenPolicy(_Strict):
    """What the static screen does with what it finds: `refuse` denies, `report` only records."""

    mode: Literal["refuse", "report"] | None = None
    modules: ScreenModules = ScreenModules()


class SandboxPolicy(_Strict):
    """What is asked of a sandbox beyond what the decision itself asks for.

    `only` None means every backend may be chosen; `prefer` ranks those that qualify.
    """

    require: Mapping[Control, Level] = Field(default_factory=dict)
    evidence: Evidence | None = None
    only: tuple[str, ...] | None = None
    prefer: tuple[str, ...] = ()

    @field_validator("require")
    @classmethod
    def _demandable(cls, value: Mapping[Control, Level]) -> Mapping[Control, Level]:
        for control, level in value.items():
            if level not in (Level.partial, Level.enforced):
                raise ValueError(f"`{control}` can be required as `partial` or `enforced`, not as `{level}`")
        return value


class AuditPolicy(_Strict):
    """How the trail is kept: `required` runs nothing without it, `best_effort` records the gap."""

    mode: Literal["required", "best_effort"] | None = None
    content: Literal["digest", "kept"] | None = None


class PolicyDocument(_Strict):
    """One file after `extends` was joined in. Order and repetition of entries mean nothing."""

    file: str
    licet: Literal[1]
    name: str | None = None
    extends: str | None = None
    within: tuple[Reference, ...] = ()
    allow: tuple[Pattern, ...] = ()
    ask: tuple[Pattern, ...] = ()
    deny: tuple[Pattern, ...] = ()
    limits: Limits = Limits()
    env: Mapping[str, str] | None = None
    screen: ScreenPolicy = ScreenPolicy()
    sandbox: SandboxPolicy = SandboxPolicy()
    audit: AuditPolicy = AuditPolicy()
    mode: Literal["enforce"] = "enforce"

    @field_validator("allow", "ask", "deny", mode="before")
    @classmethod
    def _entries(cls, value: object, info: ValidationInfo) -> tuple[Pattern, ...]:
        if not isinstance(value, list):
            raise ValueError("expected a list of entries such as `read ./data`")
        effect = cast("Effect", info.field_name)
        places = value.places if isinstance(value, Items) else [(0, 0)] * len(value)
        spots = (Position(_context(info).file, *place) for place in places)
        return tuple(_entry(*one, effect, _context(info)) for one in zip(value, spots, strict=True))

    @field_validator("licet", mode="before")
    @classmethod
    def _version(cls, value: object) -> object:
        if type(value) is int and value == 1:
            return value
        raise ValueError(f"this licet reads version 1, found `{value}`")

    @field_validator("mode", mode="before")
    @classmethod
    def _mode(cls, value: object) -> object:
        if value == "dry_run":
            raise ValueError("`dry_run` is not yet supported")
        return value

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

    def mentions(self, action: str) -> bool:
        """Whether `allow` or `ask` says anything of `action`."""
        return any(entry.action == action for entry in (*self.allow, *self.ask))

    def leaves_nothing(self, entry: Pattern) -> bool:
        """Whether this document, as a bound, denies every target of another document's `entry`."""
        if any(denial.shadows(entry) for denial in self.deny):
            return True
        mine = [one for one in (*self.allow, *self.ask) if one.action == entry.action]
        return bool(mine) and entry.target is not None and not any(one.touches(entry.target) for one in mine)

    @property
    def names_workdir(self) -> bool:
        """Whether the path word `workdir` stands in any entry."""
        return any(entry.names_workdir for entry in self.entries)

    def bind(self, workdir: str) -> PolicyDocument:
        """This document with the path word `workdir` standing for a directory."""
        if not self.names_workdir:
            return self
        bound = {
            effect: tuple(entry.bind(workdir) for entry in getattr(self, effect))
            for effect in ("allow", "ask", "deny")
        }
        return self.model_copy(update=bound)


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
    if "file" in tree:  # a field of the value, but no key of the language
        raise _unknown_key(("file",), Position(file, *tree.places["file"]), "")
    if "licet" not in tree:
        raise InvalidPolicy("the version is missing", where=Position(file, 1), advice="begin with `licet: 1`")
    try:
        return PolicyDocument.model_validate(
            {**tree, "file": file}, context=_Context(file, base, tree.places)
        )
    except ValidationError as problem:
        raise _explain(problem, tree, file) from None


def join(mine: PolicyDocument, parent: PolicyDocument) -> PolicyDocument:
    """`extends`: lists of entries join, mappings merge by key, every other value is mine if I state it."""
    joined = {
        name: getattr(mine, name) + getattr(parent, name) for name in ("allow", "ask", "deny", "within")
    }
    update = _merge(mine, parent) | joined
    for name in ("licet", "name", "extends", "mode", "file"):
        update.pop(name, None)
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
    """What validators need to know: the file's shown name, the directory of its paths, where keys stand."""

    file: str
    base: Path
    places: Mapping[str, tuple[int, int]]


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


def _explain(problem: ValidationError, tree: Fields, file: str) -> InvalidPolicy:
    errors = problem.errors(include_url=False)
    first = errors[0]
    where = Position(file, *_place(tree, first["loc"]))
    others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    if first["type"] == "extra_forbidden":
        return _unknown_key(first["loc"], where, others)
    if first["loc"][-1] == "[key]":
        return _unknown(f"unknown name `{first['input']}`{others}", str(first["input"]), list(Control), where)
    message = first["msg"].removeprefix("Value error, ")
    path = ".".join(str(part) for part in first["loc"])
    given = first.get("input")
    found = f", found `{given}`" if isinstance(given, (str, int, float)) and str(given) not in message else ""
    return InvalidPolicy(f"`{path}`: {message[:1].lower()}{message[1:]}{found}{others}", where=where)


def _unknown_key(loc: tuple[str | int, ...], where: Position, others: str) -> InvalidPolicy:
    key, model = str(loc[-1]), _model_at(loc[:-1])
    known = [name for name in model.model_fields if name != "file"]
    if model is PolicyDocument:
        known += RESERVED
    return _unknown(f"unknown key `{'.'.join(map(str, loc))}`{others}", key, known, where)


def _unknown(message: str, given: str, known: list[str], where: Position) -> InvalidPolicy:
    near = difflib.get_close_matches(given, known, n=1)
    advice = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(sorted(known))}"
    return InvalidPolicy(message, where=where, advice=advice)


def _model_at(loc: tuple[str | int, ...]) -> type[BaseModel]:
    model: type[BaseModel] = PolicyDocument
    for part in loc:
        inner = model.model_fields[str(part)].annotation if str(part) in model.model_fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        model = inner
    return model


def _place(tree: Any, loc: tuple[str | int, ...]) -> tuple[int, int]:
    """Where `loc` stands, or the deepest part of it that is in the file."""
    place = (1, 1)
    for part in loc:
        if isinstance(tree, Fields) and part in tree:
            place, tree = tree.places[str(part)], tree[str(part)]
        elif isinstance(tree, Items) and isinstance(part, int) and part < len(tree):
            place, tree = tree.places[part], tree[part]
        else:
            break
    return place
