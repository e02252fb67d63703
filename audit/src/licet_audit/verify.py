"""What the bytes of a log prove, claim by claim, in one pass.

Rules this module keeps:

- every line is judged by its bytes alone: parsed, spelled again and compared, and hashed into the chain;
- a claim that fails keeps the place of its first failure; the pass goes on, so the others stay meaningful;
- what only this user's pinned head shows (cutting, rewriting) is a claim of its own;
- memory holds the runs that have no result yet, so it grows with what is open at once, not with the log;
- a pass says what it does not prove.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from licet.record import VERSION, from_json, leaf_hash

from licet_audit import tree
from licet_audit.chain import NOTHING, Head, decode
from licet_audit.claims import Claim, Verification
from licet_audit.seen import Seen
from licet_audit.segments import SEALED, Line, Segment

_OUTSIDE = (
    "that nobody who can write both the log and this user's state directory rewrote both: the key that signs "
    "it is there, and no witness outside this host has seen it",
    "that the clock of the host was right, or that a writer told the truth when it wrote",
)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a log: the record that should be there, and where its line starts in its file."""

    seq: int
    file: str
    offset: int

    def __str__(self) -> str:
        return f"record #{self.seq} at byte {self.offset} of {self.file}"


class _Finding:
    """What one claim found: how often it failed, and where first."""

    def __init__(self, good: str) -> None:
        self.count = 0
        self.place: Place | None = None
        self._detail = good

    def fail(self, place: Place, why: str) -> None:
        """Note a failure; the first one is told."""
        self.count += 1
        if self.place is None:
            self.place, self._detail = place, f"{place}: {why}"

    def blame(self, place: Place, why: str) -> None:
        """Tell this failure instead of the first one."""
        self.count += 1
        self.place, self._detail = place, f"{place}: {why}"

    def claim(self, name: str) -> Claim:
        """The claim, with the number of further failures."""
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return Claim(name, self.count == 0, self._detail + more)


class Verifier:
    """Checks the lines of a log in order: `start` a segment, `check` its lines, and take the `result`."""

    def __init__(self, log_id: str, known: Seen | None, pin_problem: str | None = None) -> None:
        pin = known.head if known else None
        self.head = NOTHING
        self.records = 0
        self._log_id = log_id
        self.roots: dict[int, bytes | None] = {pin.size: None} if pin else {}
        """The roots that the caller wants to know, by size; None until that many lines were checked."""
        self._tree = tree.Frontier()
        self._opened = known.opened if known else None
        self._pin = pin
        self._pin_problem = pin_problem
        self._before: Place | None = None
        self._place = Place(0, "", 0)
        self._first: int | None = None
        self._broken_at: Place | None = None
        self._sealed = False
        self._file = ""
        self._torn: str | None = None
        self._unknown_version: str | None = None
        self._runs = _Runs()
        self._bytes = _Finding("every line is the canonical spelling of a record")
        self._log = _Finding(f"every record belongs to log {log_id}")
        self._order = _Finding("no record is missing between the first and the last")
        self._chain = _Finding("each record holds the hash of the one before")
        self._segments = _Finding("each file begins where the one before ends")
        self._contradictions = _Finding("no run was executed between its denial and its result")

    def start(self, segment: Segment) -> None:
        """Go on with the next file of the log."""
        place = Place(self.head.seq + 1, segment.path.name, 0)
        if self._torn is not None:
            self._bytes.fail(self._place, "the line has no end, and it is not the last")
            self._torn = None
        if self._first is None:
            self._first = segment.first
            self.head = Head(segment.first - 1, "")
        elif segment.first != self.head.seq + 1:
            self._segments.fail(place, f"the file begins with #{segment.first}")
        elif not self._sealed:
            self._segments.fail(place, "the file before was not full")
        self._file = segment.path.name

    def check(self, line: Line) -> None:
        """Judge one line."""
        self._place = Place(self.head.seq + 1, self._file, line.offset)
        if not line.complete:
            self._torn = f"{self._place} has no end: a writer was interrupted, or somebody cut the file"
            return
        self.records += 1
        leaf = leaf_hash(line.data)
        try:
            content = decode(line.data)
            self._check_record(content)
        except ValueError as problem:
            self._bytes.fail(self._place, str(problem))
            self._sealed = False
        self.head = Head(self._place.seq, leaf)
        self._before = self._place
        self._tree.append(bytes.fromhex(leaf))
        if self._first == 0 and self._tree.size in self.roots:
            self.roots[self._tree.size] = self._tree.root()

    @property
    def _pin_met(self) -> bool | None:
        found = self.roots[self._pin.size] if self._pin is not None else None
        return None if self._pin is None or found is None else found == self._pin.root

    def _check_record(self, content: Mapping[str, Any]) -> None:
        version = content.get("v")
        if version == VERSION:
            from_json(content)
        elif type(version) is int and version > VERSION:
            self._unknown_version = f"{self._place} has version {version}, this verifier knows {VERSION}"
        else:
            raise ValueError(f"`{version}` is no version of a record")
        if content.get("log") != self._log_id:
            self._log.fail(self._place, f"it belongs to log `{content.get('log')}`")
        seq, expected = content.get("seq"), self._place.seq
        if seq != expected or type(seq) is not int:
            self._order.fail(self._place, f"found #{seq}")
        self._check_link(content.get("prev"), in_order=seq == expected)
        self._sealed = content.get("kind") == "log" and content["body"].get("event") == SEALED
        if self._runs.contradicts(content):
            self._contradictions.fail(self._place, f"run `{content['run_id']}` was denied before")

    def _check_link(self, prev: object, *, in_order: bool) -> None:
        """Compare `prev` with the record before, and blame the one of the two that was edited."""
        if prev == self.head.leaf or (self._before is None and self._first != 0):
            return
        why = "its hash is not the one that the next record holds"
        if not in_order or self._before is None:
            self._chain.fail(self._place, "it does not hold the hash of the record before")
        elif self._broken_at == self._before and self._chain.count == 1:
            self._chain.blame(self._before, why)  # it fits neither of its neighbours
        else:
            self._chain.fail(self._before, why)
        self._broken_at = self._place

    def result(self) -> Verification:
        """All claims, once every line was checked."""
        if self._first is None:
            return unreadable("there is no log", self._last_seen())
        claims = (
            self._bytes.claim("bytes"),
            self._log.claim("log"),
            self._order.claim("order"),
            self._chain.claim("chain"),
            self._segments.claim("segments"),
            self._contradictions.claim("contradictions"),
            self._start(),
            Claim("tail", self._torn is None, self._torn or "the last record is whole"),
            self._last_seen(),
            Claim(
                "version", self._unknown_version is None, self._unknown_version or "every version is known"
            ),
            self._runs.outcomes(),
        )
        worst = self._worst()
        return Verification(self._status(claims), self.records, claims, self._not_proven(), *worst)

    def _findings(self) -> tuple[_Finding, ...]:
        return (
            self._bytes,
            self._log,
            self._order,
            self._chain,
            self._segments,
            self._contradictions,
        )

    def _worst(self) -> tuple[int | None, int | None]:
        places = [finding.place for finding in self._findings() if finding.place is not None]
        if places:
            first = min(places, key=lambda place: place.seq)
            return first.seq, first.offset
        if self._pin is not None and self._pin_met is False:
            return self._pin.size - 1, None
        if self._torn is not None:
            return self._place.seq, self._place.offset
        return None, None

    def _status(
        self, claims: tuple[Claim, ...]
    ) -> Literal["proven", "tampered", "incomplete", "unverifiable"]:
        if any(finding.count for finding in self._findings()) or self._pin_met is False:
            return "tampered"
        failed = {claim.name for claim in claims if claim.ok is False}
        if failed & {"start", "tail", "last_seen"}:
            return "incomplete"
        return "unverifiable" if failed else "proven"

    def _start(self) -> Claim:
        if self._first == 0:
            return Claim("start", True, "the log begins with record #0")
        return Claim("start", False, f"the log begins with record #{self._first}, what was before is missing")

    def _last_seen(self) -> Claim:
        pin, name = self._pin, "last_seen"
        if pin is None:
            if self._opened and not self.records:
                return Claim(name, False, f"the log was opened at {self._opened}, now it holds no record")
            why = self._pin_problem or "this user never saw this log before"
            return Claim(name, None, why)
        last = pin.size - 1
        if self._pin_met is None and last <= self.head.seq:
            return Claim(name, None, f"record #{last} was seen before, but not all before it are here")
        if self._pin_met is None:
            end = f"the log ends with #{self.head.seq}" if self.records else "the log holds no record"
            return Claim(name, False, f"record #{last} was seen before, now {end}")
        if self._pin_met:
            return Claim(name, True, f"record #{last}, seen before, is still there")
        return Claim(name, False, f"record #{last} or one before it is not the one that was seen before")

    def _not_proven(self) -> tuple[str, ...]:
        seen = self._pin.size - 1 if self._pin is not None and self._pin_met else -1
        unseen = self.head.seq - seen
        if unseen <= 0:
            return _OUTSIDE
        pinned = f"no record after #{seen}" if seen >= 0 else "no record"
        tail = f"that the last {unseen} records are the ones that were written, or that none came after them"
        return (f"{tail}: {pinned} was seen by this user before", *_OUTSIDE)


class _Runs:
    """What the records say about runs; it remembers those that have no result yet, and no others."""

    def __init__(self) -> None:
        self._denied: set[str] = set()
        self._open: set[str] = set()
        self._unknown = 0

    def contradicts(self, content: Mapping[str, Any]) -> bool:
        """Follow one record; True if it executes what was denied."""
        run_id, kind, body = content.get("run_id"), content.get("kind"), content.get("body")
        if not isinstance(run_id, str) or not isinstance(body, dict):
            return False
        if kind == "decision":
            (self._denied.add if body.get("effect") == "deny" else self._denied.discard)(run_id)
        elif kind == "result":
            self._denied.discard(run_id)
            self._open.discard(run_id)
            self._unknown += body.get("termination") == "unknown"
        elif kind == "execution":
            if content.get("phase") == "before":
                self._open.add(run_id)
            return run_id in self._denied
        return False

    def outcomes(self) -> Claim:
        """How many runs have no known end."""
        if self._open:
            detail = f"{len(self._open)} runs began and have no result yet, {self._unknown} ended as unknown"
            return Claim("outcomes", None, detail)
        return Claim("outcomes", True, f"every run that began has a result; {self._unknown} ended as unknown")


def unreadable(why: str, *claims: Claim) -> Verification:
    """The answer where there is nothing to check."""
    status: Literal["incomplete", "unverifiable"] = "unverifiable"
    if any(claim.ok is False for claim in claims):
        status = "incomplete"
    return Verification(status, 0, (Claim("readable", False, why), *claims), ("anything",))
