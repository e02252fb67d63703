"""Claims about anchors: who outside this host has seen the log, when, and what came after that.

Rules this module keeps: an anchor that nobody vouches for proves nothing; one that contradicts the log is
tampering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from licet_audit.anchors.checked import CheckedAnchor
from licet_audit.claims import Claim

NOBODY = "no anchor outside this host has seen this log"


def claims(checked: Sequence[CheckedAnchor], records: int, *, required: bool) -> Iterator[Claim]:
    """One claim for all anchors: the newest that proves something, or the first that contradicts."""
    name = "anchors"
    for one in checked:
        if one.ok is False:
            yield Claim(name, False, f"{_named(one)}: {one.detail}")
            return
    proving = [one for one in checked if one.ok]
    if proving:
        newest = max(proving, key=lambda one: one.size)
        tail = records - newest.size
        after = f"what came after ({tail}) is not anchored" if tail else "which is all of it"
        others = f"; {len(checked) - 1} further receipts" if len(checked) > 1 else ""
        when = f" at {newest.time}" if newest.time else ""
        yield Claim(
            name,
            True,
            f"{_named(newest)} saw the first {newest.size} records{when}, {after}{others}",
            "incomplete",
        )
        return
    why = f"{_named(checked[0])}: {checked[0].detail}" if checked else NOBODY
    yield Claim(name, False if required else None, why, "incomplete")


def _named(one: CheckedAnchor) -> str:
    return f"{one.kind} `{one.anchor}`"
