"""Finishing and undoing commits: right after a failure, and when a process died in the middle of one.

Rules this module keeps:

- before `done` a commit is undone, from then on it is finished; both can be done again and again;
- what stands at a name is told by its inode, never by its name alone: what others put there is not touched;
- a directory that is no longer where it was is not followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal

from licet.writes import walking
from licet.writes.journal import Identity, Journal, JournalEntry, Step
from licet.writes.staged import NotCommitted

_WAIT_S = 0.0  # for a lock that another process holds: it works on the entries itself


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of a commit that was interrupted: `undone`, `finished`, or `failed` for a reason."""

    run_id: str
    outcome: Literal["undone", "finished", "failed"]
    paths: tuple[str, ...] = ()
    reason: str | None = None


def recover(journal: Journal) -> tuple[Recovered, ...]:
    """Undo or finish each commit that a process left open by dying; none if others are at work here.

    Raises:
        OSError: the journal can't be read or written.
    """
    if journal.is_empty:
        return ()
    try:
        with journal.alone(_WAIT_S):
            return tuple(_recovered(journal, run_id, entry) for run_id, entry in journal.entries())
    except NotCommitted:
        return ()


def _recovered(journal: Journal, run_id: str, entry: JournalEntry | None) -> Recovered:
    if entry is None:
        journal.set_aside(run_id)
        return Recovered(run_id, "failed", reason="its entry in the journal can't be read")
    try:
        (finish if entry.state == "done" else undo)(entry)
    except (OSError, RecursionError) as problem:  # others may have put a tree there that is too deep for us
        journal.set_aside(run_id)
        return Recovered(run_id, "failed", entry.paths, reason=str(problem))
    journal.remove(entry)
    return Recovered(run_id, "finished" if entry.state == "done" else "undone", entry.paths)


def finish(entry: JournalEntry) -> None:
    """Remove what a commit has replaced.

    Raises:
        OSError: it can't be removed.
    """
    for step in entry.steps:
        with _parent_of(step) as above:
            if step.had is not None and identity_at(above, step.draft) == step.had:
                remove_tree(above, step.draft)
                walking.sync(above)


def undo(entry: JournalEntry, held: Mapping[str, int] | None = None) -> None:
    """Put back what a commit has replaced, and remove what it has made: every piece that can be.

    `held` has the directories of the steps by their paths, opened, where they are.

    Raises:
        OSError: something of others stands at one of the places now, or it can't be done there.
    """
    first: OSError | None = None
    for step in reversed(entry.steps):
        try:
            with nullcontext(held[step.parent]) if held is not None else _parent_of(step) as above:
                if entry.state == "preparing":
                    remove_tree(above, step.draft)
                else:
                    _undo(above, step)
                walking.sync(above)
        except OSError as problem:
            first = first or problem
    if first is not None:
        raise first


def _undo(above: int, step: Step) -> None:
    """Put one path in order, from wherever its step has come to.

    Whatever lies beside our own piece stood in its place right before, even if it is not what the run found.
    """
    here, beside = identity_at(above, step.name), identity_at(above, step.draft)
    if step.has is not None and here == step.has:
        if beside is None:
            walking.move(above, step.name, step.draft)
        else:
            walking.exchange(above, step.draft, step.name)
    elif beside not in (None, step.has):
        if here is not None:
            why = f"others put something there; what was there before is `{step.draft}`, beside it"
            raise OSError(errno.EEXIST, why, step.path)
        walking.move(above, step.draft, step.name)
    if step.has is not None and identity_at(above, step.draft) == step.has:
        remove_tree(above, step.draft)


@contextmanager
def _parent_of(step: Step) -> Iterator[int]:
    with walking.directory(step.parent) as above:
        if identity_of(os.fstat(above)) != step.parent_id:
            raise OSError(errno.ESTALE, "this directory is another one now", step.parent)
        yield above


def identity_of(found: os.stat_result) -> Identity:
    """What tells one object of a file system from all others."""
    return found.st_dev, found.st_ino


def identity_at(above: int, name: str) -> Identity | None:
    """Which object stands at a name in a directory."""
    found = walking.look_in(above, name)
    return identity_of(found) if found is not None else None


def remove_tree(above: int, name: str) -> None:
    """Remove what stands at a name in a directory, whatever it holds; no link is followed.

    Raises:
        OSError: it can't be removed.
    """
    found = walking.look_in(above, name)
    if found is None:
        return
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=above)
        return
    with walking.inner(above, name) as inside:
        with walking.entries_of(inside) as entries:
            names = [entry.name for entry in entries]
        for each in names:
            remove_tree(inside, each)
    os.rmdir(name, dir_fd=above)
