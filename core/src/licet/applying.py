"""Which rules of a policy apply to a request, and to one call of a tool.

Rules this module keeps:

- a rule applies unless it is certain that it doesn't: what is unknown or fails counts as a hit, and the
  trace says so;
- a rule that reads the arguments of a call waits for one: before that it is pending, neither hit nor missed,
  unless the rest of its condition is certainly false already;
- nothing here does IO: the instant and what the screen saw come in as arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from licet.policy import PolicyStack
from licet.policy.facts import Facts, RequestFacts
from licet.policy.patterns import canonical_target
from licet.policy.rule import Rule
from licet.policy.truth import Truth
from licet.request import Intent, NormalizedRequest, ScreenReport

if TYPE_CHECKING:
    from licet.policy.conditions import LeafAnswer


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that applies, or that nobody can rule out: then `truth` is unknown, and an answer says why."""

    rule: Rule
    truth: Truth
    answers: tuple[LeafAnswer, ...]


@dataclass(frozen=True, slots=True)
class Applied:
    """The rules that apply, and those that wait for the arguments of a call."""

    hits: tuple[Hit, ...] = ()
    pending: tuple[Rule, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that apply."""
        return tuple(hit.rule for hit in self.hits)


NONE_APPLIED = Applied()


def facts_of(request: NormalizedRequest, report: ScreenReport, at: datetime, stack: PolicyStack) -> Facts:
    """What conditions of `stack` may read of a request that is decided at the instant `at`."""
    return Facts(
        subject=request.subject,
        at=at,
        request=RequestFacts(
            code_bytes=request.code_bytes,
            workdir=request.workdir,
            inputs=tuple(sorted(request.inputs)),
            tools=tuple(sorted(request.tools)),
            metadata=request.metadata,
            limits=request.limits,
            intents=(*(request.intents or ()), *canonical(report, request).intents),
            narrows=request.intents is not None,
            complete=request.intents is not None or not stack.opens_unasked,
            modules=tuple(sorted(report.needs.modules)),
        ),
    )


def applied_to(stack: PolicyStack, facts: Facts) -> Applied:
    """The rules of `stack` that apply to a request, or to a call where `facts` holds one."""
    if not stack.has_rules:
        return NONE_APPLIED
    hits, pending = [], []
    for rule in stack.rulebook.candidates(facts):
        truth = rule.condition.truth(facts)
        if truth is Truth.false:
            continue
        if _waits(rule, facts):
            pending.append(rule)
        else:
            hits.append(Hit(rule, truth, rule.condition.trace(facts)))
    return Applied(tuple(hits), tuple(pending))


def traced(stack: PolicyStack, facts: Facts) -> Iterator[tuple[Rule, Truth | None, tuple[LeafAnswer, ...]]]:
    """Every rule, hit or missed, with the answer of each leaf; None as truth for one that is pending."""
    for rule in stack.rulebook.rules:
        truth = rule.condition.truth(facts)
        if truth is not Truth.false and _waits(rule, facts):
            yield rule, None, ()
        else:
            yield rule, truth, rule.condition.trace(facts)


def _waits(rule: Rule, facts: Facts) -> bool:
    return facts.call is None and rule.condition.reads_call


def canonical(report: ScreenReport, request: NormalizedRequest) -> ScreenReport:
    """What the screen saw, its targets in canonical form; one that has none counts as unknown.

    Where code reads a file of the request by the name that it has for the code, the file itself is meant.
    """
    if report.canonical or not report.intents:
        return report
    return replace(report, intents=tuple(_canonical(report.intents, request)), canonical=True)


def _canonical(intents: Iterable[Intent], request: NormalizedRequest) -> Iterator[Intent]:
    files = {mount.path: mount.host for mount in request.files}
    for intent in intents:
        try:
            target = (
                canonical_target(intent.action, intent.target or "", base=request.workdir)
                if intent.target
                else None
            )
            if target in files and intent.action == "read":
                target = files[target]
        except ValueError:
            target = None
        yield replace(intent, target=target, source="inferred")
