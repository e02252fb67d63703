"""Bringing what a run staged to the host: all of it, or nothing.

Rules this module keeps:

- nothing is written that the plan does not open, whatever a backend hands over; no link is followed or
  replaced, no file with a second name, none of another user, none that runs with the rights of its owner;
- all is made ready beside its place first; then each piece takes its place in one step, so that no half of a
  file is ever seen; what it replaces is kept until all of them have;
- a directory that is made or taken away is bounded in depth: each level costs a descriptor and a frame here;
- if anything is not as the run found it, right before or right after, everything is put back;
- a new file has mode 0644 and a new directory 0755, less what the umask of this process takes away; a file
  that is replaced keeps its permission bits.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from licet.errors import reason_of
from licet.operations import intents_of
from licet.plan import Opened
from licet.writes import walking
from licet.writes.found import SPECIAL_BITS
from licet.writes.journal import Journal, JournalEntry, Step
from licet.writes.settling import finish, identity_at, identity_of, undo
from licet.writes.staged import Edit, NotCommitted, Seen

At = Callable[[str], None]
"""Hears of each moment at which a process can die (for tests)."""

MOST_LEVELS = 100
"""How deep a directory may be that is made or taken away as a whole."""

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class _Target:
    """A path of the host that changes, the edits inside it, and the directory that holds it, opened."""

    edit: Edit
    above: int
    parent: str
    name: str
    inside: dict[str, Edit] = field(default_factory=dict)

    @property
    def makes(self) -> bool:
        return self.edit.content is not None or self.edit.directory


def commit(
    run_id: str, edits: Sequence[Edit], opened: Opened, journal: Journal, at: At = lambda moment: None
) -> None:
    """Do all `edits` to the host; the caller holds the lock of `journal`.

    Raises:
        NotCommitted: nothing was done, or all of it was put back; the message says why.
    """
    for edit in edits:
        check_opened(edit, opened)
    for edit, inside in _outermost(edits):
        _check_depth(edit, inside)
    with ExitStack() as stack:
        try:
            targets = [_opened(edit, inside, stack) for edit, inside in _outermost(edits)]
            for target in targets:
                _check(target)
        except OSError as problem:
            raise _refused(problem) from None
        mark = secrets.token_hex(6)
        steps = tuple(
            Step(one.parent, identity_of(os.fstat(one.above)), one.name, f".licet-{mark}-{number}")
            for number, one in enumerate(targets)
        )
        _carry_out(JournalEntry(run_id, "preparing", steps), targets, journal, at)


def _carry_out(entry: JournalEntry, targets: Sequence[_Target], journal: Journal, at: At) -> None:
    try:
        journal.write(entry)
        at("journal preparing")
        entry = _drafted(entry, targets, at)
        journal.write(entry)
        at("journal prepared")
        for target, step in zip(targets, entry.steps, strict=True):
            _take_place(target, step, at)
        for above in {target.parent: target.above for target in targets}.values():
            walking.sync(above)
        at("all in place")
        journal.write(entry.at("done"))
    except (OSError, NotCommitted) as problem:
        _put_back(entry, {target.parent: target.above for target in targets}, journal, problem)
        raise _refused(problem) if isinstance(problem, OSError) else problem from None
    at("journal done")
    try:
        finish(entry)
    except OSError:
        return  # what was replaced lies beside its place until the next start
    at("finished")
    journal.remove(entry)
    at("journal removed")


def _put_back(entry: JournalEntry, held: dict[str, int], journal: Journal, problem: Exception) -> None:
    try:
        undo(entry, held)
        journal.remove(entry)
    except OSError as second:  # the next start tries again
        raise NotCommitted(f"{problem}; and not all of it could be put back: {second}") from None


def _drafted(entry: JournalEntry, targets: Sequence[_Target], at: At) -> JournalEntry:
    """Make what is to stand at each path, under the name of its draft."""
    steps = []
    for target, step in zip(targets, entry.steps, strict=True):
        seen = target.edit.seen
        had = (seen.device, seen.inode) if seen is not None else None
        if target.makes:
            _make(target.above, step.draft, target.edit, target.inside, at)
        steps.append(replace(step, had=had, has=identity_at(target.above, step.draft)))
        at("draft")
    for above in {target.parent: target.above for target in targets}.values():
        walking.sync(above)
    return JournalEntry(entry.run_id, "prepared", tuple(steps))


def _take_place(target: _Target, step: Step, at: At) -> None:
    found = walking.look(target.parent)
    if found is None or identity_of(found) != step.parent_id:
        raise changed(target.parent)
    _check(target)
    at("checked")
    try:
        if step.has is None:
            walking.move(target.above, step.name, step.draft)
        elif step.had is None:
            walking.move(target.above, step.draft, step.name)
        else:
            walking.exchange(target.above, step.draft, step.name)
    except (FileExistsError, FileNotFoundError):
        raise changed(target.edit.path) from None
    at("in place")
    if step.had is not None:
        _check_old(target, step.draft, moved=True)


# -- what has to be as the run found it


def _check(target: _Target) -> None:
    if target.edit.seen is None:
        if walking.look_in(target.above, target.name) is not None:
            raise changed(target.edit.path)
        return
    _check_old(target, target.name)


def _check_old(target: _Target, name: str, *, moved: bool = False) -> None:
    seen, path = target.edit.seen, target.edit.path
    assert seen is not None
    found = walking.look_in(target.above, name)
    if found is None or not seen.is_same(found, moved=moved):
        raise changed(path)
    if seen.kind == "directory":
        _check_directory(target.above, name, target, path)
    else:
        _check_file(found, path)
        if not moved:
            _check_content(target.above, name, seen, path)


def _check_directory(above: int, name: str, target: _Target, path: str) -> None:
    """A directory that goes: all that it holds goes with it, by an edit of its own."""
    with walking.inner(above, name) as inside, walking.entries_of(inside) as entries:
        for entry in entries:
            inner = f"{path}/{entry.name}"
            edit = target.inside.get(inner)
            found = walking.look_in(inside, entry.name)
            if edit is None or edit.seen is None or found is None or not edit.seen.is_same(found):
                raise changed(inner)
            if edit.seen.kind == "directory":
                _check_directory(inside, entry.name, target, inner)
            else:
                _check_file(found, inner)


def _check_file(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise NotCommitted(f"`{path}` is no plain file, so nothing was written")
    if found.st_nlink > 1:
        raise NotCommitted(f"`{path}` has other names too (hard links), so nothing was written")
    if found.st_mode & SPECIAL_BITS:
        raise NotCommitted(f"`{path}` runs with the rights of its owner (setuid), so nothing was written")
    if os.geteuid() not in (0, found.st_uid):
        raise NotCommitted(f"`{path}` belongs to another user, so nothing was written")


def _check_content(above: int, name: str, seen: Seen, path: str) -> None:
    """What the run read there; the times of a file tell less than all of its changes."""
    if seen.sha256 is None:
        return
    digest = hashlib.sha256()
    descriptor = walking.open_plain_in(above, name, path)
    try:
        while piece := os.read(descriptor, _PIECE):
            digest.update(piece)
    finally:
        os.close(descriptor)
    if digest.hexdigest() != seen.sha256:
        raise changed(path)


# -- what is made


def _make(above: int, name: str, edit: Edit, inside: dict[str, Edit], at: At) -> None:
    if edit.content is not None:
        _make_file(above, name, edit.content.chunks(), _of(above, edit))
        at("file")
        return
    os.mkdir(name, 0o755, dir_fd=above)
    at("directory")
    with walking.inner(above, name) as here:
        for path, one in inside.items():
            parent, _, inner = path.rpartition("/")
            if parent == edit.path and (one.content is not None or one.directory):
                _make(here, inner, one, inside, at)
        walking.sync(here)


def _of(above: int, edit: Edit) -> os.stat_result | None:
    """The file that is replaced, which gives the new one its mode and owner."""
    if edit.seen is None or edit.seen.kind != "file":
        return None
    return walking.look_in(above, edit.path.rpartition("/")[2])


def _make_file(above: int, name: str, content: Iterable[bytes], like: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o644, dir_fd=above)
    try:
        made = os.fstat(descriptor)
        os.fchmod(descriptor, 0o600)  # what is in the making is nobody else's to read
        for piece in content:
            _write(descriptor, piece)
        if like is not None and (like.st_uid, like.st_gid) != (made.st_uid, made.st_gid):
            os.fchown(descriptor, like.st_uid, like.st_gid)
        os.fchmod(descriptor, stat.S_IMODE((like or made).st_mode) & 0o777)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(descriptor: int, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[os.write(descriptor, left) :]


# -- which paths


def _outermost(edits: Sequence[Edit]) -> Iterator[tuple[Edit, dict[str, Edit]]]:
    """Each edit that lies in no other one, with those inside it; a directory that stays is no edit."""
    around: Edit | None = None
    inside: dict[str, Edit] = {}
    for edit in sorted(edits, key=lambda one: one.path.split("/")):
        if around is not None and edit.path.startswith(f"{around.path}/"):
            inside[edit.path] = edit
            continue
        if around is not None:
            yield around, inside
        around, inside = edit, {}
    if around is not None:
        yield around, inside


def _opened(edit: Edit, inside: dict[str, Edit], stack: ExitStack) -> _Target:
    parent, _, name = edit.path.rpartition("/")
    parent = parent or "/"
    try:
        above = walking.open_directory(parent)
    except (FileNotFoundError, NotADirectoryError):
        raise changed(parent) from None
    stack.callback(os.close, above)
    return _Target(edit, above, parent, name, inside)


def check_opened(edit: Edit, opened: Opened) -> None:
    """Refuse an edit that takes what the plan does not open.

    Raises:
        NotCommitted: as said.
    """
    needed = intents_of("remove" if edit.content is None and not edit.directory else "write", edit.path)
    for intent in needed:
        if not opened.opens("write", intent.target or ""):
            raise NotCommitted(f"`{intent.target}` is not opened to be written, so nothing was written")


def _check_depth(edit: Edit, inside: Iterable[str]) -> None:
    most = edit.path.count("/") + MOST_LEVELS
    if any(path.count("/") > most for path in inside):
        raise NotCommitted(f"`{edit.path}` is more than {MOST_LEVELS} levels deep, so nothing was written")


def changed(path: str) -> NotCommitted:
    """The refusal of a path that others changed meanwhile."""
    return NotCommitted(f"`{path}` was changed by others while the code ran, so nothing was written")


def _refused(problem: OSError) -> NotCommitted:
    where = f"`{problem.filename}`: " if isinstance(problem.filename, str) else ""
    return NotCommitted(f"nothing was written: {where}{reason_of(problem)}")
