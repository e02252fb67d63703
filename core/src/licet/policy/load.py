"""Reading policy files: the root, what it extends, the bounds around it, and the managed bounds.

Rules this module keeps:

- only the root grants; its `within`, theirs, and every managed file are bounds;
- a bound that can't be read refuses every run: the error is raised, never skipped;
- `extends` and `within` must not run in circles; an entry that can never matter is an error here, one that
  a bound leaves nothing of is a warning;
- a policy is a plain file: a pipe or a device is refused, not waited on;
- every file that was read is sealed, and every link on the way to it: no policy opens them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from licet import paths
from licet.errors import InvalidPolicy, Position
from licet.files import read_plain
from licet.output import bounded
from licet.policy.document import PACK_PREFIX, PolicyDocument, build, join, settled
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
    document = reader.read(str(root))
    _refuse_unpassable(document, source.may_pass)
    for path in (*sealed, source.managed):
        reader.seal(str(path))
    if document.mode == "dry_run":
        raise InvalidPolicy(
            "`mode: dry_run` is for bounds: a policy that decides nothing would let nothing run",
            where=Position(document.file),
            advice="name this file in the `within` of the policy that decides",
        )
    bounds = tuple(bound for bound in reader.bounds.values() if bound.mode == "enforce")
    return PolicyStack(
        document,
        bounds,
        tuple(reader.sealed),
        tuple(_warnings(document, bounds)),
        rehearsed=tuple(bound for bound in reader.bounds.values() if bound.mode == "dry_run"),
        managed=tuple(reader.bounds[path].file for path in reader.managed),
    )


class _Reader:
    """One load: remembers the bounds it has read, and what no policy may open because of that."""

    def __init__(self, source: PolicySource) -> None:
        self._source = source
        self.bounds: dict[Path, PolicyDocument] = {}
        self.managed: list[Path] = []
        self.sealed: dict[str, None] = {}

    def read(self, name: str) -> PolicyDocument:
        """The root `name`, after its bounds and the managed ones were read too."""
        asked_at = Position("command line")
        root = self._locate(name, asked_at)
        document = self._document(name, asked_at)
        for bound in document.within:
            self._bound(bound, Position(document.file), (root,))
        for managed in self._managed():
            asked_at = Position(str(self._source.managed))
            self._bound(managed, asked_at, ())
            self.managed.append(self._locate(managed, asked_at))
        return document

    def seal(self, name: str) -> str:
        """Close a path, and every link on the way to it, since whoever replaces one redirects the path."""
        try:
            absolute = os.path.join(os.getcwd(), name)  # noqa: PTH109, PTH118
            ends = paths.canonical(absolute, base="/")
            self.sealed |= dict.fromkeys((*paths.links(absolute), ends))
            return ends
        except ValueError as problem:
            raise InvalidPolicy(f"the path `{bounded(name, 300)}` can't be used: {problem}") from None

    def _bound(self, name: str, asked_at: Position, chain: tuple[Path, ...]) -> None:
        path = self._locate(name, asked_at)
        _refuse_circle("within", chain, path, asked_at)
        if path in self.bounds:
            return
        if len(self.bounds) >= MAX_DOCUMENTS:
            raise InvalidPolicy(f"more than {MAX_DOCUMENTS} bounds", where=asked_at)
        self.bounds[path] = document = self._document(name, asked_at)
        for inner in document.within:
            self._bound(inner, Position(document.file), (*chain, path))

    def _document(self, name: str, asked_at: Position) -> PolicyDocument:
        document = settled(self._extended(name, asked_at, ()))
        _refuse_dead_entries(document)
        _refuse_kept_content(document)
        return document

    def _extended(self, name: str, asked_at: Position, chain: tuple[Path, ...]) -> PolicyDocument:
        path = self._locate(name, asked_at)
        _refuse_circle("extends", chain, path, asked_at)
        shown = name if name.startswith(PACK_PREFIX) else str(path)
        tree = load(_content(path, asked_at), shown)
        document = build(tree, file=shown, base=path.parent)
        if document.extends is None:
            return document
        here = Position(shown, *tree.places["extends"])
        return join(document, self._extended(document.extends, here, (*chain, path)))

    def _managed(self) -> list[str]:
        directory = self._source.managed
        try:
            names = sorted(path.name for path in directory.iterdir())
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise InvalidPolicy(
                f"the managed policies can't be listed: {(problem.strerror or str(problem)).lower()}",
                where=Position(str(directory)),
                advice="ask the administrator of this machine; nothing runs without them",
            ) from None
        if misnamed := [name for name in names if name.endswith(".yml")]:
            raise InvalidPolicy(
                f"`{misnamed[0]}` would never be read, since managed policies end in `.yaml`",
                where=Position(str(directory)),
                advice="have the administrator of this machine rename it",
            )
        return [str(directory / name) for name in names if name.endswith(".yaml")]

    def _locate(self, name: str, asked_at: Position) -> Path:
        """The file that `name` ends at; it is sealed from here on."""
        if not name.startswith(PACK_PREFIX):
            return Path(self.seal(name))
        pack = name.removeprefix(PACK_PREFIX)
        if pack not in self._source.packs:
            known = ", ".join(f"`{PACK_PREFIX}{known}`" for known in sorted(self._source.packs))
            advice = f"known packs are {known}" if known else "install `licet-policies`"
            raise InvalidPolicy(f"there is no policy pack `{name}`", where=asked_at, advice=advice)
        return Path(self.seal(str(self._source.packs[pack])))


def _refuse_circle(key: str, chain: tuple[Path, ...], path: Path, asked_at: Position) -> None:
    if path in chain:
        circle = " → ".join(str(link) for link in (*chain, path))
        raise InvalidPolicy(f"`{key}` runs in a circle: {circle}", where=asked_at)


def _content(path: Path, asked_at: Position) -> bytes:
    try:
        return read_plain(path, MAX_BYTES + 1)
    except OSError as problem:
        raise InvalidPolicy(
            f"the policy `{path}` can't be read: {(problem.strerror or str(problem)).lower()}",
            where=asked_at,
            advice="name a file that exists, or make one with `licet policy init`",
        ) from None


def _refuse_kept_content(document: PolicyDocument) -> None:
    if document.audit.content == "kept":
        raise InvalidPolicy(
            "`audit: {content: kept}` is not yet supported",
            where=Position(document.file),
            advice="write `digest`: licet refuses what it would not do",
        )


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
                    advice=_way_out(cover, entry),
                )
        stronger += group


def _way_out(cover: Pattern, entry: Pattern) -> str:
    if entry.target is None:
        return "take one of the two out"
    gap = entry.text.partition(" ")[2].strip()
    return f"write `{cover.effect}: {cover.text} except {gap}`, or take one of the two out"


def _warnings(root: PolicyDocument, bounds: Iterable[PolicyDocument]) -> Iterator[str]:
    """The entries of the root that a bound makes useless; where `workdir` decides, only a run can tell."""
    for bound in bounds:
        for entry in (*root.ask, *root.allow):
            if bound.leaves_nothing(entry) and not (entry.names_workdir or bound.names_workdir):
                yield (
                    f"{entry.where}: `{entry.effect}: {entry.text}` opens nothing: "
                    f"the bound `{bound.name or bound.file}` denies all of it"
                )
