"""The keeper of runs, seen from the host: a child of this process, and the control socket to it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, NamedTuple

from licet.supervise import bootstrap, readback, tree
from licet.supervise.descriptors import Descriptors
from licet.supervise.spec import Reason, Spec, Used
from licet.supervise.wires import read

if TYPE_CHECKING:
    from licet.supervise.jail.spec import Written

PATIENCE = 2.0
"""How many seconds a keeper has to take a run, or to end."""


class Ends(NamedTuple):
    """The child's ends of one run."""

    stdin: int
    stdout: int
    stderr: int
    channel: int
    workdir: int


class Keeper:
    """Keeps one run, or with `idle` one after the other, waiting so many seconds for each.

    `fresh` is False once it was given a second run.

    Raises:
        OSError, ValueError: the interpreter can't be started.
    """

    look_each: float | None = None
    listener: int | None = None

    def __init__(
        self, interpreter: str, environment: Mapping[str, str], ends: Ends, idle: float | None = None
    ) -> None:
        self.idle = idle
        self.fresh = True
        self._control, theirs = socket.socketpair()
        with Descriptors() as fds:
            control = fds.own(theirs.detach())
            # readable once this process is dead, whoever else holds the socket
            host = [fds.own(os.pidfd_open(os.getpid()))] if sys.platform == "linux" else []
            passed = (control, ends.channel, ends.workdir, *host)
            try:
                self._process = subprocess.Popen(
                    bootstrap.command(interpreter, *passed),
                    stdin=ends.stdin,
                    stdout=ends.stdout,
                    stderr=ends.stderr,
                    env=dict(environment),
                    cwd="/",
                    close_fds=True,
                    pass_fds=passed,
                    start_new_session=True,
                )
            except BaseException:
                self.forget()
                raise
        self.pid = self._process.pid
        self.control = self._control.fileno()
        tree.forbid_core_dumps(self.pid)

    def message(self, spec: Spec) -> bytes:
        """What makes it keep this run."""
        return bootstrap.keeper_message(spec, fresh=self.fresh, idle=self.idle)

    def hear(self) -> bytes | None:
        """What it says: b"" once it is gone, None if there is nothing now."""
        return read(self.control)

    def settled(self) -> None:
        """It may begin at once."""

    def look(self, guest: int, spec: Spec) -> dict[str, str]:
        """What the system shows of the main process.

        Raises:
            NotTaken: a limit is not in force.
        """
        return readback.look(guest, bootstrap.limits(spec))

    def used_up(self) -> Reason | None:
        """Limits here are the system's, which ends who passes them."""
        return None

    def reached(self) -> Container[Reason]:
        """Nothing is counted but by who reaps."""
        return ()

    def used(self, told: Used) -> Used:
        """No more than it tells."""
        return told

    def written(self) -> tuple[Written, ...]:
        """Nothing of what the code wrote is kept apart."""
        return ()

    def ask(self, ends: Ends) -> bool:
        """Give it another run to keep; False if it is gone. Its word `taken` says that it was still there."""
        self.fresh = False
        try:
            return socket.send_fds(self._control, [b"\n"], list(ends)) == 1
        except OSError:
            return False

    def is_alive(self) -> bool:
        """Whether it is there."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill it."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def hang_up(self) -> None:
        """Have it end its tree and itself, whoever else holds the socket."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def wait(self) -> None:
        """Return once it is dead."""
        self.forget()
        self._process.wait()

    def dismiss(self) -> None:
        """Have it end, as it does at once between two runs; kill it if it doesn't."""
        self.hang_up()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
        self.wait()

    def forget(self) -> None:
        """Close the socket."""
        self._control.close()
