"""The decision: permission for every intent, from policy alone.

Rules this module keeps:

- an intent is denied, asked about or allowed by what the documents say of it, and by nothing else;
- violations of form always deny; violations that the screen saw deny under `screen: {mode: refuse}`;
- nothing here does IO: findings of the screen come in as an argument;
- equal decisions are one decision, so that what follows from it alone can be kept with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

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
    # entries that name the working directory are resolved on disk, which can change between two requests
    judge = _judge.__wrapped__ if stack.names_workdir else _judge
    judged = judge(stack, request.workdir, request.intents, inferred, tuple(request.tools))
    required = tuple(request.requirements.items())
    return _decision(stack, judged, required, request.violations, report.violations)


@dataclass(frozen=True, slots=True)
class _Judged:
    effect: Effect
    verdicts: tuple[Verdict, ...]
    opened: Opened
    wanted: frozenset[Action]


@lru_cache(maxsize=256)
def _decision(
    stack: PolicyStack,
    judged: _Judged,
    required: tuple[tuple[Control, Level], ...],
    of_form: tuple[Violation, ...],
    seen: tuple[Violation, ...],
) -> Decision:
    violations = (*of_form, *seen)
    refusals = violations if stack.screen_mode == "refuse" else of_form
    return Decision(
        effect="deny" if refusals else judged.effect,
        verdicts=judged.verdicts,
        violations=violations,
        refusals=refusals,
        opened=judged.opened,
        wanted=judged.wanted,
        required=_strongest(stack.requirements, dict(required)),
        evidence=stack.evidence,
        policy_digest=stack.digest,
    )


@lru_cache(maxsize=256)
def _judge(
    stack: PolicyStack,
    workdir: str,
    declared: tuple[Intent, ...] | None,
    inferred: tuple[Intent, ...],
    tools: tuple[str, ...],
) -> _Judged:
    """Answer for every intent, and say what that opens; runs of one shape share the answer."""
    rules = Rules.of(stack, workdir)
    verdicts = [_verdict(intent, rules.vote(intent)) for intent in (RUN, *(declared or ()))]
    verdicts += [_verdict(intent, _vote_on_inferred(rules, intent, declared)) for intent in inferred]
    permitted = [verdict.intent for verdict in verdicts if verdict.effect != "deny"]
    openings = opened(rules, permitted, everything=declared is None, tools=tools)
    if declared is None:
        verdicts += _granted(rules, openings, permitted)
    wanted = frozenset(intent.action for intent in permitted if intent.action != "run")
    return _Judged(_worst(verdicts), tuple(verdicts), openings, wanted)


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
