"""`licet backends`: what is installed, and what each claims to enforce."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from licet import units
from licet.errors import UsageError

if TYPE_CHECKING:
    from licet.backend import Descriptor
    from licet.contract import Control, Enforcement
    from licet.probe.verification import Report, Verdict
    from licet.select import Offer

_WIDTH = 25  # the longest name of a control, and a gap


@click.group()
def backends() -> None:
    """List the sandbox backends and read their contracts."""


@backends.command("list")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def list_backends(as_json: bool) -> int:
    """List every enabled backend with its isolation and what keeps it from being used."""
    from licet.cli.terminal import put_json, put_table, warn

    found, problems = _offers()
    if as_json:
        put_json({"backends": [_json(offer) for offer in found], "problems": problems})
        return 0
    rows = [
        (d.name, d.version, d.sandbox_enforcement_contract.isolation, *_counts(offer), d.unavailable or "yes")
        for offer, d in ((offer, offer.descriptor) for offer in found)
    ]
    put_table(("name", "version", "isolation", "enforced", "proved here", "available"), rows)
    for problem in problems:
        warn(problem)
    return 0


@backends.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def show_backend(name: str, as_json: bool) -> int:
    """Show the contract of one backend: each control, what it means, its level, mechanism and gaps."""
    from licet.cli.terminal import put_blocks, put_json

    found = {offer.descriptor.name: offer for offer in _offers()[0]}
    if name not in found:
        raise _unknown(name, found)
    if as_json:
        put_json(_json(found[name]))
        return 0
    contract = found[name].descriptor.sandbox_enforcement_contract
    put_blocks(
        (_heading(control.value, claim), _details(control, claim)) for control, claim in contract.items()
    )
    return 0


def _heading(control: str, claim: Enforcement) -> str:
    if claim.level.rank == 0:
        return f"{control:<{_WIDTH}}{claim.level.value}"
    return f"{control:<{_WIDTH}}{claim.level.value} · {claim.boundary} · {claim.evidence.value}"


def _details(control: Control, claim: Enforcement) -> Iterable[str]:
    from licet.controls import MEANINGS

    yield f"means: {MEANINGS[control].means}"
    if claim.mechanism:
        yield f"by: {claim.mechanism}"
    yield from (f"gap: {gap}" for gap in claim.gaps)


@backends.command("verify")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def verify_backends(name: str | None, as_json: bool) -> int:
    """Attack every claim of the backends on this host, or of NAME alone.

    Each attack has an unrestricted twin that must succeed, and an allowed act that must still work.

    \b
    Exit codes: 0 all claims held, but for what is told as inconclusive · 1 a claim was refuted · 2 usage, or
    nothing to attack
    """
    import asyncio

    from licet.cli.progress import AttackProgress
    from licet.cli.terminal import put_heading, put_json, put_table, say, warn
    from licet.probe.attacks import here
    from licet.runtime import Runtime

    with AttackProgress() as progress:
        runtime = Runtime(progress=progress)
        for problem in runtime.plugins.problems:
            warn(problem)
        wanted = _to_attack([backend.describe() for backend in runtime.backends], name)
        progress.expect(len(here()) * len(wanted))

        async def attack() -> Report:
            async with runtime:
                return await runtime.verify(wanted)

        report = asyncio.run(attack())
    if as_json:
        put_json(report.as_json())
    else:
        columns = ("control", "claimed", "measured", "mechanism", "gap")
        for backend in report.standings:
            put_heading(backend)
            put_table(columns, _standings(report, backend), prose=2)
        say(
            f"{report.held} held · {report.leaked} refuted a claim · {report.inconclusive} inconclusive · "
            f"{report.unclaimed} on what nobody claims"
        )
        if report.inconclusive:
            say("what is inconclusive counts as not enforced; a quieter machine may decide it")
    return 1 if report.leaked else 0


def _to_attack(found: Sequence[Descriptor], name: str | None) -> list[str]:
    """The backends that can be attacked: `name`, or all.

    Raises:
        UsageError: there is nothing to attack.
    """
    if name is not None and name not in {one.name for one in found}:
        raise _unknown(name, (one.name for one in found))
    named = [one for one in found if name in (None, one.name)]
    usable = [one.name for one in named if one.unavailable is None]
    if not usable:
        why = "; ".join(f"`{one.name}` can't run here: {one.unavailable}" for one in named)
        raise UsageError(
            f"there is nothing to attack: {why or 'no backend is enabled'}",
            advice="enable a backend that can run here; `licet doctor` tells what this host can hold",
        )
    return usable


def _standings(report: Report, backend: str) -> Iterable[tuple[str, ...]]:
    for control, known in report.standings[backend].items():
        tried = [f for f in report.findings if (f.result.backend, f.result.control) == (backend, control)]
        if not tried:
            continue
        claim = known.claim
        through = ", ".join(f.result.variant for f in tried if f.result.outcome.value == "leaked")
        gaps = ([f"got through: {through}"] if through else []) + list(claim.gaps)
        measured = f"{_measured({finding.verdict for finding in tried})} ({len(tried)})"
        yield control.value, claim.level.value, measured, claim.mechanism, "; ".join(gaps)


def _measured(verdicts: set[Verdict]) -> str:
    """The gravest verdict on a control decides."""
    words: tuple[tuple[Verdict, str], ...] = (
        ("leaked", "REFUTED"),
        ("inconclusive", "inconclusive"),
        ("held", "held"),
    )
    return next((word for verdict, word in words if verdict in verdicts), "not claimed")


def _unknown(name: str, known: Iterable[str]) -> UsageError:
    named = ", ".join(f"`{one}`" for one in sorted(known)) or "none"
    return UsageError(f"there is no backend `{name}`", advice=f"enabled are {named}")


def _offers() -> tuple[tuple[Offer, ...], list[str]]:
    from licet.runtime import Runtime

    runtime = Runtime()
    return runtime.offers(), runtime.plugins.problems


def _counts(offer: Offer) -> tuple[str, str]:
    claims = [claim.level.rank for _, claim in offer.descriptor.sandbox_enforcement_contract.items()]
    return f"{sum(rank == 3 for rank in claims)} of {len(claims)} controls", f"{len(offer.proofs)} claims"


def _json(offer: Offer) -> dict[str, Any]:
    descriptor = offer.descriptor
    contract = descriptor.sandbox_enforcement_contract
    return {
        "name": descriptor.name,
        "version": descriptor.version,
        "isolation": contract.isolation,
        "available": descriptor.unavailable is None,
        "unavailable": descriptor.unavailable,
        "opens": sorted(descriptor.opens),
        "language": descriptor.language.name,
        "contract": contract.as_json(),
        "evidence": {
            "proved": {
                control: {"digest": proof.digest, "when": units.show_moment(proof.when)}
                for control, proof in offer.proofs.items()
            },
            "missing": sorted(offer.provable),
            "refuted": offer.refuted,
            "inconclusive": offer.unproved,
        },
    }
