"""`licet backends`: what is installed, and what each claims to enforce."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from licet.errors import UsageError

if TYPE_CHECKING:
    from licet.backend import Descriptor
    from licet.contract import Enforcement
    from licet.probe.verification import Report

_WIDTH = 25  # the longest name of a control, and a gap


@click.group()
def backends() -> None:
    """List the sandbox backends and read their contracts."""


@backends.command("list")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def list_backends(as_json: bool) -> int:
    """List every enabled backend with its isolation and what keeps it from being used."""
    from licet.cli.terminal import put_json, put_table, warn

    found, problems = _descriptors()
    if as_json:
        put_json({"backends": [_json(d) for d in found], "problems": problems})
        return 0
    rows = [
        (d.name, d.version, d.sandbox_enforcement_contract.isolation, _enforced(d), d.unavailable or "yes")
        for d in found
    ]
    put_table(("name", "version", "isolation", "enforced", "available"), rows)
    for problem in problems:
        warn(problem)
    return 0


@backends.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def show_backend(name: str, as_json: bool) -> int:
    """Show the contract of one backend: each control, its level, mechanism and gaps."""
    from licet.cli.terminal import put_blocks, put_json

    found = {d.name: d for d in _descriptors()[0]}
    if name not in found:
        raise _unknown(name, found)
    if as_json:
        put_json(_json(found[name]))
        return 0
    contract = found[name].sandbox_enforcement_contract
    put_blocks((_heading(control.value, claim), _details(claim)) for control, claim in contract.items())
    return 0


def _heading(control: str, claim: Enforcement) -> str:
    if claim.level.rank == 0:
        return f"{control:<{_WIDTH}}{claim.level.value}"
    return f"{control:<{_WIDTH}}{claim.level.value} · {claim.boundary} · {claim.evidence.value}"


def _details(claim: Enforcement) -> list[str]:
    mechanism = [claim.mechanism] if claim.mechanism else []
    return mechanism + [f"gap: {gap}" for gap in claim.gaps]


@backends.command("verify")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def verify_backends(name: str | None, as_json: bool) -> int:
    """Attack every claim of the backends on this host, or of NAME alone.

    Each attack has an unrestricted twin that must succeed, and an allowed act that must still work.

    \b
    Exit codes: 0 all claims held · 1 a claim was refuted · 2 usage
    """
    import asyncio

    from licet.cli.terminal import put_json, put_table, say
    from licet.evidence import Attestor
    from licet.probe import verify
    from licet.runtime import Runtime

    runtime = Runtime()
    chosen = [b for b in runtime.backends if name in (None, b.describe().name)]
    if not chosen:
        raise _unknown(str(name), [b.describe().name for b in runtime.backends])

    async def attack() -> Any:
        try:
            return await verify(chosen, _progress(say if not as_json else None))
        finally:
            await runtime.aclose()

    report = asyncio.run(attack())
    Attestor().keep(report.results)
    if as_json:
        put_json(report.as_json())
    else:
        put_table(("backend", "control", "claimed", "measured", "by attacks", "gap"), _standings(report))
        say(
            f"{report.held} held · {report.leaked} refuted a claim · {report.inconclusive} inconclusive · "
            f"{report.unclaimed} on what nobody claims"
        )
    return 1 if report.leaked else 0


def _progress(say: Callable[[str], None] | None) -> Callable[[Any], None]:
    """Say on a terminal how far it is; a pipe hears only what went wrong."""
    done = 0

    def note(result: Any) -> None:
        nonlocal done
        done += 1
        if say is not None and sys.stderr.isatty():
            say(f"  {done:>4}  {result.backend} {result.control}/{result.variant}: {result.outcome}")

    return note


def _standings(report: Report) -> Iterable[tuple[str, ...]]:
    for backend, controls in report.standings.items():
        for control, known in controls.items():
            tried = [f for f in report.findings if (f.result.backend, f.result.control) == (backend, control)]
            if not tried:
                continue
            verdicts = Counter(finding.verdict for finding in tried)
            measured = "refuted" if verdicts["leaked"] else "held" if verdicts["held"] else "not claimed"
            if verdicts["inconclusive"]:
                measured = "inconclusive"
            gap = "; ".join(f.result.variant for f in tried if f.result.outcome.value == "leaked")
            yield backend, control.value, known.claim.level.value, measured, str(len(tried)), gap


def _unknown(name: str, known: Iterable[str]) -> UsageError:
    named = ", ".join(f"`{one}`" for one in sorted(known)) or "none"
    return UsageError(f"there is no backend `{name}`", advice=f"enabled are {named}")


def _descriptors() -> tuple[list[Descriptor], list[str]]:
    from licet.runtime import Runtime

    runtime = Runtime()
    return [backend.describe() for backend in runtime.backends], runtime.plugins.problems


def _enforced(descriptor: Descriptor) -> str:
    claims = [claim.level.rank for _, claim in descriptor.sandbox_enforcement_contract.items()]
    return f"{sum(rank == 3 for rank in claims)} of {len(claims)} controls"


def _json(descriptor: Descriptor) -> dict[str, Any]:
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
    }
