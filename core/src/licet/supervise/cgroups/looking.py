"""What control groups can bound for this user on this host, and why they can't bound the rest.

Rules this module keeps:

- looking starts nothing and leaves nothing: that a group can be made is seen by making one and removing it;
- what has to be changed in groups of version 2 first is found out here, and changed by a `Home` alone;
- what can't be bounded says why, and what an administrator could change.
"""

from __future__ import annotations

import errno
import os
import sys
from functools import cache
from pathlib import Path

from licet.supervise.cgroups import unified
from licet.supervise.cgroups.files import exists, open_folder, read, reason_of
from licet.supervise.cgroups.folder import OwnFolder
from licet.supervise.cgroups.mounts import Memberships, Mount, folder, memberships, mounts
from licet.supervise.cgroups.places import Groups, Missing, Place, Resource

_ACCOUNTING = {1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}
_MADE_WITH = {
    (1, Resource.memory): "memory.limit_in_bytes",
    (1, Resource.pids): "pids.max",
    (1, Resource.cpu): "cpuacct.usage",
    (2, Resource.memory): "memory.max",
    (2, Resource.pids): "pids.max",
    (2, Resource.cpu): "cpu.stat",
}
_DELEGATE = "make a group there that belongs to this user, and start it in it"
_REFUSALS = (errno.EACCES, errno.EPERM)


@cache
def look() -> Groups:
    """Look what can be bounded here, once for this process."""
    if sys.platform != "linux":
        return Groups(missing=dict.fromkeys(Resource, Missing("control groups are Linux's")))
    try:
        own = memberships(Path("/proc/self/cgroup").read_text("utf-8", "replace"))
        mounted = mounts(Path("/proc/self/mountinfo").read_text("utf-8", "replace"))
    except OSError as problem:
        shown = Missing(f"the kernel does not show the groups of this process: {reason_of(problem)}")
        return Groups(missing=dict.fromkeys(Resource, shown))
    return survey(own, mounted)


def survey(own: Memberships, mounted: list[Mount]) -> Groups:
    """What can be bounded for a process with these memberships, where this is mounted."""
    places: dict[Resource, Place] = {}
    missing: dict[Resource, Missing] = {}
    for resource in Resource:
        found = _find(own, mounted, resource)
        if isinstance(found, Place):
            places[resource] = found
        else:
            missing[resource] = found
    return Groups(places, missing)


def _find(own: Memberships, mounted: list[Mount], resource: Resource) -> Place | Missing:
    path = own.first.get(resource.controller)
    if path is None:
        return _find_second(own, mounted, resource)
    shown = [one for one in mounted if resource.controller in one.controllers]
    return _first_of([Place(1, at) for one in shown if (at := folder(one, path))], bool(shown), resource)


def _find_second(own: Memberships, mounted: list[Mount], resource: Resource) -> Place | Missing:
    path = own.second
    shown = [one for one in mounted if one.version == 2]
    if path is None or not shown:
        return Missing(
            f"no hierarchy of control groups that has `{resource}` is mounted here",
            "mount the `cgroup2` file system at /sys/fs/cgroup",
        )
    found = [
        unified.find(at, one.folder if one.top == "/" else None, resource)
        for one in shown
        if (at := folder(one, path))
    ]
    return _first_of(found, bool(shown), resource)


def _first_of(found: list[Place | Missing], is_mounted: bool, resource: Resource) -> Place | Missing:
    """The first place that works, else why the last does not."""
    last = Missing(
        f"this process's group of `{resource}` lies outside of what is mounted here"
        if is_mounted
        else f"the hierarchy of `{resource}` is not mounted here",
        "mount it where this process is, with its own group in it",
    )
    for one in found:
        if isinstance(one, Place):
            why = _why_not(one, resource)
            if why is None:
                return one
            last = why
        else:
            last = one
    return last


def _why_not(place: Place, resource: Resource) -> Missing | None:
    """Try to make a group at `place`; None if one can be made and has what it takes."""
    try:
        at = open_folder(place.folder)
    except OSError as problem:
        return _unmade(place, problem)
    try:
        if place.version == 1 and resource is Resource.memory and _is_flat(at):
            return Missing(f"limits of memory do not hold for groups below `{place.folder}` (use_hierarchy)")
        with OwnFolder(at) as made:
            if place.version == 2 and not _may_move(at):
                return Missing(f"this user may not move processes to groups below `{place.folder}`")
            if place.enable or place.leave:
                return None
            return _lacking(place.version, made.descriptor, resource)
    except OSError as problem:
        return _unmade(place, problem)
    finally:
        os.close(at)


def _is_flat(at: int) -> bool:
    """Whether the limits of a group of version 1 do not hold for groups below it; the root has none."""
    return (read("memory.use_hierarchy", at) or "1").strip() == "0" and not exists("cgroup.sane_behavior", at)


def _may_move(at: int) -> bool:
    return os.access("cgroup.procs", os.W_OK, dir_fd=at, effective_ids=True)


def _lacking(version: int, at: int, resource: Resource) -> Missing | None:
    """What a group that was made lacks of what bounds a resource."""
    needed = _MADE_WITH[version, resource]
    if not exists(needed, at):
        return Missing(f"groups are made here without `{needed}`, which this kernel is too old for")
    if resource is Resource.memory and not exists(_ACCOUNTING[version], at) and _swaps():
        return Missing(
            "memory that is swapped out is not counted here, and swap is on",
            "start the kernel with `swapaccount=1`, or turn swap off",
        )
    return None


def _swaps() -> bool:
    try:
        return len(Path("/proc/swaps").read_text().splitlines()) > 1
    except OSError:
        return False


def _unmade(place: Place, problem: OSError) -> Missing:
    """Why no group could be made at `place`."""
    where = f"`{place.folder}`"
    if problem.errno == errno.EROFS:
        why = f"{where} is mounted read-only"
        return Missing(why, "give the container a mount of its control groups that it may write to")
    if problem.errno in _REFUSALS:
        advice = unified.DELEGATE if place.version == 2 else _DELEGATE
        return Missing(f"this user may not make groups in {where}", advice)
    if problem.errno == errno.EAGAIN:
        return Missing(f"no more groups may be made in {where}", "raise `cgroup.max.descendants` there")
    return Missing(f"no group can be made in {where}: {reason_of(problem)}")
