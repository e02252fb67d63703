"""The group of one run: its limits, who is in it, what they have used, and its end.

Rules this module keeps:

- a limit is in force when the kernel shows it again, and the group does not exist otherwise;
- that a limit was reached is told by the group's own counters alone, never by how a process ended;
- what the kernel does not count is unknown, never nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

from licet.supervise.cgroups import ending
from licet.supervise.cgroups.files import (
    entry,
    exists,
    number,
    open_file,
    open_folder,
    read,
    set_and_see,
)
from licet.supervise.cgroups.places import Resource, Ungrouped

T = TypeVar("T")

_PATIENCE = 1.0  # seconds for those who were killed to be gone
_CPU = {1: "cpuacct.usage", 2: "cpu.stat"}
_PEAK = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}
_FULL = (
    ("memory.limit_in_bytes", "memory.max_usage_in_bytes"),
    ("memory.memsw.limit_in_bytes", "memory.memsw.max_usage_in_bytes"),
)
_MOST_PAGES = 9  # for 8 and less that can't be had at once the kernel kills, for more it says no
_KILLS = {1: "memory.oom_control", 2: "memory.events"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a group may have at most, where it is not None.

    `memory` is in bytes, and is held in whole pages; what is swapped out counts as well, or nothing is.
    `pids` counts tasks: each process, the first one included, and each thread.
    """

    memory: int | None = None
    pids: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("memory", self.memory), ("pids", self.pids)):
            if value is not None and value <= 0:
                raise ValueError(f"`{name}` has to be above 0")


@dataclass(frozen=True, slots=True)
class Usage:
    """What all that were ever in a group have used; None where it is not counted here.

    `cpu` is in seconds, `peak_memory` in bytes, and the highest that all had together. `oom_kills` counts
    processes that the kernel killed because the group's memory was used up, `pids_refused` the tasks that
    were not made because the group, or one that it is in, had its number.
    """

    cpu: float | None = None
    peak_memory: int | None = None
    oom_kills: int | None = None
    pids_refused: int | None = None


class Branch:
    """A group in one hierarchy, new, below the open group `at`.

    Raises:
        OSError: it can't be made.
    """

    def __init__(self, version: int, resources: frozenset[Resource], at: int, name: str) -> None:
        self.version = version
        self.resources = resources
        self._at = at
        self._name = name
        self._open: list[int] = []
        os.mkdir(name, 0o700, dir_fd=at)
        try:
            self.folder = self._keep(open_folder(name, at))
            self.entrance = self._keep(open_file("cgroup.procs", self.folder, os.O_WRONLY))
            self._clock = None
            if Resource.cpu in resources:
                self._clock = self._keep(open_file(_CPU[version], self.folder))
        except BaseException:
            self.close(0)
            raise

    def _keep(self, descriptor: int) -> int:
        self._open.append(descriptor)
        return descriptor

    def limit(self, limits: Limits) -> None:
        """Set what is bounded in this hierarchy.

        Raises:
            OSError: the kernel does not take it.
            Ungrouped: it shows something else afterwards.
        """
        if Resource.memory in self.resources and limits.memory is not None:
            self._limit_memory(limits.memory)
        if Resource.pids in self.resources and limits.pids is not None:
            self._set("pids.max", str(limits.pids))

    def _limit_memory(self, memory: int) -> None:
        most = memory - memory % os.sysconf("SC_PAGESIZE")
        if self.version == 2:
            self._set("memory.max", str(most))
            self._set("memory.swap.max", "0", where_counted=True)
        else:
            self._set("memory.limit_in_bytes", str(most))
            self._set("memory.memsw.limit_in_bytes", str(most), where_counted=True)

    def _set(self, name: str, value: str, *, where_counted: bool = False) -> None:
        if where_counted and not exists(name, self.folder):
            return
        seen = set_and_see(name, value, self.folder)
        if seen != value:
            raise Ungrouped(f"`{name}` was set to {value}, and the kernel shows {seen}")

    def cpu(self) -> float | None:
        """Seconds of processors that were used so far, if they are counted in this hierarchy."""
        if self._clock is None:
            return None
        text = os.pread(self._clock, 4096, 0).decode("ascii", "replace")
        if self.version == 1:
            spent = number(text)
            return None if spent is None else spent / 1e9
        spent = entry(text, "usage_usec")
        return None if spent is None else spent / 1e6

    def usage(self) -> Usage:
        """What is counted in this hierarchy."""
        at, peak, kills, refused = self.folder, None, None, None
        if Resource.memory in self.resources:
            peak = number(read(_PEAK[self.version], at))
            kills = self._kills()
        if Resource.pids in self.resources:
            refused = entry(read("pids.events", at), "max")
        return Usage(self.cpu(), peak, kills, refused)

    def _kills(self) -> int | None:
        """How many were killed for the group's memory; not those who were killed for the whole host's."""
        kills = entry(read(_KILLS[self.version], self.folder), "oom_kill")
        if not kills:
            return kills
        if self.version == 2:
            reached = entry(read("memory.events", self.folder), "max") != 0
        else:
            reached = any(self._was_full(most, peak) for most, peak in _FULL)
        return kills if reached else 0

    def _was_full(self, most: str, peak: str) -> bool:
        """Whether a group of version 1 once had no room for what the kernel kills for.

        Its counter of failures is no help: there are kernels that leave it at 0.
        """
        limit, highest = number(read(most, self.folder)), number(read(peak, self.folder))
        room = _MOST_PAGES * os.sysconf("SC_PAGESIZE")
        return limit is not None and highest is not None and highest > limit - room

    def close(self, seconds: float) -> bool:
        """Kill who is in it and remove it; False if it is still there after `seconds`."""
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()
        return ending.remove(self._name, self._at, seconds)


class Group:
    """One run's group, made by `Home.group`, in as many hierarchies as its resources lie in.

    The kernel shows `limits` as they were asked for.

    Raises:
        OSError: the kernel does not take a limit.
        Ungrouped: it shows another one afterwards.
    """

    def __init__(self, branches: Sequence[Branch], limits: Limits) -> None:
        self._branches = tuple(branches)
        self.limits = limits
        for branch in self._branches:
            branch.limit(limits)

    def __enter__(self) -> Group:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """One for each hierarchy: a process that writes `0` to each has put itself there, with its threads.

        They belong to the group, and a new program does not get them. What is put in has to close its own
        before it runs any code of the guest.
        """
        return tuple(branch.entrance for branch in self._branches)

    @property
    def folder(self) -> int | None:
        """The open folder for `clone3` with `CLONE_INTO_CGROUP`, which then needs nothing else.

        None where a hierarchy of version 1 has a part in it.
        """
        only = self._branches[0]
        return only.folder if len(self._branches) == 1 and only.version == 2 else None

    def add(self, pid: int) -> None:
        """Put a process there, with all of its threads; children that it has already stay where they are.

        Raises:
            OSError: it is gone, or this user may not move it.
        """
        for entrance in self.descriptors:
            os.write(entrance, str(pid).encode("ascii"))

    def cpu_seconds(self) -> float | None:
        """Seconds of processors that all have used so far, the dead included; None if it is not counted."""
        return _known(branch.cpu() for branch in self._branches)

    def usage(self) -> Usage:
        """What was used so far; it can be asked until the group is closed."""
        found = [branch.usage() for branch in self._branches]
        return Usage(
            cpu=_known(one.cpu for one in found),
            peak_memory=_known(one.peak_memory for one in found),
            oom_kills=_known(one.oom_kills for one in found),
            pids_refused=_known(one.pids_refused for one in found),
        )

    def kill(self) -> None:
        """Kill all that are seen in it, and let none be made there where `pids` is bounded; wait for nobody.

        One that was being made at that moment is killed by `close` at the latest.
        """
        for branch in self._branches:
            ending.kill(branch.folder)

    def members(self) -> set[int]:
        """The processes that are in it, wholly or in part, by their numbers in this namespace."""
        return set().union(*(ending.members(branch.folder) for branch in self._branches))

    def close(self, seconds: float = _PATIENCE) -> bool:
        """Kill who is in it and remove it; False if that took longer than `seconds`, and a sweep has to."""
        branches, self._branches = self._branches, ()
        left = [branch for branch in branches if not branch.close(seconds)]
        return not left


def _known(values: Iterable[T | None]) -> T | None:
    """The first that is known."""
    return next((value for value in values if value is not None), None)
