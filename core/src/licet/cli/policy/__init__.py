"""`licet policy`: what the authors of policies do with them. Each command lives in a module of its own."""

from __future__ import annotations

import click

from licet.cli.lazily import LazyGroup

_COMMANDS = {
    "init": ("licet.cli.policy.init", "init"),
    "check": ("licet.cli.policy.check", "check"),
    "show": ("licet.cli.policy.show", "show"),
    "test": ("licet.cli.policy.test", "test"),
    "diff": ("licet.cli.policy.diff", "diff"),
    "impact": ("licet.cli.policy.impact", "impact"),
    "suggest": ("licet.cli.policy.suggest", "suggest"),
    "schema": ("licet.cli.policy.schema", "schema"),
}


@click.group(cls=LazyGroup, modules=_COMMANDS)
def policy() -> None:
    """Start, check, show, test, compare and roll out policies."""
