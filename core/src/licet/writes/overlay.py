"""The changes of one run, laid over what the host has; what was seen of the host below each of them.

Rules this module keeps:

- what the run came upon is remembered as it was at first, so that a later change by others shows;
- what lies below a changed path is the run's alone: a directory that it made hides what the host has there;
- the number of changed paths is bounded, as the bytes are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from licet.writes.spool import Spool, Stored
from licet.writes.staged import MOST_EDITS, Edit, Seen, Staged, StorageFull


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """What a run made of a path: a `file` with `content`, a `directory`, or `gone`; `mtime` in seconds."""

    kind: Literal["file", "directory", "gone"]
    content: Stored | None = None
    mtime: float = field(default_factory=time.time)


class Overlay:
    """Changed paths, canonical; at most `limit` bytes of content.

    `came_upon` is what another one had come upon, of a run that goes on here.
    """

    def __init__(self, limit: int, came_upon: Mapping[str, Any] | None = None) -> None:
        self._nodes: dict[str, Node] = {}
        self._names: dict[str, set[str]] = {}
        self._seen = {path: Seen(**seen) if seen else None for path, seen in (came_upon or {}).items()}
        self._spool = Spool(limit)

    @property
    def used(self) -> int:
        """Bytes of content that it holds."""
        return self._spool.used

    @property
    def is_changed(self) -> bool:
        """Whether the run changed anything."""
        return bool(self._nodes)

    def came_upon(self) -> dict[str, Any]:
        """What the run came upon on the host, as plain data."""
        return {path: asdict(seen) if seen else None for path, seen in self._seen.items()}

    def at(self, path: str) -> Node | None:
        """What the run made of this very path, if anything."""
        return self._nodes.get(path)

    def above(self, path: str) -> Node | None:
        """What the run made of the innermost changed path around this one, if there is any."""
        while self._nodes and path != "/":
            path = path.rpartition("/")[0] or "/"
            if (node := self._nodes.get(path)) is not None:
                return node
        return None

    def is_new(self, path: str) -> bool:
        """Whether a path lies in a directory that the host lacks, since the run made it or took it away."""
        while self._nodes and path != "/":
            path = path.rpartition("/")[0] or "/"
            node, seen = self._nodes.get(path), self._seen.get(path)
            if node is not None and not (node.kind == "directory" and seen and seen.kind == "directory"):
                return True
        return False

    def inside(self, path: str) -> Iterator[tuple[str, Node]]:
        """The changed paths right inside a directory, by name."""
        for name in sorted(self._names.get(path, ())):
            yield name, self._nodes[_joined(path, name)]

    def below(self, path: str) -> list[str]:
        """Every changed path anywhere inside a directory."""
        return [one for one in self._nodes if one.startswith(f"{path}/")]

    def note(self, path: str, found: os.stat_result | None, sha256: str | None = None) -> None:
        """Remember what stands at a path of the host, unless that is known; a digest of it is added."""
        seen = Seen.of(found, sha256) if found is not None else None
        if path not in self._seen:
            self._seen[path] = seen
            return
        known = self._seen[path]
        if sha256 and known is not None and seen == replace(known, sha256=sha256):
            self._seen[path] = seen

    def was_there(self, path: str) -> bool:
        """Whether the run came upon something of the host at this path."""
        return self._seen.get(path) is not None

    def store(self, content: Iterable[bytes]) -> Stored:
        """Take content in.

        Raises:
            StorageFull: it does not fit.
        """
        return self._spool.new(content)

    def put(self, path: str, content: Stored) -> None:
        """Let a path be a file.

        Raises:
            StorageFull: too many paths are changed.
        """
        self._set(path, Node("file", content))

    def append(self, path: str, data: bytes) -> None:
        """Put `data` at the end of a file that the run has changed already.

        Raises:
            StorageFull: it does not fit.
        """
        content = self._nodes[path].content
        assert content is not None
        self._spool.append(content, data)
        self._nodes[path] = Node("file", content)

    def make(self, path: str) -> None:
        """Let a path be a directory.

        Raises:
            StorageFull: too many paths are changed.
        """
        self._set(path, Node("directory"))

    def remove(self, path: str, *, hides: bool) -> None:
        """Take a path away; `hides` if the host shows something below that has to be hidden.

        Raises:
            StorageFull: too many paths are changed.
        """
        if hides:
            self._set(path, Node("gone"))
        else:
            node = self._take(path)
            if node.content is not None:
                self._spool.drop(node.content)

    def move(self, path: str, to: str, *, hides: bool) -> None:
        """Give a changed path, and what lies in it, another place; `hides` as for `remove`.

        Raises:
            StorageFull: too many paths are changed.
        """
        for one in (path, *self.below(path)):
            node = self._take(one)
            self._set(to + one.removeprefix(path), node)
        if hides:
            self._set(path, Node("gone"))

    def staged(self) -> Staged:
        """All changes, by path."""
        edits = (
            Edit(path, self._seen.get(path), node.content, node.kind == "directory")
            for path, node in sorted(self._nodes.items())
        )
        return Staged(tuple(edit for edit in edits if edit.change is not None), self._spool.close)

    def _set(self, path: str, node: Node) -> None:
        old = self._nodes.get(path)
        if old is None and len(self._nodes) >= MOST_EDITS:
            raise StorageFull(f"a run can change {MOST_EDITS} paths")
        self._nodes[path] = node
        parent, name = _split(path)
        self._names.setdefault(parent, set()).add(name)
        if old is not None and old.content is not None and old.content is not node.content:
            self._spool.drop(old.content)

    def _take(self, path: str) -> Node:
        parent, name = _split(path)
        self._names[parent].discard(name)
        return self._nodes.pop(path)


def _split(path: str) -> tuple[str, str]:
    parent, _, name = path.rpartition("/")
    return parent or "/", name


def _joined(parent: str, name: str) -> str:
    return f"{parent.rstrip('/')}/{name}"
