"""Choosing a backend by what it proves and what it can run, never by its name.

Rules this module keeps:

- a candidate qualifies only if its contract satisfies every requirement and it can run the code;
- every candidate is listed with every shortfall, asked and offered;
- those that qualify are ranked by the policy's `prefer`, then by least power, then by cost;
- `plan_digest` covers everything that decides what runs; times, the run's id and probe results are outside.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from licet.backend import Descriptor, Language
from licet.contract import Blocker, Control, Evidence, Level, Requirement
from licet.decide import Decision
from licet.plan import Opened
from licet.policy import PolicyStack
from licet.request import CodeNeeds, Limits, NormalizedRequest
from licet.requirements import demand, openable


@dataclass(frozen=True, slots=True)
class Candidate:
    """One backend as it was weighed."""

    name: str
    satisfies: bool
    blockers: tuple[Blocker, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The backend that a run will use, what it opens, and what was asked of it."""

    descriptor: Descriptor
    opened: Opened
    requirements: Mapping[Control, Requirement]
    plan_digest: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Every candidate, and the one that was chosen; None if none qualifies."""

    candidates: tuple[Candidate, ...]
    chosen: Chosen | None

    @property
    def backend(self) -> str | None:
        """The name of the chosen backend."""
        return self.chosen.descriptor.name if self.chosen else None


def select(
    request: NormalizedRequest,
    decision: Decision,
    needs: CodeNeeds,
    stack: PolicyStack,
    descriptors: Sequence[Descriptor],
) -> Selection:
    """Weigh every descriptor and choose one."""
    candidates, qualified = [], []
    required = tuple(decision.required.items())
    for descriptor in descriptors:
        opened, requirements, shortfalls = _weigh(
            descriptor, decision.opened, request.limits, required, decision.evidence
        )
        blockers = (
            *_availability(descriptor, stack),
            *_language(descriptor.language, needs, bool(request.stdin)),
            *_openings(descriptor, decision, bool(request.tools)),
            *shortfalls,
        )
        candidates.append(Candidate(descriptor.name, not blockers, blockers))
        if not blockers:
            qualified.append((descriptor, opened, requirements))
    if not qualified:
        return Selection(tuple(candidates), None)
    descriptor, opened, requirements = min(qualified, key=lambda item: _rank(item[0], stack))
    digest = plan_digest(request, decision, descriptor, opened)
    return Selection(tuple(candidates), Chosen(descriptor, opened, requirements, digest))


@lru_cache(maxsize=512)
def _weigh(
    descriptor: Descriptor,
    allowed: Opened,
    limits: Limits,
    required: tuple[tuple[Control, Level], ...],
    evidence: Evidence,
) -> tuple[Opened, Mapping[Control, Requirement], tuple[Blocker, ...]]:
    """What a backend would open, what that demands of it, and where it falls short."""
    opened = openable(allowed, descriptor.opens)
    requirements = demand(required, evidence, limits, opened)
    return opened, requirements, descriptor.sandbox_enforcement_contract.satisfies(requirements)


def plan_digest(
    request: NormalizedRequest, decision: Decision, descriptor: Descriptor, opened: Opened
) -> str:
    """The digest that an approver is shown and that runs: a hash of named field digests."""
    fields = request.digests.as_json() | {
        "opened": _opened_digest(opened),
        "policy": decision.policy_digest,
        "backend": f"{descriptor.name} {descriptor.version}",
        "contract": descriptor.sandbox_enforcement_contract.levels_digest,
    }
    return _hash(fields)


@lru_cache(maxsize=256)
def _opened_digest(opened: Opened) -> str:
    return _hash(opened.as_json())


def _hash(content: Mapping[str, object]) -> str:
    # ASCII escapes, since a path can hold bytes that are no UTF-8
    return "sha256:" + hashlib.sha256(_ENCODER.encode(content).encode()).hexdigest()


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def _rank(descriptor: Descriptor, stack: PolicyStack) -> tuple[int, int, float, str]:
    prefer = stack.prefer
    place = prefer.index(descriptor.name) if descriptor.name in prefer else len(prefer)
    return place, len(descriptor.opens), descriptor.cost, descriptor.name


def _availability(descriptor: Descriptor, stack: PolicyStack) -> Iterable[Blocker]:
    if descriptor.unavailable is not None:
        yield Blocker("available", "available here", "unavailable", descriptor.unavailable)
    if stack.only is not None and descriptor.name not in stack.only:
        admitted = ", ".join(sorted(stack.only)) or "none"
        yield Blocker("sandbox.only", admitted, descriptor.name, "policy admits only these backends")


def _language(language: Language, needs: CodeNeeds, stdin: bool) -> Iterable[Blocker]:
    for feature, line in needs.syntax.items():
        if feature in language.lacks_syntax:
            yield Blocker("syntax", feature, f"{language.name} lacks it", f"line {line} uses it")
    for module, line in needs.modules.items():
        if language.modules is not None and module not in language.modules:
            yield Blocker("module", module, f"{language.name} lacks it", f"line {line} imports it")
    for name, line in needs.builtins.items():
        if language.builtins is not None and name not in language.builtins:
            yield Blocker("builtin", name, f"{language.name} lacks it", f"line {line} uses it")
    if (needs.stdin or stdin) and not language.stdin:
        yield Blocker(
            "stdin", "standard input", f"{language.name} has none", "the code or the request uses it"
        )


def _openings(descriptor: Descriptor, decision: Decision, tools: bool) -> Iterable[Blocker]:
    for action in sorted(decision.wanted | ({"tool"} if tools else set())):
        if action not in descriptor.opens:
            yield Blocker(f"opens {action}", "can be opened", "can't be opened", "an intent needs it")
