"""The pure stages of a run: what a request comes to under one policy, with what is on offer.

Rules this module keeps:

- normalize → screen → apply rules → decide → select → explain, each from the values before it;
- nothing here looks at a clock, reads a policy or attacks a backend: all of that comes in as arguments (a
  path is made canonical, which looks at links);
- whoever asks what would happen, or would have happened, calls the very function that decides what happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from licet import plan as plans
from licet.applying import applied_to, canonical, facts_of
from licet.calling import check_tools
from licet.decide import Ballot, Decision, Rehearsal, decide, tightened, verdict_of
from licet.environments.python import Python
from licet.normalize import Digest, lowered, normalize
from licet.plan import ExecutionPlan
from licet.policy import PolicyDocument, PolicyStack
from licet.policy.facts import Facts
from licet.report import Explanation, explain
from licet.request import CodeNeeds, ExecutionRequest, NormalizedRequest, ScreenReport, Violation
from licet.rules import Rules
from licet.screen import screen
from licet.select import Chosen, Offer, Selection, select

Deciders = Callable[[NormalizedRequest, Decision], Sequence[Ballot]]
Clock = Callable[[], int]
T = TypeVar("T")


class Shared:
    """What runs of one request have in common beside its stages: made by whoever needs it first."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[object, Any] = {}

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` gave for `key` when it was first asked for; the same for every run."""
        made: T = self._made.get(key) or self._made.setdefault(key, make())
        return made


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request after its pure stages, with what they were made under.

    `stack` is the policy of the whole run, to its last tool call, with the rules in it that apply; `facts` is
    what their conditions read, `report` what the screen saw. `took_ns` is how long each stage took, by
    the kind of its record, where there was a clock to tell. `shared` is that of all runs that differ in
    instant and time alone. `python` is what the policy's word on it comes to on this host.
    """

    stack: PolicyStack
    facts: Facts
    request: NormalizedRequest
    decision: Decision
    needs: CodeNeeds
    selection: Selection
    explanation: Explanation
    syntax_error: Violation | None
    report: ScreenReport
    took_ns: Mapping[str, int] = field(default_factory=dict)
    shared: Shared = field(default_factory=Shared, compare=False, repr=False)
    python: Python | None = None


def prepare(
    asked: ExecutionRequest,
    stack: PolicyStack,
    offers: Sequence[Offer],
    *,
    at: datetime,
    directory: str,
    host_environment: Mapping[str, str],
    digest: Digest,
    python: Python | None = None,
    deciders: Deciders | None = None,
    clock: Clock | None = None,
) -> Prepared:
    """Decide on `asked` under `stack` at the instant `at` (aware, in UTC), and select among `offers`.

    `directory`, `host_environment` and `digest` are those of `normalize`; `python` is what the stack's
    word on it comes to on this host; `deciders` asks every other one; `clock` (in nanoseconds) measures the
    stages.

    Raises:
        InvalidRequest: the request can't be understood, or brings other tools than the policy declares.
        InvalidPolicy: a rule reads arguments that one of its tools does not have.
    """
    began = clock() if clock else 0
    request = normalize(asked, stack, directory=directory, host_environment=host_environment, digest=digest)
    if request.tools:
        check_tools(request.tools, stack)
    seen = canonical(screen(request.code, denied_modules=stack.denied_modules), request)
    normalized = clock() if clock else 0
    prepared = decide_on(
        request, seen, stack, offers, at=at, digest=digest, python=python, deciders=deciders, clock=clock
    )
    return (
        replace(prepared, took_ns={"request": normalized - began, **prepared.took_ns}) if clock else prepared
    )


def decide_on(
    request: NormalizedRequest,
    seen: ScreenReport,
    stack: PolicyStack,
    offers: Sequence[Offer],
    *,
    at: datetime,
    digest: Digest,
    python: Python | None = None,
    deciders: Deciders | None = None,
    clock: Clock | None = None,
) -> Prepared:
    """`prepare`, from where the request is normalised and its code screened."""
    began = clock() if clock else 0
    facts = facts_of(request, seen, at, stack)
    applied = applied_to(stack, facts)
    rehearsed = [
        _rehearsed(bound, would_be, request, seen, facts, digest) for bound, would_be in stack.rehearsals
    ]
    stack = stack.applying(applied.rules)
    request = lowered(request, stack.limits, digest)
    decision = decide(request, stack, seen, applied)
    if rehearsed:
        decision = replace(decision, rehearsals=tuple(one.beside(decision) for one in rehearsed))
    if deciders is not None:
        decision = tightened(decision, deciders(request, decision))
    needs = seen.needs if seen.syntax_error is None else CodeNeeds()
    decided = clock() if clock else 0
    selection = select(request, decision, needs, stack, offers, python)
    took = {"decision": decided - began, "selection": clock() - decided} if clock else {}
    return Prepared(
        stack=stack,
        facts=facts,
        request=request,
        decision=decision,
        needs=needs,
        selection=selection,
        explanation=explain(decision, selection, stack, seen.syntax_error, at=at),
        syntax_error=seen.syntax_error,
        report=seen,
        took_ns=took,
        python=python,
    )


def _rehearsed(
    bound: PolicyDocument,
    stack: PolicyStack,
    request: NormalizedRequest,
    seen: ScreenReport,
    facts: Facts,
    digest: Digest,
) -> _Rehearsed:
    """What would be decided if the rehearsed `bound`, which is in `stack` here, counted."""
    if bound.screen.modules.deny:
        seen = screen(request.code, denied_modules=stack.denied_modules)
    applied = applied_to(stack, facts)
    stack = stack.applying(applied.rules)
    request = lowered(request, stack.limits, digest)
    return _Rehearsed(bound, Rules.of(stack, request.workdir), decide(request, stack, seen, applied))


@dataclass(frozen=True, slots=True)
class _Rehearsed:
    bound: PolicyDocument
    rules: Rules
    decision: Decision

    def beside(self, real: Decision) -> Rehearsal:
        """In what it differs from the decision that counts."""
        answers = {verdict.intent: verdict for verdict in self.decision.verdicts}
        would_be = (answers.get(v.intent) or verdict_of(v.intent, self.rules) for v in real.verdicts)
        differing = (
            new for new, old in zip(would_be, real.verdicts, strict=True) if new.effect != old.effect
        )
        return Rehearsal.of(self.bound, self.decision, differing)


def choose_again(prepared: Prepared, offers: Sequence[Offer]) -> Prepared:
    """The same request and decision, with the selection made from other `offers`."""
    selection = select(
        prepared.request, prepared.decision, prepared.needs, prepared.stack, offers, prepared.python
    )
    explanation = explain(
        prepared.decision, selection, prepared.stack, prepared.syntax_error, at=prepared.facts.at
    )
    return replace(prepared, selection=selection, explanation=explanation, shared=Shared())


def plan_of(prepared: Prepared, chosen: Chosen, run_id: str) -> ExecutionPlan:
    """The sealed plan of a run that may go on."""
    request = prepared.request
    assert (prepared.python is None) == (prepared.stack.python is None)
    return plans.seal(
        ExecutionPlan(
            run_id=run_id,
            backend=chosen.descriptor.name,
            code=request.code,
            inputs=request.inputs,
            stdin=request.stdin,
            environment=request.environment,
            workdir=request.workdir,
            limits=request.limits,
            opened=chosen.opened,
            files=request.files,
            contract=chosen.descriptor.sandbox_enforcement_contract,
            plan_digest=chosen.plan_digest,
            policy_class=prepared.stack.digest,
            tenant=request.subject.tenant,
            warm=prepared.stack.warm,
            clock=prepared.stack.clock,
            python=prepared.python,
            async_tools=frozenset(name for name, tool in request.tools.items() if tool.is_async),
        )
    )
