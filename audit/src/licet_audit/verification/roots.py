"""The tree over the lines as they are read: its roots where somebody has signed or seen one, and its tiles.

Rules this module keeps:

- what is computed comes from lines alone; a tile is believed only for records whose lines are gone, and then
  the signed roots have to prove it;
- each full tile, and the growing one of each level above 0, is compared with what the lines make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from licet_audit.tiles import HASH, WIDTH, DamagedTile, GrowingTree, Tile


class Tiles(Protocol):
    """Where the tiles of a log are."""

    def __call__(self, level: int, number: int) -> bytes | None:
        """The hashes of a tile, None if it is not there.

        Raises:
            DamagedTile: it is none.
        """
        ...


class Roots:
    """Follows leaves in order; `wanted` are the sizes whose roots are asked for."""

    def __init__(self, wanted: Iterable[int], tiles: Tiles) -> None:
        self.at: dict[int, bytes] = {}
        """The roots that are known so far."""
        self.lost: int | None = None
        """The first leaf that neither a line nor a tile gave: there are no roots beyond it."""
        self.differs: tuple[int | None, str] | None = None
        """The first tile that is not what the lines make: its first record that differs if known, and why."""
        self.missing = 0
        """Full tiles that are not there."""
        self._tree = GrowingTree()
        self._wanted = sorted(set(wanted), reverse=True)
        self._tiles = tiles
        self._reach()

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return self._tree.size

    def add(self, leaves: bytes, known: Mapping[int, bytes] | None = None) -> None:
        """Go on with leaves, one after the other; `known` are roots of tiles of level 0 that they make."""
        if self.lost is not None:
            return
        at = 0
        while at < len(leaves):
            number, place = divmod(self._tree.size, WIDTH)
            root = known.get(number) if known and place == 0 else None
            count = WIDTH if root is not None else min(WIDTH - place, (len(leaves) - at) // HASH)
            step = leaves[at : at + count * HASH]
            hashes = [step[start : start + HASH] for start in range(0, len(step), HASH)]
            if self._wanted and self._wanted[-1] < self._tree.size + count:
                for one in hashes:
                    self._tree.extend((one,))
                    self._reach()
            elif root is not None:
                self._tree.add_tile(step, root)
            else:
                self._tree.extend(hashes)
            self._reach()
            if self._tree.size % WIDTH == 0:
                self._compare()
            at += len(step)

    def fill(self, stop: int) -> bytes | None:
        """Take the leaves up to `stop` from tiles; return the last of them, None if it is not known."""
        last = None
        while self.lost is None and self._tree.size < stop:
            number, place = divmod(self._tree.size, WIDTH)
            try:
                held = self._tiles(0, number) or b""
            except DamagedTile as problem:
                held = b""
                self._differs(None, str(problem))
            stretch = held[place * HASH : min(WIDTH, stop - number * WIDTH) * HASH]
            if len(stretch) < (min(WIDTH, stop - number * WIDTH) - place) * HASH:
                self.lost = self._tree.size
                return None
            last = stretch[-HASH:]
            self.add(stretch)
        return last

    def finish(self) -> None:
        """Compare what still grows, once all leaves are there."""
        for level, hashes in self._tree.growing():
            self._look(Tile(level, self._tree.size >> 8 * (level + 1), len(hashes) // HASH), hashes)

    def _reach(self) -> None:
        while self._wanted and self._wanted[-1] <= self._tree.size:
            size = self._wanted.pop()
            if size == self._tree.size:
                self.at[size] = self._tree.root()

    def _compare(self) -> None:
        for tile, hashes in self._tree.tiles().items():
            if tile.width == WIDTH:
                self._look(tile, hashes)

    def _look(self, tile: Tile, hashes: bytes) -> None:
        try:
            held = self._tiles(tile.level, tile.number)
        except DamagedTile as problem:
            self._differs(None, str(problem))
            return
        if held is None:
            self.missing += tile.width == WIDTH
            return
        if tile.width < WIDTH:  # a writer may have gone on meanwhile
            common = min(len(held), len(hashes))
            held, hashes = held[:common], hashes[:common]
        if held != hashes:
            place = next(_differing(held, hashes), 0)
            seq = tile.number * WIDTH + place if tile.level == 0 else None
            self._differs(seq, f"`tile/{tile.name.split('.')[0]}` is not what the lines make")

    def _differs(self, seq: int | None, why: str) -> None:
        if self.differs is None:
            self.differs = seq, why


def _differing(one: bytes, other: bytes) -> Iterator[int]:
    for place in range(max(len(one), len(other)) // HASH):
        if one[place * HASH : (place + 1) * HASH] != other[place * HASH : (place + 1) * HASH]:
            yield place
