"""Public names that are imported at their first use, so that a command pays only for what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attribute_importer(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A module `__getattr__` (PEP 562) for `package`; `homes` maps a public name to its submodule."""

    def import_attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return import_attribute
