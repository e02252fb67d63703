"""The backend `restricted_linux`: a sealed plan becomes one run of CPython in a jail.

Rules this module keeps:

- what it holds, and by what, stands in `claims`, as far as this host lets a jail be made;
- every stated limit is passed on or belongs to core; none is dropped;
- value and error come over the private channel and are believed only as far as the exit status agrees.
"""

from __future__ import annotations

from functools import cached_property
from importlib.metadata import version

from licet import processes, supervise
from licet.backend import Descriptor, Host, Language, Outcome, Sandbox, Target
from licet.contract import SandboxEnforcementContract
from licet.errors import BackendError, LaunchFailed
from licet.plan import ExecutionPlan
from licet.request import Action
from licet.supervise.cgroups import look
from licet.supervise.jail import Ground, JailLauncher, ground

from licet_restricted_linux import claims, jails

NAME = "restricted_linux"
WARM_START = 6.0


class RestrictedLinux:
    """Runs code in CPython, behind walls of the kernel."""

    @cached_property
    def _launcher(self) -> JailLauncher:
        return JailLauncher()

    def describe(self) -> Descriptor:
        """What it can do on this host; looked up once."""
        return self._descriptor

    @cached_property
    def _descriptor(self) -> Descriptor:
        here = ground()
        unavailable = supervise.keeper_shortfall() or here.refusal
        return Descriptor(
            name=NAME,
            version=version("licet-restricted-linux"),
            sandbox_enforcement_contract=SandboxEnforcementContract()
            if unavailable
            else claims.contract(here, look()),
            language=Language("CPython"),
            opens=_openable(here),
            cost=WARM_START,
            unavailable=unavailable,
            mounts=True,
            environments=True,
        )

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        """Nothing is started before a run.

        Raises:
            LaunchFailed: this host can't run it at all.
        """
        if self._descriptor.unavailable is not None:
            raise LaunchFailed(self._descriptor.unavailable)
        return _Jailed(self._launcher)

    async def close(self) -> None:
        """End the launchers."""
        self._launcher.close()


class _Jailed:
    """A sandbox that makes a room for each run, and keeps none."""

    def __init__(self, launcher: JailLauncher) -> None:
        self._launcher = launcher
        self._closed = False

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        if self._closed:
            raise BackendError("this sandbox is closed", advice="open another one")
        try:
            spec, calls = jails.spec(plan), processes.Calls(host)
            connect = _connecting(plan, host)
            ended = await supervise.run(spec, host.write, self._launcher, calls.answer, connect)
        except ValueError as problem:
            raise LaunchFailed(f"input {problem}") from None
        return processes.outcome(spec, ended, jails.staged(plan, ended), calls.fatal)

    async def close(self) -> None:
        """A run leaves nothing to release."""
        self._closed = True


def _connecting(plan: ExecutionPlan, host: Host) -> supervise.Connect | None:
    """What makes the connections of the code, if it is to have any."""
    return (lambda name, port: host.connect(Target(name, port))) if plan.opened.connects else None


def _openable(here: Ground) -> frozenset[Action]:
    """The actions that can be opened on this host."""
    always: frozenset[Action] = frozenset({"read", "write", "shell", "tool"})
    return always if claims.unconnected(here) is not None else always | {"network"}
