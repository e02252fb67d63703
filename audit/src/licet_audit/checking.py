"""Checking a proof that somebody handed over: what it shows, and whose signature that rests on.

Rules this module keeps: neither log nor network is read; whose key it is, the caller says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from licet_audit.notes import Note, VerifierKey
from licet_audit.proofs import ConsistencyProof, InvalidProof, Proof, RecordProof, head_of

Status = Literal["proven", "disproved", "unverifiable"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What a proof came to, and why; `facts` are what it is about, by name."""

    status: Status
    why: str
    facts: dict[str, str]


def check(proof: Proof, key: VerifierKey | None, line: bytes | None = None) -> Checked:
    """Check a proof against the key of its log, None if nobody knows it; `line` is the record if it is bare.

    Raises:
        InvalidProof: it can't be checked alone: a record is missing, or it belongs to a bundle.
    """
    head = head_of(proof.checkpoint)
    facts = {"log": head.origin, "records": str(head.size), "root": head.root.hex()}
    if isinstance(proof, RecordProof):
        holds = _record(proof, line, facts)
    elif isinstance(proof, ConsistencyProof):
        holds = proof.holds()
        facts |= {"continues": f"{proof.old_size} records with the root {proof.old_root.hex()}"}
    else:
        raise InvalidProof("it is of the records of a bundle, whose `verify.py` checks it")
    if not holds:
        return Checked("disproved", "the hashes do not lead to the root of its checkpoint", facts)
    return _signed(proof.checkpoint, key, facts)


def _record(proof: RecordProof, line: bytes | None, facts: dict[str, str]) -> bool:
    found = proof.line if line is None else line
    if found is None:
        raise InvalidProof("it comes without its record, which is needed to check it")
    facts |= {"record": f"#{proof.index}"} | _told(found)
    return proof.holds(found)


def _told(line: bytes) -> dict[str, str]:
    """What a line says of itself, as far as it can be read."""
    try:
        content: Any = json.loads(line)
        return {"says": f"{content['kind']} of run {content['run_id'] or '-'} at {content['time']}"}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {"says": "nothing that can be read"}


def _signed(checkpoint: Note, key: VerifierKey | None, facts: dict[str, str]) -> Checked:
    if key is None:
        named = ", ".join(dict.fromkeys(one.name for one in checkpoint.signatures))
        return Checked("unverifiable", f"the key of `{named}` is not known here", facts)
    facts["key"] = f"{key.name}, SHA-256 {key.fingerprint}"
    if key.name != facts["log"] or checkpoint.signed_by(key) is None:
        return Checked("disproved", "its checkpoint is not signed by that key", facts)
    if (at := checkpoint.moment_by(key)) is not None:
        facts["signed"] = f"{at}, by the log's own clock"
    return Checked("proven", "it is as it was signed", facts)
