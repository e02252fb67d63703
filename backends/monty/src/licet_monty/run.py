"""One run, from its first instruction to its outcome.

Rules this module keeps:

- a run ends for the first cause that stops it, whatever Monty says afterwards;
- the deadline counts all time from the start of the run: interpreter, host calls, sleeps, and the crossing of
  the value;
- whatever stops a run from outside kills its worker, so there is one way in which runs are stopped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pydantic_monty
from licet.backend import Host, Outcome, Termination, Usage
from licet.plan import ExecutionPlan

from licet_monty import callsites, ending, trailing, value
from licet_monty.bounds import CPU_CLOCK, bounds
from licet_monty.bridge import Bridge, Interrupted
from licet_monty.calls import HostFailed
from licet_monty.dialogue import Dialogue
from licet_monty.ending import Ending
from licet_monty.files import Files
from licet_monty.lease import Lease
from licet_monty.trailing import NO_VALUE, Kept
from licet_monty.worker import Worker

_CPU_STEP_S = 0.002


class Run:
    """One run of a plan on a worker; `drive` blocks, `stop` may be called from any thread."""

    def __init__(self, plan: ExecutionPlan, host: Host, lease: Lease, bridge: Bridge) -> None:
        self._plan = plan
        self._host = host
        self._lease = lease
        self._bounds = bounds(plan.limits)
        self._worker: Worker | None = None
        self._bridge = bridge
        self._started = time.monotonic()
        self._guard = threading.Lock()
        self._stopped = threading.Event()
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
        self._stopped.set()
        if worker is not None:
            worker.kill()
        self._bridge.interrupt()

    def drive(self) -> Outcome:
        """Run the plan's code to its end.

        Raises:
            LaunchFailed, BackendError: there is no worker to run it on; nothing ran.
            Exception: the host failed, with its own exception; the run was stopped.
        """
        worker = self._lease.worker(self._bounds, self._host.random_bytes)
        with self._guard:
            self._worker = worker
        dialogue = Dialogue(worker.session, self._plan, self._host, self._bridge, self._stopped, self.stop)
        try:
            kept, end = self._value(dialogue), Ending(Termination.exited, exit_code=0, sound=True)
        except Interrupted:
            kept, end = NO_VALUE, Ending(Termination.cancelled)
        except HostFailed as problem:
            self.stop(Termination.backend_error)
            raise problem.__cause__ or problem from None
        except (pydantic_monty.MontyError, RuntimeError) as problem:
            kept, end = NO_VALUE, ending.of(problem, worker.bounds, self._lease.known)
        if dialogue.fault is not None:
            raise dialogue.fault
        if end.stderr and not self._host.write("stderr", end.stderr.encode("utf-8", "replace")):
            self.stop(Termination.output_limit)
        return self._outcome(worker, kept, end, dialogue.files)

    def _outcome(self, worker: Worker, kept: Kept, end: Ending, files: Files) -> Outcome:
        with self._guard:
            stopped = self._cause
        if stopped is not None:
            kept, end = NO_VALUE, Ending(stopped)
        if not end.sound:
            worker.doomed = True
        return Outcome(
            termination=end.termination,
            exit_code=end.exit_code,
            value=kept.value,
            value_repr=kept.shown,
            error=end.error,
            usage=Usage(
                wall_time=time.monotonic() - self._started,
                cpu_time=worker.cpu_used() if stopped is None else self._cpu_time,
                bytes_written=files.used,
            ),
            configured=self._configured(),
            observed=worker.observed,
            detail=end.detail,
            staged=files.staged(),
        )

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
        if self._stopped.is_set():
            raise Interrupted
        dialogue.define_tools(self._lease.known)
        plain = callsites.call_through(self._plan.code, self._plan.opened.tools)
        code = trailing.keep_value(plain)
        if code is None:
            dialogue.feed(plain, dict(self._plan.inputs))
            return NO_VALUE
        done = dialogue.feed(code, {**self._plan.inputs, **trailing.INPUTS})
        small = trailing.small(done.output)
        return small or value.read(dialogue.feed(value.QUESTION, value.INPUTS).output)
