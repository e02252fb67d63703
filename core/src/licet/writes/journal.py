"""The journal of commits: what is about to be done to the host, so that it can be finished or undone later.

Rules this module keeps:

- an entry is durable before anything that it tells of is done;
- one lock for all commits of a state directory: whoever holds it knows that no entry is being worked on;
- an entry that nobody can finish or undo is set aside under another name, for people.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from licet import files
from licet.locks import lock_file
from licet.writes.staged import NotCommitted

State = Literal["preparing", "prepared", "done"]
Identity = tuple[int, int]
"""Device and inode."""

LOCK_S = 30.0
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Step:
    """One name in a directory of the host that changes, all that it holds with it.

    What is to stand there is made under the name `draft`, beside it; then the two change places. `had` is
    what stood there, `has` what is to, each None for nothing.
    """

    parent: str
    parent_id: Identity
    name: str
    draft: str
    had: Identity | None = None
    has: Identity | None = None

    @property
    def path(self) -> str:
        """The path that changes."""
        return f"{self.parent.rstrip('/')}/{self.name}"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One commit: `preparing` makes drafts, `prepared` puts them in place, `done` removes the rest."""

    run_id: str
    state: State
    steps: tuple[Step, ...]

    def at(self, state: State) -> JournalEntry:
        """The same commit, so far on its way."""
        return replace(self, state=state)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that change."""
        return tuple(step.path for step in self.steps)


class Journal:
    """The journal in `folder`, which is made with its first entry."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def is_empty(self) -> bool:
        """Whether no commit is left open here.

        Raises:
            OSError: it can't be seen.
        """
        try:
            return not any(name.endswith(".json") for name in os.listdir(self._folder))  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return True

    @contextmanager
    def alone(self, seconds: float = LOCK_S) -> Iterator[None]:
        """Hold the lock of the journal.

        Raises:
            NotCommitted: others hold it longer than `seconds`.
            OSError: it can't be made.
        """
        files.make_folder(self._folder)
        with lock_file(self._folder / "lock", seconds) as held:
            if not held:
                raise NotCommitted("another run commits its files, and does not finish")
            files.drop_drafts(self._folder)
            yield

    def write(self, entry: JournalEntry) -> None:
        """Put an entry in the place of the one before, durable when this returns."""
        content = json.dumps(asdict(entry), separators=(",", ":")).encode("ascii")
        files.replace(self._file(entry.run_id), content)

    def remove(self, entry: JournalEntry) -> None:
        """Forget an entry that is finished or undone."""
        self._file(entry.run_id).unlink()
        files.sync_directory(self._folder)

    def set_aside(self, run_id: str) -> None:
        """Keep an entry for people, and work on it no more."""
        file = self._file(run_id)
        file.replace(file.with_suffix(".failed"))
        files.sync_directory(self._folder)

    def entries(self) -> Iterator[tuple[str, JournalEntry | None]]:
        """Run and entry of each commit that was left open; None for an entry that can't be read."""
        for path in sorted(self._folder.glob("*.json")):
            try:
                yield path.stem, _entry(json.loads(files.read_plain(path, _MOST_BYTES)))
            except (ValueError, KeyError, TypeError):
                yield path.stem, None

    def _file(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.json"


def _entry(content: dict[str, Any]) -> JournalEntry:
    steps = (
        Step(
            _text(one["parent"]),
            _identity(one["parent_id"]),
            _text(one["name"]),
            _text(one["draft"]),
            one["had"] and _identity(one["had"]),
            one["has"] and _identity(one["has"]),
        )
        for one in content["steps"]
    )
    state: State = content["state"]
    if state not in ("preparing", "prepared", "done"):
        raise ValueError(f"`{state}` is no state of a commit")
    return JournalEntry(_text(content["run_id"]), state, tuple(steps))


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError("expected a text")
    return given


def _identity(given: list[int]) -> Identity:
    device, inode = given
    return device, inode
