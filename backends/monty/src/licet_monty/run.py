"""One run, from its first instruction to its outcome.

Rules this module keeps:

- a run ends for the first cause that stops it, whatever Monty says afterwards;
- the deadline counts all time from the start of the run: interpreter, host calls, sleeps, and the crossing of
  the value;
- whatever stops a run from outside kills its worker, so there is one way in which runs are stopped;
- a run that was suspended goes on with what is left of its limits, and its usage is that of the whole.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pydantic_monty
from licet.backend import Host, Outcome, Termination, Usage
from licet.errors import BackendError, SuspensionVoid
from licet.plan import ExecutionPlan
from pydantic_monty import MontyComplete

from licet_monty import callsites, ending, suspension, trailing, value
from licet_monty.bounds import CPU_CLOCK, bounds
from licet_monty.bridge import Bridge, Interrupted
from licet_monty.calls import HostFailed
from licet_monty.dialogue import Dialogue
from licet_monty.ending import Ending
from licet_monty.lease import Lease
from licet_monty.suspension import Past
from licet_monty.trailing import NO_VALUE, Kept
from licet_monty.worker import Worker

_CPU_STEP_S = 0.002


class Run:
    """One run of a plan on a worker; `drive` blocks, `stop` may be called from any thread.

    `stopped` is set once it was stopped.
    """

    def __init__(self, plan: ExecutionPlan, host: Host, lease: Lease, bridge: Bridge) -> None:
        """Take a plan in.

        Raises:
            SuspensionVoid: it is to go on with what was never suspended here.
        """
        self._plan = plan
        self._host = host
        self._lease = lease
        self._past: Past | None = None
        self._dump = b""
        if plan.resumption is not None:
            self._past, self._dump = suspension.read(plan.resumption.suspension)
        self._bounds = self._past.of(bounds(plan.limits)) if self._past else bounds(plan.limits)
        self._worker: Worker | None = None
        self._bridge = bridge
        self._started = time.monotonic()
        self._guard = threading.Lock()
        self.stopped = threading.Event()
        self._cause: Termination | None = None
        self._cpu_time: float | None = None

    def deadlines(self) -> list[tuple[float, Callable[[], float | None]]]:
        """When to look after the run, on the monotonic clock, and what to call then (see `Watchdog.arm`)."""
        found: list[tuple[float, Callable[[], float | None]]] = [
            (self._started + self._bounds.wall, self._expire)
        ]
        if self._bounds.cpu is not None and CPU_CLOCK:
            found.append((self._started + self._bounds.cpu, self._check_cpu_time))
        return found

    def _expire(self) -> None:
        self.stop(Termination.timeout)

    def _check_cpu_time(self) -> float | None:
        """End the run if it has used its processor time, else say when that can be at the earliest."""
        with self._guard:
            used = self._worker.cpu_used() if self._worker is not None else 0.0
        left = (self._bounds.cpu or 0.0) - (used or 0.0)
        if left > 0:
            return time.monotonic() + max(left, _CPU_STEP_S)
        self.stop(Termination.cpu_limit)
        return None

    def stop(self, cause: Termination) -> None:
        """End the run for `cause`, unless it has ended for another."""
        with self._guard:
            if self._cause is None:
                self._cause = cause
                self._cpu_time = self._worker.cpu_used() if self._worker is not None else 0.0
            worker = self._worker
        self.stopped.set()
        if worker is not None:
            worker.kill()
        self._bridge.interrupt()

    def spent(self) -> tuple[float, float]:
        """Seconds that the run has taken, and of processor time, from its beginning, wherever that was."""
        wall, cpu = (self._past.wall, self._past.cpu) if self._past else (0.0, 0.0)
        used = self._worker.cpu_used() if self._worker is not None else None
        return wall + time.monotonic() - self._started, cpu + (used or 0.0)

    def drive(self) -> Outcome:
        """Run the plan's code to its end.

        Raises:
            LaunchFailed, BackendError: there is no worker to run it on; nothing ran.
            SuspensionVoid: the plan's resumption is not what was suspended; nothing more ran.
            Exception: the host failed, with its own exception; the run was stopped.
        """
        # a generator that was suspended has its start already, and nothing more is drawn for it
        draw = self._host.random_bytes if self._past is None else bytes
        worker = self._lease.worker(self._bounds, draw)
        with self._guard:
            self._worker = worker
        dialogue = Dialogue(worker, self._plan, self._host, self._bridge, self, self._past)
        try:
            kept, end = self._value(dialogue), Ending(Termination.exited, exit_code=0, sound=True)
        except Interrupted:
            kept, end = NO_VALUE, Ending(Termination.cancelled)
        except SuspensionVoid:
            self.stop(Termination.launch_failed)
            raise
        except HostFailed as problem:
            self.stop(Termination.backend_error)
            raise problem.__cause__ or problem from None
        except (pydantic_monty.MontyError, RuntimeError) as problem:
            kept, end = NO_VALUE, ending.of(problem, worker.bounds, self._lease.known)
        if dialogue.fault is not None:
            raise dialogue.fault
        if end.stderr and not self._host.write("stderr", end.stderr.encode("utf-8", "replace")):
            self.stop(Termination.output_limit)
        return self._outcome(worker, kept, end, dialogue)

    def _outcome(self, worker: Worker, kept: Kept, end: Ending, dialogue: Dialogue) -> Outcome:
        with self._guard:
            stopped = self._cause
        waits = stopped is Termination.approval_pending
        if stopped is not None:
            kept, end = NO_VALUE, Ending(stopped, detail=dialogue.unsuspended if waits else None)
        if not end.sound:
            worker.doomed = True
        return Outcome(
            termination=end.termination,
            exit_code=end.exit_code,
            value=kept.value,
            value_repr=kept.shown,
            error=end.error,
            usage=Usage(
                wall_time=self.spent()[0],
                cpu_time=self._cpu_of(worker.cpu_used() if stopped is None else self._cpu_time),
                bytes_written=dialogue.files.used,
            ),
            configured=self._configured(),
            observed=worker.observed,
            detail=end.detail,
            suspension=dialogue.suspended if waits else None,
            staged=dialogue.files.staged(),
        )

    def _cpu_of(self, used: float | None) -> float | None:
        """The processor time of the whole run, of which `used` was spent here."""
        return used if used is None or self._past is None else used + self._past.cpu

    def _configured(self) -> dict[str, str]:
        """What the session was given; limits as the plan states them."""
        limits = self._plan.limits
        stated = {
            "timeout": limits.wall_time,
            "memory_limit": limits.memory,
            "cpu_time_limit": limits.cpu_time,
            "working_directory": self._plan.workdir,
        }
        return {name: str(value) for name, value in stated.items() if value is not None}

    def _value(self, dialogue: Dialogue) -> Kept:
        """Run the code, and return the value of its last expression."""
        if self.stopped.is_set():
            raise Interrupted
        plain = callsites.call_through(self._plan.code, self._plan.opened.tools)
        code = trailing.keep_value(plain)
        if code is None:
            self._fed(dialogue, plain)
            return NO_VALUE
        small = trailing.small(self._fed(dialogue, code).output)
        return small or value.read(dialogue.feed(value.QUESTION, value.INPUTS).output)

    def _fed(self, dialogue: Dialogue, code: str) -> MontyComplete:
        """Let the session run `code`, from its beginning, or from where it was suspended."""
        known, resumption = self._lease.known, self._plan.resumption
        if self._past is None or resumption is None:
            dialogue.define_tools(known)
            return dialogue.feed(code, dict(self._plan.inputs))
        if known.fed:
            raise BackendError("this sandbox has run code already, so no suspended run can go on in it")
        if self._past.fed != suspension.fed_digest(code):
            raise suspension.void(
                "another version of licet_monty wrote this run down, or it is of other code"
            )
        known.fed = known.trusted = True
        known.tools.update(self._past.tools)
        return dialogue.go_on(code, self._past, self._dump, resumption)
