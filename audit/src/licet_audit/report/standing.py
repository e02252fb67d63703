"""What is proved of a log, as a report says it first: the claims, and the checkpoint with its key.

Rules this module keeps:

- the claims are those of the verification; nothing is added up to one tick;
- what a checkpoint says is shown with the key that is named beside it; whether that key is the right one is
  for a claim to say, and for the reader to compare.
"""

from __future__ import annotations

from dataclasses import dataclass

from licet.errors import AuditUnavailable
from licet.state import StateDirectory

from licet_audit import checkpointer, keys, notes, trust
from licet_audit.claims import Claim, Verification
from licet_audit.notes import VerifierKey
from licet_audit.report import words
from licet_audit.segments import listing

_TONES = {
    "proven": ("good", "✓"),
    "tampered": ("bad", "✗"),
    "incomplete": ("bad", "✗"),
    "unverifiable": ("warn", "?"),
}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The newest checkpoint: `fingerprint` is of the key that signed it, `source` is where that came from."""

    fingerprint: str
    source: str
    origin: str
    size: int
    root: str
    time: str | None


@dataclass(frozen=True, slots=True)
class Standing:
    """The first page of a report; `end` is the number of the first record that was not checked, if known."""

    tone: str
    sign: str
    headline: str
    records: int
    claims: tuple[Claim, ...]
    not_proven: tuple[str, ...]
    first_bad_seq: int | None
    first_bad_byte: int | None
    checkpoint: Checkpoint | None
    no_checkpoint: str
    end: int | None = None


def standing(state: StateDirectory, found: Verification, key: VerifierKey | None = None) -> Standing:
    """Put into words what a verification found, by the public `key` if one was given."""
    tone, sign = _TONES[found.status]
    checkpoint, why_not = _checkpoint(state, key)
    order = {False: 0, None: 1, True: 2}
    return Standing(
        tone=tone,
        sign=sign,
        headline=words.STATUS[found.status],
        records=found.records,
        claims=tuple(sorted(found.claims, key=lambda claim: order[claim.ok])),
        not_proven=found.not_proven,
        first_bad_seq=found.first_bad_seq,
        first_bad_byte=found.first_bad_byte,
        checkpoint=checkpoint,
        no_checkpoint=why_not,
        end=_end(state, found),
    )


def _end(state: StateDirectory, found: Verification) -> int | None:
    """The number of the first record that was not checked; the log may begin later than with #0."""
    try:
        files = listing(state)
    except (OSError, AuditUnavailable):
        return None
    return files[0].first + found.records if files and found.status == "proven" else None


def _checkpoint(state: StateDirectory, given: VerifierKey | None) -> tuple[Checkpoint | None, str]:
    try:
        note = checkpointer.signed(state)
        if note is None:
            return None, "This log has no signed checkpoint, so nothing here is signed."
        head = notes.Head.parse(note.text)
        key, source = _key(state, head.origin, given)
    except (AuditUnavailable, notes.InvalidNote) as problem:
        return None, f"The checkpoint of this log, or its key, can't be used: {problem}."
    if key is None:
        return None, "The key of this log is not known here, so its checkpoint can't be checked."
    if key.name != head.origin or note.signed_by(key) is None:
        return None, f"The checkpoint of this log is not signed by the key {source}."
    time = note.moment_by(key)
    return Checkpoint(key.fingerprint, source, head.origin, head.size, head.root.hex(), time), ""


def _key(state: StateDirectory, origin: str, given: VerifierKey | None) -> tuple[VerifierKey | None, str]:
    if given is not None:
        return given, "that was given for this report"
    if (pinned := trust.pinned(origin)) is not None:
        return pinned, "that this user has seen the log sign with"
    return keys.published(state), "that lies beside the log, where whoever wrote the log put it"
