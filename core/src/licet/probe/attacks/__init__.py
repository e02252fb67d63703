"""The attacks, one module a family, each a tuple of data. Nothing here runs anything.

A control has at least one `quick` attack; the other variants are run by `licet backends verify`. An attack
without `needs` is the same on every system; `windows` has those that are others there.
"""

from __future__ import annotations

from collections.abc import Iterable

from licet.contract import Control
from licet.probe.attack import Attack
from licet.probe.attacks import (
    environment,
    filesystem,
    kernel,
    network,
    output,
    processes,
    resources,
    state,
    supervision,
    windows,
)
from licet.probe.conditions import present

ATTACKS: tuple[Attack, ...] = (
    *processes.SHELL,
    *supervision.TIMEOUT,
    *supervision.CANCELLATION,
    *output.ATTACKS,
    *environment.ATTACKS,
    *processes.CLEANUP,
    *processes.COUNT,
    *resources.CPU,
    *resources.MEMORY,
    *filesystem.READ,
    *filesystem.WRITE,
    *network.INTERNET,
    *network.FILTER,
    *network.UNIX,
    *resources.DISK,
    *supervision.ORPHANS,
    *kernel.ISOLATION,
    *kernel.PRIVILEGES,
    *kernel.SYSTEM_CALLS,
    *environment.HANDLES,
    *state.ATTACKS,
    *kernel.SEPARATE,
    *windows.SHELL,
    *windows.ENVIRONMENT,
    *windows.CLEANUP,
    *windows.COUNT,
)


def here(control: Control | None = None, attacks: Iterable[Attack] = ATTACKS) -> tuple[Attack, ...]:
    """The attacks that mean something on this host, on one control or on all."""
    conditions = present()
    return tuple(
        attack for attack in attacks if control in (None, attack.control) and attack.needs <= conditions
    )
