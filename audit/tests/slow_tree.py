"""A Merkle tree that is written down as RFC 6962 defines it, for tests to compare with."""

import hashlib


def slow_root(leaves: list[bytes]) -> bytes:
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
