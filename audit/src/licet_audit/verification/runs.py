"""What the records say about runs: that no effect was without its grant, and that each run has one end.

Rules this module keeps:

- memory holds the runs that have no result yet, and no others; so a second result is seen as one of a run
  that is not under way;
- runs that are whole inside a part of the log are judged where it is read, and only counted here;
- a denial or a refusal is final: nothing that a later record of the run says takes it back;
- what was asked about takes an approval that was spent on just that; a run that waits does nothing until a
  record says that it was resumed;
- what records that are missing would explain is no contradiction: records that a `gap` counts, each once, and
  runs whose beginning was pruned, as the record of the pruning names them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from licet.approvals.telling import OVER

from licet_audit.verification.approvals import Approvals, Told
from licet_audit.verification.facts import APPROVAL, Fact


class Contradiction(NamedTuple):
    """Why a record contradicts those before it; `lack` if a record that is missing could explain it."""

    seq: int
    run_id: str
    why: str
    lack: bool


class _Run:
    """What is known of one run that has no result yet."""

    __slots__ = (
        "asked_calls",
        "authorized",
        "calls",
        "decided",
        "denied_calls",
        "executing",
        "lacks",
        "over",
        "plan",
        "reached",
        "restarts",
        "spent",
        "waits",
    )

    def __init__(self) -> None:
        self.decided: str | None = None
        self.authorized: bool | None = None
        self.executing = False
        self.lacks = False
        self.waits = False
        self.over = False
        """Whether what it waits for is over, so that it never goes on."""
        self.restarts = False
        """Whether its execution may be recorded once more, since it was resumed."""
        self.plan: object = None
        self.spent: set[object] = set()
        """Digests that approvals were spent on, and that did not run yet."""
        self.reached: set[object] = set()
        """Digests of the connections that approvals were spent on, which later ones may repeat."""
        self.calls: set[str] = set()
        self.asked_calls: dict[str, object] = {}
        self.denied_calls: set[str] = set()

    def follow(self, fact: Fact) -> tuple[str, bool] | None:
        """Follow one record; say what it contradicts, and whether that may be for want of a record."""
        what = fact.what
        if what in ("allow", "ask", "deny"):
            self.decided = "deny" if self.decided == "deny" else what  # none is taken back
        elif what in ("authorized", "refused"):
            self.authorized = what == "authorized" and self.authorized is not False
        elif what == "execute":
            return self._execute(fact.about)
        elif what in ("call", "denied_call", "asked_call", "performed"):
            return self._call(what, fact.about)
        elif what == "access":
            return self._access(fact.about)
        elif what == "refusal" and self.executing:
            return "its result says that nothing was executed, but it was", False
        elif what == "result" and not self.executing:
            return "it has a result without an execution, or a second one", True
        return None

    def approve(self, told: Told, event: object) -> None:
        """Follow what a record of an approval says of this run."""
        if told.spent is not None:
            self.spent.add(told.spent)
        self.spent.discard(told.back)
        if event in ("waiting", "resumed"):
            self.waits, self.over = event == "waiting", False
            self.restarts = event == "resumed" and self.executing
        elif isinstance(event, str) and event in OVER:
            self.over = self.waits

    def _access(self, digest: object) -> tuple[str, bool] | None:
        if self.waits:
            return "it reaches something while it waits for an approval", True
        if not self.executing:
            return "it reaches something before it is executed", True
        if digest is None or digest in self.reached:
            return None
        if digest not in self.spent:
            return "it reaches something that had to be asked about, and no approval was spent on it", True
        self.spent.remove(digest)
        self.reached.add(digest)
        return None

    def _call(self, what: str, about: Any) -> tuple[str, bool] | None:
        if what == "performed":
            return self._performed(about)
        if what == "asked_call":
            number, digest = about or ("", None)
            self.asked_calls[number] = digest
        else:
            (self.calls if what == "call" else self.denied_calls).add(about)
        if self.waits:
            return "it calls a tool while it waits for an approval", True
        return None if self.executing else ("it calls a tool before it is executed", True)

    def _performed(self, number: str) -> tuple[str, bool] | None:
        if number in self.denied_calls:
            return f"its tool call {number} was denied, and performed", False
        if number in self.asked_calls:
            digest = self.asked_calls.pop(number)
            if digest not in self.spent:
                return f"its tool call {number} was performed, and no approval was spent on it", True
            self.spent.remove(digest)
        elif number in self.calls:
            self.calls.remove(number)
        else:
            return f"its tool call {number} was performed, and nothing before it says that it may", True
        return ("it calls a tool while it waits for an approval", True) if self.waits else None

    def _execute(self, plan: object) -> tuple[str, bool] | None:
        if self.restarts and plan == self.plan:
            self.restarts = False
            return None
        if self.executing:
            return "it was executed before", False
        self.executing, self.plan = True, plan
        return self._grant()

    def _grant(self) -> tuple[str, bool] | None:
        if self.decided == "deny":
            return "it was denied before", False
        if self.authorized is False:
            return "its authorization was refused before", False
        if self.waits:
            return "it waits for an approval", True
        if self.decided == "ask":
            if self.plan not in self.spent:
                return "it had to be asked about, and no approval was spent on it", True
            self.spent.remove(self.plan)
            return None
        if self.decided == "allow" or self.authorized:
            return None
        return "nothing before it grants that", True


class Condensed(NamedTuple):
    """Facts without the runs that are `whole`, of which so many ended as `unknown`.

    It stands for all of them as long as none of those runs is under way before.
    """

    facts: list[Fact]
    whole: list[str]
    unknown: int


def condense(facts: Iterable[Fact]) -> Condensed:
    """Leave out the runs that begin and end here without a contradiction."""
    by_run: dict[str, list[Fact]] = {}
    for fact in facts:
        by_run.setdefault(fact.run_id, []).append(fact)
    left, whole, unknown = list[Fact](), list[str](), 0
    for run_id, told in by_run.items():
        if _is_whole_and_sound(told):
            whole.append(run_id)
            unknown += told[-1].about is True
        else:
            left += told
    left.sort(key=lambda fact: fact.seq)
    return Condensed(left, whole, unknown)


def _is_whole_and_sound(told: list[Fact]) -> bool:
    if told[0].what != "request":
        return False
    words = tuple([fact.what for fact in told])
    if APPROVAL in words:
        return False  # other runs may use what this one was granted
    if "performed" not in words and not any(fact.what == "access" and fact.about for fact in told):
        # what they are about makes no difference
        return _is_sound(words)
    return _ends_once(words) and not any(map(_Run().follow, told))


@lru_cache(maxsize=1024)
def _is_sound(words: tuple[str, ...]) -> bool:
    run = _Run()
    return _ends_once(words) and not any(run.follow(Fact("", 0, word)) for word in words)


def _ends_once(words: tuple[str, ...]) -> bool:
    return [word in ("result", "refusal") for word in words] == [False] * (len(words) - 1) + [True]


@dataclass(slots=True)
class Runs:
    """Follows all runs of a log in order."""

    begins_late: bool = False
    """Whether the first records of the log are missing, rightly or not."""
    unknown: int = 0
    """Runs that ended as unknown."""
    explained: int = 0
    """Contradictions that records explain which a gap counts."""
    approvals: Approvals = field(default_factory=Approvals)
    """All that were asked for."""
    _open: dict[str, _Run] = field(default_factory=dict)
    _missing: int = 0
    _cut: dict[str, Contradiction] = field(default_factory=dict)

    def follow(self, fact: Fact) -> Contradiction | None:
        """Follow one record; return what it contradicts."""
        if fact.what == APPROVAL:
            return self._approval(fact)
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

    def knows_any(self, run_ids: Iterable[str]) -> bool:
        """Whether one of these runs is under way."""
        return not self._open.keys().isdisjoint(run_ids)

    def gap(self, missing: int) -> None:
        """Note that so many records are missing, and that the log says so."""
        self._missing += missing

    def unexplained(self, cut: Container[str]) -> list[Contradiction]:
        """What only the end of the log tells.

        That is approvals that were spent and nothing grants, and contradictions that only a missing beginning
        would explain, and that no pruning names.
        """
        lacking = [Contradiction(*one, lack=True) for one in self.approvals.lacking()]
        found = [*self._cut.values(), *(one for one in lacking if not self._explained())]
        return [one for one in found if one.run_id not in cut]

    @property
    def under_way(self) -> int:
        """How many runs were executed and have no result."""
        return sum(run.executing and not run.waits for run in self._open.values())

    @property
    def waiting(self) -> int:
        """How many runs wait for an approval."""
        return sum(run.waits and not run.over for run in self._open.values())

    def _approval(self, fact: Fact) -> Contradiction | None:
        told = self.approvals.follow(fact.about)
        run = self._open.get(fact.run_id)
        if run is not None:
            body = fact.about.get("body")
            run.approve(told, body.get("event") if isinstance(body, dict) else None)
        if told.why is None or (told.early and self.begins_late):
            return None
        found = Contradiction(fact.seq, fact.run_id, told.why, told.lack)
        return self._weighed(found, run or _Run())

    def _explained(self) -> bool:
        """Whether a record that a gap counts can explain one more contradiction."""
        if not self._missing:
            return False
        self._missing -= 1
        self.explained += 1
        return True

    def _weighed(self, found: Contradiction, run: _Run) -> Contradiction | None:
        if not found.lack:
            return found
        if run.lacks:
            return None  # told once
        run.lacks = True
        if self._explained():
            return None
        if self.begins_late:
            self._cut.setdefault(found.run_id, found)
            return None
        return found
