"""What the records say about runs: that no effect was without its grant, and that each run has one end.

Rules this module keeps:

- memory holds the runs that have no result yet, and no others; so a second result is seen as one of a run
  that is not under way;
- runs that are whole inside a part of the log are judged where it is read, and only counted here;
- what records that are missing would explain is no contradiction: records that a `gap` counts, each once, and
  runs whose beginning was pruned, as the record of the pruning names them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from licet_audit.verification.facts import Fact


class Contradiction(NamedTuple):
    """Why a record contradicts those before it; `lack` if a record that is missing could explain it."""

    seq: int
    run_id: str
    why: str
    lack: bool


class _Run:
    """What is known of one run that has no result yet."""

    __slots__ = ("authorized", "decided", "denied_calls", "executing", "lacks")

    def __init__(self) -> None:
        self.decided: str | None = None
        self.authorized: bool | None = None
        self.executing = False
        self.lacks = False
        self.denied_calls: set[str] = set()

    def follow(self, fact: Fact) -> tuple[str, bool] | None:
        """Follow one record; say what it contradicts, and whether that may be for want of a record."""
        what = fact.what
        if what in ("allow", "ask", "deny"):
            self.decided = what
        elif what in ("authorized", "refused"):
            self.authorized = what == "authorized"
        elif what == "execute":
            found = self._grant()
            self.executing = True
            return found
        elif what in ("call", "denied_call"):
            if what == "denied_call":
                self.denied_calls.add(fact.about)
            return None if self.executing else ("it calls a tool before it is executed", True)
        elif what == "performed" and fact.about in self.denied_calls:
            return f"its tool call {fact.about} was denied, and performed", False
        elif what == "refusal" and self.executing:
            return "its result says that nothing was executed, but it was", False
        elif what == "result" and not self.executing:
            return "it has a result without an execution, or a second one", True
        return None

    def _grant(self) -> tuple[str, bool] | None:
        if self.decided == "deny":
            return "it was denied before", False
        if self.authorized is False:
            return "its authorization was refused before", False
        if self.decided == "allow" or self.authorized:
            return None
        return "nothing before it grants that", True


def condense(facts: Iterable[Fact]) -> tuple[list[Fact], int]:
    """Leave out the runs that begin and end here without a contradiction.

    Returns the facts of all others, and how many of those left out ended as unknown.
    """
    by_run: dict[str, list[Fact]] = {}
    for fact in facts:
        by_run.setdefault(fact.run_id, []).append(fact)
    unknown, left = 0, list[Fact]()
    for told in by_run.values():
        end = told[-1]
        if told[0].what == "request" and end.what in ("result", "refusal") and _is_sound(told):
            unknown += end.about is True
        else:
            left += told
    left.sort(key=lambda fact: fact.seq)
    return left, unknown


def _is_sound(told: list[Fact]) -> bool:
    run = _Run()
    return not any(fact.what in ("result", "refusal") for fact in told[:-1]) and not any(
        map(run.follow, told)
    )


@dataclass(slots=True)
class Runs:
    """Follows all runs of a log in order."""

    begins_late: bool = False
    """Whether the first records of the log are missing, rightly or not."""
    unknown: int = 0
    """Runs that ended as unknown."""
    explained: int = 0
    """Contradictions that records explain which a gap counts."""
    _open: dict[str, _Run] = field(default_factory=dict)
    _missing: int = 0
    _cut: dict[str, Contradiction] = field(default_factory=dict)

    def follow(self, fact: Fact) -> Contradiction | None:
        """Follow one record; return what it contradicts."""
        ends = fact.what in ("result", "refusal")
        run = self._open.get(fact.run_id)
        if run is None:
            if fact.what in ("performed", "refusal"):
                run = _Run()
                found: tuple[str, bool] | None = (
                    "it is not under way: it has a result already, or never began",
                    True,
                )
            else:
                run = self._open[fact.run_id] = _Run()
                found = run.follow(fact)
        else:
            found = run.follow(fact)
        if ends:
            self._open.pop(fact.run_id, None)
            self.unknown += fact.about is True
        if found is None:
            return None
        return self._weighed(Contradiction(fact.seq, fact.run_id, *found), run)

    def gap(self, missing: int) -> None:
        """Note that so many records are missing, and that the log says so."""
        self._missing += missing

    def unexplained(self, cut: Container[str]) -> list[Contradiction]:
        """Contradictions that only a missing beginning would explain, and that no pruning names."""
        return [found for run_id, found in self._cut.items() if run_id not in cut]

    @property
    def under_way(self) -> int:
        """How many runs were executed and have no result."""
        return sum(run.executing for run in self._open.values())

    def _weighed(self, found: Contradiction, run: _Run) -> Contradiction | None:
        if not found.lack:
            return found
        if run.lacks:
            return None  # told once
        run.lacks = True
        if self._missing:
            self._missing -= 1
            self.explained += 1
            return None
        if self.begins_late:
            self._cut.setdefault(found.run_id, found)
            return None
        return found
