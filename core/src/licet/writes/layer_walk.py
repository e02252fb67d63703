"""Walking a layer beside the host, from names that code left to edits of paths.

Rules this module keeps:

- an edit is made only of a path that the plan opens to be written;
- what the code replaced or took away has to stand on the host as it did when the run began: no stamp later
  than the beginning, and the directories around it are the ones they were. A directory is, if its stamp or
  that of the directory around it is not later: a new name for it would have changed both;
- what is gone from the host, where the layer shows that it stood there, was taken away by others. What was
  copied up shows it by a mark, which a new name takes along: a file of the host that was renamed into a
  directory where others made or removed names meanwhile is refused as well. Where the code put a wholly new
  file in the place of an old one, nothing shows it, and the file is made;
- what the host has and the code could not see is never taken away;
- a file that was copied up and says what the host's says is no change;
- depth, names and bytes are bounded; links are never followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import zip_longest

from licet import paths
from licet.output import escape
from licet.plan import Opened
from licet.supervise.moments import Moment
from licet.writes import walking
from licet.writes.commit import MOST_LEVELS, changed, check_opened
from licet.writes.layer_content import PIECE, Kept
from licet.writes.layer_marks import Mark, mark_of, open_in
from licet.writes.sight import MOST_NAMES
from licet.writes.staged import MOST_EDITS, Content, Edit, NotCommitted, Seen


@dataclass(frozen=True, slots=True)
class _Place:
    """A directory of a layer, and that of the host, opened; None if the host has none or loses it.

    `names` lead to it from the layer's own directory `root`. `hides`: of what the host has here, the code
    left only what is in the layer. `same`: the directory of the host is the one that it was; `still`: no name
    came or went in it.
    """

    path: str
    root: int
    names: tuple[str, ...]
    upper: int
    host: int | None
    bare: bool
    hides: bool = False
    same: bool = True
    still: bool = True


class Collection:
    """The edits of one run, at most `most_bytes` of content."""

    def __init__(self, opened: Opened, began: Moment, most_bytes: int) -> None:
        self._opened = opened
        self._began = began
        self._left = most_bytes
        self._most_bytes = most_bytes
        self._met = 0
        self._edits: dict[str, Edit] = {}

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All of them, by path."""
        return tuple(self._edits[path] for path in sorted(self._edits))

    def take(self, path: str, upper: int, host: int, *, same: bool, bare: bool) -> None:
        """Take a layer in that lies over a directory of the host; `same` if it lay over that one.

        Raises:
            NotCommitted: something of it can't be brought to the host, or others changed it.
            OSError: something can't be read.
        """
        root = mark_of(upper, ".", path, bare=bare)
        if root.opaque:
            raise NotCommitted(f"`{path}` itself was taken away, so nothing was written")
        still = not self._began.precedes(os.fstat(host).st_ctime_ns)
        place = _Place(path, upper, (), upper, host, bare, same=same, still=still)
        if not same and self._names(upper):
            raise changed(path)
        self._directory(place)

    def take_new(self, path: str, upper: int) -> None:
        """Take a layer in that lay over nothing: its directory is made if there is anything in it.

        Raises:
            NotCommitted: as for `take`.
            OSError: something can't be read.
        """
        if not self._names(upper):
            return
        above, _, name = path.rpartition("/")
        try:
            with walking.directory(above) as host:
                found = walking.look_in(host, name)
        except (FileNotFoundError, NotADirectoryError):
            raise NotCommitted(
                f"no directory holds `{path}`, so nothing was written; make one first"
            ) from None
        if found is not None:
            raise changed(path)
        self._edit(path, None, directory=True)
        self._directory(_Place(path, upper, (), upper, None, bare=True))

    def take_lost(self, path: str, upper: int) -> None:
        """Take a layer in whose directory the host has no more: nothing may be in it.

        Raises:
            NotCommitted: something is.
            OSError: it can't be read.
        """
        if self._names(upper):
            raise changed(path)

    # -- the layer

    def _directory(self, here: _Place) -> None:
        self._check_depth(here)
        names = self._names(here.upper)
        for name in names:
            self._entry(here, name)
        if here.hides and here.host is not None:
            for name in self._names(here.host):
                if name not in names:
                    self._remove(here, name)

    def _entry(self, here: _Place, name: str) -> None:
        path = _joined(here.path, name)
        mark = mark_of(here.upper, name, path, bare=here.bare)
        host = None if here.host is None else walking.look_in(here.host, name)
        if mark.kind == "file":
            self._file(here, name, mark, host)
        elif mark.kind == "directory":
            self._inner(here, name, mark, host)
        elif host is not None:
            self._remove(here, name)
        elif here.host is not None and not here.hides:
            raise changed(path)

    def _file(self, here: _Place, name: str, mark: Mark, host: os.stat_result | None) -> None:
        path = _joined(here.path, name)
        content = Kept(here.root, (*here.names, name), mark.found)
        if host is None:
            if mark.copied and here.host is not None and not (here.same and here.still):
                raise changed(path)
            self._edit(path, None, content)
            return
        self._check_untouched(here, path, host)
        if stat.S_ISDIR(host.st_mode):
            if here.bare:
                raise NotCommitted(
                    f"`{path}` is a directory that the code could not see, so nothing was written; "
                    "open it to be read, or let the code use another name"
                )
            self._remove_inside(here, name)
        elif mark.copied and _says_the_same(here, name, path, content, host):
            return
        self._edit(path, Seen.of(host), content)

    def _inner(self, here: _Place, name: str, mark: Mark, host: os.stat_result | None) -> None:
        path = _joined(here.path, name)
        taken_up = mark.copied and not mark.opaque
        if host is None or not stat.S_ISDIR(host.st_mode):
            if taken_up:
                raise changed(path)
            if host is not None:
                self._check_untouched(here, path, host)
            self._edit(path, Seen.of(host) if host is not None else None, directory=True)
            with _inside(here, name, None, hides=False, same=True, still=True) as inside:
                self._directory(inside)
            return
        hides = mark.opaque or here.hides
        if hides or not (taken_up or here.bare):
            self._check_untouched(here, path, host)
        still = not self._began.precedes(host.st_ctime_ns)
        same = here.same and (here.still or still)
        with _inside(here, name, here.host, hides=hides, same=same, still=still) as inside:
            self._directory(inside)

    # -- what goes from the host

    def _remove(self, here: _Place, name: str) -> None:
        """Take away what the host has at a name, with all that it holds."""
        path = _joined(here.path, name)
        assert here.host is not None
        found = walking.look_in(here.host, name)
        if found is None:
            raise changed(path)
        self._check_untouched(here, path, found)
        self._edit(path, Seen.of(found))
        if stat.S_ISDIR(found.st_mode):
            self._remove_inside(here, name)

    def _remove_inside(self, here: _Place, name: str) -> None:
        with _host_inside(here, name) as inside:
            self._check_depth(inside)
            assert inside.host is not None
            for each in self._names(inside.host):
                self._remove(inside, each)

    # -- what has to hold

    def _check_untouched(self, here: _Place, path: str, found: os.stat_result) -> None:
        if not here.same:
            raise changed(here.path)
        if self._began.precedes(found.st_ctime_ns):
            raise changed(path)

    def _check_depth(self, here: _Place) -> None:
        if len(here.names) > MOST_LEVELS:
            raise NotCommitted(
                f"`{_top(here)}` is more than {MOST_LEVELS} levels deep, so nothing was written"
            )

    def _names(self, directory: int) -> dict[str, None]:
        """The names in an opened directory, in order; each is a text, and they are bounded."""
        found = []
        with walking.entries_of(directory) as entries:
            for entry in entries:
                self._met += 1
                if self._met > MOST_NAMES:
                    raise NotCommitted(
                        f"the code touched more than {MOST_NAMES} names, so nothing was written"
                    )
                found.append(_text(entry.name))
        return dict.fromkeys(sorted(found))

    def _edit(
        self, path: str, seen: Seen | None, content: Content | None = None, *, directory: bool = False
    ) -> None:
        try:
            paths.spelled(path)
        except ValueError as problem:
            raise NotCommitted(
                f"a path that the code wrote to can't be one, {problem}: nothing was written"
            ) from None
        edit = Edit(path, seen, content, directory)
        check_opened(edit, self._opened)
        if path in self._edits:
            raise NotCommitted(f"`{path}` was written to in two layers, so nothing was written")
        if len(self._edits) >= MOST_EDITS:
            raise NotCommitted(f"the code changed more than {MOST_EDITS} paths, so nothing was written")
        if content is not None:
            self._left -= content.size
            if self._left < 0:
                raise NotCommitted(
                    "the files that the code wrote come to more than the limit `files` "
                    f"({self._most_bytes} bytes; holes count), so nothing was written"
                )
        self._edits[path] = edit


@contextmanager
def _inside(
    here: _Place, name: str, host: int | None, *, hides: bool, same: bool, still: bool
) -> Iterator[_Place]:
    """A directory in `here`, beside the one of the host of the same name, if it is to be looked at."""
    upper = open_in(here.upper, name, directory=True)
    try:
        with nullcontext() if host is None else walking.inner(host, name) as lower:
            path, names = _joined(here.path, name), (*here.names, name)
            yield _Place(path, here.root, names, upper, lower, here.bare, hides, same, still)
    finally:
        os.close(upper)


@contextmanager
def _host_inside(here: _Place, name: str) -> Iterator[_Place]:
    """A directory of the host that goes: it stands as it did, so all in it has to."""
    assert here.host is not None
    with walking.inner(here.host, name) as lower:
        path, names = _joined(here.path, name), (*here.names, name)
        yield _Place(path, here.root, names, here.upper, lower, here.bare, hides=True)


def _says_the_same(here: _Place, name: str, path: str, content: Content, host: os.stat_result) -> bool:
    """Whether a file of the host holds `content`; one that can't be read does not."""
    assert here.host is not None
    if not stat.S_ISREG(host.st_mode) or host.st_size != content.size:
        return False
    try:
        descriptor = walking.open_plain_in(here.host, name, path)
    except OSError:
        return False
    try:
        return all(ours == theirs for ours, theirs in zip_longest(content.chunks(), _pieces(descriptor)))
    finally:
        os.close(descriptor)


def _pieces(descriptor: int) -> Iterator[bytes]:
    while piece := os.read(descriptor, PIECE):
        yield piece


def _top(here: _Place) -> str:
    """The first directory on the way from the root of a layer."""
    return here.path.removesuffix("/".join(here.names[1:])).rstrip("/")


def _text(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise NotCommitted(
            f"`{escape(name)}` is a name that is no text, so nothing was written; names have to be UTF-8"
        ) from None
    return name


def _joined(above: str, name: str) -> str:
    return f"{above.rstrip('/')}/{name}"
