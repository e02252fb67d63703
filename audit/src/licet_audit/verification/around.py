"""Claims about what lies around the records: content, tails set aside, gaps, clocks, pruned records.

Rules this module keeps: each says what was found and what is missing, and where first; none trusts a file
that its record does not vouch for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from licet.files import open_plain
from licet.state import StateDirectory

from licet_audit import contents
from licet_audit.claims import Claim
from licet_audit.verification.events import Events, Tail
from licet_audit.verification.findings import Locate
from licet_audit.verification.judge import Judge
from licet_audit.verification.kept import Kept
from licet_audit.verification.moments import Moments
from licet_audit.verification.runs import Runs


def start(judge: Judge) -> Claim:
    """Whether the log begins with its first record, or says why it doesn't."""
    name, first, pruned = "start", judge.first, judge.events.pruned
    if first == 0:
        left = ""
        if pruned is not None:
            left = f", though #{pruned.seq} says that all before #{pruned.begins} were pruned"
        return Claim(name, True, f"the log begins with record #0{left}", "incomplete")
    if pruned is None or first is None or pruned.begins < first:
        why = f"the log begins with record #{first}, what was before is missing"
        return Claim(name, False, why, "incomplete")
    why = f"records #0 to #{first - 1} were pruned, as #{pruned.seq} says ({pruned.reason})"
    proved = "" if judge.roots.lost is not None else "; tiles keep their leaves"
    return Claim(name, True, why + proved, "incomplete")


def gaps(events: Events, runs: Runs) -> Claim:
    """Whether records are missing that policy let go unrecorded."""
    if not events.gaps:
        return Claim("gaps", True, "the log says of no record that it could not be written", "incomplete")
    explained = f"; they explain {runs.explained} runs that are not whole" if runs.explained else ""
    why = f"{events.missing} records could not be written under `audit: {{mode: best_effort}}`{explained}"
    return Claim("gaps", False, why, "incomplete")


def clock(moments: Moments, locate: Locate) -> Claim:
    """Where the wall clock went back; it is told, and proves nothing."""
    if moments.place is None:
        return Claim("clock", True, "wall time never went back by more than a second")
    more = f" (and {moments.jumps - 1} more)" if moments.jumps > 1 else ""
    place = locate(moments.place) or f"record #{moments.place}"
    return Claim(
        "clock", None, f"{place}: wall time went back, {moments.told}{more}; the order is that of numbers"
    )


def outcomes(runs: Runs) -> Claim:
    """How many runs have no known end."""
    if runs.under_way or runs.waiting:
        waiting = f"; waiting for an approval: {runs.waiting}" if runs.waiting else ""
        detail = (
            f"begun and without a result yet: {runs.under_way}{waiting}; ended as unknown: {runs.unknown}"
        )
        return Claim("outcomes", None, detail)
    return Claim("outcomes", True, f"every run that began has a result; {runs.unknown} ended as unknown")


def content(kept: Kept, stored: int | None, locate: Locate) -> Claim:
    """What became of the content that records commit to; `stored` is how many files there are."""
    name = "content"
    told = f"{kept.intact} kept and intact, {kept.erased} erased as records say"
    if kept.nameless:
        return Claim(
            name, False, f"{_at(kept.nameless[0], locate)} commits to something that is no commitment"
        )
    if kept.altered:
        seq = min(kept.altered.values())
        why = f"{_at(seq, locate)}: {len(kept.altered)} of what is kept is not what was committed to; {told}"
        return Claim(name, False, why)
    if kept.missing:
        seq = min(kept.missing.values())
        why = f"{_at(seq, locate)}: content is missing, and no record says that it was erased"
        return Claim(name, False, f"{why} ({len(kept.missing)} in all); {told}", "incomplete")
    if kept.left:
        why = f"{told}; {kept.left} are recorded as erased and still there: the next erasure finishes that"
        return Claim(name, None, why)
    unnamed = (stored or 0) - kept.intact
    if unnamed > 0:
        return Claim(
            name, None, f"{told}; {unnamed} files that no record names: `licet audit erase --orphans`"
        )
    if not kept.intact and not kept.erased:
        return Claim(name, True, "no record commits to content")
    return Claim(name, True, told)


def stored(state: StateDirectory) -> int | None:
    """How many files of content there are, None if that can't be told."""
    try:
        return sum(1 for _ in contents.stored(state))
    except OSError:
        return None


def tails(state: StateDirectory, events: Events) -> Claim:
    """Whether what dead writers left half written lies where the records say, as it was."""
    name = "quarantine"
    for tail, found in _found(state, events.tails):
        if found is None:
            why = f"record #{tail.seq} says that a torn tail was set aside, but `{tail.file}` is gone"
            return Claim(name, False, why, "incomplete")
        if found != tail.sha256:
            return Claim(name, False, f"`{tail.file}` is not what record #{tail.seq} says was set aside")
    count = len(events.tails)
    return Claim(name, True, f"{count} torn tails are kept as they were" if count else "no tail was torn")


def _found(state: StateDirectory, tails: list[Tail]) -> Iterator[tuple[Tail, str | None]]:
    for tail in tails:
        path = state.path / "quarantine" / Path(tail.file).name
        for one in (path, path.with_suffix(".pending")):  # so it is called until its record is durable
            try:
                with os.fdopen(open_plain(one, os.O_RDONLY), "rb") as file:
                    yield tail, hashlib.file_digest(file, "sha256").hexdigest()
                    break
            except (OSError, ValueError):  # a name that no file can have is one of none
                continue
        else:
            yield tail, None


def _at(seq: int, locate: Locate) -> str:
    return str(locate(seq) or f"record #{seq}")
