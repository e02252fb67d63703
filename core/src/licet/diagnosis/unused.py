"""Plugins and backends that could enforce something and don't: missing, broken, off, unavailable. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from licet.backend import Descriptor
from licet.settings import STANDARD

_WHERE = "`enabled` of config.toml, or LICET_ENABLED"


@dataclass(frozen=True, slots=True)
class Unused:
    """Something that is not in use: what was `found`, and what would help."""

    found: str
    advice: str


def unused(
    enabled: Sequence[str],
    installed: Collection[str],
    problems: Iterable[str],
    descriptors: Iterable[Descriptor],
) -> tuple[Unused, ...]:
    """All of them; `problems` are what loading the enabled plugins ran into, in words."""
    return tuple(_unused(enabled, installed, problems, descriptors))


def _unused(
    enabled: Sequence[str],
    installed: Collection[str],
    problems: Iterable[str],
    descriptors: Iterable[Descriptor],
) -> Iterator[Unused]:
    absent = [name for name in enabled if name not in installed]
    for name in absent:
        package = "with `pip install 'licet[standard]'`" if name in STANDARD else "the package that brings it"
        yield Unused(f"plugin `{name}` is not installed", f"install {package}, or take it out of {_WHERE}")
    for problem in problems:
        if not any(problem.startswith(f"plugin `{name}` ") for name in absent):
            yield Unused(problem, f"repair or upgrade that package, or take it out of {_WHERE}")
    for name in sorted(set(installed) - set(enabled)):
        yield Unused(f"plugin `{name}` is installed and not enabled", f"add it to {_WHERE}")
    for descriptor in descriptors:
        if descriptor.unavailable is not None:
            yield Unused(
                f"backend `{descriptor.name}` can't run here: {descriptor.unavailable}",
                f"change that, or take its plugin out of {_WHERE}",
            )
