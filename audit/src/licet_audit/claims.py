"""What a verification answers: separate claims, never one tick, and what a pass does not prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["proven", "tampered", "incomplete", "unverifiable"]


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that a verification looked at: `ok` True, False, or None for "can't tell"."""

    name: str
    ok: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Verification:
    """All claims about a log; the first bad record and byte are named where one is."""

    status: Status
    records: int
    claims: tuple[Claim, ...]
    not_proven: tuple[str, ...]
    first_bad_seq: int | None = None
    first_bad_byte: int | None = None
