"""Having the newest checkpoint seen by everybody who should, now.

Rules this module keeps:

- one process of a host does it at a time; its lock is no lock of the log, so no append waits for a network;
- a receipt is kept, and the checkpoint with it, before the record says that it is; failures are recorded.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from licet.errors import AuditUnavailable
from licet.files import open_plain
from licet.locks import try_lock
from licet.output import bounded
from licet.plain import plain
from licet.record import AnchorFailure, AnchorReceipt, AuditLog, Entry
from licet.state import StateDirectory, failures

from licet_audit import checkpointer, tree
from licet_audit.anchors import Answer, receipts
from licet_audit.chain import log_entry
from licet_audit.checkpointer import Notary
from licet_audit.leaves import Snapshot
from licet_audit.notes import Head, Note
from licet_audit.segments import listing
from licet_audit.tiles import LogHashes

if TYPE_CHECKING:
    from licet.plugins import Plugins


class SignedHead:
    """The `licet.record.Checkpoint` that anchors are handed."""

    def __init__(self, state: StateDirectory, note: Note) -> None:
        self._state = state
        self._note = note
        self._head = Head.parse(note.text)

    @property
    def note(self) -> bytes:
        """The signed note."""
        return self._note.data

    @property
    def origin(self) -> str:
        """The name of the log."""
        return self._head.origin

    @property
    def size(self) -> int:
        """How many records it covers."""
        return self._head.size

    def consistency(self, old_size: int) -> Sequence[bytes]:
        """The hashes that prove that this head continues the one of `old_size`.

        Raises:
            AuditUnavailable: the log can't be read.
        """
        with failures(self._state.path):
            try:
                return tree.consistency(self._hashes, old_size, self.size)
            except (LookupError, ValueError) as problem:
                raise AuditUnavailable(f"the tree of the log can't be computed: {problem}") from None

    @cached_property
    def _hashes(self) -> tree.Hashes:
        return LogHashes(self._state, Snapshot.of(listing(self._state), self._state.log_id))


@dataclass(frozen=True, slots=True)
class Anchoring:
    """What came of it: the head that was shown, and the answer of each anchor."""

    head: Head
    answers: tuple[Answer, ...]

    @property
    def receipts(self) -> tuple[AnchorReceipt, ...]:
        """Those of anchors that have seen it."""
        return tuple(one for one in self.answers if isinstance(one, AnchorReceipt))

    @property
    def failures(self) -> tuple[AnchorFailure, ...]:
        """Those of anchors that have not."""
        return tuple(one for one in self.answers if isinstance(one, AnchorFailure))

    def entries(self) -> list[Entry]:
        """What the log says of it."""
        return [self._entry(answer) for answer in self.answers]

    def _entry(self, answer: Answer) -> Entry:
        common = {"anchor": _text(answer.anchor), "kind": _text(answer.kind), "size": self.head.size}
        if isinstance(answer, AnchorFailure):
            return log_entry("anchor_failed", **common, reason=_text(answer.reason))
        digest = hashlib.sha256(answer.data).hexdigest()
        root, time = self.head.root.hex(), None if answer.time is None else _text(answer.time)
        return log_entry("anchored", **common, root=root, time=time, digest=digest)


def anchor(state: StateDirectory, plugins: Plugins, log: AuditLog) -> Anchoring:
    """Sign what is durable, have it seen, keep the receipts, and record what came of it in `log`.

    The caller holds `lock`, and runs no event loop in this thread.

    Raises:
        AuditUnavailable: nothing can be signed, kept or recorded.
    """
    note = Notary(state).checkpoint()
    head = Head.parse(note.text)
    answers = plugins.anchor(SignedHead(state, note))
    if any(isinstance(one, AnchorReceipt) for one in answers):
        with failures(state.path):
            checkpointer.keep(state, note)
    found = Anchoring(head, tuple(_kept(state, head.size, one) for one in answers))
    if found.answers:
        asyncio.run(_append(log, found.entries()))
    return found


def _kept(state: StateDirectory, size: int, answer: Answer) -> Answer:
    """Keep a receipt; what can't be kept is no receipt."""
    if isinstance(answer, AnchorReceipt):
        try:
            receipts.store(state, size, answer)
        except AuditUnavailable as problem:
            return AnchorFailure(answer.kind, answer.anchor, f"its receipt can't be kept: {problem.message}")
    return answer


def _text(text: str) -> str:
    """What an anchor or its plugin says, as a record holds it."""
    return bounded(str(plain(text)), 500)


async def _append(log: AuditLog, entries: Sequence[Entry]) -> None:
    await log.append(entries)


@contextlib.contextmanager
def lock(state: StateDirectory) -> Iterator[int | None]:
    """The lock of those who anchor, as the descriptor of its file; None if another process holds it.

    Raises:
        AuditUnavailable: it can't be made.
    """
    with failures(state.path):
        descriptor = open_plain(state.path / "anchor.lock", os.O_RDWR | os.O_CREAT)
    try:
        yield descriptor if try_lock(descriptor) else None
    finally:
        os.close(descriptor)
