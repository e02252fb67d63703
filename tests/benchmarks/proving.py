"""Proofs about a log of a million records, from tiles on disk."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from licet.state import StateDirectory
from licet_audit import tree
from licet_audit.leaves import Snapshot
from licet_audit.notes import Head, Signer, origin_of
from licet_audit.proofs import RecordProof
from licet_audit.tiles import WIDTH, GrowingTree, LogHashes, write_tiles

SIZE = 1_000_000 - 1_000_000 % WIDTH  # whole tiles: the lines of such a log are not made


def make(folder: Path) -> StateDirectory:
    """The tiles of a log, whose leaves are the hashes of numbers."""
    state = StateDirectory(folder, "0" * 32)
    grown = GrowingTree()
    for start in range(0, SIZE, 64 * WIDTH):
        grown.extend(tree.leaf(b"%d" % seq) for seq in range(start, min(start + 64 * WIDTH, SIZE)))
        write_tiles(state, grown.tiles())
    return state


def proofs(state: StateDirectory, count: int) -> Iterator[tuple[float, float, RecordProof]]:
    """Seconds to make and to check each of some proofs far apart, and the proofs; tiles are read anew."""
    origin = origin_of(state.log_id)
    hashes = LogHashes(state, Snapshot((), SIZE, False))
    note = Signer(origin, b"s" * 32).sign(Head(origin, SIZE, tree.root(hashes, SIZE)), 1)
    for number in range(count):
        seq = number * 7919 * 131 % SIZE
        hashes = LogHashes(state, Snapshot((), SIZE, False))
        began = time.perf_counter()
        proof = RecordProof(seq, tuple(tree.inclusion(hashes, seq, SIZE)), note)
        made = time.perf_counter()
        if not proof.holds(b"%d" % seq):
            raise AssertionError(f"the proof of #{seq} does not hold")
        yield made - began, time.perf_counter() - made, proof


def measure(folder: Path) -> None:
    """Print what a proof takes."""
    found = list(proofs(make(folder), 300))
    made, checked = (statistics.median(times) * 1000 for times in list(zip(*found, strict=True))[:2])
    proof = found[-1][2]
    bare = len(proof.data) - len(proof.checkpoint.data)
    print(f"proof of one of {SIZE:,} records: made in {made:.3f} ms, checked in {checked:.3f} ms (goal 1 ms)")
    print(
        f"  {32 * len(proof.hashes)} B of hashes, {bare} B as a text (goal 1 KB), "
        f"{len(proof.data)} B with its signed checkpoint"
    )
