"""Signed checkpoints of a log, which its records can't be cut or rewritten against unseen.

Rules this module keeps:

- what is signed is durable: no more than writers say of it; where none does, whole lines, listed between two
  batches, and synced before they are hashed;
- a checkpoint continues every one that this host knows of the log, or it is not made: each root that was
  signed or seen is computed again from tiles and lines and compared;
- the first sync of lines that fails is the last: a second one would claim success for what that one lost;
- tiles are durable before the checkpoint that covers them; a process that is killed leaves the old checkpoint
  or the new one, and the next process goes on from there;
- the time of a checkpoint never runs backwards: where the clock was set back, it stands still until the clock
  has caught up;
- only the directory that this user registered signs; a copy would make two logs of one name.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from licet import files
from licet.errors import AuditUnavailable
from licet.files import create_once, make_folder, open_plain, read_plain
from licet.locks import lock_file
from licet.state import StateDirectory, failures, trusted, unavailable

from licet_audit import keys, notes, seen, segments
from licet_audit.ends import durable_part
from licet_audit.files import sync
from licet_audit.leaves import Snapshot
from licet_audit.notes import Head, InvalidNote, Note
from licet_audit.segments import Damaged
from licet_audit.tiles import WIDTH, GrowingTree, LogHashes, ends_complete, write_tiles

if TYPE_CHECKING:
    from licet_audit.notes import Signer, VerifierKey

_NEWEST = "checkpoint"
_PATIENCE = 5.0  # seconds that others may hold a lock
_BATCH = 64 * WIDTH  # leaves between two writings of tiles, where many are new
_ADVICE = "run `licet audit verify`, then move the state directory aside to start a new log"


def signed(state: StateDirectory) -> Note | None:
    """The newest checkpoint as it lies beside the log, None if there is none; its signatures are unchecked.

    Raises:
        InvalidNote: the file holds none.
        AuditUnavailable: it can't be read.
    """
    with failures(state.path):
        try:
            return Note.parse(read_plain(_newest_path(state), notes.MOST_BYTES + 1))
        except FileNotFoundError:
            return None


def keep(state: StateDirectory, checkpoint: Note) -> Path:
    """Keep a checkpoint beside newer ones, `checkpoints/<size>`; the one that is kept of a size stays.

    Raises:
        InvalidNote: it is no checkpoint.
        OSError: it can't be written.
    """
    path = state.path / "checkpoints" / f"{Head.parse(checkpoint.text).size:020d}"
    make_folder(path.parent)
    create_once(path, checkpoint.data)
    return path


def kept(state: StateDirectory, size: int) -> Note | None:
    """The checkpoint of `size` records that is kept, None if none is; its signatures are unchecked.

    Raises:
        AuditUnavailable: it can't be read, or is none.
    """
    path = state.path / "checkpoints" / f"{size:020d}"
    with failures(path):
        try:
            note = Note.parse(read_plain(path, notes.MOST_BYTES + 1))
            if Head.parse(note.text).size != size:
                raise InvalidNote("it covers another number of records")
        except FileNotFoundError:
            return None
        except InvalidNote as problem:
            raise AuditUnavailable(f"`{path}` holds no checkpoint: {problem}", advice=_ADVICE) from None
    return note


@dataclass(frozen=True, slots=True)
class _Known:
    """A checkpoint that was made before, when (seconds since the epoch), and where it is known from."""

    note: Note
    head: Head
    time: int
    place: str

    @classmethod
    def of(cls, note: Note, key: VerifierKey, place: str) -> _Known:
        """Believe a checkpoint that `key` signed.

        Raises:
            InvalidNote: it is none, or that key did not sign it for this log.
        """
        head = Head.parse(note.text)
        if head.origin != key.name:
            raise InvalidNote(f"it is one of `{head.origin}`")
        at = note.time_by(key)
        if at is None:
            raise InvalidNote(f"it is not signed by {key}")
        return cls(note, head, at, place)


class Notary:
    """Makes the checkpoints of one log; used by one thread at a time, beside those of other processes.

    It remembers the right edge of the tree, so that what was signed before is not read again.
    """

    def __init__(self, state: StateDirectory) -> None:
        """Nothing is read or loaded before the first call."""
        self._state = state
        self._signer: Signer | None = None
        self._tree: GrowingTree | None = None
        self._newest: _Known | None = None
        self._lost: AuditUnavailable | None = None

    def prepare(self) -> None:
        """Load key and library now (some 10 ms), in a moment when nobody waits for it.

        Raises:
            AuditUnavailable: the key can't be used, or this directory is not the registered one.
        """
        self._ready()

    def checkpoint(self, *, renew: bool = False) -> Note:
        """Sign all records that are durable now; what is signed already is returned as it is.

        `renew` signs the same records again with the present time: a sign of life where nothing happens.

        Raises:
            AuditUnavailable: the log contradicts what was signed or seen, there is no record or no key, or
                something can't be read or written.
        """
        return self._checkpoint(renew=renew)

    def covered(self) -> int:
        """How many records the newest checkpoint beside the log is over; 0 if that is none of its key.

        So a process need not repeat what another one has just done. What the records are is compared by the
        next `checkpoint` or `close`, and by whoever joins the log.
        """
        with contextlib.suppress(AuditUnavailable, InvalidNote):
            note, key = signed(self._state), self._ready().key
            if note is not None and note.signed_by(key) is not None:
                head = Head.parse(note.text)
                return head.size if head.origin == key.name else 0
        return 0

    def close(self) -> Note:
        """Make the last checkpoint of a writer, and remember that it left the log well.

        Raises:
            AuditUnavailable: as for `checkpoint`.
        """
        return self._checkpoint(closed=True)

    def _checkpoint(self, *, renew: bool = False, closed: bool = False) -> Note:
        with failures(self._state.path):
            signer = self._ready()
            with self._locked("tree.lock"):
                if self._newest is None:
                    files.drop_drafts(self._state.path, _NEWEST)
                snapshot, durable = self._snapshot()
                known = self._known(signer.key)
                at = max(int(time.time()), known[-1].time if known else 0)
                head = self._grow(snapshot, known, signer, at, durable)
                if known and known[-1].head == head and not renew:
                    newest = known[-1]
                else:
                    newest = _Known(signer.sign(head, at), head, at, "")
                self._publish(newest.note)
                seen.remember(self._state, signer.key, newest.note, closed=closed)
                self._newest = replace(newest, place="that this process saw last")
                return newest.note

    def _ready(self) -> Signer:
        if self._lost is not None:
            raise AuditUnavailable(
                f"nothing is signed after a failure: {self._lost}", advice=self._lost.advice
            )
        if self._signer is None:
            if trusted(self._state.path) != self._state:
                raise AuditUnavailable(
                    f"`{self._state.path}` signs nothing: another directory is registered for its log",
                    advice="put the original back, or move this one aside to begin a new log",
                )
            self._signer = keys.signer(self._state)
        return self._signer

    def _snapshot(self) -> tuple[Snapshot, int]:
        """The log as far as it may be signed, and how many of its records are known to be durable."""
        listed = durable_part(self._state)
        durable = listed is not None
        try:
            if listed is None:
                with self._locked("log.lock", shared=True):
                    listed = segments.listing(self._state)
        except FileNotFoundError:
            listed = []
        try:
            snapshot = Snapshot.of(listed, self._state.log_id)
        except Damaged as problem:
            raise AuditUnavailable(str(problem), advice=_ADVICE) from None
        return snapshot, snapshot.size if durable else 0

    def _known(self, key: VerifierKey) -> list[_Known]:
        """The checkpoints that a new one has to continue, the newest last."""
        found = [self._newest] if self._newest else []
        remembered = seen.of(self._state.log_id)
        place = seen.path_of(self._state.log_id)
        try:
            _add(found, remembered.checkpoint if remembered else None, key, place)
            place = _newest_path(self._state)
            _add(found, signed(self._state), key, place)
        except InvalidNote as problem:
            raise AuditUnavailable(
                f"`{place}` holds no checkpoint of this log: {problem}",
                advice="run `licet audit verify`, then move that file aside to have it made again",
            ) from None
        return sorted(found, key=lambda one: (one.head.size, one.time))

    def _grow(
        self, snapshot: Snapshot, known: Sequence[_Known], signer: Signer, at: int, durable: int
    ) -> Head:
        """Follow the log to its end, past all that is known; keep a checkpoint wherever a segment ends."""
        if known and known[-1].head.size > snapshot.size:
            raise AuditUnavailable(
                f"the log has {snapshot.size} records, but the checkpoint {known[-1].place} covers "
                f"{known[-1].head.size}",
                advice=_ADVICE,
            )
        if not snapshot.size:
            raise AuditUnavailable("the log holds no record yet")
        earliest = known[0].head.size if known else 0
        durable = max(durable, known[-1].head.size if known else 0)
        ends = [end for end in snapshot.ends if end > earliest]
        try:
            grown = self._resume(snapshot, known[0].head) if known else GrowingTree()
            for size in sorted({*(one.head.size for one in known), *ends, snapshot.size}):
                self._grow_to(grown, size, snapshot, durable)
                head = Head(signer.key.name, size, grown.root())
                _compare(head, known)
                if size in ends:
                    keep(self._state, signer.sign(head, at))
        except LookupError as problem:
            raise AuditUnavailable(
                f"the tree of the log can't be computed: {problem}", advice=_ADVICE
            ) from None
        self._tree = grown
        return head

    def _resume(self, snapshot: Snapshot, head: Head) -> GrowingTree:
        """The tree of what `head` covers; an empty one where tiles are missing or say something else.

        Then all is computed from the lines: what is missing is made, and what is wrong is named.
        """
        grown, self._tree = self._tree, None  # whatever fails now, the next one starts from what is on disk
        if grown is not None and grown.size <= head.size:
            return grown
        if not ends_complete(self._state, head.size):
            return GrowingTree()
        grown = GrowingTree.at(LogHashes(self._state, snapshot), head.size)
        return grown if grown.root() == head.root else GrowingTree()

    def _grow_to(self, grown: GrowingTree, size: int, snapshot: Snapshot, durable: int) -> None:
        if grown.size == size:
            return
        for segment in snapshot.holding(max(grown.size, durable), size):
            # A writer that was killed before its sync may have left whole lines.
            descriptor = open_plain(segment.path, os.O_RDWR)
            try:
                sync(descriptor)
            except OSError as problem:
                self._lost = unavailable(problem, segment.path)
                raise
            finally:
                os.close(descriptor)
        leaves = snapshot.leaves(grown.size, size)
        while batch := list(islice(leaves, _BATCH)):
            grown.extend(batch)
            write_tiles(self._state, grown.tiles())

    def _publish(self, note: Note) -> None:
        path = _newest_path(self._state)
        try:
            if read_plain(path, notes.MOST_BYTES) == note.data:
                return
        except FileNotFoundError:
            pass
        files.replace(path, note.data)

    @contextlib.contextmanager
    def _locked(self, name: str, *, shared: bool = False) -> Iterator[None]:
        path = self._state.path / name
        with lock_file(path, _PATIENCE, shared=shared, make=not shared) as held:
            if not held:
                raise AuditUnavailable(
                    f"another process held `{path}` for {_PATIENCE:.0f} s",
                    advice="end the process that hangs",
                )
            yield


def _add(found: list[_Known], note: Note | None, key: VerifierKey, place: Path | None) -> None:
    if note is not None and all(one.note != note for one in found):
        found.append(_Known.of(note, key, f"in `{place}`"))


def _compare(head: Head, known: Sequence[_Known]) -> None:
    for one in known:
        if one.head.size == head.size and one.head.root != head.root:
            raise AuditUnavailable(
                f"the first {head.size} records have the root {head.root.hex()}, but the checkpoint "
                f"{one.place} says {one.head.root.hex()}",
                advice=_ADVICE,
            )


def _newest_path(state: StateDirectory) -> Path:
    return state.path / _NEWEST
