"""What has to be proved before records go: that a checkpoint covers them, and tiles hold their leaves.

Rules this module keeps:

- the checkpoint is signed by the key that this user has pinned for the log, and its root is computed again,
  from the lines that are there and, for what was pruned before, from tiles;
- every full tile is compared with what the lines make, at every level: once lines are gone, nothing else is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from licet.errors import AuditUnavailable
from licet.state import StateDirectory, failures

from licet_audit import checkpointer, seen, segments
from licet_audit.leaves import Snapshot
from licet_audit.notes import Head, InvalidNote, Note
from licet_audit.segments import Damaged
from licet_audit.tiles import HASH, WIDTH, DamagedTile, GrowingTree, read_tile

_ADVICE = "run `licet audit verify`; nothing is pruned from a log that does not prove"

Hear = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Covered:
    """A checkpoint that was checked against all records, and how many it covers."""

    checkpoint: Note
    size: int

    @property
    def in_tiles(self) -> int:
        """How many records need no line any more."""
        return self.size - self.size % WIDTH


def covered(state: StateDirectory, hear: Hear = lambda: None) -> Covered:
    """Check the newest checkpoint against all records; `hear` is called for each 256 of them.

    Raises:
        AuditUnavailable: there is none, or it, a tile or a record is not what the others say.
    """
    note, head = _checkpoint(state)
    with failures(state.path):
        try:
            snapshot = Snapshot.of(segments.snapshot(state), state.log_id)
            grown = GrowingTree()
            leaves = _leaves(state, snapshot, head.size)
            while block := list(islice(leaves, WIDTH)):
                grown.extend(block)
                _compare(state, grown)
                hear()
        except (Damaged, DamagedTile, LookupError) as problem:
            raise AuditUnavailable(f"this log does not prove: {problem}", advice=_ADVICE) from None
    if grown.root() != head.root:
        raise AuditUnavailable(
            f"the first {head.size} records are not those that the newest checkpoint covers", advice=_ADVICE
        )
    return Covered(note, head.size)


def _checkpoint(state: StateDirectory) -> tuple[Note, Head]:
    known = seen.of(state.log_id)
    try:
        note = checkpointer.signed(state)
        if note is None or known is None or known.key is None:
            raise InvalidNote("there is no checkpoint of this log that this user could check")
        if note.signed_by(known.key) is None:
            raise InvalidNote("the newest checkpoint is not signed by the key of this log")
        return note, Head.parse(note.text)
    except InvalidNote as problem:
        raise AuditUnavailable(str(problem), advice=_ADVICE) from None


def _leaves(state: StateDirectory, snapshot: Snapshot, size: int) -> Iterator[bytes]:
    """All leaves up to `size`: from tiles what was pruned, from lines the rest."""
    if size > snapshot.size:
        raise LookupError(f"it has {snapshot.size} records, its checkpoint covers {size}")
    for number in range(-(-snapshot.first // WIDTH)):
        held = read_tile(state, 0, number)
        if held is None or len(held) < WIDTH * HASH:
            raise LookupError(f"the tile of the records from #{number * WIDTH} on is missing")
        for place in range(min(WIDTH, snapshot.first - number * WIDTH)):
            yield held[place * HASH : (place + 1) * HASH]
    yield from snapshot.leaves(min(snapshot.first, size), size)


def _compare(state: StateDirectory, grown: GrowingTree) -> None:
    for tile, data in grown.tiles().items():
        if tile.width == WIDTH and read_tile(state, tile.level, tile.number) != data:
            raise LookupError(f"the tile `{tile.name}` is missing, or not what the records make")
