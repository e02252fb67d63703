"""Where one process makes the groups of its runs, in every hierarchy that it needs.

Rules this module keeps:

- a group is made new for each run and is never used again: what one run has used is never told of another;
- what a place needs first is done here alone: this process moves into a group below one that was handed to
  it, where it has to, and is moved back if that was in vain. Only this process is moved;
- controllers are switched on and never off: another process may depend on them by then.
"""

from __future__ import annotations

import contextlib
import errno
import os
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import TracebackType

from licet.supervise.cgroups.files import open_folder, read, reason_of, write
from licet.supervise.cgroups.folder import OwnFolder, sweep_folder
from licet.supervise.cgroups.group import Branch, Group, Limits
from licet.supervise.cgroups.looking import look
from licet.supervise.cgroups.places import Groups, Place, Resource, Ungrouped

HOSTS = "hosts-of-licet"
"""The group into which processes move that have to leave the one above; it is not one of a run."""


class Home:
    """The folders of this process, one in each hierarchy, until it is closed; groups are made below them.

    Make it before other processes are started that stay in this process's group: version 2 may need the
    group empty. It can be used from several threads; a fork of this process has to make its own.

    Raises:
        Ungrouped: nothing can be bounded here, or a place is not as it was when it was looked at.
    """

    def __init__(self, groups: Groups | None = None) -> None:
        self._groups = look() if groups is None else groups
        self._serial = count(1)
        self._owner = os.getpid()
        self._rooms: list[tuple[Place, frozenset[Resource], OwnFolder]] = []
        bases = self._groups.bases()
        if not bases:
            raise Ungrouped(_why_nothing(self._groups))
        with ExitStack() as undo:
            for place, resources in bases.values():
                try:
                    folder = undo.enter_context(_move_in(place, resources))
                except OSError as problem:
                    why = f"no group can be made in `{place.folder}`: {reason_of(problem)}"
                    raise Ungrouped(why) from None
                self._rooms.append((place, resources, folder))
            self._close = undo.pop_all()

    def __enter__(self) -> Home:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def group(self, limits: Limits) -> Group:
        """Make the group of a run.

        Raises:
            Ungrouped: a limit can't be held here, or the kernel does not take it.
        """
        if os.getpid() != self._owner:
            raise Ungrouped("these groups are those of the process that this one was forked from")
        for resource, limit in ((Resource.memory, limits.memory), (Resource.pids, limits.pids)):
            if limit is not None and resource in self._groups.missing:
                raise Ungrouped(self._groups.missing[resource].reason)
        name = str(next(self._serial))
        branches: list[Branch] = []
        try:
            for place, resources, folder in self._rooms:
                branches.append(Branch(place.version, resources, folder.descriptor, name))
            return Group(branches, limits)
        except (OSError, Ungrouped) as problem:
            for branch in branches:
                branch.close(0)
            if isinstance(problem, Ungrouped):
                raise
            raise Ungrouped(f"the group of the run can't be made: {reason_of(problem)}") from None

    def close(self) -> None:
        """Remove the folders, with the groups that are still there, and kill who is in them."""
        if os.getpid() == self._owner:
            self._close.close()


def sweep(groups: Groups | None = None) -> int:
    """End and remove what hosts have left here that are dead; return how many hosts and hierarchies it was.

    It is safe beside other processes that make groups, sweep, or end.
    """
    swept = 0
    for folder in (look() if groups is None else groups).bases():
        with contextlib.suppress(OSError):
            at = open_folder(folder)
            try:
                swept += sweep_folder(at)
            finally:
                os.close(at)
    return swept


def _why_nothing(groups: Groups) -> str:
    return "; ".join(dict.fromkeys(missing.reason for missing in groups.missing.values()))


def _move_in(place: Place, resources: frozenset[Resource]) -> OwnFolder:
    """Make the folder at a place, after what the place needs.

    Raises:
        OSError: the place can't be had so.
    """
    at = open_folder(place.folder)
    try:
        if place.version == 2:
            _prepare(place, at)
        folder = OwnFolder(at)
    finally:
        os.close(at)
    try:
        handed = sorted(frozenset().union(*(resource.needed for resource in resources)))
        if place.version == 2 and handed:
            _switch_on(handed, folder.descriptor)
    except BaseException:
        folder.close()
        raise
    return folder


def _prepare(place: Place, at: int) -> None:
    """Have a group of version 2 hand down what is needed."""
    wanted = sorted(place.enable - set((read("cgroup.subtree_control", at) or "").split()))
    if not wanted:
        return
    is_in = place.leave and str(os.getpid()) in (read("cgroup.procs", at) or "").split()
    if is_in:
        _move_down(at)
    try:
        _switch_on(wanted, at)
    except OSError as problem:
        if is_in:
            write("cgroup.procs", "0", at)
        if problem.errno == errno.EBUSY:
            raise OSError(errno.EBUSY, "other processes are in it, so it hands nothing down") from None
        raise


def _move_down(at: int) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(HOSTS, 0o755, dir_fd=at)
    write(str(Path(HOSTS, "cgroup.procs")), "0", at)


def _switch_on(controllers: list[str], at: int) -> None:
    write("cgroup.subtree_control", " ".join(f"+{name}" for name in controllers), at)
