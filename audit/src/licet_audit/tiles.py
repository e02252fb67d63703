"""The Merkle tree of a log on disk: hash tiles of C2SP tlog-tiles, below `tile` in the state directory.

Rules this module keeps:

- a tile is `tile/<level>/<number>`: 256 hashes, each over 256 times the records of one below;
- tiles of level 0 are written when they are full; above, the one that still grows is kept too, as
  `<number>.p/<width>`, so that nobody has to read 255 tiles to know one hash;
- what no tile holds is computed from the lines;
- a tile appears complete and durable or not at all, and never changes: writing it again is no error, writing
  another one in its place is;
- a file of another size than a tile has is no tile. That its hashes are right is for a checkpoint to prove.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from licet.errors import AuditUnavailable
from licet.files import create_each, drop_drafts, make_folder, read_plain
from licet.state import StateDirectory

from licet_audit import tree
from licet_audit.leaves import Snapshot

HEIGHT = 8
WIDTH = 1 << HEIGHT
HASH = 32  # bytes
_CACHED = 256  # tiles that one reader remembers, 8 KiB each


class Tile(NamedTuple):
    """The place of a tile in the tree; `width` is how many hashes it holds."""

    level: int
    number: int
    width: int = WIDTH

    @property
    def name(self) -> str:
        """Its path below `tile`."""
        groups = [f"{self.number % 1000:03d}"]
        rest = self.number // 1000
        while rest:
            groups.insert(0, f"x{rest % 1000:03d}")
            rest //= 1000
        partial = f".p/{self.width}" if self.width < WIDTH else ""
        return f"{self.level}/{'/'.join(groups)}{partial}"

    def path(self, state: StateDirectory) -> Path:
        """Where it is kept."""
        return state.path / "tile" / self.name


class DamagedTile(ValueError):
    """A file in the place of a tile that is none; the message names it."""


def read_tile(state: StateDirectory, level: int, number: int) -> bytes | None:
    """The hashes of a tile, one after the other: 256, or fewer while it grows; None if it is not there.

    Raises:
        DamagedTile: the file has another size than its name says.
        OSError: it can't be read.
    """
    for width in (WIDTH, *_partial_widths(state, level, number)):
        path = Tile(level, number, width).path(state)
        try:
            data = read_plain(path, WIDTH * HASH + 1)
        except FileNotFoundError:
            continue
        if len(data) != width * HASH:
            raise DamagedTile(f"`{path}` has {len(data)} bytes, a tile has {width * HASH}")
        return data
    return None


def write_tiles(state: StateDirectory, tiles: Mapping[Tile, bytes]) -> None:
    """Make tiles durable, and remove the narrower ones that they replace; the caller holds `tree.lock`.

    Raises:
        AuditUnavailable: another tile is in the place of one of them.
        OSError: they can't be written.
    """
    missing = {}
    for tile, data in tiles.items():
        path = tile.path(state)
        try:
            found = read_plain(path, WIDTH * HASH + 1)
        except FileNotFoundError:
            missing[path] = data
            continue
        if found != data:
            raise AuditUnavailable(
                f"`{path}` is not the tile that the records make",
                advice="run `licet audit verify`; a tile that is moved aside is made again from the records",
            )
    for folder in {path.parent for path in missing}:
        make_folder(folder)
        drop_drafts(folder)
    create_each(missing)
    for tile in tiles:
        if tile.level > 0:
            _drop_narrower(state, tile)


class LogHashes:
    """The `tree.Hashes` of a log: from its tiles, and from its lines where no tile holds them.

    It is of one moment: it neither sees nor needs what is appended later. Hashes are as good as the files
    they come from; whoever relies on them checks what they make against a checkpoint.
    """

    def __init__(self, state: StateDirectory, snapshot: Snapshot) -> None:
        self.size = snapshot.size
        self._state = state
        self._snapshot = snapshot
        self._tile = lru_cache(_CACHED)(self._read)
        self._leaves = lru_cache(_CACHED)(self._hash_lines)

    def hash_at(self, level: int, index: int) -> bytes:
        """The root of the complete subtree of `2**level` leaves that starts at leaf `index << level`.

        Raises:
            LookupError: the log has no such records, or neither lines nor tiles of them.
            OSError: they can't be read.
        """
        if index + 1 << level > self.size:
            raise LookupError(f"the log has {self.size} records, and not all of subtree {level}/{index}")
        tile_level, height = divmod(level, HEIGHT)
        number, place = divmod(index << height, WIDTH)
        held = self._tile(tile_level, number)
        start, stop = place * HASH, (place + (1 << height)) * HASH
        if len(held) < stop:
            if level > 0:
                return tree.node(self.hash_at(level - 1, 2 * index), self.hash_at(level - 1, 2 * index + 1))
            held = self._leaves(number)
        return tree.full_root([held[at : at + HASH] for at in range(start, stop, HASH)])

    def _read(self, level: int, number: int) -> bytes:
        try:
            return read_tile(self._state, level, number) or b""
        except DamagedTile:
            return b""

    def _hash_lines(self, number: int) -> bytes:
        start = number * WIDTH
        return b"".join(self._snapshot.leaves(start, min(start + WIDTH, self.size)))


class GrowingTree:
    """A tree that leaves are added to: its tiles that are not full yet, from level 0 up."""

    def __init__(self, size: int = 0, edge: Iterable[Sequence[bytes]] = ()) -> None:
        self.size = size
        self._edge = [list(hashes) for hashes in edge]
        self._full: dict[Tile, bytes] = {}

    @classmethod
    def at(cls, hashes: tree.Hashes, size: int) -> GrowingTree:
        """The tree of the first `size` leaves.

        Raises:
            LookupError: a hash is not known.
        """
        edge = []
        for level in range(0, size.bit_length(), HEIGHT):
            count = size >> level
            edge.append([hashes.hash_at(level, index) for index in range(count - count % WIDTH, count)])
        return cls(size, edge)

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaves in order."""
        rest = iter(leaves)
        while batch := list(islice(rest, self._room(0))):
            self.size += len(batch)
            self._add(0, batch)

    def add_tile(self, leaves: bytes, root: bytes) -> None:
        """Add the leaves of a whole tile, one after the other, where one begins; `root` is over them."""
        if not self._edge:
            self._edge.append([])
        if self._edge[0] or len(leaves) != WIDTH * HASH:
            raise ValueError("a whole tile is added where one begins")
        self.size += WIDTH
        self._full[Tile(0, self.size // WIDTH - 1)] = leaves
        self._add(1, [root])

    def growing(self) -> Iterator[tuple[int, bytes]]:
        """The hashes of the tiles above level 0 that are not full yet, with their levels."""
        for level, hashes in enumerate(self._edge[1:], 1):
            if hashes:
                yield level, b"".join(hashes)

    def root(self) -> bytes:
        """The root over all leaves."""
        return tree.fold(list(self._subtrees()))

    def tiles(self) -> dict[Tile, bytes]:
        """What is to be written: tiles that became full since this was last asked, and what grew above."""
        found, self._full = self._full, {}
        filled = {tile.level for tile in found}
        for level, hashes in enumerate(self._edge[1:], 1):
            if hashes and level - 1 in filled:
                number = self.size >> HEIGHT * (level + 1)
                found[Tile(level, number, len(hashes))] = b"".join(hashes)
        return found

    def _room(self, level: int) -> int:
        return WIDTH - len(self._edge[level]) if level < len(self._edge) else WIDTH

    def _add(self, level: int, found: Sequence[bytes]) -> None:
        """Add hashes to a tile that has room for them."""
        if level == len(self._edge):
            self._edge.append([])
        hashes = self._edge[level]
        hashes += found
        if len(hashes) == WIDTH:
            self._edge[level] = []
            tile = Tile(level, (self.size >> HEIGHT * (level + 1)) - 1)
            self._full[tile] = b"".join(hashes)
            self._add(level + 1, [tree.full_root(hashes)])

    def _subtrees(self) -> Iterator[bytes]:
        """The roots of the complete subtrees that make up the tree, the largest first."""
        for hashes in reversed(self._edge):
            start = 0
            for height in reversed(range(HEIGHT)):
                if len(hashes) >> height & 1:
                    yield tree.full_root(hashes[start : start + (1 << height)])
                    start += 1 << height


def has_root(state: StateDirectory, snapshot: Snapshot, size: int, root: bytes) -> bool:
    """Whether the first `size` records of a log have this root: by its tiles, or else by its lines alone.

    So a damaged tile makes nothing of a sound log, and a log whose tiles are sound is told in no time.

    Raises:
        LookupError: the tiles say no, and not all lines are there.
        OSError: something can't be read.
    """
    try:
        if tree.root(LogHashes(state, snapshot), size) == root:
            return True
    except LookupError:
        pass  # the lines may know
    grown = GrowingTree()
    grown.extend(snapshot.leaves(0, size))
    return grown.root() == root


def ends_complete(state: StateDirectory, size: int) -> bool:
    """Whether the last full tile of each level is there: what shows at no cost that tiles were lost."""
    return all(_is_there(state, Tile(level, count - 1)) for level, count in _full(size))


def _full(size: int) -> Iterator[tuple[int, int]]:
    """The levels of a tree of `size` leaves, and how many full tiles each has."""
    for level in range(size.bit_length() // HEIGHT):
        if count := size >> HEIGHT * (level + 1):
            yield level, count


def _is_there(state: StateDirectory, tile: Tile) -> bool:
    try:
        return tile.path(state).lstat().st_size == tile.width * HASH
    except FileNotFoundError:
        return False


def _partial_widths(state: StateDirectory, level: int, number: int) -> Iterator[int]:
    """The widths of a tile that are kept while it grows, the widest first."""
    folder = Tile(level, number, 1).path(state).parent
    try:
        names = [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return
    widths = [int(name) for name in names if name.isascii() and name.isdigit() and name == str(int(name))]
    yield from sorted((width for width in widths if 0 < width < WIDTH), reverse=True)


def _drop_narrower(state: StateDirectory, tile: Tile) -> None:
    """Remove what a tile that grew replaces; whoever reads it just now computes what it held."""
    for width in _partial_widths(state, tile.level, tile.number):
        if width < tile.width:
            tile._replace(width=width).path(state).unlink(missing_ok=True)
    if tile.width == WIDTH:
        with contextlib.suppress(OSError):  # there is none, or something else is in it
            tile._replace(width=1).path(state).parent.rmdir()
