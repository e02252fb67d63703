"""`licet audit`: read, query, prove and verify the trail. Each command lives in a module of its own."""

from __future__ import annotations

import click
from licet.cli.lazily import LazyGroup

_COMMANDS = {
    "erase": ("licet_audit.cli.erasing", "erase"),
    "hold": ("licet_audit.cli.holding", "hold"),
    "release": ("licet_audit.cli.holding", "release"),
    "prune": ("licet_audit.cli.pruning", "prune"),
    "list": ("licet_audit.cli.listing", "list_runs"),
    "query": ("licet_audit.cli.querying", "query"),
    "report": ("licet_audit.cli.reporting", "report"),
    "rerun": ("licet_audit.cli.rerunning", "rerun"),
    "show": ("licet_audit.cli.showing", "show_run"),
    "verify": ("licet_audit.cli.verifying", "verify"),
    "prove": ("licet_audit.cli.proving", "prove"),
    "anchor": ("licet_audit.cli.anchoring", "anchor"),
    "export": ("licet_audit.cli.exporting", "export"),
}


@click.group(cls=LazyGroup, modules=_COMMANDS)
def audit() -> None:
    """Read, query, prove and verify the trail."""
