"""The Merkle tree of RFC 6962 over the records of a log: its root, and proofs about it.

Rules this module keeps:

- it computes and reads no file; where hashes are kept, a caller says (`Hashes`);
- a proof is checked against a root that the caller trusts, never against one that comes with it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

EMPTY = hashlib.sha256(b"").digest()
"""The root of a tree without leaves."""


def leaf(line: bytes) -> bytes:
    """The hash of a record's canonical bytes, without the newline."""
    return hashlib.sha256(b"\x00" + line).digest()


def node(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def full_root(hashes: Sequence[bytes]) -> bytes:
    """The root over hashes of one level, whose number is a power of two."""
    while len(hashes) > 1:
        hashes = [node(left, right) for left, right in zip(hashes[::2], hashes[1::2], strict=True)]
    return hashes[0]


def fold(edge: Sequence[bytes]) -> bytes:
    """The root of the tree whose complete subtrees have these roots, the largest first."""
    if not edge:
        return EMPTY
    found = edge[-1]
    for left in reversed(edge[:-1]):
        found = node(left, found)
    return found


class Hashes(Protocol):
    """Where the hashes of complete subtrees are found."""

    def hash_at(self, level: int, index: int) -> bytes:
        """The root of the complete subtree of `2**level` leaves that starts at leaf `index << level`.

        Raises:
            LookupError: it is not known.
        """
        ...


def root(hashes: Hashes, size: int) -> bytes:
    """The root over the first `size` leaves.

    Raises:
        LookupError: a hash is not known.
    """
    return _range(hashes, 0, size)


def cover(hashes: Hashes, indices: Sequence[int], size: int) -> Iterator[bytes]:
    """What it takes besides the leaves `indices` (ascending) to compute the root over `size` leaves.

    These are the roots of the largest parts that hold none of those leaves, split as RFC 6962 splits, from
    left to right: for one leaf the hashes of its inclusion proof, for all leaves nothing.

    Raises:
        ValueError: an index is not in that tree, or they are not in order.
        LookupError: a hash is not known.
    """
    if any(after <= before for before, after in pairwise((-1, *indices, size))):
        raise ValueError(f"they are no leaves of a tree of {size}, in order")
    open_parts = [(0, size, 0, len(indices))] if size else []
    while open_parts:
        start, end, first, last = open_parts.pop()
        if first == last:
            yield _range(hashes, start, end)
        elif end - start > last - first:
            middle = start + _split(end - start)
            between = bisect_left(indices, middle, first, last)
            open_parts += [(middle, end, between, last), (start, middle, first, between)]


def inclusion(hashes: Hashes, index: int, size: int) -> list[bytes]:
    """The proof that leaf `index` is in the tree of `size` leaves.

    Raises:
        ValueError: there is no such leaf in it.
        LookupError: a hash is not known.
    """
    if not 0 <= index < size:
        raise ValueError(f"a tree of {size} leaves has no leaf {index}")
    proof: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            proof.append(_range(hashes, middle, end))
            end = middle
        else:
            proof.append(_range(hashes, start, middle))
            start = middle
    return proof[::-1]


def consistency(hashes: Hashes, old: int, new: int) -> list[bytes]:
    """The proof that the tree of `new` leaves continues the one of `old` leaves.

    Raises:
        ValueError: `old` is larger than `new`, or negative.
        LookupError: a hash is not known.
    """
    if not 0 <= old <= new:
        raise ValueError(f"a tree of {new} leaves can't continue one of {old}")
    if old in (0, new):
        return []
    proof: list[bytes] = []
    start, end, whole = 0, new, True
    while end != old:
        middle = start + _split(end - start)
        if old <= middle:
            proof.append(_range(hashes, middle, end))
            end = middle
        else:
            proof.append(_range(hashes, start, middle))
            start, whole = middle, False
    if not whole:
        proof.append(_range(hashes, start, end))
    return proof[::-1]


def root_from_inclusion(leaf_hash: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """The root of the tree in which `proof` puts a leaf; None if it is no proof for this index and size."""
    if not 0 <= index < size:
        return None
    found, first, last = leaf_hash, index, size - 1
    for sibling in proof:
        if last == 0:
            return None
        if first & 1 or first == last:
            found = node(sibling, found)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            found = node(found, sibling)
        first, last = first >> 1, last >> 1
    return found if last == 0 else None


def root_from_cover(leaves: Mapping[int, bytes], size: int, proof: Sequence[bytes]) -> bytes | None:
    """The root that the `leaves`, by their indices, have with a `cover`; None if it doesn't fit."""
    indices, rest = sorted(leaves), iter(proof)
    if not size or (indices and not 0 <= indices[0] <= indices[-1] < size):
        return None

    def computed(start: int, end: int, first: int, last: int) -> bytes:
        if first == last:
            return next(rest)
        if end - start == 1:
            return leaves[start]
        middle = start + _split(end - start)
        between = bisect_left(indices, middle, first, last)
        return node(computed(start, middle, first, between), computed(middle, end, between, last))

    try:
        found = computed(0, size, 0, len(indices))
    except StopIteration:
        return None
    return found if next(rest, None) is None else None


def is_consistent(old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether `proof` shows that the tree `new` continues the tree `old`."""
    if not 0 <= old <= new:
        return False
    if old == new or old == 0:
        return not proof and (old_root == new_root if old == new else old_root == EMPTY)
    steps = list(proof)
    if old & (old - 1) == 0:
        steps.insert(0, old_root)
    if not steps:
        return False
    first, last = old - 1, new - 1
    while first & 1:
        first, last = first >> 1, last >> 1
    found_old = found_new = steps[0]
    for sibling in steps[1:]:
        if last == 0:
            return False
        if first & 1 or first == last:
            found_old, found_new = node(sibling, found_old), node(sibling, found_new)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            found_new = node(found_new, sibling)
        first, last = first >> 1, last >> 1
    return last == 0 and found_old == old_root and found_new == new_root


def _split(size: int) -> int:
    """The largest power of two below `size`, which is at least 2."""
    return 1 << (size - 1).bit_length() - 1


def _subtrees(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Level and first leaf of the largest complete subtrees that make up the leaves from `start` to `end`.

    `start` is a multiple of the largest of them, as it is wherever RFC 6962 splits.
    """
    while start < end:
        level = (end - start).bit_length() - 1
        yield level, start
        start += 1 << level


def _range(hashes: Hashes, start: int, end: int) -> bytes:
    return fold([hashes.hash_at(level, first >> level) for level, first in _subtrees(start, end)])
