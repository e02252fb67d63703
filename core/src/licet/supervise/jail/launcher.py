"""The launchers of this process: started when a jail is first asked for, kept while they are used.

Rules this module keeps:

- a launcher serves runs of one jail, one interpreter and one `Spec.sharing`, as the host stands now: where a
  path that the jail names leads elsewhere than when it was started, another is started;
- none is used that inherited from this process what it would not inherit now;
- each ends by itself when nobody asked for long enough, and with this process, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import threading
import weakref

from licet.supervise import bootstrap
from licet.supervise.cgroups import Group, Home, Limits, Resource, Ungrouped, look, sweep
from licet.supervise.descriptors import Descriptors
from licet.supervise.inheritance import inheritance
from licet.supervise.jail.layout import layout
from licet.supervise.jail.message import launcher_message, order
from licet.supervise.jail.room import Room
from licet.supervise.jail.spec import Jail
from licet.supervise.jail.standing import ground
from licet.supervise.keeper import Ends
from licet.supervise.spec import Spec

MOST = 8
"""How many launchers there are at once; the one that was used least lately makes room."""

ROOM = {"_": " " * 8190}
"""What a launcher is started with: room in which each run shows its own variables."""

PATIENCE = 10.0
"""How many seconds a launcher has to be ready."""


class JailLauncher:
    """Has runs begin in a jail; give it to `run`, from any thread.

    Without `Spec.warm`, a run has a launcher that is started for it and serves no other.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._processes: dict[object, _Process] = {}
        self._home: Home | None = None
        weakref.finalize(self, _dismiss, self._processes, self._owner)

    def find(self, ends: Ends, spec: Spec) -> Room:
        """Have a room made that is given `ends`.

        Raises:
            OSError: it can't be, and why.
        """
        if spec.jail is None:
            raise OSError(22, "no jail is asked for")
        if self._owner != os.getpid():
            self._begin()  # a fork of the process that has them: they are not ours
        warm = spec.warm
        key = (spec.jail, spec.jail.standing(), spec.interpreter, spec.sharing, repr(inheritance()))
        while (process := self._take(key) if warm else None) is not None:
            if (room := process.room(ends, spec, *self._group(spec))) is not None:
                return room
            self._retire(process)
        process = _Process(spec.jail, spec.interpreter, warm=warm)
        if (room := process.room(ends, spec, *self._group(spec))) is None:
            process.dismiss()
            raise OSError(32, "the launcher ended before it ran anything")
        self._keep(key if warm else None, process)
        return room

    def _group(self, spec: Spec) -> tuple[Group | None, frozenset[Resource]]:
        """A control group for a run, and what it bounds; None where this user can have none."""
        bounded = frozenset(look().places)
        if not bounded:
            return None, bounded
        limits = Limits(
            spec.memory if Resource.memory in bounded else None,
            spec.processes + 1 if spec.processes is not None and Resource.pids in bounded else None,
        )
        try:
            with self._lock:
                if self._home is None:
                    sweep()
                    self._home = Home()
                home = self._home
            return home.group(limits), bounded
        except Ungrouped as problem:
            raise OSError(1, str(problem)) from None

    def part(self, room: Room, /, *, well: bool) -> None:
        """Take leave of a room whose run is over."""
        room.wait()
        with self._lock:
            room.launcher.users -= 1
            gone = room.launcher.retired and not room.launcher.users
        if gone:
            room.launcher.dismiss()

    def _take(self, key: object) -> _Process | None:
        """The launcher for this, and one more user of it."""
        with self._lock:
            process = self._processes.pop(key, None)
            if process is not None:
                self._processes[key] = process
                process.users += 1
        return process

    def _retire(self, process: _Process) -> None:
        """Use a launcher no more that is gone."""
        with self._lock:
            for key in [key for key, one in self._processes.items() if one is process]:
                del self._processes[key]
            process.users -= 1
        process.dismiss()

    def _keep(self, key: object, process: _Process) -> None:
        """Keep a new launcher for others, or without a `key` until its only run is over."""
        with self._lock:
            process.users += 1
            process.retired = key is None or key in self._processes
            if not process.retired:
                self._processes[key] = process
            surplus = [one for one in self._processes.values() if one is not process][: -(MOST - 1)]
            for one in surplus:
                one.retired = True
            for place in [place for place, one in self._processes.items() if one.retired]:
                del self._processes[place]
            idle = [one for one in surplus if not one.users]
        for one in idle:
            one.dismiss()

    def close(self) -> None:
        """Dismiss every launcher. Again does nothing more."""
        with self._lock:
            processes, home = list(self._processes.values()), self._home
            self._processes.clear()
            self._home = None
        for process in processes:
            process.dismiss()
        if home is not None:
            home.close()


def _dismiss(processes: dict[object, _Process], owner: int) -> None:
    if owner == os.getpid():
        for process in processes.values():
            process.dismiss()


class _Process:
    """One launcher.

    Raises:
        OSError: it could not be started, or could not withdraw from the host.
    """

    def __init__(self, jail: Jail, interpreter: str, *, warm: bool) -> None:
        self.users, self.retired = 0, False
        self.how = layout(jail)
        message = launcher_message(jail, self.how, ground(), interpreter, warm=warm)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with Descriptors() as fds:
            reader, writer = fds.pipe()
            passed = (reader, fds.own(theirs.detach()), fds.own(os.pidfd_open(os.getpid())))
            self._process = subprocess.Popen(
                bootstrap.command(interpreter, *passed),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=ROOM,
                cwd="/",
                close_fds=True,
                pass_fds=passed,
                start_new_session=True,
            )
            fds.close(reader)
            with contextlib.suppress(BrokenPipeError):
                while message:
                    message = message[os.write(writer, message) :]
        answer = self._control.recv(1000) if select.select([self._control], [], [], PATIENCE)[0] else b""
        if answer != b"ready":
            self.dismiss()
            raise OSError(1, answer.decode("utf-8", "replace").removeprefix("failed ") or "no launcher began")

    def room(self, ends: Ends, spec: Spec, group: Group | None, bounded: frozenset[Resource]) -> Room | None:
        """Have a room made; None if the launcher is gone."""
        room = Room(self.how, spec, self, group, bounded)
        try:
            told = room.order(order(room.limits(), spec.environment))
            socket.send_fds(self._control, [b"!"], [room.theirs, *ends[:4], told, *room.groups()])
        except OSError:
            room.forget()
            return None
        room.begin()
        return room

    def dismiss(self) -> None:
        """Have it end now, and its rooms with it."""
        self._control.close()
        self._process.kill()
        self._process.wait()
