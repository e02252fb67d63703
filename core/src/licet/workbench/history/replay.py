"""Recorded requests and calls decided again, under a policy that is given.

Rules this module keeps:

- a request is decided by `decide_on`, a call by `decide_call`, like every other;
- votes of other deciders are taken from the record: they saw code that nobody has any more;
- what a rule makes of arguments that no record holds is unknown: both answers are tried, and where they
  differ the call depends on its arguments;
- requests that differ in nothing that decides are decided once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

import orjson

from licet.applying import Applied, Hit, applied_to
from licet.decide import Decision, decide_call
from licet.digests import no_digest
from licet.errors import InvalidPolicy
from licet.output import bounded
from licet.policy import PolicyStack
from licet.policy.facts import CallFacts
from licet.policy.leaves import KeyTest
from licet.policy.truth import Truth
from licet.prepare import Prepared, decide_on
from licet.select import Candidate, Offer, Selection
from licet.workbench.history.bodies import mappings
from licet.workbench.history.recorded import (
    NotReplayable,
    RecordedAccess,
    RecordedCall,
    RecordedRun,
    intent_of,
    restore,
)

Outcome = Literal["allowed", "asks", "unrunnable", "denied"]
_MOST_KEPT = 1024
_NO_SHAPE = ("at", "digests", "code_bytes", "stdin_bytes")


def outcome_of(effect: str, backend: str | None) -> Outcome:
    """How a decision and its selection end before anybody is asked; unrunnable comes before asking."""
    if effect == "deny":
        return "denied"
    if backend is None:
        return "unrunnable"
    return "asks" if effect == "ask" else "allowed"


def nearest(run: RecordedRun, selection: Selection) -> Candidate | None:
    """The backend that ran it, or else the one that lacks least; None if there is none at all."""
    return min(
        selection.candidates, key=lambda one: (one.name != run.backend, len(one.blockers)), default=None
    )


def is_opened(access: RecordedAccess, prepared: Prepared) -> bool | None:
    """Whether the sandbox that `prepared` chose would open an access; None if that can't be said."""
    chosen, intent = prepared.selection.chosen, access.intent
    if chosen is None or intent is None or intent.target is None:
        return None
    return chosen.opened.opens(intent.action, intent.target)


@dataclass(frozen=True, slots=True)
class CallAgain:
    """A call decided twice: as if no rule that reads its arguments applied, and as if all of them did."""

    least: Decision
    most: Decision
    rules: tuple[str, ...]

    @property
    def certain(self) -> bool:
        """Whether the arguments change nothing."""
        return self.least.effect == self.most.effect


class Replayer:
    """Decides recorded runs under `stack`, with what `offers` can run; looks at no clock and no log.

    With `learning` false, a run that learned is decided as one that does not.
    """

    def __init__(self, stack: PolicyStack, offers: Sequence[Offer], *, learning: bool = True) -> None:
        self.stack = stack
        self._learning = learning
        self._offers = tuple(offers)
        self._known: OrderedDict[bytes, Prepared | NotReplayable] = OrderedDict()

    def request(self, run: RecordedRun) -> Prepared:
        """The request of `run`, decided again.

        Raises:
            NotReplayable: the record lacks something that a decision needs.
        """
        shape = self.shape(run)
        if (found := self._known.get(shape)) is None:
            found = self._known[shape] = self._decide(run)
            if len(self._known) > _MOST_KEPT:
                self._known.popitem(last=False)
        if isinstance(found, NotReplayable):
            raise found
        return found

    def call(self, prepared: Prepared, call: RecordedCall) -> CallAgain:
        """One call of the run `prepared`, decided again at the time when it was made.

        Raises:
            NotReplayable: its record can't be understood.
        """
        try:
            at = datetime.fromisoformat(call.at)
            touches = tuple(replace(intent_of(act, "declared"), when="call") for act in call.touches)
        except ValueError:
            raise NotReplayable("its record can't be understood") from None
        facts = replace(prepared.facts, at=at)
        plain = prepared.stack.loaded or prepared.stack
        known = applied_to(plain, facts)
        open_ones = tuple(
            Hit(rule, Truth.unknown, ()) for rule in known.pending if rule.matches_tool(call.tool)
        )
        made = replace(facts, call=CallFacts(call.tool, {}))
        least = decide_call(made, prepared.stack, call.line, Applied(known.hits), touches)
        every = Applied((*known.hits, *open_ones))
        most = decide_call(made, prepared.stack, call.line, every, touches)
        return CallAgain(least, most, tuple(hit.rule.id for hit in open_ones))

    def shape(self, run: RecordedRun) -> bytes:
        """All of a record that can decide something here; equal for runs that are decided alike."""
        body, decision = run.request or {}, run.decision or {}
        left_out = () if self._reads_more else _NO_SHAPE
        content: dict[str, Any] = {key: value for key, value in body.items() if key not in left_out}
        if not self._reads_more:
            content["too_large"] = self._sizes(body)
        content["seen"] = [
            (one.get("intent"), one.get("line"))
            for one in mappings(decision.get("verdicts"))
            if one.get("source") == "inferred"
        ]
        content["violations"], content["ballots"] = decision.get("violations"), decision.get("ballots")
        return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)

    def _sizes(self, body: Mapping[str, Any]) -> list[Any]:
        """The sizes of a request, where they can pass a limit, and whether there is any input."""
        code, stdin = body.get("code_bytes"), body.get("stdin_bytes")
        lowest = self._lowest
        return [
            type(body.get("at")) is str,
            code if not isinstance(code, int) or code > lowest[0] else "small",
            stdin if not isinstance(stdin, int) or stdin > lowest[1] else bool(stdin),
        ]

    @cached_property
    def _lowest(self) -> tuple[int, int]:
        """The lowest limits of code and standard input that any rule could set."""
        every = [self.stack.limits, *(rule.limits for d in self._documents for rule in d.rules)]
        every += [document.limits for document in self._documents]
        code = min(one.code for one in every if one.code is not None)
        return code, min(one.stdin for one in every if one.stdin is not None)

    @cached_property
    def _reads_more(self) -> bool:
        """Whether any condition may read the time or a size."""
        tests = (t for d in self._documents for rule in d.rules for t in rule.condition.tests)
        return any(not isinstance(test, KeyTest) for test in tests)

    @property
    def _documents(self) -> tuple[Any, ...]:
        return (*self.stack.documents, *self.stack.rehearsed)

    def _decide(self, run: RecordedRun) -> Prepared | NotReplayable:
        if not self._learning and run.request is not None:
            run = replace(run, request={**run.request, "learn": False})
        try:
            restored = restore(run, self.stack)
        except NotReplayable as problem:
            return problem
        try:
            return decide_on(
                restored.request,
                restored.report,
                self.stack,
                self._offers,
                at=restored.at,
                digest=no_digest,
                deciders=(lambda request, decision: restored.ballots) if restored.ballots else None,
            )
        except (InvalidPolicy, ValueError) as problem:  # an entry, or a target, that means nothing here
            return NotReplayable(f"it can't be decided here: {bounded(str(problem), 200)}")
