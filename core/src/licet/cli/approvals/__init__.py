"""`licet approvals`: what waits for a person, and people's answers. Each command lives in its own module."""

from __future__ import annotations

import click

from licet.cli.lazily import LazyGroup

_COMMANDS = {
    "list": ("licet.cli.approvals.listing", "listing"),
    "show": ("licet.cli.approvals.show", "show"),
    "approve": ("licet.cli.approvals.answer", "approve"),
    "deny": ("licet.cli.approvals.answer", "deny"),
    "revoke": ("licet.cli.approvals.revoke", "revoke"),
    "watch": ("licet.cli.approvals.watch", "watch"),
}


@click.group(cls=LazyGroup, modules=_COMMANDS)
def approvals() -> None:
    """See what waits for an approval, and answer."""
