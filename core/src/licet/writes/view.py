"""The file system as the code of one run sees it: the host's files where they are opened, under its changes.

Rules this module keeps:

- each operation asks `allows` first, for every path that it takes; what was allowed once is not asked again,
  since a plan opens nothing later and closes nothing;
- what is kept closed inside an opened directory is not listed, and answers like anything else that is closed;
- a link of the host is followed to read, if what it leads to is opened too; nothing is written through one;
- where the code may write and not read, it sees its own changes alone, and begins with nothing;
- whatever the host reads or lists for the code is bounded.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from licet import paths
from licet.operations import Operation, intents_of
from licet.plan import Opened
from licet.request import Mount
from licet.writes.found import Found, Kind, check_plain, refusal
from licet.writes.overlay import Overlay
from licet.writes.sight import MOST_NAMES, Sight, crowded, joined, parent
from licet.writes.staged import Staged

Allows = Callable[[Literal["read", "write"], str], bool]

STORAGE_BYTES = 64 << 20
"""How much a run may stage where no policy states the limit `files`."""

MOST_READ = 64 << 20
"""How much of a file is read at once, in bytes: it passes through the memory of this process."""


class FileView:
    """The files of one run. Not for several threads at once."""

    def __init__(
        self,
        opened: Opened,
        allows: Allows,
        *,
        mounts: Sequence[Mount] = (),
        storage: int | None = None,
        most_read: int = MOST_READ,
        came_upon: Mapping[str, Any] | None = None,
    ) -> None:
        """`storage` is the limit `files` in bytes; `mounts` show files of the host at other paths.

        `came_upon` is that of the view that a suspended run had before.
        """
        self._opened = opened
        self._allows = allows
        self._mounts = {mount.path: mount.host for mount in mounts}
        self._overlay = Overlay(STORAGE_BYTES if storage is None else storage, came_upon)
        self._most_read = most_read
        self._sight = Sight(opened, self._overlay, self._mounts, most_read)
        self._allowed: set[tuple[str, str]] = set()

    @property
    def used(self) -> int:
        """Bytes that the run has staged."""
        return self._overlay.used

    @property
    def is_changed(self) -> bool:
        """Whether the run changed anything: such a view lasts no longer than its process."""
        return self._overlay.is_changed

    def came_upon(self) -> dict[str, Any]:
        """What the run came upon on the host, as plain data: if others change it, nothing is committed."""
        return self._overlay.came_upon()

    def staged(self) -> Staged:
        """What the run changed so far."""
        return self._overlay.staged()

    # -- looking; links are followed

    def find(self, path: str) -> Found | None:
        """What stands at a path; None if nothing does.

        Raises:
            OSError: the plan does not open it.
        """
        return self._sight.at(self._to_read(path))

    def stat(self, path: str) -> Found:
        """What stands at a path.

        Raises:
            OSError: nothing does, or the plan does not open it.
        """
        found = self.find(path)
        if found is None:
            raise refusal(errno.ENOENT, path)
        return found

    def is_link(self, path: str) -> bool:
        """Whether a link of the host stands at this very path."""
        place = self._spelled(path)
        if place in self._mounts:
            return False
        self._look_at(place, path)
        found = self._sight.at(place)
        return found is not None and found.kind == "link"

    def leads_to(self, path: str) -> Kind | None:
        """What a link that was listed leads to; None if that is nothing, or not opened to be read."""
        with contextlib.suppress(OSError):
            resolved = self._resolved(self._spelled(path), path)
            found = self._sight.at(resolved) if self._opened.opens("read", resolved) else None
            return found.kind if found is not None else None
        return None

    def resolve(self, path: str) -> str:
        """Where a path leads.

        Raises:
            OSError: the plan does not open it, or what it leads to.
        """
        return self._to_read(path)

    def check_readable(self, path: str) -> Found:
        """What stands at a path, if that is a plain file.

        Raises:
            OSError: there is none, or the plan does not open it.
        """
        found = self.stat(path)
        check_plain(found, path)
        return found

    def read(self, path: str) -> bytes:
        """All of a plain file.

        Raises:
            OSError: there is none, it is larger than what may be read, or the plan does not open it.
        """
        found = self.check_readable(path)
        place = self._to_read(path)
        node = self._overlay.at(place)
        if found.size > self._most_read:
            raise self._sight.too_large(path)
        if node is not None and node.content is not None:
            return b"".join(node.content.chunks())
        return b"".join(self._sight.content_of(place, path))

    def names(self, path: str) -> list[tuple[str, Kind]]:
        """What a directory holds, by name.

        Raises:
            OSError: there is none, it holds more than `MOST_NAMES`, or the plan does not open it.
        """
        place = self._to_read(path)
        found = self._sight.at(place)
        if found is None:
            raise refusal(errno.ENOENT, path)
        if found.kind != "directory":
            raise refusal(errno.ENOTDIR, path)
        return self._sight.listed(place, path)

    def tree(self, path: str, depth: int | None = None) -> Iterator[tuple[str, Kind]]:
        """A path (named `""`) and what lies in it, `depth` levels down; links are not entered.

        Raises:
            OSError: as for `names`, of the whole tree.
        """
        place = self._to_read(path)
        found = self._sight.at(place)
        if found is None:
            raise refusal(errno.ENOENT, path)
        yield "", found.kind
        pending = [(place, "", 0)] if found.kind == "directory" else []
        count = 0
        while pending:
            here, relative, level = pending.pop()
            if depth is not None and level >= depth:
                continue
            for name, kind in self._sight.listed(here, path):
                count += 1
                if count > MOST_NAMES:
                    raise crowded(path)
                inner = f"{relative}/{name}" if relative else name
                yield inner, kind
                if kind == "directory":
                    pending.append((joined(here, name), inner, level + 1))

    # -- changing

    def write(self, path: str, data: bytes = b"") -> None:
        """Let a file hold `data` and nothing else; it is made if it is missing.

        Raises:
            OSError: the plan does not open it, or something else stands there.
            StorageFull: the run has staged too much.
        """
        place = self._to_write(path)
        self._sight.check_file(place, path)
        self._overlay.put(place, self._overlay.store((data,)))

    def append(self, path: str, data: bytes = b"") -> None:
        """Put `data` at the end of a file; it is made if it is missing.

        Raises:
            OSError: the plan does not open it, or something else stands there.
            StorageFull: the run has staged too much.
        """
        place = self._to_write(path)
        node = self._overlay.at(place)
        if node is None or node.content is None:
            self._keep(place, path)
        self._overlay.append(place, data)

    def make(self, path: str, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Make a directory.

        Raises:
            OSError: the plan does not open it, or something else stands there.
            StorageFull: the run has changed too much.
        """
        place = self._spelled(path)
        if exist_ok and self._opened.opens("read", place) and _is_directory(self.find(path)):
            return
        place = self._to_write(path, "create")
        found = self._sight.at(place)
        if found is not None:
            if exist_ok and _is_directory(found):
                return
            raise refusal(errno.EEXIST, path)
        if parents and self._sight.parent_of(place) is None:
            self.make(parent(place), parents=True, exist_ok=True)
        self._sight.check_parent(place, path)
        self._sight.note(place)
        self._overlay.make(place)

    def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            OSError: there is none, or the plan does not open it and the directory around it.
            StorageFull: the run has changed too much.
        """
        place = self._to_write(path, "remove")
        if self._sight.check_file(place, path) is None:
            raise refusal(errno.ENOENT, path)
        self._overlay.remove(place, hides=self._sight.shows(place))

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory.

        Raises:
            OSError: there is none, it holds something, or the plan does not open it and what is around it.
            StorageFull: the run has changed too much.
        """
        place = self._to_write(path, "remove")
        found = self._sight.at(place)
        if found is None:
            raise refusal(errno.ENOENT, path)
        if found.kind != "directory":
            raise refusal(errno.ENOTDIR, path)
        if self._overlay.at(place) is None and not self._opened.opens("read", place):
            raise refusal(errno.EACCES, path, "it can't be read")
        if self._sight.listed(place, path) or self._sight.holds_more(place):
            raise refusal(errno.ENOTEMPTY, path)
        self._overlay.remove(place, hides=self._sight.shows(place))

    def rename(self, path: str, other: str) -> None:
        """Give a file, or a directory that the run made, another name; a file there is replaced.

        Raises:
            OSError: there is nothing, it is a directory of the host (`EXDEV`), or not all of it is opened.
            StorageFull: the run has staged too much.
        """
        place, to = self._spelled(path), self._spelled(other)
        self._ask_all("rename", place, to)
        place, to = self._unlinked(place, path), self._unlinked(to, other)
        found = self._sight.at(place)
        if found is None:
            raise refusal(errno.ENOENT, path)
        if found.kind == "directory":
            self._rename_directory(place, to, path, other)
            return
        self._sight.check_file(place, path)
        self._sight.check_file(to, other)
        if place == to:
            return
        node = self._overlay.at(place)
        if node is None or node.content is None:
            self._keep(place, path)
        self._overlay.move(place, to, hides=self._sight.shows(place))

    def _rename_directory(self, place: str, to: str, path: str, other: str) -> None:
        if self._overlay.at(place) is None:
            raise refusal(errno.EXDEV, path, "only a directory that this run made can be renamed")
        if paths.contains(place, to):
            raise refusal(errno.EINVAL, other)
        if self._sight.at(to) is not None:
            raise refusal(errno.EEXIST, other)
        self._sight.check_parent(to, other)
        for inner in self._overlay.below(place):
            inside = to + inner.removeprefix(place)
            self._ask("write", inside, inside)
        self._sight.note(to)
        self._overlay.move(place, to, hides=self._sight.shows(place))

    # -- what a path takes

    def _to_read(self, path: str) -> str:
        place = self._spelled(path)
        if place in self._mounts:
            self._ask("read", self._mounts[place], path)
            return place
        self._look_at(place, path)
        if not self._opened.opens("read", place) or self._sight.is_changed(place):
            return place
        resolved = self._resolved(place, path)
        if resolved != place:
            self._look_at(resolved, path)
        return resolved

    def _to_write(self, path: str, operation: Operation = "write") -> str:
        place = self._spelled(path)
        self._ask_all(operation, place)
        return self._unlinked(place, path)

    def _unlinked(self, place: str, path: str) -> str:
        """A path to write to: no file of the request, and not through a link."""
        if place in self._mounts:
            raise refusal(errno.EROFS, path, "files of a request can only be read")
        follows = self._opened.opens("read", place) and not self._sight.is_changed(place)
        if follows and self._resolved(place, path) != place:
            raise refusal(errno.EACCES, path, "a link leads there, and nothing is written through links")
        return place

    def _look_at(self, place: str, path: str) -> None:
        """Ask for a path that is looked at: by `write`, where the run sees no more than its own changes."""
        own = self._opened.opens("write", place) and not self._opened.opens("read", place)
        self._ask("write" if own else "read", place, path)

    def _ask_all(self, operation: Operation, place: str, other: str | None = None) -> None:
        """Ask for all that an operation takes, even after the first refusal, so that all of it is known."""
        refusals = []
        for intent in intents_of(operation, place, other):
            try:
                self._ask("write", intent.target or "", intent.target or "")
            except OSError as problem:
                refusals.append(problem)
        if refusals:
            raise refusals[0]

    def _ask(self, action: Literal["read", "write"], place: str, path: str) -> None:
        """Ask for a path, once; what a link leads to is not told, but `path` as the code spelled it."""
        if (action, place) in self._allowed:
            return
        if not self._allows(action, place):
            raise refusal(errno.EACCES, path, f"this run may not {action} it")
        self._allowed.add((action, place))

    def _spelled(self, path: str) -> str:
        try:
            return paths.spelled(path)
        except ValueError as problem:
            self._allows("read", path)  # so that it is recorded
            raise refusal(errno.EACCES, path, str(problem)) from None

    def _resolved(self, place: str, path: str) -> str:
        try:
            return paths.canonical(place, base="/")
        except ValueError as problem:
            raise refusal(errno.ELOOP, path, str(problem)) from None

    def _keep(self, place: str, path: str) -> None:
        """Take a file into the storage as the run sees it."""
        there = self._sight.check_file(place, path) is not None
        content = self._sight.content_of(place, path) if there else ()
        self._overlay.put(place, self._overlay.store(content))


def _is_directory(found: Found | None) -> bool:
    return found is not None and found.kind == "directory"
