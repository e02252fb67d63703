"""The backend `controlled_process`: a sealed plan becomes one supervised run of CPython.

Rules this module keeps:

- it supervises and does not confine: what it stops, and what it does not, stands in `claims`;
- every stated limit is passed on or belongs to core; none is dropped;
- value and error come over the private channel and are believed only as far as the exit status agrees.
"""

from __future__ import annotations

import signal
from functools import cached_property
from importlib.metadata import version

from licet import supervise
from licet.backend import Descriptor, GuestError, Host, Language, Outcome, Sandbox, Termination, Usage
from licet.contract import SandboxEnforcementContract
from licet.errors import BackendError, LaunchFailed
from licet.plan import ExecutionPlan

from licet_controlled_process import claims
from licet_controlled_process.crashes import CRASHES

NAME = "controlled_process"
WARM_START = 12.0


class ControlledProcess:
    """Runs code in an ordinary CPython process of this user, under supervision."""

    @cached_property
    def _launcher(self) -> supervise.Launcher:
        return supervise.Launcher()

    def describe(self) -> Descriptor:
        """What it can do on this host; looked up once."""
        return self._descriptor

    @cached_property
    def _descriptor(self) -> Descriptor:
        unavailable = supervise.keeper_shortfall()
        return Descriptor(
            name=NAME,
            version=version("licet-controlled-process"),
            sandbox_enforcement_contract=SandboxEnforcementContract() if unavailable else claims.contract(),
            language=Language("CPython"),
            opens=frozenset({"read", "write", "network", "shell"}),
            cost=WARM_START,
            unavailable=unavailable,
        )

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        """Nothing is started before a run.

        Raises:
            LaunchFailed: this host can't run it at all.
        """
        if self._descriptor.unavailable is not None:
            raise LaunchFailed(self._descriptor.unavailable)
        return _Process(self._launcher)

    async def close(self) -> None:
        """End the keepers that wait for a run."""
        self._launcher.close()


class _Process:
    """A sandbox that starts a process for each run, and keeps none."""

    def __init__(self, launcher: supervise.Launcher) -> None:
        self._launcher = launcher
        self._closed = False

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        if self._closed:
            raise BackendError("this sandbox is closed", advice="open another one")
        try:
            spec = _spec(plan)
            return _outcome(spec, await supervise.run(spec, host.write, self._launcher))
        except ValueError as problem:
            raise LaunchFailed(f"input {problem}") from None

    async def close(self) -> None:
        """A run leaves nothing to release."""
        self._closed = True


def _spec(plan: ExecutionPlan) -> supervise.Spec:
    limits = plan.limits
    return supervise.Spec(
        work=supervise.Snippet(plan.code, plan.inputs, limits.recursion),
        workdir=plan.workdir,
        environment=plan.environment,
        stdin=plan.stdin,
        wall_time=limits.wall_time,
        cpu_time=limits.cpu_time,
        memory=limits.memory,
        confine_signals=supervise.can_confine_signals(),
        sharing=f"{plan.tenant}\0{plan.policy_class}",
        warm=plan.warm,
    )


def _outcome(spec: supervise.Spec, ended: supervise.ProcessOutcome) -> Outcome:
    succeeded = ended.exit_code == 0
    report = ended.report
    return Outcome(
        termination=Termination(ended.reason.value),
        exit_code=_exit_code(ended),
        value=report.value if succeeded else None,
        value_repr=report.value_repr if succeeded else None,
        error=None if succeeded else _error(ended),
        usage=Usage(
            wall_time=ended.used.wall_time,
            cpu_time=ended.used.cpu_time,
            peak_memory=ended.used.peak_memory,
        ),
        configured=_configured(spec, ended),
        observed=_observed(ended),
        detail=_detail(ended),
    )


def _exit_code(ended: supervise.ProcessOutcome) -> int | None:
    """The status a shell would show: 128 and the number for a death by signal."""
    return ended.exit_code if ended.signal is None else 128 + ended.signal


def _error(ended: supervise.ProcessOutcome) -> GuestError | None:
    if ended.signal is not None:
        return GuestError(_signal_name(ended.signal), f"the code was ended by signal {ended.signal}")
    fault = ended.report.error
    if fault is None and (name := CRASHES.get(ended.exit_code or 0)) is not None:
        return GuestError(name, f"the code was ended by status 0x{ended.exit_code:X}")
    return None if fault is None else GuestError(fault.type, fault.message, fault.line)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _configured(spec: supervise.Spec, ended: supervise.ProcessOutcome) -> dict[str, str]:
    """What was set up for this run."""
    stated = {"timeout": spec.wall_time, "cpu_time_limit": spec.cpu_time, "memory_limit": spec.memory}
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
