"""The entry point: hands the backend to licet."""

from __future__ import annotations

from collections.abc import Sequence

from licet.backend import Backend
from licet.hookspecs import hookimpl

from licet_controlled_process.backend import ControlledProcess


@hookimpl
def licet_backends() -> Sequence[Backend]:
    """Return the one backend of this distribution."""
    return [ControlledProcess()]
