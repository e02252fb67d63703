"""A Merkle tree that is written down as RFC 6962 defines it, for tests to compare with."""

import hashlib
from collections.abc import Sequence

from licet.state import StateDirectory


def slow_root(leaves: Sequence[bytes]) -> bytes:
    """MTH of RFC 6962 2.1, by the letter."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + slow_root(leaves[:k]) + slow_root(leaves[k:])).digest()


def slow_path(index: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962 2.1.1, by the letter."""
    if len(leaves) == 1:
        return []
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    if index < k:
        return [*slow_path(index, leaves[:k]), slow_root(leaves[k:])]
    return [*slow_path(index - k, leaves[k:]), slow_root(leaves[:k])]


def slow_proof(old: int, leaves: list[bytes], *, whole: bool = True) -> list[bytes]:
    """SUBPROOF of RFC 6962 2.1.2, by the letter."""
    if old == len(leaves):
        return [] if whole else [slow_root(leaves)]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    if old <= k:
        return [*slow_proof(old, leaves[:k], whole=whole), slow_root(leaves[k:])]
    return [*slow_proof(old - k, leaves[k:], whole=False), slow_root(leaves[:k])]


def some_leaves(size: int) -> list[bytes]:
    return [hashlib.sha256(b"\x00%d" % number).digest() for number in range(size)]


class Leaves:
    """Hashes that are computed from all leaves whenever one is asked for."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self._leaves = leaves

    def hash_at(self, level: int, index: int) -> bytes:
        found = self._leaves[index << level : index + 1 << level]
        if len(found) < 1 << level:
            raise LookupError(f"{level}/{index}")
        return slow_root(found)


def complete(state: StateDirectory, size: int) -> bool:
    """Whether all full tiles of a tree of `size` leaves are there, by their names and sizes."""
    full = [(level, number) for level in range(4) for number in range(size >> 8 * (level + 1))]
    paths = [state.path / "tile" / str(level) / f"{number:03d}" for level, number in full]
    return all(path.is_file() and path.stat().st_size == 256 * 32 for path in paths)
