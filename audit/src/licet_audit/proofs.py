"""Proofs about a log as texts that travel: of one record, of many, and that one checkpoint continues another.

The proof of one record is `c2sp.org/tlog-proof@v1`; its extra data is the line of the record, which its leaf
hash makes part of the proof. The other two are of the same style, and licet's own:

    licet/tlog-records@v1               licet/tlog-consistency@v1
    HASH (`tree.cover`)                 old SIZE ROOT
    ...                                 HASH (RFC 6962, 2.1.2)
                                        ...
    CHECKPOINT                          CHECKPOINT

An empty line is before the signed checkpoint; hashes and roots are in base64.

Rules this module keeps:

- what is read is read strictly: each proof has one spelling;
- nothing in a proof is believed: it is held against a checkpoint, which a key signs that the caller brings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from licet_audit import tree
from licet_audit.notes import Head, InvalidNote, Note, base64_of, bytes_of

RECORD = "c2sp.org/tlog-proof@v1"
RECORDS = "licet/tlog-records@v1"
CONSISTENCY = "licet/tlog-consistency@v1"

_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_OLD = re.compile(rf"old ({_NUMBER.pattern}) (\S+)", re.ASCII)
_MOST_HASHES = 64  # a tree of 2**63 leaves is 64 high


class InvalidProof(ValueError):
    """A text that is no proof; the message says why."""


@dataclass(frozen=True, slots=True)
class RecordProof:
    """That the record `index` is in the tree of a checkpoint; `line` is the record, if it comes with it."""

    index: int
    hashes: tuple[bytes, ...]
    checkpoint: Note
    line: bytes | None = None

    @classmethod
    def parse(cls, data: bytes) -> RecordProof:
        """Read a tlog-proof.

        Raises:
            InvalidProof: it is none.
        """
        lines, note = _read(data, RECORD)
        line = None
        if lines and lines[0].startswith("extra "):
            line = _bytes(lines.pop(0).removeprefix("extra "), "extra data")
        keyword, _, index = (lines.pop(0) if lines else "").partition(" ")
        if keyword != "index" or not _NUMBER.fullmatch(index):
            raise InvalidProof("it has no line `index NUMBER` where it should")
        return cls(int(index), _hashes(lines, _MOST_HASHES), note, line)

    @property
    def data(self) -> bytes:
        """The proof as it is written."""
        extra = () if self.line is None else (f"extra {base64_of(self.line)}",)
        return _written((RECORD, *extra, f"index {self.index}"), self.hashes, self.checkpoint)

    def holds(self, line: bytes) -> bool:
        """Whether the checkpoint covers the record of `line` at this place."""
        head = head_of(self.checkpoint)
        return tree.root_from_inclusion(tree.leaf(line), self.index, head.size, self.hashes) == head.root


@dataclass(frozen=True, slots=True)
class RecordsProof:
    """That some records are in the tree of a checkpoint: what it takes besides their leaves."""

    hashes: tuple[bytes, ...]
    checkpoint: Note

    @classmethod
    def parse(cls, data: bytes) -> RecordsProof:
        """Read a proof of many records.

        Raises:
            InvalidProof: it is none.
        """
        lines, note = _read(data, RECORDS)
        return cls(_hashes(lines, len(lines)), note)

    @property
    def data(self) -> bytes:
        """The proof as it is written."""
        return _written((RECORDS,), self.hashes, self.checkpoint)

    def holds(self, leaves: Mapping[int, bytes]) -> bool:
        """Whether the checkpoint covers these leaf hashes at their places."""
        head = head_of(self.checkpoint)
        return tree.root_from_cover(leaves, head.size, self.hashes) == head.root


@dataclass(frozen=True, slots=True)
class ConsistencyProof:
    """That the tree of a checkpoint continues the one of `old_size` records with the root `old_root`."""

    old_size: int
    old_root: bytes
    hashes: tuple[bytes, ...]
    checkpoint: Note

    @classmethod
    def parse(cls, data: bytes) -> ConsistencyProof:
        """Read a consistency proof.

        Raises:
            InvalidProof: it is none.
        """
        lines, note = _read(data, CONSISTENCY)
        old = _OLD.fullmatch(lines.pop(0) if lines else "")
        if old is None:
            raise InvalidProof("it has no line `old SIZE ROOT` where it should")
        (old_root,) = _hashes([old[2]], 1)
        return cls(int(old[1]), old_root, _hashes(lines, _MOST_HASHES), note)

    @property
    def data(self) -> bytes:
        """The proof as it is written."""
        old = f"old {self.old_size} {base64_of(self.old_root)}"
        return _written((CONSISTENCY, old), self.hashes, self.checkpoint)

    def holds(self) -> bool:
        """Whether the checkpoint continues the old head."""
        head = head_of(self.checkpoint)
        return tree.is_consistent(self.old_size, self.old_root, head.size, head.root, self.hashes)


Proof = RecordProof | RecordsProof | ConsistencyProof


def parse(data: bytes) -> Proof:
    """Read a proof of any kind.

    Raises:
        InvalidProof: it is none.
    """
    first = data.partition(b"\n")[0].decode("utf-8", "replace")
    for name, kind in ((RECORD, RecordProof), (RECORDS, RecordsProof), (CONSISTENCY, ConsistencyProof)):
        if first == name:
            return kind.parse(data)
    raise InvalidProof(f"its first line is none of `{RECORD}`, `{RECORDS}` and `{CONSISTENCY}`")


def head_of(checkpoint: Note) -> Head:
    """What a checkpoint says.

    Raises:
        InvalidProof: it is none.
    """
    try:
        return Head.parse(checkpoint.text)
    except InvalidNote as problem:
        raise InvalidProof(f"its checkpoint is none: {problem}") from None


def _written(head: Sequence[str], hashes: Iterable[bytes], checkpoint: Note) -> bytes:
    above = "".join(f"{line}\n" for line in (*head, *map(base64_of, hashes)))
    return above.encode("ascii") + b"\n" + checkpoint.data


def _read(data: bytes, first: str) -> tuple[list[str], Note]:
    """The lines between the first one and the empty one, and the checkpoint below."""
    above, gap, below = data.partition(b"\n\n")
    try:
        lines = above.decode("ascii").split("\n")
        note = Note.parse(below)
    except UnicodeDecodeError:
        raise InvalidProof("it is not ASCII above its checkpoint") from None
    except InvalidNote as problem:
        raise InvalidProof(f"below its hashes is no signed checkpoint: {problem}") from None
    if not gap or lines.pop(0) != first:
        raise InvalidProof(f"its first line is not `{first}`")
    head_of(note)
    return lines, note


def _hashes(lines: Sequence[str], most: int) -> tuple[bytes, ...]:
    if len(lines) > most:
        raise InvalidProof(f"it has {len(lines)} hashes, at most {most} can be needed")
    found = tuple(_bytes(line, "hashes") for line in lines)
    if any(len(one) != 32 for one in found):
        raise InvalidProof("one of its hashes has not 32 bytes")
    return found


def _bytes(text: str, what: str) -> bytes:
    try:
        return bytes_of(text)
    except ValueError as problem:
        raise InvalidProof(f"its {what} are no base64: {problem}") from None
