"""What a policy would have done to recorded runs: flips, approvals, and what no backend could run.

Rules this module keeps:

- the recorded answer is compared with the new one; nobody decides under the old policy again;
- one policy that answers otherwise than it did is no change but a difference of replay, and told apart;
- an approval is counted as many times as persons are needed; a day has 24 hours, and less than one counts
  as one;
- memory does not grow with the number of runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from licet.decide import Decision
from licet.policy import PolicyStack
from licet.policy.parts import Approval
from licet.prepare import Prepared
from licet.select import Offer, Selection
from licet.workbench.history.recorded import NotReplayable, RecordedAccess, RecordedCall, RecordedRun
from licet.workbench.history.replay import Outcome, Replayer, is_opened, nearest, outcome_of
from licet.workbench.history.tally import Tally

MOST_EXAMPLES = 3
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Example:
    """A run that shows a change."""

    log: str
    run_id: str


@dataclass(slots=True)
class Kind:
    """All changes of one kind: how many, for what reasons, for whom, and which runs show it."""

    count: int = 0
    reasons: Tally = field(default_factory=Tally)
    subjects: Tally = field(default_factory=Tally)
    tenants: Tally = field(default_factory=Tally)
    examples: list[Example] = field(default_factory=list)

    def add(self, run: RecordedRun, reasons: Iterable[str]) -> None:
        """Count one change of `run`."""
        self.count += 1
        for reason in dict.fromkeys(reasons):
            self.reasons.add(reason)
        self.subjects.add(_told(run.subject.get("id")))
        if (tenant := run.subject.get("tenant")) is not None:
            self.tenants.add(_told(tenant))
        example = Example(run.log, run.run_id)
        if len(self.examples) < MOST_EXAMPLES and example not in self.examples:
            self.examples.append(example)

    def as_json(self) -> dict[str, Any]:
        """By name; at most 20 reasons, subjects and tenants each."""
        return {
            "count": self.count,
            "reasons": self.reasons.as_json(20),
            "subjects": self.subjects.as_json(20),
            "tenants": self.tenants.as_json(20),
            "examples": [asdict(one) for one in self.examples],
        }


class Kinds(dict[str, Kind]):
    """Changes by their kind, such as `allowed → denied`."""

    def of(self, before: str, after: str) -> Kind:
        """The changes from one outcome to another."""
        return self.setdefault(f"{before} → {after}", Kind())

    @property
    def total(self) -> int:
        """How many changes there are."""
        return sum(kind.count for kind in self.values())


@dataclass(slots=True)
class Load:
    """Approvals that a policy asks for, by the groups that can give them: newly, and in all."""

    newly: Tally = field(default_factory=Tally)
    in_all: Tally = field(default_factory=Tally)

    def add(self, demands: Sequence[Approval], *, newly: bool) -> None:
        """Count what one run, or one call, has to have approved."""
        for demand in demands:
            group = " or ".join(demand.sources or ()) or "anybody"
            self.in_all.add(group, demand.count or 1)
            if newly:
                self.newly.add(group, demand.count or 1)


class Impact:
    """What `stack` changes, run by run, where `offers` are the backends of this host.

    `changes` are of requests, `calls` of single calls of tools, `accesses` of what a sandbox was asked to
    open while code ran. `on_arguments` counts calls whose answer depends on arguments, by rule. `differences`
    are answers that one and the same policy no longer gives. `not_replayed` says why runs could not be
    decided again, `screens` by which other versions of the screen the code was seen.
    """

    def __init__(self, stack: PolicyStack, offers: Sequence[Offer], screen: str) -> None:
        self.stack = stack
        self.runs = 0
        self.changes = Kinds()
        self.calls = Kinds()
        self.accesses = Kinds()
        self.differences = Kinds()
        self.load = Load()
        self.newly_asking = 0
        self.on_arguments = Tally()
        self.not_replayed = Tally()
        self.screens = Tally()
        self._replayer = Replayer(stack, offers)
        self._screen = screen
        self._first: str | None = None
        self._last: str | None = None

    def add(self, run: RecordedRun) -> None:
        """Decide one run again, and count in what that differs."""
        self.runs += 1
        self._first = min(self._first or run.time, run.time)
        self._last = max(self._last or run.time, run.time)
        try:
            prepared = self._replayer.request(run)
            before = _recorded_outcome(run)
        except NotReplayable as problem:
            self.not_replayed.add(str(problem))
            return
        if run.screen != self._screen:
            self.screens.add(_told(run.screen))
        self._compare(run, before, prepared)

    @property
    def replayed(self) -> int:
        """How many runs could be decided again."""
        return self.runs - self.not_replayed.total

    @property
    def changed(self) -> bool:
        """Whether the policy would have changed anything."""
        return bool(self.changes or self.calls or self.accesses or self.differences or self.on_arguments)

    @property
    def days(self) -> float:
        """The days that the runs cover, at least one."""
        if self._first is None or self._last is None:
            return 1.0
        try:
            covered = datetime.fromisoformat(self._last) - datetime.fromisoformat(self._first)
        except ValueError:
            return 1.0
        return max(covered / _DAY, 1.0)

    def as_json(self) -> dict[str, Any]:
        """By name; the form of `licet policy impact --json`."""
        approvals = {
            "runs": self.newly_asking,
            "newly": self.load.newly.total,
            "newly_per_day": round(self.load.newly.total / self.days, 2),
            "in_all_per_day": round(self.load.in_all.total / self.days, 2),
            "by_group": {
                group: {"newly": self.load.newly[group], "in_all": count}
                for group, count in self.load.in_all.top()
            },
        }
        return {
            "policy_digest": self.stack.digest,
            "runs": self.runs,
            "replayed": self.replayed,
            "not_replayed": self.not_replayed.as_json(),
            "first": self._first,
            "last": self._last,
            "days": round(self.days, 3),
            "changed": self.changed,
            **{
                name: {kind: found.as_json() for kind, found in kinds.items()}
                for name, kinds in (
                    ("changes", self.changes),
                    ("calls", self.calls),
                    ("accesses", self.accesses),
                    ("differences", self.differences),
                )
            },
            "approvals": approvals,
            "depends_on_arguments": self.on_arguments.as_json(),
            "other_screens": self.screens.as_json(),
        }

    def _compare(self, run: RecordedRun, before: Outcome, prepared: Prepared) -> None:
        decision, selection = prepared.decision, prepared.selection
        after = outcome_of(decision.effect, selection.backend)
        if before != after:
            self._kinds(run, self.changes).of(before, after).add(
                run, _reasons(run, after, decision, selection)
            )
        elif after == "asks" and _demands(run) != [str(demand) for demand in decision.demands]:
            asked = (f"needs {demand}" for demand in decision.demands)
            self._kinds(run, self.changes).of("asks", "asks others").add(run, asked)
        if after == "asks":
            newly = before != "asks"
            self.newly_asking += newly
            self.load.add(decision.demands, newly=newly)
        if after in ("allowed", "asks") and before in ("allowed", "asks"):
            for call in run.calls:
                self._compare_call(run, call, prepared)
            for access in run.accesses:
                self._compare_access(run, access, prepared)

    def _compare_call(self, run: RecordedRun, call: RecordedCall, prepared: Prepared) -> None:
        try:
            again = self._replayer.call(prepared, call)
        except NotReplayable as problem:
            self.not_replayed.add(f"a call: {problem}")
            return
        if not again.certain:
            for rule in again.rules:
                self.on_arguments.add(rule)
            return
        effect = again.most.effect
        if effect == "ask":
            self.load.add(again.most.demands, newly=call.effect != "ask")
        if effect != call.effect:
            before, after = f"call {_EFFECTS.get(call.effect, call.effect)}", _EFFECTS[effect]
            self._kinds(run, self.calls).of(before, after).add(run, _verdict_reasons(again.most))

    def _compare_access(self, run: RecordedRun, access: RecordedAccess, prepared: Prepared) -> None:
        after = is_opened(access, prepared)
        if after is None or after == access.allowed:
            return
        change = ("access denied", "allowed") if after else ("access allowed", "denied")
        self._kinds(run, self.accesses).of(*change).add(run, [f"{access.action} {access.target}"])

    def _kinds(self, run: RecordedRun, changes: Kinds) -> Kinds:
        """Where to count what is otherwise: one policy that differs from itself is no change."""
        return self.differences if run.policy_digest == self.stack.digest else changes


_EFFECTS: Mapping[str, str] = {"allow": "allowed", "ask": "asks", "deny": "denied"}


def _recorded_outcome(run: RecordedRun) -> Outcome:
    if run.effect is None or run.effect not in _EFFECTS:
        raise NotReplayable("its record can't be understood")
    if run.selection is None and run.effect != "deny":
        raise NotReplayable("it ended before a sandbox was chosen")
    return outcome_of(run.effect, run.backend)


def _demands(run: RecordedRun) -> list[str]:
    found = (run.decision or {}).get("demands")
    return found if isinstance(found, list) else []


def _reasons(run: RecordedRun, after: Outcome, decision: Decision, selection: Selection) -> Iterable[str]:
    """Why the new answer is what it is; for one that permits, what it was that did not."""
    if after == "unrunnable":
        yield from _blockers(run, selection)
    elif after == "allowed":
        yield from _past_reasons(run)
    else:
        yield from _verdict_reasons(decision)


def _blockers(run: RecordedRun, selection: Selection) -> Iterable[str]:
    """What the backend lacks that ran it; where none did, what the one lacks that comes nearest."""
    one = nearest(run, selection)
    if one is None:
        yield "no backend is installed and enabled"
    elif run.backend is not None and run.backend != one.name:
        yield f"{run.backend}: it is not enabled here"
    else:
        for blocker in one.blockers:
            yield f"{one.name}: {blocker.what}: asked {blocker.asked}, offered {blocker.offered}"


def _verdict_reasons(decision: Decision) -> Iterable[str]:
    for violation in decision.refusals:
        yield f"violation {violation.code}"
    worst = decision.effect
    for verdict in decision.verdicts:
        if verdict.effect == worst:
            yield from (f"{by} {by.rule}" for by in verdict.by)
            if not verdict.by:
                yield verdict.reason
    for ballot in decision.ballots:
        if ballot.effect == worst:
            yield f"decider {ballot.decider}"


def _past_reasons(run: RecordedRun) -> Iterable[str]:
    decision = run.decision or {}
    if run.effect == "allow":  # it was allowed before too, and nothing could run it
        yield "a backend qualifies now"
    for violation in decision.get("violations", ()):
        if violation.get("refused"):
            yield f"no more: violation {violation.get('code')}"
    for verdict in decision.get("verdicts", ()):
        if verdict.get("effect") == run.effect != "allow" and isinstance(by := verdict.get("by"), list):
            yield from (f"no more: {one}" for one in by)


def _told(value: object) -> str:
    return value if isinstance(value, str) else "(unsaid)"
