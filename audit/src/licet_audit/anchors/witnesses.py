"""The anchor that is a witness: C2SP tlog-witness, `add-checkpoint`.

Rules this module keeps:

- a witness remembers how far it has seen the log, and is asked for that; nothing is remembered here;
- a cosignature counts only if it verifies under the key that settings name, over the very checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from licet.record import Checkpoint
from licet.units import show_moment

from licet_audit.anchors import NotAnchored
from licet_audit.anchors.posting import post
from licet_audit.notes import COSIGNATURE, InvalidNote, Note, VerifierKey, base64_of

if TYPE_CHECKING:
    from licet.settings import Witness
    from licet.web import Answer

_ROUNDS = 4  # first question, how far it has seen, and two races with other processes of this host
_SIZE = re.compile(rb"(0|[1-9][0-9]{0,18})\n?")
_MEANINGS = {
    403: "it does not trust the key that signed this checkpoint",
    404: "it does not know this log; give its operator the log's name and key",
    422: "it refuses the proof that this log continues the one it saw: records were rewritten, or it errs",
}


def see(checkpoint: Checkpoint, witness: Witness) -> tuple[bytes, str]:
    """Have a checkpoint cosigned; return it with the cosignature, and when the witness saw it.

    Raises:
        NotAnchored: the witness gives no answer or a bad one, has seen more of this log, or another log.
    """
    try:
        key = VerifierKey.parse(witness.key).of_kind(COSIGNATURE)
    except InvalidNote as problem:
        raise NotAnchored(f"the key in the settings is none: {problem}") from None
    note, size = Note.parse(checkpoint.note), 0
    for _ in range(_ROUNDS):
        answer = post(
            f"{witness.url.rstrip('/')}/add-checkpoint",
            _request(size, checkpoint.consistency(size), note),
            "text/plain",
        )
        if answer.status == 200:
            return _cosigned(note, answer.body, key)
        if answer.status != 409:
            raise NotAnchored(f"it refuses: {_MEANINGS.get(answer.status, answer)}")
        size = _seen(answer, size, checkpoint)
    raise NotAnchored("it names another size each time it is asked how much of the log it has seen")


def _request(old_size: int, proof: Sequence[bytes], note: Note) -> bytes:
    lines = [f"old {old_size}", *map(base64_of, proof), ""]
    return "".join(f"{line}\n" for line in lines).encode("ascii") + note.data


def _seen(answer: Answer, asked: int, checkpoint: Checkpoint) -> int:
    """How much of the log the witness says that it has seen."""
    match = _SIZE.fullmatch(answer.body)
    if match is None:
        raise NotAnchored(f"it answers with a conflict, and not with a size: {answer}")
    size = int(match[1])
    if size > checkpoint.size:
        raise NotAnchored(
            f"it has seen {size} records of this log, which has {checkpoint.size} here: "
            "records are missing, or a copy of the log lives elsewhere"
        )
    if size == asked:
        raise NotAnchored(f"it has seen another log of this name: with other records among the first {size}")
    return size


def _cosigned(note: Note, lines: bytes, key: VerifierKey) -> tuple[bytes, str]:
    try:
        answer = Note.parse(note.text + b"\n" + lines)
    except InvalidNote as problem:
        raise NotAnchored(f"it answers with no cosignature: {problem}") from None
    found = answer.signed_by(key)
    at = answer.time_by(key)
    if found is None or at is None:
        raise NotAnchored(f"its answer holds no cosignature by {key.name}, SHA-256 {key.fingerprint}")
    try:
        time = show_moment(at)
    except (OverflowError, ValueError, OSError):
        raise NotAnchored(f"it cosigned with a time that is none: {at}") from None
    return note.with_signatures([found]).data, time
