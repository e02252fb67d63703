"""The decision: permission for every intent, from policy alone.

Rules this module keeps:

- an intent is denied, asked about or allowed by what the documents say of it, and by nothing else;
- violations of form always deny; violations that the screen saw deny under `screen: {mode: refuse}`;
- rules tighten: those that apply come in with the stack, and votes of other deciders are only ever added;
- nothing here does IO: findings of the screen and the votes of deciders come in as arguments;
- a run that learns is denied nothing by the root's silence: what nobody allows stays closed, and is told;
- equal decisions are one decision, so that what follows from it alone can be kept with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from licet.applying import NONE_APPLIED, Applied, Hit, applied_to, canonical
from licet.contract import Control, Evidence, Level, strongest
from licet.opening import opened
from licet.plan import Opened
from licet.policy import PolicyDocument, PolicyStack
from licet.policy.facts import CallFacts, Facts
from licet.policy.parts import DEFAULT_APPROVAL, Approval
from licet.policy.patterns import Effect
from licet.policy.rule import Rule
from licet.request import RUN, Action, Intent, NormalizedRequest, ScreenReport, Violation
from licet.rules import LANGUAGE, SEVERITY, By, Rules, Vote, includes


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one intent; `demands` are the approvals that an intent needs which is asked about.

    `omitted` says that only the silence of the root denies it.
    """

    intent: Intent
    effect: Effect
    by: tuple[By, ...]
    reason: str
    demands: tuple[Approval, ...] = ()
    omitted: bool = False


@dataclass(frozen=True, slots=True)
class Ballot:
    """What another decider says of a request: `decider` and its `policy_digest` name who, and under what.

    `effect` None abstains. There is no way to say `allow`: a ballot only tightens.
    """

    decider: str
    effect: Literal["ask", "deny"] | None
    reason: str
    policy_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a bound with `mode: dry_run` would have decided; `verdicts` are those that would differ."""

    document: str
    effect: Effect
    verdicts: tuple[Verdict, ...]
    hits: tuple[Hit, ...]

    @classmethod
    def of(cls, bound: PolicyDocument, would_be: Decision, differing: Iterable[Verdict]) -> Rehearsal:
        """What `bound` would have made of it: a decision, and of its hits the bound's own."""
        own = frozenset(bound.rules)
        hits = tuple(hit for hit in would_be.hits if hit.rule in own)
        return cls(bound.file, would_be.effect, tuple(differing), hits)


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """Permission, and what follows from it.

    `effect` is about permission alone. `violations` is all that was found, `refusals` the part that
    denies. `opened` is what a sandbox may open at most, once the decision is allowed or approved. `wanted`
    are the actions that declared or inferred intents need a backend to be able to open. `hits` are the rules
    that apply, `pending` those that wait for the arguments of a call, `demands` all approvals that are needed
    if `effect` is ask; `besides` are those that rules add to whatever asks. `rehearsals` and `ballots` tell
    what documents that only rehearse, and other deciders said; the ballots count, the rehearsals don't.
    `call` is what is decided, if that is one call of a tool; then the first verdict is about the call, and
    further ones are objections to what the tool touches, or to the run going on. `learn` says that what
    nobody allows was left closed instead of denied.
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
    hits: tuple[Hit, ...] = ()
    pending: tuple[Rule, ...] = ()
    demands: tuple[Approval, ...] = ()
    besides: tuple[Approval, ...] = ()
    rehearsals: tuple[Rehearsal, ...] = ()
    ballots: tuple[Ballot, ...] = ()
    call: CallFacts | None = None
    learn: bool = False

    @property
    def ends_run(self) -> bool:
        """Whether a rule that came to apply while the code ran denies the run itself."""
        return self.call is not None and any(
            verdict.intent.action == "run" and verdict.effect == "deny" for verdict in self.verdicts
        )


def decide(
    request: NormalizedRequest,
    stack: PolicyStack,
    report: ScreenReport,
    applied: Applied = NONE_APPLIED,
) -> Decision:
    """Decide `request` under `stack`, with what the screen reported.

    `stack` has the rules in it that `applied` names.
    """
    seen = canonical(report, request).intents
    learn = request.learn and stack.may_learn
    rules = Rules.of(stack, request.workdir)
    judged = _judge(rules, request.intents, seen, tuple(request.tools), applied.pending, learn)
    required = tuple(request.requirements.items())
    return _decision(stack, judged, required, request.violations, report.violations, applied)


def tightened(decision: Decision, ballots: Sequence[Ballot]) -> Decision:
    """`decision` with the votes of other deciders counted in: the most severe answer is the answer."""
    effects: list[Effect] = [decision.effect, *(one.effect for one in ballots if one.effect is not None)]
    worst = max(effects, key=SEVERITY.__getitem__)
    demands = decision.demands
    if any(one.effect == "ask" for one in ballots):
        demands = tuple(dict.fromkeys((*demands, DEFAULT_APPROVAL, *decision.besides)))
    return replace(decision, effect=worst, demands=demands, ballots=tuple(ballots))


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    effect: Effect
    verdicts: tuple[Verdict, ...]
    opened: Opened
    wanted: frozenset[Action]
    demands: tuple[Approval, ...]
    learn: bool


@lru_cache(maxsize=256)
def _decision(
    stack: PolicyStack,
    judged: _Judged,
    required: tuple[tuple[Control, Level], ...],
    of_form: tuple[Violation, ...],
    seen: tuple[Violation, ...],
    applied: Applied,
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
        required=strongest((stack.requirements, dict(required))),
        evidence=stack.evidence,
        policy_digest=stack.digest,
        hits=applied.hits,
        pending=applied.pending,
        demands=judged.demands,
        learn=judged.learn,
        besides=_besides(applied.rules),
    )


@lru_cache(maxsize=256)
def _judge(
    rules: Rules,
    declared: tuple[Intent, ...] | None,
    seen: tuple[Intent, ...],
    tools: tuple[str, ...],
    pending: tuple[Rule, ...],
    learn: bool,
) -> _Judged:
    """Answer for every intent, and say what that opens; runs of one shape share the answer."""
    verdicts = [_verdict(intent, rules.vote(intent), pending) for intent in (RUN, *(declared or ()))]
    verdicts += [_verdict(intent, _vote_on_inferred(rules, intent, declared), pending) for intent in seen]
    if learn:
        verdicts = [_left_closed(verdict) if verdict.omitted else verdict for verdict in verdicts]
    permitted = [verdict.intent for verdict in verdicts if verdict.effect != "deny"]
    openings = opened(rules, permitted, everything=declared is None, tools=tools)
    if declared is None:
        verdicts += _granted(rules, openings, permitted)
    wanted = frozenset(intent.action for intent in permitted if intent.action != "run")
    demands = _demands(verdicts, rules.stack)
    return _Judged(_worst(verdicts), tuple(verdicts), openings, wanted, demands, learn)


def _left_closed(verdict: Verdict) -> Verdict:
    """A denial by silence, for a run that learns: it is refused when it is accessed, and not before."""
    return replace(
        verdict,
        intent=replace(verdict.intent, when="access"),
        reason=f"{verdict.reason}; the run learns, so this stays closed and does not stop it",
    )


def decide_call(
    facts: Facts,
    stack: PolicyStack,
    line: int | None = None,
    applied: Applied | None = None,
    touches: Sequence[Intent] = (),
) -> Decision:
    """Decide the call of a tool that `facts` hold, at the moment when it happens.

    `touches` are the acts of the tool itself: they need nobody's `allow`, and whatever denies or asks about
    one of them denies or asks about the call. `applied` are the rules that apply, where somebody knows that
    who does not know all of the facts; then nothing is rehearsed.
    """
    call = facts.call
    assert call is not None
    intent = Intent("tool", call.tool, "declared", line, "call")
    return _meanwhile(facts, stack, intent, applied, touches)


def decide_connection(facts: Facts, stack: PolicyStack, target: str) -> Decision:
    """Decide a connection to a canonical target, at the moment when code makes it."""
    return _meanwhile(facts, stack, Intent("network", target, "inferred", when="call"), None, ())


def _meanwhile(
    facts: Facts, stack: PolicyStack, intent: Intent, applied: Applied | None, touches: Sequence[Intent]
) -> Decision:
    """The decision on an intent that comes up while code runs, with what rehearsed bounds say of it."""
    plain = stack.loaded or stack
    if applied is not None:
        return _at_once(facts, plain, intent, applied, touches)
    decided = _at_once(facts, plain, intent, applied_to(plain, facts), touches)
    if not plain.rehearsals:
        return decided
    rehearsals = []
    for bound, stack_with_it in plain.rehearsals:
        would_be = _at_once(facts, stack_with_it, intent, applied_to(stack_with_it, facts), touches)
        differing = would_be.verdicts if would_be.effect != decided.effect else ()
        rehearsals.append(Rehearsal.of(bound, would_be, differing))
    return replace(decided, rehearsals=tuple(rehearsals))


def _at_once(
    facts: Facts, stack: PolicyStack, intent: Intent, applied: Applied, touches: Sequence[Intent]
) -> Decision:
    """The decision on one intent, under a stack to which no rules are added yet."""
    concerned = tuple(hit for hit in applied.hits if _concerns(hit.rule, intent))
    rules = Rules.of(stack.applying(tuple(hit.rule for hit in concerned)), facts.request.workdir)
    verdict = Verdict(intent, *_NOT_LISTED) if _is_left_out(facts, intent) else verdict_of(intent, rules)
    objections = _objections(facts, stack, applied, touches, intent.line)
    if objections:
        deciding = {by.rule for objection in objections for by in objection.by}
        concerned = tuple(hit for hit in applied.hits if hit in concerned or hit.rule.id in deciding)
    effect = max((one.effect for one in (verdict, *objections)), key=SEVERITY.__getitem__)
    besides = _besides(applied.rules)
    asked = (demand for one in (verdict, *objections) for demand in one.demands)
    demands = tuple(dict.fromkeys((*asked, *besides))) if effect == "ask" else ()
    return Decision(
        effect=effect,
        verdicts=(verdict, *objections),
        violations=(),
        refusals=(),
        opened=Opened(),
        wanted=frozenset(),
        required={},
        evidence=stack.evidence,
        policy_digest=stack.digest,
        hits=concerned,
        demands=demands,
        besides=besides,
        call=facts.call,
    )


def _concerns(rule: Rule, intent: Intent) -> bool:
    """Whether a rule may say something of an intent that comes up while code runs."""
    if intent.action == "tool":
        return rule.matches_tool(intent.target or "")
    return bool(rule.index.touching(intent.action, intent.target or ""))


def _is_left_out(facts: Facts, intent: Intent) -> bool:
    """Whether a request that lists its intents leaves this one out."""
    if intent.action == "tool" or not facts.request.narrows:
        return False
    listed = (one for one in facts.request.intents if one.source == "declared")
    return not any(includes(one, intent) for one in listed)


def _objections(
    facts: Facts, stack: PolicyStack, applied: Applied, touches: Sequence[Intent], line: int | None
) -> tuple[Verdict, ...]:
    """What denies or asks about an act of the tool itself, and what by now denies the run."""
    if not touches and not applied.rules:
        return ()  # the run was allowed to begin, and nothing of that depends on the call
    rules = Rules.of(stack.applying(applied.rules), facts.request.workdir)
    found = []
    for act in touches:
        if (vote := rules.objection(act)) is not None:
            reason = f"the tool touches it, and {vote.reason}"
            found.append(Verdict(replace(act, line=line), vote.effect, vote.by, reason, vote.demands))
    run = rules.vote(RUN)
    if run.effect == "deny":
        found.append(Verdict(replace(RUN, when="call"), "deny", run.by, run.reason))
    return tuple(found)


def verdict_of(intent: Intent, rules: Rules) -> Verdict:
    """The answer for one intent by itself."""
    return _verdict(intent, rules.vote(intent))


def _demands(verdicts: Iterable[Verdict], stack: PolicyStack) -> tuple[Approval, ...]:
    """Every approval that is needed, equal ones once; a rule that applies may demand one beside others."""
    asked = [v.demands for v in verdicts if v.effect == "ask" and v.intent.when == "start"]
    if not asked:
        return ()
    return tuple(dict.fromkeys((*(demand for demands in asked for demand in demands), *_besides(stack.hits))))


def _besides(rules: Iterable[Rule]) -> tuple[Approval, ...]:
    """What rules that apply demand whoever asks, since they themselves ask about nothing."""
    demanded = (rule.approval for rule in rules if rule.approval is not None and not rule.ask)
    return tuple(dict.fromkeys(demanded))


def _worst(verdicts: Iterable[Verdict]) -> Effect:
    at_start = (verdict.effect for verdict in verdicts if verdict.intent.when == "start")
    return max(at_start, key=SEVERITY.__getitem__)


def _verdict(intent: Intent, vote: Vote, pending: Sequence[Rule] = ()) -> Verdict:
    if intent.target is None and vote.effect == "allow" and intent.action in ("read", "write", "network"):
        intent = replace(intent, when="access")
    reason = vote.reason
    if intent.action == "tool" and vote.effect != "deny":
        target = intent.target
        waiting = [rule.id for rule in pending if target and rule.matches_tool(target)]
        if waiting:
            reason += (
                f"; {' and '.join(f'`{name}`' for name in waiting)} will look at the arguments of each call"
            )
    return Verdict(intent, vote.effect, vote.by, reason, vote.demands, vote.omitted)


def _vote_on_inferred(rules: Rules, intent: Intent, declared: Sequence[Intent] | None) -> Vote:
    if declared is None or any(includes(outer, intent) for outer in declared):
        return rules.vote(intent)
    return Vote(*_NOT_LISTED)


_NOT_LISTED: tuple[Effect, tuple[By, ...], str] = (
    "deny",
    (By(LANGUAGE, 0, "the request lists its intents"),),
    "not declared: the request lists its intents, and this is none of them",
)


def _granted(rules: Rules, openings: Opened, permitted: Sequence[Intent]) -> Iterable[Verdict]:
    """One verdict for each thing that policy opens to every run, or may open to it, so that all show it."""
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
    for host in openings.network_asked:
        vote = rules.vote_on("network", host)
        reason = f"{vote.reason}, when the code connects"
        yield Verdict(Intent("network", host, "granted", when="call"), "ask", vote.by, reason, vote.demands)
