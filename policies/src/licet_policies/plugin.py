"""The policy packs that licet ships."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from licet.hookspecs import hookimpl

_PACKS = Path(__file__).parent / "packs"


@hookimpl
def licet_policy_packs() -> Mapping[str, Path]:
    """Every file in `packs`, by its name without the ending."""
    return {path.stem: path for path in sorted(_PACKS.glob("*.yaml"))}
