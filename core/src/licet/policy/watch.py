"""What a policy was read from, and a cheap look at whether all of it is still so.

Rules this module keeps:

- everything on the way counts: directories, links and where they lead, files, the names in a directory, and
  what was missing;
- a look comes before the reading that it vouches for, or what was read is compared with it, so what changes
  meanwhile is seen;
- a file so young that another change might bear the same time is read again instead of believed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import time
from pathlib import Path

from licet import paths
from licet.files import read_plain
from licet.policy.yaml import MAX_BYTES

_TICK_NS = 2_000_000_000
"""The coarsest clock of a file system (FAT): two changes within it may bear one time."""

_KIND = stat.S_IFMT(0o177777)

_Look = tuple[int, ...] | str | int
"""A directory or a file by its numbers, a link by where it leads, something missing by its error."""


class Watch:
    """All that was looked at while one policy was read; for any thread, once the reading is over."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, as if nothing had been looked at."""
        self.digests: dict[str, str] = {}
        self._ways: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._resolved: dict[str, str] = {}
        self._looks: dict[str, _Look] = {}
        self._names: dict[str, tuple[str, ...] | int] = {}
        self._is_young = True

    def follow(self, path: str) -> tuple[str, tuple[str, ...]]:
        """Where an absolute path ends, and every link on the way; both are watched from now on.

        Raises:
            ValueError: it can't be one path for everybody; the text says why.
        """
        ends, links = self._ways[path] = paths.way(path)
        for place in (*links, ends):
            self._look_along(place)
        return ends, links

    def resolved(self, path: str, ends: str) -> None:
        """Watch the links of an absolute path that a policy only names, and read as `ends`.

        Raises:
            ValueError: it can't be one path for everybody.
        """
        if links := paths.links(path):
            self._resolved[path] = ends
            for link in links:
                self._look_along(link)

    def followed(self) -> tuple[str, ...]:
        """Every path that was followed to, existing or not, and every link on the way."""
        return tuple(dict.fromkeys(place for ends, links in self._ways.values() for place in (*links, ends)))

    def read(self, path: Path) -> bytes:
        """The bytes of a file that was followed to, one more than a policy may have at the most.

        Their SHA-256 is kept in `digests`, in hexadecimal digits.

        Raises:
            OSError: it can't be read, or is no plain file.
        """
        data = read_plain(path, MAX_BYTES + 1)
        self.digests[str(path)] = hashlib.sha256(data).hexdigest()
        return data

    def names(self, directory: str) -> tuple[str, ...]:
        """The names in a directory that was followed to, sorted; watched from now on.

        Raises:
            OSError: it can't be listed.
        """
        try:
            self._names[directory] = found = _names(directory)
        except OSError as problem:
            self._names[directory] = problem.errno or -1
            raise
        return found

    def holds_together(self) -> bool:
        """Whether all that was read belongs together: nothing changed from the first look until now."""
        return (
            all(_way_or_none(path) == way for path, way in self._ways.items())
            and all(_end_or_none(path) == end for path, end in self._resolved.items())
            and self._looks_the_same()
        )

    def is_current(self) -> bool:
        """Whether nothing changed since it was read; a few microseconds for each place that is watched."""
        return self._looks_the_same() and (not self._is_young or self._reads_the_same())

    def _look_along(self, place: str) -> None:
        """Look at a place and the directories above it, outermost first, as far as they exist."""
        above = [place]
        while (parent := os.path.dirname(above[-1])) != above[-1]:  # noqa: PTH120
            above.append(parent)
        for step in reversed(above[:-1]):  # what has no parent can't be replaced
            if isinstance(self._looks.setdefault(step, _look(step)), int):
                return  # as long as this is missing, so is what would be below

    def _looks_the_same(self) -> bool:
        for place, look in self._looks.items():
            if _look(place) != look:
                return False
        for directory, names in self._names.items():
            if isinstance(names, int) and self._is_missing_above(directory):
                continue  # as was just seen
            if _names_or_error(directory) != names:
                return False
        return True

    def _is_missing_above(self, place: str) -> bool:
        """Whether something that was looked at on the way to a place is missing."""
        return any(
            isinstance(look, int) and place.startswith(f"{missing}{os.sep}")
            for missing, look in self._looks.items()
        )

    def _reads_the_same(self) -> bool:
        began_ns = time.time_ns()
        for name, digest in self.digests.items():
            try:
                if hashlib.sha256(read_plain(Path(name), MAX_BYTES + 1)).hexdigest() != digest:
                    return False
            except OSError:
                return False
        newest_ns = max((_changed_ns(look) for look in self._looks.values()), default=0)
        self._is_young = began_ns - newest_ns < _TICK_NS
        return True


def _way_or_none(path: str) -> tuple[str, tuple[str, ...]] | None:
    try:
        return paths.way(path)
    except ValueError:
        return None


def _end_or_none(path: str) -> str | None:
    way = _way_or_none(path)
    return way and way[0]


def _look(place: str) -> _Look:
    try:
        found = os.lstat(place)
        kind = found.st_mode & _KIND
        if kind == stat.S_IFDIR:
            return found.st_dev, found.st_ino  # what else is in it does not matter
        if kind == stat.S_IFLNK:
            return os.readlink(place)  # noqa: PTH115
    except OSError as problem:
        return problem.errno or -1
    changed_ns = found.st_mtime_ns if sys.platform == "win32" else found.st_ctime_ns
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, changed_ns


def _changed_ns(look: _Look) -> int:
    """When a file was changed last; nobody but the system sets that, except on Windows."""
    return look[-1] if isinstance(look, tuple) and len(look) > 2 else 0


def _names(directory: str) -> tuple[str, ...]:
    return tuple(sorted(os.listdir(directory)))  # noqa: PTH208


def _names_or_error(directory: str) -> tuple[str, ...] | int:
    try:
        return _names(directory)
    except OSError as problem:
        return problem.errno or -1
