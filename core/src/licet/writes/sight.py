"""What a run sees at a path: its own change, or what the host has there as far as the plan shows it.

Rules this module keeps:

- what the host has is looked at by descriptors, at the very path: no link is followed here;
- of a directory of the host, what the plan does not open is left out;
- where nothing may be read, only the run's own changes are seen, and that a root is a directory.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping

from licet.plan import Opened
from licet.writes import walking
from licet.writes.found import SPECIAL_BITS, Found, Kind, check_plain, kind_of, of_host, of_node, refusal
from licet.writes.overlay import Overlay

MOST_NAMES = 100_000
"""How many names one listing gives."""

_PIECE = 1 << 20


class Sight:
    """What stands where, for one run; `mounts` has files of the host by the paths that the run sees."""

    def __init__(self, opened: Opened, overlay: Overlay, mounts: Mapping[str, str], most_read: int) -> None:
        self._opened = opened
        self._overlay = overlay
        self._mounts = mounts
        self._most_read = most_read

    def is_changed(self, place: str) -> bool:
        """Whether the run changed this path, or one around it."""
        return self._overlay.at(place) is not None or self._overlay.above(place) is not None

    def at(self, place: str) -> Found | None:
        """What stands at a path; None if nothing does, as far as the run sees.

        Raises:
            OSError: a file stands where a directory would have to be, or it can't be looked at.
        """
        node = self._overlay.at(place)
        if node is not None:
            return of_node(node)
        around = self._overlay.above(place)
        if around is not None:
            if around.kind == "file":
                raise refusal(errno.ENOTDIR, place)
            return None
        if place in self._mounts:
            return of_host(_looked(self._mounts[place]))
        if not self._opened.opens("read", place):
            root = place in self._opened.write and of_host(_looked(place))
            return Found("directory", mode=0o755) if root and root.kind == "directory" else None
        seen = _looked(place)
        self._overlay.note(place, seen)
        return of_host(seen)

    def parent_of(self, place: str) -> Found | None:
        """What stands where a path is to be made; around a root that is opened, the host decides."""
        above = parent(place)
        opens = self._opened.opens
        if self.is_changed(above) or opens("read", above) or opens("write", above):
            return self.at(above)
        return of_host(_looked(above))

    def check_parent(self, place: str, path: str) -> None:
        """Refuse a path that no directory holds; `path` is how the code spelled it.

        Raises:
            OSError: as said.
        """
        around = self.parent_of(place)
        if around is None:
            raise refusal(errno.ENOENT, path)
        if around.kind != "directory":
            raise refusal(errno.ENOTDIR, path)

    def check_file(self, place: str, path: str) -> Found | None:
        """What stands where a file is written or removed; None if nothing does.

        Raises:
            OSError: something else than a plain file with one name stands there, or no directory holds it.
        """
        self.check_parent(place, path)
        found = self.at(place)
        if found is not None:
            check_plain(found, path)
            if found.names > 1:
                raise refusal(errno.EACCES, path, "it has other names too (hard links)")
            if found.mode & SPECIAL_BITS:
                raise refusal(errno.EACCES, path, "it runs with the rights of its owner (setuid)")
        if self._overlay.at(place) is None:
            self.note(place)
        return found

    def note(self, place: str) -> None:
        """Remember what the host has at a path that the run may not read, before it is changed."""
        if not self._overlay.is_new(place):
            self._overlay.note(place, _looked(place))

    def shows(self, place: str) -> bool:
        """Whether the host has something at a path, and the run sees it unless it is hidden."""
        return (
            self._overlay.above(place) is None
            and self._opened.opens("read", place)
            and self._overlay.was_there(place)
        )

    def content_of(self, place: str, path: str) -> Iterator[bytes]:
        """The content of a file of the host, piece by piece; what was read is remembered.

        Raises:
            OSError: there is no plain file, or it is larger than what may be read.
        """
        digest = hashlib.sha256()
        size = 0
        with walking.plain_file(self._mounts.get(place, place)) as descriptor:
            found = os.fstat(descriptor)
            while piece := os.read(descriptor, _PIECE):
                size += len(piece)
                if size > self._most_read:
                    raise self.too_large(path)
                digest.update(piece)
                yield piece
        if place not in self._mounts:
            self._overlay.note(place, found, digest.hexdigest())

    def too_large(self, path: str) -> OSError:
        """The refusal of a file that is larger than what may be read."""
        return refusal(errno.EFBIG, path, f"no more than {self._most_read} bytes are read at once")

    def listed(self, place: str, path: str) -> list[tuple[str, Kind]]:
        """What a directory holds, by name.

        Raises:
            OSError: it can't be listed, or holds more than `MOST_NAMES`.
        """
        found = dict(self._host_names(place, path))
        for name, node in self._overlay.inside(place):
            if node.kind == "gone":
                found.pop(name, None)
            else:
                found[name] = node.kind
        for mounted in self._mounts:
            if parent(mounted) == place:
                found[mounted.rpartition("/")[2]] = "file"
        return sorted(found.items())

    def _host_names(self, place: str, path: str) -> Iterator[tuple[str, Kind]]:
        if self.is_changed(place) or not self._opened.opens("read", place):
            return
        with walking.listing(place) as entries:
            for count, entry in enumerate(entries):
                if count >= MOST_NAMES:
                    raise crowded(path)
                if self._opened.opens("read", joined(place, entry.name)) and _is_text(entry.name):
                    yield entry.name, kind_of(entry)

    def holds_more(self, place: str) -> bool:
        """Whether a directory of the host holds what the run does not see, and has not removed."""
        if self.is_changed(place):
            return False
        gone = {name for name, node in self._overlay.inside(place) if node.kind == "gone"}
        with walking.listing(place) as entries:
            return any(entry.name not in gone for entry in entries)


def crowded(path: str) -> OSError:
    """The refusal of a directory, or of a tree, with more names than are given."""
    return refusal(errno.EFBIG, path, f"it holds more than {MOST_NAMES} names")


def parent(path: str) -> str:
    """The directory that holds a canonical path."""
    return path.rpartition("/")[0] or "/"


def joined(above: str, name: str) -> str:
    """The path of a name in a directory."""
    return f"{above.rstrip('/')}/{name}"


def _looked(place: str) -> os.stat_result | None:
    try:
        return walking.look(place)
    except NotADirectoryError:
        return None


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
