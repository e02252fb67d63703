"""The decision: permission for every intent, from policy alone.

Rules this module keeps:

- an intent is denied, asked about or allowed by what the documents say of it, and by nothing else;
- violations of form always deny; violations that the screen saw deny under `screen: {mode: refuse}`;
- nothing here does IO: findings of the screen come in as an argument;
- runs of one shape share one decision, so that what follows from it alone can be kept with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from licet.contract import Control, Evidence, Level
from licet.opening import opened
from licet.plan import Opened
from licet.policy import PolicyStack
from licet.policy.patterns import Effect, canonical_target
from licet.request import RUN, Action, Intent, NormalizedRequest, ScreenReport, Violation
from licet.rules import LANGUAGE, SEVERITY, By, Rules, Vote, includes


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one intent."""

    intent: Intent
    effect: Effect
    by: tuple[By, ...]
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """Permission, and what follows from it.

    `effect` is about permission alone. `violations` is all that was found, `refusals` the part that
    denies. `opened` is what a sandbox may open at most, once the decision is allowed or approved. `wanted`
    are the actions that declared or inferred intents need a backend to be able to open.
    """

    effect: Effect
    verdicts: tuple[Verdict, ...]
    violations: tuple[Violation, ...]
    refusals: tuple[Violation, ...]
    opened: Opened
    wanted: frozenset[Action]
    required: Mapping[Control, Level]
    evidence: Evidence
    policy_digest: str


def decide(request: NormalizedRequest, stack: PolicyStack, report: ScreenReport) -> Decision:
    """Decide `request` under `stack`, with what the screen reported."""
    inferred = tuple(_inferred(report.intents, request.workdir))
    shape = _Shape(
        request.workdir,
        request.intents,
        inferred,
        tuple(request.tools),
        tuple(request.requirements.items()),
        request.violations,
        report.violations,
    )
    # entries that name the working directory are resolved on disk, which can change between two requests
    return (_decide.__wrapped__ if stack.names_workdir else _decide)(stack, shape)


class _Shape(NamedTuple):
    """All of a request and its code that a decision depends on."""

    workdir: str
    declared: tuple[Intent, ...] | None
    inferred: tuple[Intent, ...]
    tools: tuple[str, ...]
    required: tuple[tuple[Control, Level], ...]
    of_form: tuple[Violation, ...]
    seen: tuple[Violation, ...]


@lru_cache(maxsize=256)
def _decide(stack: PolicyStack, shape: _Shape) -> Decision:
    """Answer for every intent, and say what that opens."""
    rules, declared = Rules.of(stack, shape.workdir), shape.declared
    verdicts = [_verdict(intent, rules.vote(intent)) for intent in (RUN, *(declared or ()))]
    verdicts += [_verdict(intent, _vote_on_inferred(rules, intent, declared)) for intent in shape.inferred]
    permitted = [verdict.intent for verdict in verdicts if verdict.effect != "deny"]
    openings = opened(rules, permitted, everything=declared is None, tools=shape.tools)
    if declared is None:
        verdicts += _granted(rules, openings, permitted)
    violations = (*shape.of_form, *shape.seen)
    refusals = violations if stack.screen_mode == "refuse" else shape.of_form
    return Decision(
        effect="deny" if refusals else _worst(verdicts),
        verdicts=tuple(verdicts),
        violations=violations,
        refusals=refusals,
        opened=openings,
        wanted=frozenset(intent.action for intent in permitted if intent.action != "run"),
        required=_strongest(stack.requirements, dict(shape.required)),
        evidence=stack.evidence,
        policy_digest=stack.digest,
    )


def decide_call(name: str, stack: PolicyStack, workdir: str, line: int | None = None) -> Verdict:
    """Decide one tool call, at the moment when it happens."""
    intent = Intent("tool", name, "declared", line, "call")
    return _verdict(intent, Rules.of(stack, workdir).vote(intent))


def _worst(verdicts: Iterable[Verdict]) -> Effect:
    at_start = (verdict.effect for verdict in verdicts if verdict.intent.when == "start")
    return max(at_start, key=SEVERITY.__getitem__)


def _verdict(intent: Intent, vote: Vote) -> Verdict:
    if intent.target is None and vote.effect == "allow" and intent.action in ("read", "write", "network"):
        intent = replace(intent, when="access")
    return Verdict(intent, vote.effect, vote.by, vote.reason)


def _inferred(intents: Sequence[Intent], workdir: str) -> Iterable[Intent]:
    """Inferred intents in canonical form; a target that can't be made canonical counts as unknown."""
    for intent in intents:
        try:
            target = (
                canonical_target(intent.action, intent.target or "", base=workdir) if intent.target else None
            )
        except ValueError:
            target = None
        yield replace(intent, target=target, source="inferred")


def _vote_on_inferred(rules: Rules, intent: Intent, declared: Sequence[Intent] | None) -> Vote:
    if declared is None or any(includes(outer, intent) for outer in declared):
        return rules.vote(intent)
    by = (By(LANGUAGE, 0, "the request lists its intents"),)
    return Vote("deny", by, "not declared: the request lists its intents, and this is none of them")


def _granted(rules: Rules, openings: Opened, permitted: Sequence[Intent]) -> Iterable[Verdict]:
    """One verdict for each thing that policy opens to every run, so that cards and records show it."""
    spelled: list[tuple[Action, str | None]] = [
        *(("read", root) for root in openings.read),
        *(("write", root) for root in openings.write),
        *(("network", host) for host in openings.network),
        *((("shell", None),) if openings.shell else ()),
    ]
    named = {(intent.action, intent.target) for intent in permitted}
    for action, target in spelled:
        intent = Intent(action, target, "granted")
        vote = rules.vote(intent)
        if (action, target) not in named and vote.effect == "allow":
            yield _verdict(intent, vote)


def _strongest(policy: Mapping[Control, Level], request: Mapping[Control, Level]) -> Mapping[Control, Level]:
    asked = dict(policy)
    for control, level in request.items():
        asked[control] = max(level, asked.get(control, level), key=lambda item: item.rank)
    return asked
