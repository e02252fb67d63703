"""What the entry point `echo` names: licet imports it only where `echo` is enabled."""

from __future__ import annotations

from collections.abc import Sequence

from licet.backend import Backend
from licet.hookspecs import hookimpl


@hookimpl
def licet_backends() -> Sequence[Backend]:
    """The one backend of this plugin."""
    from licet_echo.backend import Echo

    return (Echo(),)
