"""One run in a jail, seen from the host: the socket to the first process of its namespaces.

Rules this module keeps:

- who speaks is told by the kernel, with the number that the process has here;
- the first process is killed through a descriptor that was opened while it spoke.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
from typing import Any

from licet.supervise import readback
from licet.supervise.cgroups import Group, Resource, Usage
from licet.supervise.descriptors import Descriptors
from licet.supervise.jail import sight
from licet.supervise.jail.layout import Cover, Layout
from licet.supervise.jail.message import counted
from licet.supervise.jail.spec import Written, identity
from licet.supervise.jail.standing import ground
from licet.supervise.keeper import PATIENCE
from licet.supervise.moments import Moment, await_coarse
from licet.supervise.spec import Reason, Spec, Used

_CREDENTIALS = struct.Struct("3i")
_MOST_FDS = 64
_CHUNK = 1 << 12

LOOK_EACH = 0.02
"""After how many seconds it is asked again what a room has used."""


class Room:
    """What `licet.supervise.process` knows of a jail: a keeper that keeps one run."""

    fresh = True

    def __init__(
        self, how: Layout, spec: Spec, launcher: Any, group: Group | None, bounded: frozenset[Resource]
    ) -> None:
        self.launcher = launcher
        self._bounded = bounded if group is not None else frozenset()
        watched = spec.cpu_time is not None or spec.memory is not None
        self.look_each = LOOK_EACH if group is not None and watched else None
        self._group = group
        self._counted: Usage | None = None
        self._moment = Moment.now() if counted(how) else None
        self._lower = [identity(place.path) for place in counted(how)]
        self.listener: int | None = None
        self.pid = 0
        self._how = how
        self._spec = spec
        self._fds = Descriptors()
        self._first: int | None = None
        self._order = -1
        self._storage: int | None = None
        self._written: list[int] = []
        self._control, theirs = socket.socketpair()
        self._control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.control = self._control.fileno()
        self.theirs = self._fds.own(theirs.detach())

    def groups(self) -> list[int]:
        """Where the first process writes itself into control groups."""
        return [] if self._group is None else list(self._group.descriptors)

    def limits(self) -> dict[int, tuple[int, int]]:
        """The limits of each process."""
        import resource

        from licet.supervise import bootstrap

        found = bootstrap.limits(self._spec)
        if Resource.memory in self._bounded:
            found.pop(resource.RLIMIT_AS, None)
        if self._spec.processes is not None and Resource.pids not in self._bounded:
            most = self._spec.processes + 1  # the first process of the room is ours
            found[resource.RLIMIT_NPROC] = (most, most)
        return found

    def order(self, text: bytes) -> int:
        """A file in memory with what the guest is told before its code."""
        self._order = self._fds.own(os.memfd_create("order"))
        os.write(self._order, text)
        return self._order

    def begin(self) -> None:
        """Let go of what the room has now."""
        for fd in (self.theirs, self._order):
            self._fds.close(fd)

    def message(self, spec: Spec) -> bytes:
        """Nothing is left to be said: its launcher has told it all."""
        return b""

    def hear(self) -> bytes | None:
        """What is said in the room: b"" once it is gone, None if there is nothing now."""
        try:
            space = socket.CMSG_SPACE(4 * _MOST_FDS) + socket.CMSG_SPACE(_CREDENTIALS.size)
            data, ancillary, _, _ = self._control.recvmsg(_CHUNK, space, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return None
        except OSError:
            return b""
        speaker, fds = 0, []
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds += [self._fds.own(fd) for fd in memoryview(content).cast("i")]
            elif level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                speaker = _CREDENTIALS.unpack(content)[0]
        said = [self._take(line, speaker, fds) for line in data.splitlines(keepends=True)]
        return b"".join(said)

    def _take(self, line: bytes, speaker: int, fds: list[int]) -> bytes:
        """Keep what comes with a line; descriptors come with the last of those that are read at once."""
        word = line.partition(b" ")[0].strip()
        if word == b"taken":
            self._meet(speaker)
        elif word == b"furnished" and fds:
            self._storage, *self._written = fds
        elif word == b"ready":
            self.listener = (
                fds[0] if fds and self._spec.jail is not None and self._spec.jail.network else None
            )
            return b"started %d\n" % speaker + line
        return line

    def _meet(self, speaker: int) -> None:
        self.pid = speaker
        with contextlib.suppress(OSError):
            self._first = self._fds.own(os.pidfd_open(speaker))

    def written(self) -> tuple[Written, ...]:
        """What the code could write, for the caller to close; empty if the room was never furnished."""
        places = counted(self._how)
        if len(places) != len(self._written) or self._moment is None:
            return ()
        return tuple(
            Written(_folder_of(place), os.dup(fd), place.kind != "overlay", lower, self._moment)
            for place, fd, lower in zip(places, self._written, self._lower, strict=True)
        )

    def settled(self) -> None:
        """Wait until what others change from now on can be told from what they changed before."""
        if self._moment is not None:
            await_coarse(self._moment.settled_ns)

    def look(self, guest: int, spec: Spec) -> dict[str, str]:
        """What the system shows of the guest, and of what it is in.

        Raises:
            NotTaken: a wall does not stand, or a limit is not in force.
        """
        seen = sight.look(guest, self._how, spec.environment, users=ground().users)
        grouped = {} if self._group is None else sight.grouped(guest, self._group)
        return {**readback.look(guest, self.limits()), **seen, **grouped}

    def used_up(self) -> Reason | None:
        """Whether all of its processes together have used their time, or their memory.

        Where the kernel has ended one of them for that, the others would wait for it.
        """
        if self._spec.memory is not None and self._group is not None and self._group.usage().oom_kills:
            return Reason.memory_limit
        spent = None if self._group is None else self._group.cpu_seconds()
        if spent is None or self._spec.cpu_time is None or spent < self._spec.cpu_time:
            return None
        return Reason.cpu_limit

    def reached(self) -> frozenset[Reason]:
        """What was in its way, by counters of its control group and of its storage."""
        if self._group is not None:
            self._counted = self._group.usage()
        found = {
            Reason.memory_limit: self._counted is not None and self._counted.oom_kills,
            Reason.process_limit: self._counted is not None and self._counted.pids_refused,
            Reason.file_limit: _is_full(self._storage),
        }
        return frozenset(reason for reason, so in found.items() if so)

    def used(self, told: Used) -> Used:
        """What its control group has counted, where it has one."""
        counted = self._counted or Usage()
        return Used(
            told.wall_time,
            told.cpu_time if counted.cpu is None else counted.cpu,
            told.peak_memory if counted.peak_memory is None else counted.peak_memory,
            None if self._storage is None else _taken(self._storage),
        )

    def kill(self) -> None:
        """End all that is in the room."""
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        else:
            self.hang_up()

    def hang_up(self) -> None:
        """Have the room end, whoever else holds the socket."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def wait(self) -> None:
        """Return once the room is gone."""
        if self._first is not None:
            import select

            if not select.select([self._first], [], [], PATIENCE)[0]:
                self.kill()
                select.select([self._first], [], [], PATIENCE)
        self.forget()

    def forget(self) -> None:
        """Close all that is open here."""
        if self._group is not None:
            self._group.close()
        self._control.close()
        self._fds.__exit__(None, None, None)


def _is_full(storage: int | None) -> bool:
    if storage is None:
        return False
    found = os.fstatvfs(storage)
    return found.f_bfree == 0 or found.f_ffree == 0


def _taken(storage: int) -> int:
    """Bytes of storage that are in use."""
    found = os.fstatvfs(storage)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _folder_of(place: Cover) -> str:
    """The folder of the host that a place stands for: of a single file, the one that it lies in."""
    return place.path.rpartition("/")[0] or "/" if place.kind in ("file", "new_file") else place.path
