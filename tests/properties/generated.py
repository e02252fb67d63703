"""Generators of policies and requests over the small world, and the same things as licet reads them."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from hypothesis import strategies as st
from licet.decide import Decision, decide
from licet.normalize import normalize
from licet.plan import Opened
from licet.policy import PolicyDocument, PolicyStack
from licet.request import Action, ExecutionRequest, Intent, NormalizedRequest, ScreenReport
from licet.testing import strategies
from reference_evaluator import DIRECTORIES, Document, Entry, Points, Reference, Want, points, world

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


ROOTS = st.builds(Document, some(entries(), 5), some(entries(), 2), some(entries(port_optional=True), 2))
BOUNDS = st.builds(Document, some(entries(), 3), some(entries(), 1), some(entries(port_optional=True), 2))
SEALED = st.lists(st.sampled_from(["/t/a/d", "/t/e", "/t/a/b/c"]), max_size=1).map(tuple)
REFERENCES = st.builds(Reference, ROOTS, st.lists(BOUNDS, max_size=2).map(tuple), SEALED)

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
def document_of(document: Document, name: str) -> PolicyDocument:
    """A document as licet reads it from its YAML."""
    lines = ["licet: 1"]
    for effect in ("allow", "ask", "deny"):
        lines.append(f"{effect}: [{', '.join(repr(str(entry)) for entry in getattr(document, effect))}]")
    return strategies.document_of("\n".join(lines), name, "/")


def stack_of(reference: Reference) -> PolicyStack:
    """The same stack for licet."""
    bounds = tuple(document_of(bound, f"bound{n}") for n, bound in enumerate(reference.bounds))
    return PolicyStack(document_of(reference.root, "root"), bounds, reference.sealed)


def intent_of(want: Want, source: str = "declared") -> Intent:
    return Intent(cast("Action", want.action), want.target, source)  # type: ignore[arg-type]


def decided_with(
    stack: PolicyStack, declared: list[Want] | None, inferred: list[Want]
) -> tuple[Decision, NormalizedRequest]:
    """What licet decides, and the request as it saw it."""
    intents = None if declared is None else tuple(map(intent_of, declared))
    request = normalize(
        ExecutionRequest(code="1", intents=intents),
        stack,
        directory="/t",
        host_environment={},
        digest=lambda name, content: name,
    )
    seen = tuple(intent_of(want, "inferred") for want in inferred)
    return decide(request, stack, ScreenReport(intents=seen)), request


def decide_with(stack: PolicyStack, declared: list[Want] | None, inferred: list[Want]) -> Decision:
    """What licet decides."""
    return decided_with(stack, declared, inferred)[0]


def points_of(opened: Opened, action: str) -> Points:
    """The points that an `Opened` opens."""
    if action == "shell":
        return world("shell") if opened.shell else frozenset()
    return frozenset(point for point in world(action) if opened.opens(cast("Action", action), point))
