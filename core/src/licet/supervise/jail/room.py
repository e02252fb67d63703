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

from licet.supervise.descriptors import Descriptors
from licet.supervise.jail.layout import Cover, Layout
from licet.supervise.jail.message import counted
from licet.supervise.jail.spec import Written
from licet.supervise.keeper import PATIENCE
from licet.supervise.spec import Spec

_CREDENTIALS = struct.Struct("3i")
_MOST_FDS = 64
_CHUNK = 1 << 12


class Room:
    """What `licet.supervise.process` knows of a jail: a keeper that keeps one run."""

    fresh = True
    idle = None

    def __init__(self, how: Layout, spec: Spec, launcher: Any = None) -> None:
        self.launcher = launcher
        self.listener: int | None = None
        self.pid = 0
        self._how = how
        self._spec = spec
        self._fds = Descriptors()
        self._first: int | None = None
        self._written: list[int] = []
        self._control, theirs = socket.socketpair()
        self._control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.control = self._control.fileno()
        self.theirs = self._fds.own(theirs.detach())

    def groups(self) -> list[int]:
        """Where the first process writes itself into control groups."""
        return []

    def limits(self) -> dict[int, tuple[int, int]]:
        """The limits of each process."""
        import resource

        from licet.supervise import bootstrap

        found = bootstrap.limits(self._spec)
        if self._spec.processes is not None:
            most = self._spec.processes + 1  # the first process of the room is ours
            found[resource.RLIMIT_NPROC] = (most, most)
        return found

    def begin(self) -> None:
        """Let go of what the room has now."""
        self._fds.close(self.theirs)

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
        word = data.partition(b" ")[0].strip()
        if word == b"taken":
            self._meet(speaker)
        elif word == b"written":
            self._written = fds
        elif word == b"ready":
            self.listener = fds[0] if fds else None
            return b"started %d\n" % speaker + data
        return data

    def _meet(self, speaker: int) -> None:
        self.pid = speaker
        with contextlib.suppress(OSError):
            self._first = self._fds.own(os.pidfd_open(speaker))

    def written(self) -> tuple[Written, ...]:
        """What the code could write, for the caller to close; empty if the room was never furnished."""
        places = counted(self._how)
        if len(places) != len(self._written):
            return ()
        return tuple(
            Written(_folder_of(place), os.dup(fd), place.kind != "overlay")
            for place, fd in zip(places, self._written, strict=True)
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
        self._control.close()
        self._fds.__exit__(None, None, None)


def _folder_of(place: Cover) -> str:
    """The folder of the host that a place stands for: of a single file, the one that it lies in."""
    return place.path.rpartition("/")[0] or "/" if place.kind in ("file", "new_file") else place.path
