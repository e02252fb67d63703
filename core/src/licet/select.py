"""Choosing a backend by what it proves and what it can run, never by its name.

Rules this module keeps:

- a candidate qualifies only if its contract satisfies every requirement and it can run the code;
- evidence that can still be made on this host is `missing`, and no shortfall: whoever runs the code makes it
  first, and selects again;
- every candidate is listed with every shortfall, asked and offered;
- those that qualify are ranked by the policy's `prefer`, then by least power, then by cost;
- `plan_digest` covers everything that decides what runs; times, the run's id and probe results are outside.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from licet.backend import Descriptor, Language
from licet.contract import Blocker, Control, Evidence, Level, Requirement
from licet.decide import Decision
from licet.plan import Opened
from licet.policy import PolicyStack
from licet.request import CodeNeeds, Limits, NormalizedRequest
from licet.requirements import demand, openable


@dataclass(frozen=True, slots=True)
class Proof:
    """What proves a claim on this host: the digest of its receipts, and when the oldest was made."""

    digest: str
    when: float


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A backend that can be chosen, its contract as the receipts of this host have it.

    `proofs` are of claims that withstood their attacks, `provable` are claims whose attacks are still to be
    run. `refuted` tells which attack refuted a claim here, and when, `unproved` which one decided nothing.
    """

    descriptor: Descriptor
    proofs: Mapping[Control, Proof] = field(default_factory=dict)
    provable: frozenset[Control] = frozenset()
    refuted: Mapping[Control, str] = field(default_factory=dict)
    unproved: Mapping[Control, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One backend as it was weighed.

    `missing` are the controls whose evidence is still to be made, `refuted` what an attack on this host has
    disproved, whether or not this run asks for it.
    """

    name: str
    satisfies: bool
    blockers: tuple[Blocker, ...]
    missing: tuple[Control, ...] = ()
    refuted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """The backend that a run will use, what it opens, and what was asked of it.

    `missing` are the controls whose evidence has to be made before it may run. `proof` stands for all the
    receipts that the run relies on, None if it relies on none.
    """

    descriptor: Descriptor
    opened: Opened
    requirements: Mapping[Control, Requirement]
    plan_digest: str
    missing: tuple[Control, ...] = ()
    proof: Proof | None = None


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
    offers: Sequence[Offer],
) -> Selection:
    """Weigh every offer and choose one."""
    candidates: list[Candidate] = []
    qualified: list[tuple[Offer, _Weighed]] = []
    required = tuple(decision.required.items())
    for offer in offers:
        weighed = _weigh(offer, decision.opened, request.limits, required, decision.evidence)
        blockers = (
            *_availability(offer.descriptor, stack),
            *_language(offer.descriptor.language, needs, bool(request.stdin)),
            *_openings(offer.descriptor, decision, bool(request.tools)),
            *weighed.shortfalls,
        )
        candidates.append(
            Candidate(offer.descriptor.name, not blockers, blockers, weighed.missing, weighed.refuted)
        )
        if not blockers:
            qualified.append((offer, weighed))
    if not qualified:
        return Selection(tuple(candidates), None)
    offer, weighed = min(qualified, key=lambda item: _rank(item[0].descriptor, stack))
    digest = plan_digest(request, decision, offer.descriptor, weighed.opened)
    chosen = Chosen(
        offer.descriptor, weighed.opened, weighed.requirements, digest, weighed.missing, weighed.proof
    )
    return Selection(tuple(candidates), chosen)


@dataclass(frozen=True, slots=True)
class _Weighed:
    """What a backend would open, what that demands of it, where it falls short, and what proves the rest."""

    opened: Opened
    requirements: Mapping[Control, Requirement]
    shortfalls: tuple[Blocker, ...]
    missing: tuple[Control, ...]
    refuted: tuple[str, ...]
    proof: Proof | None


@lru_cache(maxsize=512)
def _weigh(
    offer: Offer,
    allowed: Opened,
    limits: Limits,
    required: tuple[tuple[Control, Level], ...],
    evidence: Evidence,
) -> _Weighed:
    opened = openable(allowed, offer.descriptor.opens)
    requirements = demand(required, evidence, limits, opened)
    contract = offer.descriptor.sandbox_enforcement_contract
    missing = tuple(
        control
        for control, asked in requirements.items()
        if control in offer.provable and contract[control].evidence.rank < asked.evidence.rank
    )
    short = contract.satisfies(_without_evidence(requirements, missing))
    relied = {control.value: offer.proofs[control] for control in requirements if control in offer.proofs}
    return _Weighed(
        opened,
        requirements,
        tuple(_told(blocker, offer) for blocker in short),
        missing,
        tuple(f"{control}: {why}" for control, why in offer.refuted.items()),
        _together(relied) if relied else None,
    )


def _without_evidence(
    requirements: Mapping[Control, Requirement], missing: Iterable[Control]
) -> Mapping[Control, Requirement]:
    """The same requirements, satisfied by a declaration where evidence can still be made."""
    declared = {control: replace(requirements[control], evidence=Evidence.declared) for control in missing}
    return {**requirements, **declared}


def _told(blocker: Blocker, offer: Offer) -> Blocker:
    """A shortfall that says why, where it is by an attack."""
    control = Control(blocker.what)
    why = offer.refuted.get(control) or offer.unproved.get(control)
    return blocker if why is None else replace(blocker, offered=f"{blocker.offered}, {why}")


def _together(proofs: Mapping[str, Proof]) -> Proof:
    digests = {name: proof.digest for name, proof in proofs.items()}
    return Proof(_hash(digests), min(proof.when for proof in proofs.values()))


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
