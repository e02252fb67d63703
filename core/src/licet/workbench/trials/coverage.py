"""What the cases of a policy have shown of it, and why the rest was not shown.

Rules this module keeps:

- each outcome stands by itself: a rule applies and does not, a leaf is true and is false, an entry decides;
- what can't come about is no outcome: a rule without conditions always applies;
- an unknown is neither true nor false: it makes a rule apply, and shows nothing of its leaf;
- what is not covered comes with the reason, from what the cases did;
- what other files say, by `extends` or as bounds, is for their own tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from licet.errors import Position
from licet.policy import Pattern, PolicyStack
from licet.policy.conditions import Leaf
from licet.policy.rule import Rule
from licet.policy.truth import Truth
from licet.rules import answer_of_root, by_entry
from licet.workbench.trials.asking import Answer

Outcome = Literal["hit", "miss", "true", "false", "decided"]


@dataclass(frozen=True, slots=True)
class Shown:
    """One outcome that cases can show: `what` in `where` was or was not `outcome`; `why` not.

    `what` is a rule's id, the text of a leaf, or an entry; `rule` names the rule that a leaf or entry is of.
    """

    where: Position
    what: str
    outcome: Outcome
    covered: bool
    why: str = ""
    rule: str | None = None

    def __str__(self) -> str:
        of = f" of `{self.rule}`" if self.rule is not None else ""
        return f"`{self.what}`{of} {_NEVER[self.outcome]}"


_NEVER: dict[Outcome, str] = {
    "hit": "never applied",
    "miss": "always applied",
    "true": "was never true",
    "false": "was never false",
    "decided": "never decided",
}


@dataclass(frozen=True, slots=True)
class Coverage:
    """All outcomes of one policy."""

    outcomes: tuple[Shown, ...]

    @property
    def covered(self) -> int:
        """How many were shown."""
        return sum(one.covered for one in self.outcomes)

    @property
    def possible(self) -> int:
        """How many there are."""
        return len(self.outcomes)

    @property
    def percent(self) -> float:
        """Their share, rounded down to a tenth; of nothing, all is shown."""
        return 1000 * self.covered // self.possible / 10 if self.possible else 100.0

    @property
    def missing(self) -> tuple[Shown, ...]:
        """Those that were not shown."""
        return tuple(one for one in self.outcomes if not one.covered)

    def reaches(self, percent: float) -> bool:
        """Whether at least `percent` were shown, not rounded."""
        return 100 * self.covered >= percent * self.possible


class Ledger:
    """Keeps what the cases of one policy show, case by case."""

    def __init__(self, stack: PolicyStack) -> None:
        documents = (stack.root, *stack.rehearsed)
        self._rules = [
            _RuleLedger(rule) for one in documents for rule in one.rules if rule.where.file == one.file
        ]
        own = (entry for entry in stack.root.entries if entry.where.file == stack.root.file)
        self._entries = [_EntryLedger(entry) for entry in own]
        self._open = list(self._rules)

    def see(self, answer: Answer) -> None:
        """Add what one case shows."""
        for rule in self._open:
            rule.see(answer)
        self._open = [rule for rule in self._open if not rule.complete]
        for entry in self._entries:
            if not entry.decided:
                entry.see(answer)

    def coverage(self) -> Coverage:
        """What was shown so far."""
        parts: Iterable[_RuleLedger | _EntryLedger] = (*self._rules, *self._entries)
        return Coverage(tuple(shown for part in parts for shown in part.outcomes()))


@dataclass(slots=True)
class _RuleLedger:
    rule: Rule
    hits: int = 0
    unknown: int = 0
    pending: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    leaves: list[Counter[Truth]] = field(default_factory=list)
    unsure: dict[int, str] = field(default_factory=dict)
    entries: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.leaves = [Counter() for _ in self.rule.condition.leaves]

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be shown."""
        return all(covered for _, covered in self._covered())

    def _covered(self) -> Iterator[tuple[str, bool]]:
        yield "hit", self.hits > 0
        if self.leaves:
            yield "miss", self.reasons.total() > 0
        for counted in self.leaves:
            yield "true", counted[Truth.true] > 0
            yield "false", counted[Truth.false] > 0
        yield "decided", len(self.entries) == len(self.rule.entries)

    def see(self, answer: Answer) -> None:
        facts, condition = answer.facts, self.rule.condition
        if condition.reads_call:
            if facts.call is None:
                self.pending += 1
                return
            if not self.rule.matches_tool(facts.call.tool):
                return
        truths = [test.truth(facts) for test in condition.tests]
        for index, truth in enumerate(truths):
            self.leaves[index][truth] += 1
            if truth is Truth.unknown and index not in self.unsure:
                self.unsure[index] = condition.tests[index].answer(facts)[1]
        if (reason := _what_failed(condition.leaves, truths)) is not None:
            self.reasons[reason] += 1
            return
        self.hits += 1
        if len(self.entries) == len(self.rule.entries):
            return
        bound = [entry.bind(facts.request.workdir) for entry in self.rule.entries]
        self.entries |= {
            number
            for number, entry in enumerate(bound)
            for verdict in answer.verdicts
            if entry.action == verdict.intent.action and entry.covers(verdict.intent.target)
        }

    def outcomes(self) -> Iterator[Shown]:
        rule = self.rule
        yield Shown(rule.where, rule.id, "hit", self.hits > 0, self._why_no_hit())
        if self.leaves:
            yield Shown(rule.where, rule.id, "miss", bool(self.reasons), self._why_no_miss())
        for leaf, counted in zip(rule.condition.leaves, self.leaves, strict=True):
            wanted: tuple[tuple[Outcome, Truth, Truth], ...] = (
                ("true", Truth.true, Truth.false),
                ("false", Truth.false, Truth.true),
            )
            for outcome, truth, opposite in wanted:
                why = "" if counted[truth] else self._why_never(leaf, counted, opposite)
                yield Shown(leaf.where, leaf.text, outcome, counted[truth] > 0, why, rule.id)
        for number, entry in enumerate(rule.entries):
            why = "the rule never applied" if not self.hits else "no case where it applies asks for that"
            what = f"{entry.effect}: {entry.text}"
            yield Shown(entry.where, what, "decided", number in self.entries, why, rule.id)

    def _why_no_hit(self) -> str:
        if self.reasons:
            reason, times = self.reasons.most_common(1)[0]
            return f"in {_times(times, self.reasons.total())} {reason}"
        return self._unreached()

    def _why_no_miss(self) -> str:
        if not self.hits:
            return self._unreached()
        return f"it applied in {_times(self.hits, self.hits)}"

    def _why_never(self, leaf: Leaf, counted: Counter[Truth], opposite: Truth) -> str:
        total = counted.total()
        if not total:
            return self._unreached()
        if not counted[opposite]:
            return f"it is not known in {_times(total, total)}: {self.unsure[leaf.index]}"
        unknown = f", and not known in {counted[Truth.unknown]}" if counted[Truth.unknown] else ""
        return f"it is {opposite} in {_times(counted[opposite], total)}{unknown}"

    def _unreached(self) -> str:
        if not self.rule.condition.reads_call:
            return "there is no case"
        tools = " or ".join(f"`{entry.target}`" for entry in self.rule.entries if entry.action == "tool")
        return f"no case calls {tools}, and before a call it is pending"


def _what_failed(leaves: Sequence[Leaf], truths: Sequence[Truth]) -> str | None:
    """Why a rule certainly does not apply; None if it does, or may."""
    exceptions = []
    for leaf, truth in zip(leaves, truths, strict=True):
        if leaf.clause == "unless":
            exceptions.append((leaf.text, truth))
        elif truth is Truth.false:
            return f"`{leaf.text}` is false"
    if exceptions and all(truth is Truth.true for _, truth in exceptions):
        return f"its `unless` holds: {' and '.join(f'`{text}`' for text, _ in exceptions)}"
    return None


def _times(part: int, total: int) -> str:
    if part < total:
        return f"{part} of {total} cases"
    return "the only case" if total == 1 else f"all {total} cases"


@dataclass(slots=True)
class _EntryLedger:
    """An entry decides where its document, by itself, answers with it: rules and bounds may still tighten."""

    entry: Pattern
    decided: bool = False
    stronger: str = ""
    asked: int = 0

    def see(self, answer: Answer) -> None:
        workdir = answer.facts.request.workdir
        bound, root = self.entry.bind(workdir), answer.prepared.stack.root
        for verdict in answer.verdicts:
            intent = verdict.intent
            if intent.action != bound.action or not bound.covers(intent.target):
                continue
            vote = answer_of_root(root, intent, workdir)
            if by_entry(self.entry) in vote.by:
                self.decided = True
            else:
                self.asked += 1
                self.stronger = " and ".join(f"`{by.rule}` ({by})" for by in vote.by)

    def outcomes(self) -> Iterator[Shown]:
        why = "no case asks for anything that it covers"
        if self.asked:
            why = f"wherever it is asked for, {self.stronger} decides"
        what = f"{self.entry.effect}: {self.entry.text}"
        yield Shown(self.entry.where, what, "decided", self.decided, why)
