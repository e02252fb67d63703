"""What anchors prove about a log, as its records are now.

Rules this module keeps:

- what was anchored is compared with the text that the records themselves give at that size: a receipt whose
  text is another says that the first records of the log are not those that were seen;
- witnesses, certificates and files count only where the caller trusts them; nothing beside the log vouches
  for itself, so a receipt of somebody unknown is neither good nor bad;
- a receipt that is broken proves nothing, and is told apart from one that contradicts the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from licet.errors import reason_of
from licet.state import StateDirectory

from licet_audit import notes, tree
from licet_audit.anchors import FILE, TIMESTAMP, WITNESS, NotAnchored, appended, receipts, timestamps
from licet_audit.anchors.receipts import Receipt
from licet_audit.notes import Head, InvalidNote, Note, VerifierKey

if TYPE_CHECKING:
    from licet.settings import Anchors

_ELSEWHERE = "the first {} records of the log are not those that it saw"


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom to believe: witnesses by their keys, authorities by files of certificates, files by their paths.

    `log` is the key of the log, where it is known: then only what it signed is believed to be in a file.
    """

    witnesses: tuple[VerifierKey, ...] = ()
    roots: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    log: VerifierKey | None = None

    @classmethod
    def of(cls, wanted: Anchors, log: VerifierKey | None = None) -> Trust:
        """What settings say.

        Raises:
            InvalidNote: the key of a witness is none.
        """
        return cls(
            tuple(VerifierKey.parse(one.key) for one in wanted.witnesses),
            tuple(one.roots for one in wanted.timestamps if one.roots is not None),
            wanted.files,
            log,
        )

    def joined(self, other: Trust) -> Trust:
        """Both together."""
        return Trust(
            tuple(dict.fromkeys((*self.witnesses, *other.witnesses))),
            tuple(dict.fromkeys((*self.roots, *other.roots))),
            tuple(dict.fromkeys((*self.files, *other.files))),
            self.log or other.log,
        )


@dataclass(frozen=True, slots=True)
class CheckedAnchor:
    """What one anchor proves: that the first `size` records were as they are now at `time` (None: unknown).

    `ok` is False if it contradicts the log, and None if it proves nothing; `detail` says why.
    """

    anchor: str
    kind: str
    size: int
    time: str | None
    ok: bool | None
    detail: str


def checked(state: StateDirectory, hashes: tree.Hashes, size: int, trust: Trust) -> list[CheckedAnchor]:
    """Check all anchors of a log that has `size` records now, whose hashes are `hashes`.

    Raises:
        AuditUnavailable: the receipts can't be read.
    """
    log = _Log(notes.origin_of(state.log_id), hashes, size)
    found = [
        _of_receipt(one, log, trust)
        for each in receipts.all_of(state).values()
        for one in each
        if not (one.kind == FILE and _trusted_file(one, trust))
    ]
    return [*found, *(anchor for path in trust.files for anchor in _of_file(path, log, trust))]


class _Log:
    """The records as they are now."""

    def __init__(self, origin: str, hashes: tree.Hashes, size: int) -> None:
        self.origin, self.size, self._hashes = origin, size, hashes

    def text_at(self, size: int) -> bytes:
        """The text of a checkpoint of the first records.

        Raises:
            LookupError: it can't be computed: there are not so many.
        """
        if not 0 < size <= self.size:
            raise LookupError(f"the log has {self.size} records, and it saw {size}")
        return Head(self.origin, size, tree.root(self._hashes, size)).text


def _of_receipt(one: Receipt, log: _Log, trust: Trust) -> CheckedAnchor:
    name = unquote(one.anchor)
    try:
        text = log.text_at(one.size)
    except (LookupError, OSError) as problem:
        # The name of a folder alone contradicts nothing: only what somebody trusted has signed does.
        text, missing = None, str(problem)
    if one.kind == WITNESS:
        ok, time, detail = _of_witness(one, text, trust)
    elif one.kind == TIMESTAMP:
        ok, time, detail = _of_timestamp(one, text, trust)
    elif one.kind == FILE:
        ok, time, detail = None, None, "only the file itself proves something: name it with `--anchor-file`"
    else:
        ok, time, detail = None, None, f"licet does not know how to check the kind `{one.kind}`"
    if text is None and ok is None:
        detail = f"{missing}; {detail}"
    return CheckedAnchor(name, one.kind, one.size, time, ok, detail)


Finding = tuple[bool | None, str | None, str]


def _of_witness(one: Receipt, text: bytes | None, trust: Trust) -> Finding:
    try:
        note = Note.parse(one.data)
        head = Head.parse(note.text)
    except InvalidNote as problem:
        return None, None, f"its receipt is broken: {problem}"
    for key in trust.witnesses:
        time = note.moment_by(key)
        if time is None:
            continue
        if text is None:
            return False, time, f"it saw {head.size} records, and the log has fewer"
        if note.text != text:
            return False, time, _ELSEWHERE.format(head.size)
        return True, time, f"cosigned, key SHA-256 {key.fingerprint}"
    signers = sorted({one.name for one in note.signatures if one.name != head.origin})
    return (
        None,
        None,
        f"nobody vouches for the key of {', '.join(signers) or 'nobody'}: give it as `--witness`",
    )


def _of_timestamp(one: Receipt, text: bytes | None, trust: Trust) -> Finding:
    if text is None:
        return None, None, "its time stamp can't be held against anything"
    try:
        time = timestamps.stamped(one.data, text, trust.roots)
    except timestamps.OtherText as problem:
        if trust.roots:
            return False, problem.time, _ELSEWHERE.format(one.size)
        return None, None, f"{problem}, and no certificate vouches for it"
    except NotAnchored as problem:
        return None, None, str(problem)
    if not trust.roots:
        return None, time, "no certificate vouches for its authority: give some as `--tsa-roots`"
    return True, time, "stamped, by an authority that a trusted certificate vouches for"


def _of_file(path: Path, log: _Log, trust: Trust) -> Iterator[CheckedAnchor]:
    """The newest checkpoint in a file that agrees with the log, or the first one that does not."""
    best, unsigned = None, 0
    try:
        for note in appended.found_in(path, log.origin):
            if trust.log is not None and note.signed_by(trust.log) is None:
                unsigned += 1
                continue
            head = Head.parse(note.text)
            time = note.moment_by(trust.log) if trust.log else None
            if (against := _against(note, head, log)) is not None:
                yield CheckedAnchor(str(path), FILE, head.size, time, False, against)
                return
            if best is None or head.size >= best.size:
                best = CheckedAnchor(str(path), FILE, head.size, time, True, "the file holds this checkpoint")
    except OSError as problem:
        yield CheckedAnchor(str(path), FILE, 0, None, None, f"it can't be read: {reason_of(problem)}")
        return
    if best is None:
        detail = f"{unsigned} in it are not signed by its key" if unsigned else "nothing in it is of this log"
        best = CheckedAnchor(str(path), FILE, 0, None, None, detail)
    yield best


def _against(note: Note, head: Head, log: _Log) -> str | None:
    """What of the log contradicts a checkpoint; None if nothing does."""
    try:
        return None if log.text_at(head.size) == note.text else _ELSEWHERE.format(head.size)
    except LookupError as problem:
        return str(problem)


def _trusted_file(one: Receipt, trust: Trust) -> bool:
    return any(receipts.spelled(str(path)) == one.anchor for path in trust.files)
