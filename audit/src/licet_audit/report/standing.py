"""What is proved of a log, as a report says it first: the claims, and the checkpoint with its key.

Rules this module keeps:

- the claims are those of the verification; nothing is added up to one tick;
- what a checkpoint says is shown with the key that is named beside it; whether that key is the right one is
  for a claim to say, and for the reader to compare.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime

from licet.files import read_plain
from licet.state import StateDirectory

from licet_audit import notes
from licet_audit.claims import Claim, Verification
from licet_audit.report import words

_TONES = {
    "proven": ("good", "✓"),
    "tampered": ("bad", "✗"),
    "incomplete": ("bad", "✗"),
    "unverifiable": ("warn", "?"),
}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The newest checkpoint, in words: `fingerprint` is of the key that the log names."""

    fingerprint: str
    origin: str
    size: int
    root: str
    time: str


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


def standing(state: StateDirectory, found: Verification) -> Standing:
    """Put into words what a verification found."""
    tone, sign = _TONES[found.status]
    checkpoint, why_not = _checkpoint(state)
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
        end=found.records if found.status == "proven" else None,
    )


def _checkpoint(state: StateDirectory) -> tuple[Checkpoint | None, str]:
    try:
        note = notes.Note.parse(read_plain(state.path / "checkpoint", notes.MOST_BYTES + 1))
        head = notes.Head.parse(note.text)
        key = notes.VerifierKey.parse(os.fsdecode(read_plain(state.path / "log.vkey", 4096)))
    except FileNotFoundError:
        return None, "This log has no signed checkpoint, so nothing here is signed."
    except (OSError, notes.InvalidNote) as problem:
        return None, f"The checkpoint of this log can't be used: {problem}."
    if note.signed_by(key) is None:
        return None, "The checkpoint of this log is not signed by the key that lies beside it."
    at = note.time_by(key)
    time = (
        "the checkpoint does not say when"
        if at is None
        else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    )
    return Checkpoint(key.fingerprint, head.origin, head.size, head.root.hex(), time), ""
