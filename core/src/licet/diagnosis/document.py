"""The form of `licet doctor --json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from licet import units
from licet.controls import MEANINGS
from licet.diagnosis.coverage import Coverage, Hold
from licet.diagnosis.diagnose import Diagnosis
from licet.diagnosis.machine import Machine
from licet.diagnosis.ordeal import Ordeal
from licet.select import Offer


def document(found: Diagnosis) -> dict[str, Any]:
    """All of a diagnosis, by name; times are RFC 3339 in UTC."""
    return {
        "verdict": found.verdict.value,
        "exit_code": found.verdict.exit_code,
        "controls": {one.control.value: _control(one) for one in found.controls},
        "backends": [_backend(offer) for offer in found.offers],
        "host": _host(found.machine),
        "facts": [asdict(fact) for fact in found.facts],
        "unused": [asdict(one) for one in found.unused],
        "trail": {
            "written": found.problem is None,
            "problem": found.problem.message if found.problem else None,
            "advice": found.problem.advice if found.problem else None,
        },
        "selection": found.explanation.as_json()["selection"],
        "ordeal": _ordeal(found.ordeal) if found.ordeal else None,
    }


def _control(one: Coverage) -> dict[str, Any]:
    return {
        "means": MEANINGS[one.control].means,
        "held_by": [_hold(hold) for hold in one.holds],
        "refuted": [{"backend": name, "reason": why} for name, why in one.refuted],
    }


def _hold(hold: Hold) -> dict[str, Any]:
    return {
        "backend": hold.backend,
        "level": hold.claim.level.value,
        "boundary": hold.claim.boundary,
        "mechanism": hold.claim.mechanism,
        "gaps": list(hold.claim.gaps),
        "evidence": hold.claim.evidence.value,
        "proved": units.show_moment(hold.proved) if hold.proved is not None else None,
        "inconclusive": hold.unproved,
    }


def _backend(offer: Offer) -> dict[str, Any]:
    descriptor = offer.descriptor
    return {
        "name": descriptor.name,
        "version": descriptor.version,
        "isolation": descriptor.sandbox_enforcement_contract.isolation,
        "available": descriptor.unavailable is None,
        "unavailable": descriptor.unavailable,
        "proved": sorted(offer.proofs),
        "refuted": dict(offer.refuted),
    }


def _host(machine: Machine) -> dict[str, Any]:
    groups = machine.cgroups
    return asdict(machine) | {
        "cgroups": {
            "version": max((place.version for place in groups.places.values()), default=0),
            "usable": sorted(groups.places),
            "missing": {str(resource): missing.reason for resource, missing in groups.missing.items()},
        }
    }


def _ordeal(tried: Ordeal) -> dict[str, Any]:
    allowed = tried.allowed
    return {
        "allowed": {
            "run_id": allowed.run_id,
            "answered": tried.answered,
            "termination": allowed.termination.value,
            "backend": allowed.backend.name if allowed.backend else None,
            "audit": asdict(allowed.audit) if allowed.audit else None,
        },
        "acts": [asdict(act) | {"failed": act.failed} for act in tried.acts],
    }
