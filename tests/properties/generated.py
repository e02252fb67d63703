"""Generators of policies and requests over the small world, and the same things as licet reads them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import cast

from generated_rules import APPROVALS, SITUATIONS, instant_of, rules, settings, subject_of
from hypothesis import strategies as st
from licet.applying import applied_to, facts_of
from licet.decide import Decision, decide
from licet.normalize import lowered, normalize
from licet.plan import Opened
from licet.policy import PolicyDocument, PolicyStack
from licet.policy.facts import Facts
from licet.policy.parts import Approval
from licet.request import Action, ExecutionRequest, Intent, NormalizedRequest, ScreenReport
from licet.testing import strategies
from reference_evaluator import DIRECTORIES, Document, Entry, Points, Reference, Want, points, world
from reference_rules import Demand, Rule, Situation

PATTERNS = ("any", "*.x.com:443", "*.x.com:80", "*.b.x.com:443", "a.x.com:443", "c.b.x.com:443", "y.net:80")
DENIABLE = (*PATTERNS, "*.x.com", "b.x.com", "y.net")
TOOL_PATTERNS = ("*", "find*", "*_all", "find", "pay")


@st.composite
def entries(draw: st.DrawFn, *, port_optional: bool = False) -> Entry:
    """One entry, with at most two exceptions that take something away."""
    action = draw(st.sampled_from(["read", "read", "write", "network", "network", "tool", "shell", "run"]))
    if action in ("shell", "run"):
        return Entry(action)
    targets = {"network": DENIABLE if port_optional else PATTERNS, "tool": TOOL_PATTERNS}.get(
        action, DIRECTORIES
    )
    target = draw(st.sampled_from(targets))
    gaps = {"network": DENIABLE, "tool": TOOL_PATTERNS}.get(action, DIRECTORIES)
    whole = points(action, target)
    inside = [gap for gap in gaps if points(action, gap) < whole]
    excepts = draw(st.lists(st.sampled_from(inside), max_size=2, unique=True)) if inside else []
    return Entry(action, target, tuple(excepts))


def some(strategy: st.SearchStrategy[Entry], most: int) -> st.SearchStrategy[tuple[Entry, ...]]:
    return st.lists(strategy, max_size=most).map(tuple)


def of_a_rule(name: str, *, calls: bool = True) -> st.SearchStrategy[Rule]:
    """One rule."""
    return rules(lambda port_optional: entries(port_optional=port_optional), name, calls=calls)


@st.composite
def documents(draw: st.DrawFn, allowed: int, asked: int) -> Document:
    """One file, with at most so many entries; half of them have rules."""
    names = [f"r{n}" for n in range(draw(st.sampled_from([0, 0, 1, 3])))]
    return Document(
        draw(some(entries(), allowed)),
        draw(some(entries(), asked)),
        draw(some(entries(port_optional=True), 2)),
        rules=tuple(draw(of_a_rule(name)) for name in names),
        settings=draw(settings(strict=False)),
        approval=draw(st.one_of(st.just(()), APPROVALS)),
        learn=draw(st.sampled_from([None, True, False])),
    )


ROOTS = documents(5, 2)
BOUNDS = st.builds(
    lambda document, tools: replace(document, tools=tools),
    documents(3, 1),
    st.sampled_from([None, None, ("find", "pay"), ()]),
)
SEALED = st.lists(st.sampled_from(["/t/a/d", "/t/e", "/t/a/b/c"]), max_size=1).map(tuple)
REFERENCES = st.builds(Reference, ROOTS, st.lists(BOUNDS, max_size=2).map(tuple), SEALED)
REHEARSING = st.builds(
    lambda reference, bounds: replace(reference, rehearsed=bounds),
    REFERENCES,
    st.lists(BOUNDS, min_size=1, max_size=2).map(tuple),
)

FILE_WANTS = st.builds(Want, st.sampled_from(["read", "write"]), st.sampled_from(DIRECTORIES))
HOST_WANTS = st.builds(
    Want, st.just("network"), st.sampled_from(["any", "a.x.com:443", "c.b.x.com:443", "y.net:80"])
)
TOOL_WANTS = st.builds(Want, st.just("tool"), st.sampled_from(["find", "find_all", "pay"]))
WANTS = st.one_of(FILE_WANTS, FILE_WANTS, HOST_WANTS, TOOL_WANTS, st.just(Want("shell")))
DECLARED = st.one_of(st.none(), st.lists(WANTS, max_size=3, unique=True))
UNKNOWN = st.sampled_from([Want("read"), Want("write"), Want("network")])
INFERRED = st.lists(
    st.one_of(FILE_WANTS, HOST_WANTS, st.just(Want("shell")), UNKNOWN), max_size=2, unique=True
)


@lru_cache(maxsize=2048)
def document_of(document: Document, name: str, mode: str = "enforce") -> PolicyDocument:
    """A document as licet reads it from its YAML, of which JSON is a part."""
    tree = {
        "licet": 1,
        **{
            effect: [str(entry) for entry in getattr(document, effect)] for effect in ("allow", "ask", "deny")
        },
        "rules": [rule.tree for rule in document.rules],
        "approval": dict(document.approval),
        "mode": mode,
        **document.settings.tree,
    }
    if document.tools is not None:
        tree["tools"] = {name: {"amount": "int?", "note": "string?"} for name in document.tools}
    if document.learn is not None:
        tree["learn"] = document.learn
    return strategies.document_of(json.dumps(tree), name, "/")


def stack_of(reference: Reference) -> PolicyStack:
    """The same stack for licet, before any rule applies."""
    bounds = tuple(document_of(bound, f"bound{n}") for n, bound in enumerate(reference.bounds))
    rehearsed = tuple(
        document_of(bound, f"rehearsed{n}", "dry_run") for n, bound in enumerate(reference.rehearsed)
    )
    return PolicyStack(document_of(reference.root, "root"), bounds, reference.sealed, rehearsed=rehearsed)


def intent_of(want: Want, source: str = "declared") -> Intent:
    return Intent(cast("Action", want.action), want.target, source)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Ask:
    """A request: who asks, when, and for what."""

    now: Situation = field(default_factory=Situation)
    declared: list[Want] | None = None
    inferred: list[Want] | None = None
    learn: bool = False

    @property
    def situation(self) -> Situation:
        """All that conditions read of it."""
        wants = (*(self.declared or ()), *(self.inferred or ()))
        return replace(
            self.now, narrows=self.declared is not None, actions=frozenset(want.action for want in wants)
        )

    @property
    def request(self) -> ExecutionRequest:
        """The same for licet."""
        intents = None if self.declared is None else tuple(map(intent_of, self.declared))
        return ExecutionRequest(
            code="1", intents=intents, subject=subject_of(self.now.person), learn=self.learn
        )


def digest(name: str, content: bytes) -> str:
    return name


def normalized(stack: PolicyStack, ask: Ask) -> tuple[NormalizedRequest, ScreenReport, Facts]:
    """The request as licet sees it, what the screen saw, and what conditions read."""
    request = normalize(ask.request, stack, directory="/t", host_environment={}, digest=digest)
    report = ScreenReport(intents=tuple(intent_of(want, "inferred") for want in ask.inferred or ()))
    return request, report, facts_of(request, report, instant_of(ask.now), stack)


@dataclass(frozen=True)
class Decided:
    """What licet decides, the request with its limits lowered, and the stack with the rules that apply."""

    decision: Decision
    request: NormalizedRequest
    stack: PolicyStack


def decided_with(stack: PolicyStack, ask: Ask) -> Decided:
    """What licet decides, in the steps of `prepare`."""
    request, report, facts = normalized(stack, ask)
    applied = applied_to(stack, facts)
    stack = stack.applying(applied.rules)
    request = lowered(request, stack.limits, digest)
    return Decided(decide(request, stack, report, applied), request, stack)


def with_rule(reference: Reference, rule: Rule) -> Reference:
    """The reference with one more rule in its root."""
    return replace(reference, root=replace(reference.root, rules=(*reference.root.rules, rule)))


def plain(demand: Approval) -> Demand:
    """A demand of licet's as the reference spells it."""
    return (demand.count, demand.sources, demand.reviewer, demand.expires, demand.unattended)  # type: ignore[return-value]


def points_of(opened: Opened, action: str) -> Points:
    """The points that an `Opened` opens."""
    if action == "shell":
        return world("shell") if opened.shell else frozenset()
    return frozenset(point for point in world(action) if opened.opens(cast("Action", action), point))


ASKS = st.builds(Ask, SITUATIONS, DECLARED, INFERRED)
"""Requests in all their parts."""

MAYBE_LEARNING = st.builds(Ask, SITUATIONS, DECLARED, INFERRED, st.booleans())
"""The same; of some, the run is to learn what it would need."""
