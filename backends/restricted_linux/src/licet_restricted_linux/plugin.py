"""The entry point: hands the backend to licet."""

from __future__ import annotations

from collections.abc import Sequence

from licet.backend import Backend
from licet.hookspecs import hookimpl

from licet_restricted_linux.backend import RestrictedLinux


@hookimpl
def licet_backends() -> Sequence[Backend]:
    """Return the one backend of this distribution."""
    return [RestrictedLinux()]
