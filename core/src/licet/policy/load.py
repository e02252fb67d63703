"""Reading policy files: the root, what it extends, the bounds around it, and the managed bounds.

Rules this module keeps:

- only the root grants; its `within`, theirs, and every managed file are bounds;
- a bound that can't be read refuses every run: the error is raised, never skipped;
- `extends` and `within` must not run in circles; an entry that can never matter is an error here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from licet.errors import InvalidPolicy, Position
from licet.policy.document import PACK_PREFIX, PolicyDocument, build, join
from licet.policy.patterns import Pattern
from licet.policy.stack import PolicyStack
from licet.policy.yaml import MAX_BYTES, load

MANAGED = (
    Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "licet" / "policy.d"
    if sys.platform == "win32"
    else Path("/etc/licet/policy.d")
)
"""Where an administrator's bounds live; every `*.yaml` in it bounds every policy."""

MAX_DOCUMENTS = 100


@dataclass(frozen=True)
class PolicySource:
    """Where policies come from, and what the host lets them do.

    `packs` are the packs by name, `managed` is the directory of managed bounds, and `may_pass` says which
    host variables `env: {NAME: pass}` may hand on.
    """

    packs: Mapping[str, Path] = field(default_factory=dict)
    managed: Path = MANAGED
    may_pass: Callable[[str], bool] = lambda name: True


def load_stack(root: str | Path, source: PolicySource, *, sealed: Iterable[Path] = ()) -> PolicyStack:
    """Load the policy `root` (a file, or `licet:PACK`) with all its bounds.

    `sealed` are further paths that no policy can grant, such as the state directory.

    Raises:
        InvalidPolicy: any of the files is missing, unreadable or wrong.
    """
    reader = _Reader(source)
    document = reader.read(str(root), Position("command line"))
    bounds = reader.bounds(document)
    _refuse_unpassable(document, source.may_pass)
    closed = dict.fromkeys(os.path.realpath(path) for path in (*sealed, source.managed, *reader.files))
    return PolicyStack(root=document, bounds=bounds, sealed=tuple(closed), warnings=())


class _Reader:
    """One load: remembers which files it has read."""

    def __init__(self, source: PolicySource) -> None:
        self._source = source
        self.files: list[Path] = []

    def read(self, name: str, asked_at: Position) -> PolicyDocument:
        document = self._extended(name, asked_at, ())
        _refuse_dead_entries(document)
        return document

    def _extended(self, name: str, asked_at: Position, chain: tuple[Path, ...]) -> PolicyDocument:
        path = self._locate(name, asked_at)
        if path in chain:
            circle = " → ".join(str(link) for link in (*chain, path))
            raise InvalidPolicy(f"`extends` runs in a circle: {circle}", where=asked_at)
        self.files.append(path)
        shown = name if name.startswith(PACK_PREFIX) else str(path)
        document = build(load(_text(path, asked_at), shown), file=shown, base=path.parent)
        if document.extends is None:
            return document
        parent = self._extended(document.extends, Position(shown), (*chain, path))
        return join(document, parent)

    def bounds(self, root: PolicyDocument) -> tuple[PolicyDocument, ...]:
        """All bounds: what `within` names, transitively, then the managed ones; each once."""
        found: dict[Path, PolicyDocument] = {}
        pending = [(Path(name), Position(root.file)) for name in root.within]
        pending += [(path, Position(str(path))) for path in self._managed()]
        while pending:
            path, asked_at = pending.pop(0)
            if path in found:
                continue
            if len(found) >= MAX_DOCUMENTS:
                raise InvalidPolicy(f"more than {MAX_DOCUMENTS} bounds", where=asked_at)
            found[path] = document = self.read(str(path), asked_at)
            pending += [(Path(name), Position(document.file)) for name in document.within]
        return tuple(found.values())

    def _managed(self) -> list[Path]:
        try:
            return sorted(Path(os.path.realpath(p)) for p in self._source.managed.glob("*.yaml"))
        except OSError as problem:
            raise InvalidPolicy(
                f"the managed policies can't be listed: {problem.strerror}",
                where=Position(str(self._source.managed)),
                advice="ask the administrator of this machine; nothing runs without them",
            ) from None

    def _locate(self, name: str, asked_at: Position) -> Path:
        if not name.startswith(PACK_PREFIX):
            return Path(os.path.realpath(name))
        pack = name.removeprefix(PACK_PREFIX)
        if pack not in self._source.packs:
            known = ", ".join(f"`{PACK_PREFIX}{known}`" for known in sorted(self._source.packs))
            advice = f"known packs are {known}" if known else "install `licet-policies`"
            raise InvalidPolicy(f"there is no policy pack `{name}`", where=asked_at, advice=advice)
        return self._source.packs[pack]


def _text(path: Path, asked_at: Position) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise InvalidPolicy(f"not UTF-8 at byte {problem.start}", where=Position(str(path))) from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise InvalidPolicy(
            f"the policy `{path}` can't be read: {reason[:1].lower()}{reason[1:]}",
            where=asked_at,
            advice="name a file that exists, or make one with `licet policy init`",
        ) from None


def _refuse_unpassable(document: PolicyDocument, may_pass: Callable[[str], bool]) -> None:
    for name, value in (document.env or {}).items():
        if value == "pass" and not may_pass(name):
            raise InvalidPolicy(
                f"`env: {{{name}: pass}}` would hand on a variable that settings do not permit",
                where=Position(document.file),
                advice="state its value, or have it added to `pass_environment` in the settings",
            )


def _refuse_dead_entries(document: PolicyDocument) -> None:
    """An `allow` or `ask` that another entry of the same document wholly covers could never matter."""
    stronger: list[Pattern] = list(document.deny)
    for group in (document.ask, document.allow):
        for entry in group:
            cover = next((other for other in stronger if other.shadows(entry)), None)
            if cover is not None:
                raise InvalidPolicy(
                    f"`{entry.effect}: {entry.text}` can never matter: "
                    f"`{cover.effect}: {cover.text}` in {cover.where} covers it",
                    where=entry.where,
                    advice=f"write `{cover.effect}: {cover.text} except {entry.text.partition(' ')[2]}`, "
                    f"or take one of the two out",
                )
        stronger += group
