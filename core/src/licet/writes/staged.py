"""What a run changed in its view of the file system, before any of it reaches the host.

Rules this module keeps:

- a change names a canonical path, what was seen of it on the host at first, and what it is to become;
- content is read in pieces, wherever it is kept: in memory, in a nameless file, in a layer of the kernel;
- nothing here writes to the host, and whatever is not committed is dropped with its storage.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

Kind = Literal["file", "directory", "other"]
ChangeName = Literal["create", "replace", "remove", "make_directory", "remove_directory"]

MOST_EDITS = 10_000
"""How many paths one run can change."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What stood at a path of the host when the run came upon it; `sha256` is that of what it read there.

    Of a directory only its identity counts, since its names come and go.
    """

    kind: Kind
    device: int
    inode: int
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    sha256: str | None = None

    @classmethod
    def of(cls, found: os.stat_result, sha256: str | None = None) -> Seen:
        """What `found`, of the very object and not of one that a link leads to, says of it."""
        if stat.S_ISDIR(found.st_mode):
            return cls("directory", found.st_dev, found.st_ino)
        kind: Kind = "file" if stat.S_ISREG(found.st_mode) else "other"
        times = found.st_mtime_ns, found.st_ctime_ns
        return cls(kind, found.st_dev, found.st_ino, found.st_size, *times, sha256)

    def is_same(self, found: os.stat_result, *, moved: bool = False) -> bool:
        """Whether that object stands there, unchanged; one that was `moved` since has a new ctime."""
        now = Seen.of(found, self.sha256)
        if moved:
            return _without_ctime(now) == _without_ctime(self)
        return now == self


def _without_ctime(seen: Seen) -> tuple[object, ...]:
    return seen.kind, seen.device, seen.inode, seen.size, seen.mtime_ns


class Content(Protocol):
    """The content that a file is to have."""

    @property
    def size(self) -> int:
        """In bytes."""
        ...

    def chunks(self) -> Iterator[bytes]:
        """The content, piece by piece; as often as it is asked for."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """One path that a run changed: into a file with `content`, a `directory`, or nothing.

    `seen` is what stood there on the host, None if nothing did.
    """

    path: str
    seen: Seen | None
    content: Content | None = None
    directory: bool = False

    @property
    def change(self) -> ChangeName | None:
        """What it comes to, as the trail says it; None if it leaves the host as it was."""
        had = self.seen.kind if self.seen else None
        if self.content is not None:
            return "replace" if had == "file" else "create"
        if self.directory:
            return None if had == "directory" else "make_directory"
        if had is None:
            return None
        return "remove_directory" if had == "directory" else "remove"


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """All that a run changed, by path; `close` gives its storage back.

    `refused` says why nothing of it can be committed, whatever it is; then there are no edits.
    """

    edits: tuple[Edit, ...] = ()
    close: Callable[[], None] = field(default=lambda: None, repr=False)
    refused: str | None = None

    @property
    def lost(self) -> int:
        """How many changes are dropped with it; one stands for all that are refused."""
        return len(self.edits) or int(self.refused is not None)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that a run left on the host; `media_type` is a guess from its name."""

    path: str
    bytes: int
    sha256: str
    media_type: str


@dataclass(frozen=True, slots=True)
class Change:
    """One change as it is told to people; `file` is what stands there then, None where no file does."""

    path: str
    change: ChangeName
    file: Artifact | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the changes of a run: `committed`, or `refused` for a reason, or dropped.

    `dropped` counts the changes of a run that did not end well.
    """

    committed: tuple[Change, ...] = ()
    refused: str | None = None
    dropped: int = 0

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """The files that the run left on the host."""
        return tuple(change.file for change in self.committed if change.file is not None)

    @property
    def state(self) -> Literal["none", "committed", "refused", "dropped"]:
        """In one word; `none` if there was nothing to write."""
        if self.refused is not None:
            return "refused"
        return "committed" if self.committed else "dropped" if self.dropped else "none"


NOTHING_WRITTEN = Written()


class NotCommitted(Exception):
    """Nothing was written to the host; the message says what stood in the way."""


class StorageFull(Exception):
    """A run has staged more than its limit `files` admits, or changed more paths than `MOST_EDITS`."""
