"""Reading policy files: the root, what it extends, the bounds around it, and the managed bounds.

Rules this module keeps:

- only the root grants; its `within`, theirs, and every managed file are bounds;
- a bound that can't be read refuses every run: the error is raised, never skipped;
- a pinned bound has the bytes that its pin says; a pin only ever refuses, so none takes a bound away;
- what a file names is not reached through a link that leaves the directory of that file: whoever may write
  where the link leads would write this policy; the command line and the administrator may use links;
- all of it is from one moment: what changes while it is read is read again, or refused; that includes where
  the links on the way of its entries lead;
- `extends` and `within` must not run in circles; an entry that can never matter is an error here, one that
  a bound leaves nothing of is a warning;
- a policy is a plain file: a pipe or a device is refused, not waited on;
- every file that was read is sealed, and every link on the way to it: no policy opens them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from licet import paths
from licet.errors import InvalidPolicy, Position, reason_of
from licet.machine import administrators_directory
from licet.output import bounded
from licet.policy.document import PolicyDocument, build, join, settled
from licet.policy.index import closing, crowded, dead_entries
from licet.policy.patterns import Pattern
from licet.policy.references import PACK_PREFIX, Reference
from licet.policy.rule import Rule
from licet.policy.stack import PolicyStack
from licet.policy.watch import Watch
from licet.policy.yaml import load

MANAGED = administrators_directory() / "policy.d"
"""Where an administrator's bounds live; every `*.yaml` in it bounds every policy."""

MAX_DOCUMENTS = 100
MAX_ENTRIES = 20_000
MAX_OVERLAPS = 1_000_000
_ATTEMPTS = 3


@dataclass(frozen=True)
class PolicySource:
    """Where policies come from, and what the host lets them do.

    `packs` are the packs by name, `managed` is the directory of managed bounds, and `may_pass` says which
    host variables `env: {NAME: pass}` may hand on.
    """

    packs: Mapping[str, Path] = field(default_factory=dict)
    managed: Path = MANAGED
    may_pass: Callable[[str], bool] = lambda name: True


def load_stack(
    root: str | Path, source: PolicySource, *, sealed: Iterable[Path] = (), watch: Watch | None = None
) -> PolicyStack:
    """Load the policy `root` (a file, or `licet:PACK`) with all its bounds.

    `sealed` are further paths that no policy can grant, such as the state directory. `watch`, a new one, is
    told what was looked at, also if that fails.

    Raises:
        InvalidPolicy: any of the files is missing, unreadable or wrong, or they change all the time.
    """
    seen = watch or Watch()
    for _ in range(_ATTEMPTS):
        seen.forget()
        problem: InvalidPolicy | None = None
        try:
            stack = _load(str(root), source, sealed, seen)
        except InvalidPolicy as found:
            problem = found
        if not seen.holds_together():
            continue  # half a file, or files of two versions
        if problem is not None:
            raise problem
        return stack
    raise InvalidPolicy(
        "the policy changes while it is read",
        where=Position(str(root)),
        advice="try again; write a new version beside the old one, then rename it",
    )


def _load(root: str, source: PolicySource, sealed: Iterable[Path], watch: Watch) -> PolicyStack:
    reader = _Reader(source, watch)
    document = reader.read(root)
    _refuse_unpassable(document, source.may_pass)
    for path in sealed:
        reader.seal(_way_to(str(path)))
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
        sources=reader.sources,
    )


def _way_to(path: str) -> tuple[str, tuple[str, ...]]:
    whole = anchored(path)
    try:
        return paths.way(whole)
    except ValueError as problem:
        raise _unusable(path, problem) from None


class _Reader:
    """One load: remembers the files it has read, and what no policy may open because of that."""

    def __init__(self, source: PolicySource, watch: Watch) -> None:
        self._source = source
        self._watch = watch
        self._contents: dict[Path, bytes] = {}
        self.bounds: dict[Path, PolicyDocument] = {}
        self.managed: list[Path] = []
        self.sealed: dict[str, None] = {}
        self.sources: dict[str, str] = {}

    def read(self, name: str) -> PolicyDocument:
        """The root `name`, after its bounds and the managed ones were read too."""
        asked_at = Position("command line")
        root = self._locate(name, asked_at, None)
        document = self._document(name, asked_at, None)
        for bound in document.within:
            self._bound(bound, (root,))
        for managed in self._managed():
            reference = Reference(managed, None, Position(str(self._source.managed)))
            self._bound(reference, ())
            self.managed.append(self._locate(reference.path, reference.where, reference.base))
        return document

    def seal(self, way: tuple[str, tuple[str, ...]]) -> str:
        """Close where a path ends, and every link on the way: whoever replaces one redirects the path."""
        ends, links = way
        self.sealed |= dict.fromkeys((*links, ends))
        return ends

    def _bound(self, reference: Reference, chain: tuple[Path, ...]) -> None:
        path = self._locate(reference.path, reference.where, reference.base)
        _refuse_circle("within", chain, path, reference.where)
        if reference.sha256 is not None:
            self._check_pin(reference, path)
        if path in self.bounds:
            return
        if len(self.bounds) >= MAX_DOCUMENTS:
            raise InvalidPolicy(f"more than {MAX_DOCUMENTS} bounds", where=reference.where)
        self.bounds[path] = document = self._document(reference.path, reference.where, reference.base)
        for inner in document.within:
            self._bound(inner, (*chain, path))

    def _check_pin(self, reference: Reference, path: Path) -> None:
        self._content(path, reference.where)
        found = self._watch.digests[str(path)]
        if found != reference.sha256:
            shown = reference.path if reference.path.startswith(PACK_PREFIX) else str(path)
            raise InvalidPolicy(
                f"`{shown}` is pinned to sha256 {reference.sha256}, but its content has {found}",
                where=reference.where,
                advice=f"review what changed in it, then write `sha256: {found}`",
            )

    def _document(self, name: str, asked_at: Position, base: str | None) -> PolicyDocument:
        document = settled(self._extended(name, asked_at, base, ()))
        _refuse_too_many(document)
        _refuse_dead_entries(document)
        return document

    def _extended(
        self, name: str, asked_at: Position, base: str | None, chain: tuple[Path, ...]
    ) -> PolicyDocument:
        path = self._locate(name, asked_at, base)
        _refuse_circle("extends", chain, path, asked_at)
        if len(chain) >= MAX_DOCUMENTS:
            raise InvalidPolicy(f"more than {MAX_DOCUMENTS} files extend one another", where=asked_at)
        shown = name if name.startswith(PACK_PREFIX) else str(path)
        tree = load(self._content(path, asked_at), shown)
        self.sources[shown] = self._watch.digests[str(path)]
        document = build(tree, file=shown, base=path.parent)
        self._watch_entries(document, path.parent.as_posix())
        document = self._with_python(document, path.parent.as_posix())
        if document.extends is None:
            return document
        here = Position(shown, *tree.places["extends"])
        parent = self._extended(document.extends, here, path.parent.as_posix(), (*chain, path))
        return join(document, parent)

    def _watch_entries(self, document: PolicyDocument, base: str) -> None:
        """Where a link in an entry leads is part of what the entry says."""
        parts: tuple[PolicyDocument | Rule, ...] = (document, *document.rules)
        for entry in (entry for part in parts for entry in part.entries):
            for written, ends in entry.resolved:
                try:
                    self._watch.resolved(os.path.join(base, written), ends)  # noqa: PTH118
                except ValueError as problem:  # as it was not a moment ago
                    raise _unusable(written, problem, entry.where) from None

    def _with_python(self, document: PolicyDocument, base: str) -> PolicyDocument:
        """`document` with the list of packages that it names, which is as much a part of it as its text.

        Of a prefix only the directories of packages are looked for, so that no run can write to them.
        """
        wish = document.python
        if wish is None:
            return document
        path = Path(self._follow(wish.path, wish.where, base, seal=wish.kind == "packages"))
        if wish.kind == "prefix":
            from licet.environments.prefixes import site_directories

            for place in site_directories(str(path)):
                self.seal(self._watch.follow(place))
            return document.model_copy(update={"python": replace(wish, path=str(path))})
        from licet.environments.lockfile import parse_lock

        lock = parse_lock(self._content(path, wish.where, "the list of packages"), str(path))
        return document.model_copy(update={"python": replace(wish, path=str(path), lock=lock)})

    def _content(self, path: Path, asked_at: Position, what: str = "the policy") -> bytes:
        """The bytes of a file, read once a load, so that all see the same; errors call it `what`."""
        if path not in self._contents:
            try:
                self._contents[path] = self._watch.read(path)
            except OSError as problem:
                raise InvalidPolicy(
                    f"{what} `{path}` can't be read: {reason_of(problem)}",
                    where=asked_at,
                    advice=_way_to_read(problem, what),
                ) from None
        return self._contents[path]

    def _managed(self) -> list[str]:
        directory = self._source.managed
        where = Position(str(directory))
        self._follow(str(directory), where)
        try:
            names = self._watch.names(str(directory))
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise InvalidPolicy(
                f"the managed policies can't be listed: {reason_of(problem)}",
                where=where,
                advice="ask the administrator of this machine; nothing runs without them",
            ) from None
        read = [name for name in names if name.endswith(".yaml")]
        if misnamed := [n for n in names if n.lower().endswith((".yaml", ".yml")) and n not in read]:
            raise InvalidPolicy(
                f"`{misnamed[0]}` would never be read, since managed policies end in `.yaml`",
                where=where,
                advice="have the administrator of this machine rename it",
            )
        return [str(directory / name) for name in read]

    def _locate(self, name: str, asked_at: Position, base: str | None) -> Path:
        """The file that `name` ends at; it is sealed from here on.

        `base` is the directory of the file that names it, None where links may lead anywhere.
        """
        if not name.startswith(PACK_PREFIX):
            return Path(self._follow(name, asked_at, base))
        pack = name.removeprefix(PACK_PREFIX)
        if pack not in self._source.packs:
            known = ", ".join(f"`{PACK_PREFIX}{known}`" for known in sorted(self._source.packs))
            advice = f"known packs are {known}" if known else "install `licet-policies`"
            raise InvalidPolicy(f"there is no policy pack `{name}`", where=asked_at, advice=advice)
        return Path(self._follow(str(self._source.packs[pack]), asked_at))

    def _follow(self, path: str, asked_at: Position, base: str | None = None, *, seal: bool = True) -> str:
        try:
            way = self._watch.follow(anchored(path, asked_at))
        except ValueError as problem:
            raise _unusable(path, problem, asked_at) from None
        ends, links = way
        if base is not None and links and not all(paths.contains(base, place) for place in (*links, ends)):
            raise InvalidPolicy(
                f"`{bounded(path, 300)}` is reached through the link `{links[0]}`, which leaves `{base}`, "
                "the directory of the file that names it",
                where=asked_at,
                advice=f"name the file itself: `{ends}`",
            )
        return self.seal(way) if seal else ends


def anchored(path: str, where: Position | None = None) -> str:
    """`path` from the root of the file system; a relative one is taken from the current directory.

    Raises:
        InvalidPolicy: it is relative, and the current directory is gone.
    """
    try:
        return os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118
    except FileNotFoundError:
        if os.path.isabs(path):  # noqa: PTH117
            return path
        raise _unusable(path, "it is relative, and the current directory is gone", where) from None


def _unusable(path: str, problem: object, where: Position | None = None) -> InvalidPolicy:
    return InvalidPolicy(f"the path `{bounded(path, 300)}` can't be used: {problem}", where=where)


def _refuse_circle(key: str, chain: tuple[Path, ...], path: Path, asked_at: Position) -> None:
    if path in chain:
        circle = " → ".join(str(link) for link in (*chain, path))
        raise InvalidPolicy(f"`{key}` runs in a circle: {circle}", where=asked_at)


def _way_to_read(problem: OSError, what: str) -> str:
    if isinstance(problem, PermissionError):
        return "let this user read it"
    if isinstance(problem, FileNotFoundError):
        made = ", or make one with `licet policy init`" if what == "the policy" else ""
        return f"name a file that exists{made}"
    return "name a plain file"


def _refuse_too_many(document: PolicyDocument) -> None:
    if len(document.entries) > MAX_ENTRIES:
        raise InvalidPolicy(
            f"more than {MAX_ENTRIES} entries in one policy",
            where=document.entries[MAX_ENTRIES].where,
            advice="write patterns; what nothing allows is denied without an entry",
        )
    for entries in (document.entries, *(rule.entries for rule in document.rules)):
        if (entry := crowded(entries, MAX_OVERLAPS)) is not None:
            raise InvalidPolicy(
                f"the entries for `{entry.action}` overlap more than {MAX_OVERLAPS} times",
                where=entry.where,
                advice="repeat no target, and gather what you except of it in one entry or in `deny`",
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
    for entry, cover in dead_entries(document.deny, document.ask, document.allow):
        raise InvalidPolicy(
            f"`{entry.effect}: {entry.text}` can never matter: "
            f"`{cover.effect}: {cover.text}` in {cover.where} covers it",
            where=entry.where,
            advice=_way_out(cover, entry),
        )


def _way_out(cover: Pattern, entry: Pattern) -> str:
    if entry.target is None:
        return "take one of the two out"
    gap = entry.text.partition(" ")[2].strip()
    return f"write `{cover.effect}: {cover.text} except {gap}`, or take one of the two out"


def _warnings(root: PolicyDocument, bounds: Iterable[PolicyDocument]) -> Iterator[str]:
    """The entries of the root that a bound makes useless; where `workdir` decides, only a run can tell."""
    for bound in bounds:
        if bound.index.moving:
            continue
        closes = closing(bound.deny, (*bound.allow, *bound.ask))
        for entry in (*root.ask, *root.allow):
            if closes(entry) and not entry.names_workdir:
                yield (
                    f"{entry.where}: `{entry.effect}: {entry.text}` opens nothing: "
                    f"the bound `{bound.name or bound.file}` denies all of it"
                )
