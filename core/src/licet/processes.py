"""A supervised run, as every backend that runs processes tells of it.

Rules this module keeps:

- value and error come over the private channel and are believed only as far as the exit status agrees;
- what was set up and what was seen are told apart.
"""

from __future__ import annotations

import signal

from licet import supervise
from licet.backend import GuestError, Outcome, Termination, Usage
from licet.writes.staged import Staged


def outcome(spec: supervise.Spec, ended: supervise.ProcessOutcome, staged: Staged | None = None) -> Outcome:
    """What `ended` means for the run that `spec` asked for, with what it wrote."""
    succeeded = ended.exit_code == 0
    report = ended.report
    return Outcome(
        termination=Termination(ended.reason.value),
        exit_code=_exit_code(ended),
        value=report.value if succeeded else None,
        value_repr=report.value_repr if succeeded else None,
        error=None if succeeded else error(ended),
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


def error(ended: supervise.ProcessOutcome) -> GuestError | None:
    """What ended the code, if something did."""
    if ended.signal is not None:
        return GuestError(_signal_name(ended.signal), f"the code was ended by signal {ended.signal}")
    fault = ended.report.error
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
