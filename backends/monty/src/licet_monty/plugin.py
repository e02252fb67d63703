"""What licet finds by the entry point `monty`: the backend, without importing or starting Monty."""

from __future__ import annotations

from collections.abc import Sequence

from licet.backend import Backend
from licet.hookspecs import hookimpl

from licet_monty.backend import MontyBackend


@hookimpl
def licet_backends() -> Sequence[Backend]:
    """Return the Monty backend; no worker starts before a sandbox is opened."""
    return [MontyBackend()]
