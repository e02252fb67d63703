"""What policy is in force, and where each part of it comes from.

Rules this module keeps:

- every setting has its value in force, and the place of every statement about it: those that make it so,
  and those that another one outweighs;
- a setting that nothing states says so, and shows its default;
- every bound is named with the digest of what it says, those that are only rehearsed too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from licet.errors import Position
from licet.policy import Pattern, PolicyDocument, PolicyStack
from licet.policy.rule import Rule
from licet.policy.stack import digest_of
from licet.units import show_limit

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its `value` in force for programs and `shown` for people.

    `stated` are the places that make it so; without any it is the default. `outweighed` are the statements
    that something stricter, or the root, overrides: what they say, and where. `document` is the file that
    a setting is about which holds for the entries of one document alone.
    """

    key: str
    value: Any
    shown: str
    stated: tuple[Position, ...] = ()
    outweighed: tuple[tuple[str, Position], ...] = ()
    document: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One document: `role` is `root`, `bound` or `dry_run`.

    `digest` covers what it says, after `extends`; `sha256` is that of the bytes of its file, which a pin in
    `within` names; None where there is no file.
    """

    role: str
    file: str
    name: str | None
    digest: str
    sha256: str | None
    entries: tuple[Pattern, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Effective:
    """All that is in force under one digest; `sealed` is never opened."""

    digest: str
    parts: tuple[Part, ...]
    settings: tuple[Setting, ...]
    sealed: tuple[str, ...]


def effective(stack: PolicyStack) -> Effective:
    """What `stack` comes to, before any rule applies."""
    roles = [
        ("root", stack.root),
        *(("bound", bound) for bound in stack.bounds),
        *(("dry_run", bound) for bound in stack.rehearsed),
    ]
    parts = tuple(
        Part(
            role,
            d.file,
            d.name,
            digest_of(d),
            stack.sources.get(d.file),
            (*d.deny, *d.ask, *d.allow),
            d.rules,
        )
        for role, d in roles
    )
    return Effective(stack.digest, parts, tuple(settings(stack)), stack.sealed)


def place(document: PolicyDocument, *path: str) -> Position:
    """Where a document states a setting: the deepest key on the way that stands in a file."""
    for length in range(len(path), 0, -1):
        if (found := document.places.get(path[:length])) is not None:
            return found
    return Position(document.file)


def settings(stack: PolicyStack) -> Iterator[Setting]:
    """Every setting of `stack` in force."""
    yield from _limits(stack)
    yield from _sandbox(stack)
    yield from _environment(stack)
    yield from _chosen(stack)
    yield from _surroundings(stack)
    yield from _modules(stack)
    yield from _tools(stack)
    yield from _approvals(stack)


def _weighed(
    key: str, value: Any, shown: str, statements: Iterable[tuple[PolicyDocument, Any, str]], path: Path
) -> Setting:
    """A setting of which those statements count that say what is in force."""
    all_of_them = [(place(document, *path), said, text) for document, said, text in statements]
    return Setting(
        key,
        value,
        shown,
        tuple(where for where, said, _ in all_of_them if said == value),
        tuple((text, where) for where, said, text in all_of_them if said != value),
    )


def _limits(stack: PolicyStack) -> Iterator[Setting]:
    for name, value in stack.limits.stated().items():
        told = [(d, d.limits.stated()[name]) for d in stack.documents if name in d.limits.stated()]
        statements = [(document, said, show_limit(name, said)) for document, said in told]
        yield _weighed(f"limits.{name}", value, show_limit(name, value), statements, ("limits", name))


def _sandbox(stack: PolicyStack) -> Iterator[Setting]:
    documents = stack.documents
    for control, level in stack.requirements.items():
        told = [
            (d, d.sandbox.require[control], str(d.sandbox.require[control]))
            for d in documents
            if control in d.sandbox.require
        ]
        path = ("sandbox", "require", control.value)
        yield _weighed(".".join(path), level, str(level), told, path)
    evidence = [(d, d.sandbox.evidence, str(d.sandbox.evidence)) for d in documents if d.sandbox.evidence]
    yield _weighed("sandbox.evidence", stack.evidence, str(stack.evidence), evidence, ("sandbox", "evidence"))
    admitting = tuple(place(d, "sandbox", "only") for d in documents if d.sandbox.only is not None)
    only = sorted(stack.only) if stack.only is not None else None
    shown = "every backend" if only is None else ", ".join(only) or "none"
    yield Setting("sandbox.only", only, shown, admitting)
    warm = [(d, d.sandbox.warm, _yes(d.sandbox.warm)) for d in documents if d.sandbox.warm is not None]
    if warm:
        yield _weighed("sandbox.warm", stack.warm, _yes(stack.warm), warm, ("sandbox", "warm"))
    if stack.prefer:
        yield Setting(
            "sandbox.prefer",
            list(stack.prefer),
            ", ".join(stack.prefer),
            (place(stack.root, "sandbox", "prefer"),),
        )


def _environment(stack: PolicyStack) -> Iterator[Setting]:
    for name, value in (stack.root.env or {}).items():
        where = place(stack.root, "env", name)
        if name in stack.environment:
            yield Setting(f"env.{name}", value, value, (where,))
            continue
        closing = [d for d in stack.bounds if d.env is not None and name not in d.env]
        yield Setting(
            f"env.{name}", None, "not handed on", tuple(place(d, "env") for d in closing), ((value, where),)
        )


def _chosen(stack: PolicyStack) -> Iterator[Setting]:
    """Settings of which one word wins over the other."""
    documents = stack.documents
    screen = [(d, d.screen.mode, str(d.screen.mode)) for d in documents if d.screen.mode]
    yield _weighed("screen.mode", stack.screen_mode, stack.screen_mode, screen, ("screen", "mode"))
    audit = [(d, d.audit.mode, str(d.audit.mode)) for d in documents if d.audit.mode]
    yield _weighed("audit.mode", stack.audit_mode, stack.audit_mode, audit, ("audit", "mode"))
    content = [(d, d.audit.content, str(d.audit.content)) for d in documents if d.audit.content]
    yield _weighed("audit.content", stack.content_mode, stack.content_mode, content, ("audit", "content"))
    learn = [(d, d.learn, _yes(d.learn)) for d in documents if d.learn is not None]
    yield _weighed("learn", stack.may_learn, _yes(stack.may_learn), learn, ("learn",))


def _surroundings(stack: PolicyStack) -> Iterator[Setting]:
    """What code sees of the world: the root's to say."""
    values: tuple[tuple[Literal["clock", "random"], str], ...] = (
        ("clock", stack.clock),
        ("random", stack.random),
    )
    wish = stack.python
    python = dict(wish.content()) if wish else None
    for document in stack.bounds:
        if document.python is not None:
            ignored = ((str(document.python), document.python.where),)
            yield Setting("python", python, str(wish or "the default"), (), ignored)
    if wish is not None:
        yield Setting("python", python, str(wish), (wish.where,))
    for key, value in values:
        told = [(d, getattr(d, key)) for d in stack.documents]
        places = [(d is stack.root, said, place(d, key)) for d, said in told if said is not None]
        yield Setting(
            key,
            value,
            value,
            tuple(where for of_root, _, where in places if of_root),
            tuple((said, where) for of_root, said, where in places if not of_root),
        )


def _yes(value: bool) -> str:
    return "true" if value else "false"


def _modules(stack: PolicyStack) -> Iterator[Setting]:
    for name in sorted(stack.denied_modules):
        denying = (d for d in stack.documents if name in d.screen.modules.deny)
        places = tuple(place(d, "screen", "modules", "deny") for d in denying)
        yield Setting(f"screen.modules.deny.{name}", True, "denied", places)


def _tools(stack: PolicyStack) -> Iterator[Setting]:
    for name, signature in stack.tools.items():
        parameters = {one.name: f"{one.type}{'' if one.required else '?'}" for one in signature.parameters}
        shown = ", ".join(f"{key}: {kind}" for key, kind in parameters.items()) or "no parameters"
        yield Setting(f"tools.{name}", parameters, shown, (place(stack.root, "tools", name),))
    for bound in stack.bounds:
        if bound.tools is not None:
            names = sorted(bound.tools)
            yield Setting("tools", names, f"only {', '.join(names) or 'none'}", (place(bound, "tools"),))


def _approvals(stack: PolicyStack) -> Iterator[Setting]:
    """What the asking entries of each document demand: it is the document's own, and never combined."""
    for document in stack.documents:
        if document is not stack.root and not document.ask:
            continue
        stated: Mapping[str, Any] = document.demands.model_dump(mode="json", by_alias=True)
        for name, value in stated.items():
            where = document.places.get(("approval", name))
            shown = show_limit("wall_time", value) if name == "expires" else _word(value)
            yield Setting(f"approval.{name}", value, shown, (where,) if where else (), (), document.file)


def _word(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "anybody"
    return str(value)
