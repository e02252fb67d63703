"""What is said of a claim that did not hold: what was claimed, tried and seen, and what to do. Pure."""

from __future__ import annotations

from licet.backend import Descriptor
from licet.contract import Level
from licet.probe.attack import Attack
from licet.probe.results import ProbeOutcome, ProbeResult


def refusal(descriptor: Descriptor, attack: Attack, result: ProbeResult) -> str | None:
    """Why the claim that `attack` is on can't be believed, or None if it held."""
    if result.outcome is ProbeOutcome.held:
        return None
    name, control = descriptor.name, attack.control
    leaked = result.outcome is ProbeOutcome.leaked
    found = "which is not so here" if leaked else "which could not be shown here"
    return _told(
        descriptor,
        attack,
        found,
        observed=f"{result.observed}: {result.reason}",
        without=f"the same program without walls {result.twin}",
        consequence=f"licet would not use `{name}` for a run that demands `{control}`",
        advice=_advice(descriptor, attack) if leaked else _look_at(descriptor, attack),
    )


def two_faced(descriptor: Descriptor, attack: Attack, evidence: str) -> str:
    """What is said if an attack got through in a run like any other."""
    return _told(
        descriptor,
        attack,
        "which does not hold in an ordinary run",
        observed=f"{evidence}, in a plan that says nothing of probes",
        without="",
        consequence=f"what probes find says nothing of the runs of `{descriptor.name}`",
        advice="treat all plans alike, whoever made them and whatever their code looks like",
    )


def _told(
    descriptor: Descriptor,
    attack: Attack,
    found: str,
    *,
    observed: str,
    without: str,
    consequence: str,
    advice: str,
) -> str:
    claim = descriptor.sandbox_enforcement_contract[attack.control]
    lines = {
        "by": f"{claim.mechanism or 'no mechanism named'} (boundary: {claim.boundary})",
        "attacked": f"{attack}: {attack.goal}",
        "observed": observed,
        "twin": without,
        "so": consequence,
        "you can": advice,
    }
    told = [f"`{descriptor.name}` claims `{attack.control}: {claim.level}`, {found}"]
    return "\n".join(told + [f"  {word:<10}{text}" for word, text in lines.items() if text])


def _advice(descriptor: Descriptor, attack: Attack) -> str:
    claim = descriptor.sandbox_enforcement_contract[attack.control]
    if claim.level is Level.not_applicable:
        return "claim `not_applicable` only for what the language can't express; this it can"
    less = "`partial` or `not_enforced`" if attack.partial_may_leak else "`not_enforced`"
    return f"enforce it, or claim {less}, or name the gap: known_gaps = {{'{attack}': 'why'}}"


def _look_at(descriptor: Descriptor, attack: Attack) -> str:
    claim = descriptor.sandbox_enforcement_contract[attack.control]
    if claim.level is Level.not_applicable:
        signs = " or ".join(f"`{sign}`" for sign in attack.inexpressible) or "nothing: it can be expressed"
        return f"have the code see {signs}, in a language that lists its modules; or claim a level"
    signs = ", ".join(f"`{sign}`" for sign in (*attack.held_by, *attack.inexpressible))
    return f"have the code see one of {signs}"
