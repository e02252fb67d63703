"""What a verification answers: separate claims, never one tick, and what a pass does not prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["proven", "tampered", "incomplete", "unverifiable"]

WORST: tuple[Status, ...] = ("tampered", "incomplete", "unverifiable")
"""What a log may be besides proven; the first of these that a claim says is what it is."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that a verification looked at: `ok` True, False, or None for "can't tell".

    `status` is what the log is if the claim fails.
    """

    name: str
    ok: bool | None
    detail: str
    status: Status = "tampered"


@dataclass(frozen=True, slots=True)
class Verification:
    """All claims about a log; the first bad record and byte are named where one is."""

    status: Status
    records: int
    claims: tuple[Claim, ...]
    not_proven: tuple[str, ...]
    first_bad_seq: int | None = None
    first_bad_byte: int | None = None


def status_of(claims: tuple[Claim, ...]) -> Status:
    """What all claims together say: the worst that one that fails says; "can't tell" spoils nothing."""
    failed = {claim.status for claim in claims if claim.ok is False}
    return next((status for status in WORST if status in failed), "proven")
