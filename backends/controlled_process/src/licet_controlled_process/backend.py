"""The backend `controlled_process`: a sealed plan becomes one supervised run of CPython.

Rules this module keeps:

- it supervises and does not confine: what it stops, and what it does not, stands in `claims`;
- every stated limit is passed on or belongs to core; none is dropped;
- value and error come over the private channel and are believed only as far as the exit status agrees.
"""

from __future__ import annotations

import os
from functools import cached_property
from importlib.metadata import version

from licet import processes, supervise
from licet.backend import Descriptor, Host, Language, Outcome, Sandbox
from licet.contract import SandboxEnforcementContract
from licet.errors import BackendError, LaunchFailed
from licet.plan import ExecutionPlan
from licet.request import Action

from licet_controlled_process import claims
from licet_controlled_process.crashes import CRASHES

NAME = "controlled_process"
WARM_START = 12.0
OPENABLE: frozenset[Action] = frozenset({"read", "write", "network", "shell"})


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
            opens=OPENABLE if os.name == "nt" else OPENABLE | {"tool"},  # no calls are carried on Windows
            cost=WARM_START,
            environments=True,
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
            spec, calls = _spec(plan), processes.Calls(host)
            ended = await supervise.run(spec, host.write, self._launcher, calls.answer)
        except ValueError as problem:
            raise LaunchFailed(f"input {problem}") from None
        return processes.outcome(spec, ended, fatal=calls.fatal, crashes=CRASHES)

    async def close(self) -> None:
        """A run leaves nothing to release."""
        self._closed = True


def _spec(plan: ExecutionPlan) -> supervise.Spec:
    limits, python = plan.limits, plan.python
    interpreter, packages = (python.interpreter, python.packages) if python else (supervise.INTERPRETER, ())
    return supervise.Spec(
        work=supervise.Snippet(plan.code, plan.inputs, limits.recursion, processes.tools(plan), packages),
        interpreter=interpreter,
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
