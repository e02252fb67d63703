"""A supervised run, as every backend that runs processes tells of it.

Rules this module keeps:

- value and error come over the private channel and are believed only as far as the exit status agrees;
- calls of tools come there as well, are read without trust, and are answered by the host;
- what was set up and what was seen are told apart.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping

from licet import handover, supervise, values
from licet.backend import GuestError, Host, Outcome, Termination, Usage
from licet.plan import ExecutionPlan
from licet.writes.staged import Staged

_NAMELESS: Mapping[int, str] = {}


class Calls:
    """Answers the calls of one run; `fatal` is how a reply ended it, if one did."""

    def __init__(self, host: Host) -> None:
        self.fatal: Termination | None = None
        self._host = host

    async def answer(self, called: supervise.Called) -> supervise.Answered:
        """Have the host decide and perform a call."""
        call = handover.read_call(called.name, called.line, called.arguments)
        reply = await self._host.call(call)
        if reply.fatal is not None:
            self.fatal = self.fatal or reply.fatal
            return supervise.Answered(last=True)
        error = reply.error
        if error is None:
            try:
                values.check_crossing(reply.value)
                return supervise.Answered(values.encode(reply.value))
            except ValueError as problem:
                error = handover.unanswerable(called.name, problem)
        raised = handover.raised(error)
        return supervise.Answered(error=(raised.type, raised.message))


def tools(plan: ExecutionPlan) -> dict[str, bool]:
    """The tools that the code of a plan has, each with whether it may await its calls."""
    return {name: name in plan.async_tools for name in plan.opened.tools}


def outcome(
    spec: supervise.Spec,
    ended: supervise.ProcessOutcome,
    staged: Staged | None = None,
    fatal: Termination | None = None,
    crashes: Mapping[int, str] = _NAMELESS,
) -> Outcome:
    """What `ended` means for the run that `spec` asked for, with what it wrote.

    `fatal` is how a reply to a call ended it. `crashes` gives names to exit codes of code that crashed.
    """
    stopped = ended.reason is supervise.Reason.stopped
    succeeded = ended.exit_code == 0
    report = ended.report
    return Outcome(
        termination=fatal or Termination.backend_error if stopped else Termination(ended.reason.value),
        exit_code=_exit_code(ended),
        value=report.value if succeeded else None,
        value_repr=report.value_repr if succeeded else None,
        error=None if succeeded else error(ended, crashes),
        usage=Usage(
            wall_time=ended.used.wall_time,
            cpu_time=ended.used.cpu_time,
            peak_memory=ended.used.peak_memory,
        ),
        configured=_configured(spec, ended),
        observed=_observed(ended),
        detail=_detail(ended),
        staged=staged,
    )


def _exit_code(ended: supervise.ProcessOutcome) -> int | None:
    """The status a shell would show: 128 and the number for a death by signal."""
    return ended.exit_code if ended.signal is None else 128 + ended.signal


def error(ended: supervise.ProcessOutcome, crashes: Mapping[int, str] = _NAMELESS) -> GuestError | None:
    """What ended the code, if something did."""
    if ended.signal is not None:
        return GuestError(_signal_name(ended.signal), f"the code was ended by signal {ended.signal}")
    fault = ended.report.error
    if fault is None and (name := crashes.get(ended.exit_code or 0)) is not None:
        return GuestError(name, f"the code was ended by status 0x{ended.exit_code:X}")
    return None if fault is None else GuestError(fault.type, fault.message, fault.line)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _configured(spec: supervise.Spec, ended: supervise.ProcessOutcome) -> dict[str, str]:
    """What was set up for this run."""
    stated = {
        "timeout": spec.wall_time,
        "cpu_time_limit": spec.cpu_time,
        "memory_limit": spec.memory,
        "process_count_limit": spec.processes,
    }
    return {
        "environment_allowlist": f"{len(spec.environment)} variables",
        "working_directory": spec.workdir,
        "process_tree_cleanup": ", ".join(ended.applied),
        **{name: str(value) for name, value in stated.items() if value is not None},
    }


def _observed(ended: supervise.ProcessOutcome) -> dict[str, str]:
    """What was seen of this run from outside: its process, its limits, and whether its tree is gone."""
    if not ended.applied:
        return {}
    gone = {"process_tree_cleanup": "no descendant left"} if ended.swept else {}
    forgotten = {
        f"{limit}_limit": "not kept: the host took the limit and forgot it" for limit in ended.dropped
    }
    return {**ended.seen, **gone, **forgotten}


def _detail(ended: supervise.ProcessOutcome) -> str | None:
    said = [ended.detail]
    if ended.dropped:
        said.append(f"this host kept no limit of {' and '.join(ended.dropped)}")
    if not ended.swept:
        said.append("something of it may still be running")
    return "; ".join(filter(None, said)) or None
