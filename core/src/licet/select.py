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
from licet.contract import Blocker, Control, Evidence, Requirement
from licet.decide import Decision
from licet.environments.python import Python
from licet.plain import Plain, canonical, plain_body
from licet.plan import Opened
from licet.policy import PolicyStack
from licet.request import CodeNeeds, Limits, NormalizedRequest
from licet.requirements import openable, require
from licet.surroundings import Clock, Randomness


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

    def lacking(self, what: tuple[Blocker, ...]) -> Candidate:
        """This candidate with more that it falls short of, put first."""
        return replace(self, satisfies=False, blockers=(*what, *self.blockers))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The backend that a run will use, what it opens, and what was asked of it.

    `missing` are the controls whose evidence has to be made before it may run. `proof` stands for all the
    receipts that the run relies on, None if it relies on none. `levels` are the bare levels that
    `requirements` ask for, by name. `isolation` is how far the code is kept away, as far as that is proved as
    well as was asked for.
    """

    descriptor: Descriptor
    opened: Opened
    requirements: Mapping[Control, Requirement]
    plan_digest: str
    missing: tuple[Control, ...] = ()
    proof: Proof | None = None
    levels: Mapping[str, str] = field(default_factory=dict)
    isolation: str = "none"


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
    python: Python | None = None,
) -> Selection:
    """Weigh every offer and choose one; `python` is what the policy's word on it comes to on this host."""
    candidates: list[Candidate] = []
    qualified: list[_Weighed] = []
    for weighed in _weigh(tuple(offers), decision, stack, request.limits):
        lacking = (
            *_language(weighed.descriptor.language, needs, bool(request.stdin_bytes)),
            *_mounting(weighed.descriptor, request),
        )
        candidate = weighed.candidate.lacking(lacking) if lacking else weighed.candidate
        candidates.append(candidate)
        if candidate.satisfies:
            qualified.append(weighed)
    if not qualified:
        return Selection(tuple(candidates), None)
    best = min(qualified, key=lambda weighed: weighed.rank)
    digest = plan_digest(request, decision, stack, best.descriptor, best.opened, python)
    chosen = Chosen(
        best.descriptor,
        best.opened,
        best.requirements,
        digest,
        best.candidate.missing,
        best.proof,
        best.levels,
        best.isolation,
    )
    return Selection(tuple(candidates), chosen)


@dataclass(frozen=True, slots=True)
class _Weighed:
    """An offer as far as it does not depend on the code: what it would open, and what that demands of it."""

    descriptor: Descriptor
    opened: Opened
    requirements: Mapping[Control, Requirement]
    candidate: Candidate
    proof: Proof | None
    levels: Plain
    isolation: str
    rank: tuple[int, int, float, str]


@lru_cache(maxsize=256)
def _weigh(
    offers: tuple[Offer, ...], decision: Decision, stack: PolicyStack, limits: Limits
) -> tuple[_Weighed, ...]:
    return tuple(_weigh_one(offer, decision, stack, limits) for offer in offers)


def _weigh_one(offer: Offer, decision: Decision, stack: PolicyStack, limits: Limits) -> _Weighed:
    descriptor = offer.descriptor
    opened = openable(decision.opened, descriptor.opens)
    requirements = require(decision, limits, opened)
    contract = descriptor.sandbox_enforcement_contract
    missing = tuple(
        control
        for control, asked in requirements.items()
        if control in offer.provable and contract[control].evidence.rank < asked.evidence.rank
    )
    short = contract.satisfies(_without_evidence(requirements, missing))
    blockers = (
        *_openings(descriptor, decision),
        *_availability(descriptor, stack),
        *_surroundings(descriptor, stack),
        *_environments(descriptor, stack),
        *(_told(blocker, offer) for blocker in short),
    )
    refuted = tuple(f"{control}: {why}" for control, why in offer.refuted.items())
    relied = {control.value: offer.proofs[control] for control in requirements if control in offer.proofs}
    return _Weighed(
        descriptor,
        opened,
        requirements,
        Candidate(descriptor.name, not blockers, blockers, missing, refuted),
        _together(relied) if relied else None,
        plain_body({control: asked.level for control, asked in requirements.items()}),
        contract.isolation_by(Evidence.declared if missing else decision.evidence),
        _rank(descriptor, stack),
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
    request: NormalizedRequest,
    decision: Decision,
    stack: PolicyStack,
    descriptor: Descriptor,
    opened: Opened,
    python: Python | None = None,
) -> str:
    """The digest that an approver is shown and that runs: a hash of named field digests."""
    environment = python.digest if python is not None else None
    around = _around(descriptor, opened, decision.policy_digest, stack.clock, stack.random, environment)
    return _sha256(canonical(Plain(request.digests.as_json(), around=around)))  # digests are plain


@lru_cache(maxsize=256)
def _around(
    descriptor: Descriptor,
    opened: Opened,
    policy: str,
    clock: Clock,
    random: Randomness,
    python: str | None,
) -> str:
    """The digest of all that a plan depends on beside the request."""
    return _hash(
        {
            "opened": _hash(opened.as_json()),
            "policy": policy,
            "clock": clock,
            "random": random,
            **({"python": python} if python is not None else {}),
            "backend": f"{descriptor.name} {descriptor.version}",
            "contract": descriptor.sandbox_enforcement_contract.levels_digest,
        }
    )


def _hash(content: Mapping[str, object]) -> str:
    # ASCII escapes, since a path can hold bytes that are no UTF-8
    return _sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def _sha256(spelled: bytes) -> str:
    return f"sha256:{hashlib.sha256(spelled).hexdigest()}"


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


def _surroundings(descriptor: Descriptor, stack: PolicyStack) -> Iterable[Blocker]:
    """What the policy makes of clock and randomness, where the code would see those of the machine."""
    if stack.clock != "real" and "clock" not in descriptor.governs:
        yield Blocker("clock", stack.clock, "real", "the code would read the clock of the machine")
    if stack.random != "real" and "random" not in descriptor.governs:
        yield Blocker("random", stack.random, "real", "the code would get the randomness of the machine")


def _environments(descriptor: Descriptor, stack: PolicyStack) -> Iterable[Blocker]:
    if stack.python is not None and not descriptor.environments:
        yield Blocker(
            "python", str(stack.python), "its own interpreter alone", "policy says what code is given"
        )


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
    for path, line in needs.members.items():
        missing = language.missing_member(path)
        if missing is not None:
            yield Blocker("member", missing, f"{language.name} lacks it", f"line {line} uses it")
    if (needs.stdin or stdin) and not language.stdin:
        yield Blocker(
            "stdin", "standard input", f"{language.name} has none", "the code or the request uses it"
        )


def _mounting(descriptor: Descriptor, request: NormalizedRequest) -> Iterable[Blocker]:
    if request.files and not descriptor.mounts:
        yield Blocker("files", "files at other paths", "none", "the request gives files names of its own")


def _openings(descriptor: Descriptor, decision: Decision) -> Iterable[Blocker]:
    for action in sorted(decision.wanted | ({"tool"} if decision.opened.tools else set())):
        if action not in descriptor.opens:
            yield Blocker(f"opens {action}", "can be opened", "can't be opened", "an intent needs it")
