"""One worker process, checked out for one sandbox.

Rules this module keeps:

- a worker is killed by descriptor where the kernel offers that, so that a reused pid is never hit;
- a worker that was killed, hit a limit or met an error of Monty's own is never used again;
- what is reported as observed was read from the kernel, once a worker.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from licet.errors import LaunchFailed
from licet.supervise.walls import seen

from licet_monty.bounds import CPU_CLOCK, Bounds
from licet_monty.walls import Entrance

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontySession, OSPolicy


class Worker:
    """A session of Monty with the process that serves it; made, used and closed on threads that may block."""

    def __init__(self, monty: Monty, bounds: Bounds, seed: bytes, entrance: Entrance) -> None:
        """Check a worker out that `entrance` started, the generator of its session started from `seed`.

        Raises:
            LaunchFailed: none could be started, or one that lacks a wall.
        """
        import pydantic_monty

        self.bounds = bounds
        self.session: MontySession = monty.checkout(limits=bounds.limits(), os_policy=_policy(seed))
        try:
            self.session.__enter__()
        except (pydantic_monty.MontyError, RuntimeError, OSError) as problem:  # a TimeoutError is an OSError
            raise LaunchFailed(f"Monty gave no worker: {entrance.told(problem)}") from None
        self.doomed = False
        self._guard = threading.Lock()
        self._pid = self.session.worker_pid
        self._descriptor = _descriptor(self._pid)
        self._cpu_at_start = self.cpu_time() or 0.0
        try:
            self.observed = _observe(self._pid, entrance)
        except LaunchFailed:
            self.doomed = True
            self.close()
            raise

    def kill(self) -> None:
        """End the process now; from any thread, any number of times."""
        with self._guard:
            self.doomed = True
            if self._pid is None:
                return
            with contextlib.suppress(ProcessLookupError):
                if self._descriptor is not None:
                    signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
                else:
                    os.kill(self._pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def cpu_time(self) -> float | None:
        """Seconds of processor time that the process has used in its life; None where that can't be read."""
        if self._pid is None or not CPU_CLOCK:
            return None
        try:
            return time.clock_gettime(~self._pid << 3 | 2)  # the clock that clock_getcpuclockid(3) names
        except OSError:
            return None

    def cpu_used(self) -> float | None:
        """Seconds of processor time since the worker was checked out; None if the process is gone."""
        total = self.cpu_time()
        return None if total is None else max(total - self._cpu_at_start, 0.0)

    def close(self) -> None:
        """Hand the worker back, or kill it if it must not be used again."""
        if self.doomed:
            self.kill()
        try:
            self.session.__exit__(None, None, None)
        finally:
            with self._guard:
                descriptor, self._descriptor, self._pid = self._descriptor, None, None
            if descriptor is not None:
                os.close(descriptor)


def _policy(seed: bytes) -> OSPolicy:
    """What a session does about time and randomness: it asks, save for its generator, which has its start.

    A generator that asked for it could not do so inside of `sorted` or `map`.
    """
    return {
        "sleep": "call_host",
        "datetime": "call_host",
        "timezone": "utc",
        "process_time": "zero",
        "random_start": {"seed": seed},
    }


def _descriptor(pid: int | None) -> int | None:
    if pid is None or not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # an old kernel, or the process has just died
        return None


_seen: dict[int, Mapping[str, str]] = {}
_MOST_SEEN = 64


def _observe(pid: int | None, entrance: Entrance) -> Mapping[str, str]:
    """What the kernel shows of a worker, by control; read, and confirmed, once a process."""
    if pid is None:
        return {}
    found = _seen.get(pid)
    if found is None:
        status = seen(pid)
        entrance.confirm(status)
        if len(_seen) >= _MOST_SEEN:
            _seen.clear()
        found = _seen[pid] = _told(Path(f"/proc/{pid}"), status)
    return found


def _told(process: Path, status: Mapping[str, str]) -> Mapping[str, str]:
    try:
        variables = (process / "environ").read_bytes().count(b"\0")
        binary = (process / "exe").readlink().name
        held = len(list((process / "fd").iterdir()))
        return {
            "environment_allowlist": f"the worker's own environment holds {variables} variables",
            "handle_isolation": f"the worker holds {held} descriptors",
            "process_isolation": f"worker {process.name} runs {binary} as uid {status['Uid'].split()[0]}",
            "privilege_drop": f"effective capabilities {status['CapEff']}, "
            f"no new privileges: {status['NoNewPrivs']}",
            "syscall_filter": f"seccomp mode {status['Seccomp']}",
        }
    except (OSError, KeyError):  # it is gone, or this system does not show it
        return {}
