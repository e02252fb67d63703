"""The judge of a log: takes its parts in order, accepts them as a whole or judges their lines, and finds.

Rules this module keeps:

- every line is judged by its bytes alone: parsed, spelled again and compared, and hashed into chain and tree;
  parts that were accepted as they were signed are counted, and whoever reads the log compares their root;
- a claim that fails keeps the place of its first failure; the pass goes on, so the others stay meaningful;
- the number of a record is its place: after records that are missing it goes on where the next file begins;
- memory holds what is open at once (runs, content that is missing), and does not grow with the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from licet.record import VERSION, from_json

from licet_audit import tree
from licet_audit.chain import decode
from licet_audit.segments import SEALED, Line, Segment
from licet_audit.verification import facts
from licet_audit.verification.events import Events
from licet_audit.verification.facts import Fact
from licet_audit.verification.fields import Fields
from licet_audit.verification.findings import Finding, Place
from licet_audit.verification.kept import Kept, StateOf
from licet_audit.verification.moments import Moments
from licet_audit.verification.roots import Roots
from licet_audit.verification.runs import Contradiction, Runs
from licet_audit.verification.scan import Accepted


class Judge:
    """Judges a log: `start` each segment, `accept` or `check` what is in it, then `finish`."""

    def __init__(self, log_id: str, roots: Roots, state_of: StateOf) -> None:
        self.records = 0
        self.as_signed = 0
        """How many of them were not spelled again, because they are to be those that were signed."""
        self.first: int | None = None
        """The number of the first record that is there, None if there is no file."""
        self.next = 0
        """The number that the next record has to have."""
        self.roots = roots
        self.runs = Runs()
        self.kept = Kept()
        self.moments = Moments()
        self.events = Events(self.runs, self.kept, state_of)
        self.torn: Place | None = None
        self.unknown_version: tuple[int, int] | None = None
        """The first record of a later version, and that version."""
        self._log_id = log_id
        self._state_of = state_of
        self._segment: Segment | None = None
        self._leaf: str | None = ""  # of the record before; None if that is not known
        self._before: int | None = None
        self._broken_at: int | None = None
        self._sealed = False
        self.bytes = Finding("bytes", "every line is the canonical spelling of a record")
        self.log = Finding("log", f"every record belongs to log {log_id}")
        self.order = Finding("order", "no record is missing between the first and the last")
        self.chain = Finding("chain", "each record holds the hash of the one before")
        self.segments = Finding("segments", "each file begins where the one before ends")
        self.contradictions = Finding(
            "contradictions", "no effect was without its grant, and no run has two ends"
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found about records, claim by claim."""
        return self.bytes, self.log, self.order, self.chain, self.segments, self.contradictions

    def start(self, segment: Segment) -> None:
        """Go on with the next file of the log."""
        if self.torn is not None:
            self.bytes.fail(self.torn.seq, "the line has no end, and it is not the last")
            self.torn = None
        if self.first is None:
            self.first = self.next = segment.first
            self.runs.begins_late = segment.first > 0
            self._skip_to(segment.first)
        elif segment.first != self.next:
            self.segments.fail(self.next, f"the file after it begins with #{segment.first}")
            if segment.first > self.next:
                self.order.fail(self.next, f"records #{self.next} to #{segment.first - 1} are missing")
                self._skip_to(segment.first)
        elif not self._sealed:
            self.segments.fail(
                self.next, f"{segment.path.name} begins with it, but the file before was not full"
            )
        self._segment = segment
        self._sealed = False

    def accept(self, part: Accepted) -> bool:
        """Take a part as a whole if it continues what was before; else its lines have to be checked."""
        if part.first != self.next or (self._leaf is not None and part.prev != self._leaf):
            return False
        if self.runs.knows_any(part.whole):
            return False
        self.records += part.count
        self.as_signed += part.count - part.spelled
        self.next += part.count
        self.roots.add(part.leaves, part.roots)
        self._leaf, self._before = part.leaf, self.next - 1
        self._sealed = part.ended == SEALED
        self.kept.join(part.kept)
        self.moments.join(part.moments)
        self.runs.unknown += part.unknown
        told: list[Fact | tuple[int, Mapping[str, Any]]] = [*part.facts, *part.events]
        for one in sorted(told, key=lambda each: each.seq if isinstance(each, Fact) else each[0]):
            if isinstance(one, Fact):
                self._contradicted(self.runs.follow(one))
            else:
                self.events.follow(*one)
        return True

    def check(self, line: Line) -> None:
        """Judge one line by itself."""
        seq = self.next
        if not line.complete:
            assert self._segment is not None
            self.torn = Place(seq, self._segment.path.name, line.offset)
            return
        self.records += 1
        self._sealed = False
        leaf = tree.leaf(line.data)
        try:
            self._check_record(seq, decode(line.data))
        except ValueError as problem:
            self.bytes.fail(seq, str(problem))
        self.roots.add(leaf)
        self.next, self._leaf, self._before = seq + 1, leaf.hex(), seq

    def finish(self) -> None:
        """Judge what only the end of the log tells."""
        if self.as_signed:
            spelled = self.records - self.as_signed
            self.bytes.good = (
                f"every line is a record: {self.as_signed} stand as the key of the log signed them, "
                f"{spelled} were spelled again"
            )
        self.roots.finish()
        for found in self.runs.unexplained(self.events.cut):
            self._contradicted(found)

    def _skip_to(self, first: int) -> None:
        last = self.roots.fill(first)
        self.next, self._before = first, None
        self._leaf = "" if first == 0 else last.hex() if last else None

    def _check_record(self, seq: int, content: Mapping[str, Any]) -> None:
        version = content.get("v")
        if type(version) is not int or version < 1:
            raise ValueError(f"`{version}` is no version of a record")
        if version > VERSION:
            self.unknown_version = self.unknown_version or (seq, version)
        else:
            from_json(content)
        if content.get("log") != self._log_id:
            self.log.fail(seq, f"it belongs to log `{content.get('log')}`")
        number = content.get("seq")
        if number != seq or type(number) is not int:
            self.order.fail(seq, f"found #{number}")
        self._check_link(seq, content.get("prev"), in_order=number == seq)
        if version == VERSION:
            self._follow(seq, content)

    def _follow(self, seq: int, content: Mapping[str, Any]) -> None:
        body = content["body"]
        self.moments.follow(seq, (content["time"],))
        self.kept.follow(seq, content.get("kept") or {}, self._state_of)
        if content["kind"] == "log":
            self._sealed = body.get("event") == SEALED
            self.events.follow(seq, body)
        elif (fact := facts.of(msgspec.convert(content, Fields))) is not None:
            about = {**content, "seq": seq} if fact.what == facts.APPROVAL else fact.about
            self._contradicted(self.runs.follow(fact._replace(seq=seq, about=about)))

    def _check_link(self, seq: int, prev: object, *, in_order: bool) -> None:
        """Compare `prev` with the record before, and blame the one of the two that was edited."""
        if self._leaf is None or prev == self._leaf:
            return
        why = "its hash is not the one that the next record holds"
        if not in_order or self._before is None:
            self.chain.fail(seq, "it does not hold the hash of the record before")
        elif self._broken_at == self._before and self.chain.count == 1:
            self.chain.blame(self._before, why)  # it fits neither of its neighbours
        else:
            self.chain.fail(self._before, why)
        self._broken_at = seq

    def _contradicted(self, found: Contradiction | None) -> None:
        if found is not None:
            self.contradictions.fail(found.seq, f"run `{found.run_id}`: {found.why}")
