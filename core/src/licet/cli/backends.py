"""`licet backends`: what is installed, and what each claims to enforce."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from licet.errors import UsageError

if TYPE_CHECKING:
    from licet.backend import Descriptor
    from licet.contract import Enforcement

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
        known = ", ".join(f"`{known}`" for known in sorted(found)) or "none"
        raise UsageError(f"there is no backend `{name}`", advice=f"enabled are {known}")
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
