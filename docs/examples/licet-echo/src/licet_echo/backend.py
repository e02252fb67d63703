"""The backend `echo`: each run is one supervised process.

Rules this module keeps: every limit that the contract speaks of is passed on; whatever the code did is an
`Outcome`, and only a fault of this backend is raised.
"""

from __future__ import annotations

from functools import cached_property
from importlib.metadata import version

from licet import supervise
from licet.backend import Descriptor, GuestError, Host, Language, Outcome, Sandbox, Termination, Usage
from licet.errors import BackendError, LaunchFailed
from licet.plan import ExecutionPlan

from licet_echo.contract import contract


class Echo:
    """Runs code in a CPython process of this user."""

    def describe(self) -> Descriptor:
        """The same object each time; looking starts nothing."""
        return self._descriptor

    @cached_property
    def _descriptor(self) -> Descriptor:
        return Descriptor(
            name="echo",
            version=version("licet-echo"),
            sandbox_enforcement_contract=contract(),
            language=Language("CPython"),
            opens=frozenset({"read", "write", "network", "shell"}),  # it closes none of these
            unavailable=supervise.keeper_shortfall(),
        )

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        """Nothing is started before a run.

        Raises:
            LaunchFailed: this host can't run it at all.
        """
        if self._descriptor.unavailable is not None:
            raise LaunchFailed(self._descriptor.unavailable)
        return _Sandbox()

    async def close(self) -> None:
        """Nothing is kept between runs."""


class _Sandbox:
    def __init__(self) -> None:
        self._closed = False

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        if self._closed:
            raise BackendError("this sandbox is closed")
        spec = supervise.Spec(
            work=supervise.Snippet(plan.code, plan.inputs, plan.limits.recursion),
            workdir=plan.workdir,
            environment=plan.environment,
            stdin=plan.stdin,
            wall_time=plan.limits.wall_time,
            confine_signals=supervise.can_confine_signals(),
        )
        return _outcome(await supervise.run(spec, host.write))

    async def close(self) -> None:
        self._closed = True


def _outcome(ended: supervise.ProcessOutcome) -> Outcome:
    """What licet wants to know; the value is the code's own word, and only of a run that ended well."""
    report, succeeded = ended.report, ended.exit_code == 0
    return Outcome(
        termination=Termination(ended.reason.value),
        exit_code=ended.exit_code if ended.signal is None else 128 + ended.signal,
        value=report.value if succeeded else None,
        value_repr=report.value_repr if succeeded else None,
        error=None if succeeded else _error(ended),
        usage=Usage(ended.used.wall_time, ended.used.cpu_time, ended.used.peak_memory),
        detail=ended.detail,
    )


def _error(ended: supervise.ProcessOutcome) -> GuestError | None:
    if ended.signal is not None:
        return GuestError("Killed", f"signal {ended.signal} ended the code")
    fault = ended.report.error
    return None if fault is None else GuestError(fault.type, fault.message, fault.line)
