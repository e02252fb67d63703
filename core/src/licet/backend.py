"""What a sandbox backend is: its description, its protocol, and the wrapper that guards each call.

Rules this module keeps:

- a backend describes itself without side effects and without starting anything;
- it is chosen by its contract and by what code it can run, never by its name;
- `run` returns an `Outcome` for all that the code did; it raises only for faults of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from licet import plan as plans
from licet.contract import SandboxEnforcementContract
from licet.deadlines import Deadlines, Overdue
from licet.errors import BackendError
from licet.output import bounded
from licet.plan import ExecutionPlan
from licet.request import Action
from licet.writes.staged import Staged

T = TypeVar("T")


Surrounding = Literal["clock", "random"]


class Termination(StrEnum):
    """Why a run ended."""

    exited = "exited"
    timeout = "timeout"
    cpu_limit = "cpu_limit"
    memory_limit = "memory_limit"
    process_limit = "process_limit"
    output_limit = "output_limit"
    file_limit = "file_limit"
    tool_limit = "tool_limit"
    cancelled = "cancelled"
    launch_failed = "launch_failed"
    policy_denied = "policy_denied"
    approval_denied = "approval_denied"
    approval_pending = "approval_pending"
    no_backend = "no_backend"
    backend_error = "backend_error"
    backend_lost = "backend_lost"
    audit_unavailable = "audit_unavailable"
    unknown = "unknown"


@dataclass(frozen=True, slots=True)
class Language:
    """What code a backend can run; None means no restriction of that kind.

    `lacks_syntax` holds feature names of `licet.screen.FEATURES`. `modules` lists importable dotted names
    (a listed package does not imply its submodules). `members` says for dotted names of modules, and of what
    is in them, which names can be taken from there; what it does not list is not restricted.
    """

    name: str
    lacks_syntax: frozenset[str] = frozenset()
    modules: frozenset[str] | None = None
    builtins: frozenset[str] | None = None
    members: Mapping[str, frozenset[str]] | None = None
    stdin: bool = True

    def missing_member(self, path: str) -> str | None:
        """The first part of a dotted name that is not there: `a.b` of `a.b.c`; None if nothing is missing."""
        for cut, sign in enumerate(path) if self.members is not None else ():
            there = self.members.get(path[:cut]) if sign == "." and self.members is not None else None
            name = path[cut + 1 :].partition(".")[0]
            if there is not None and name not in there:
                return f"{path[:cut]}.{name}"
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Descriptor:
    """What a backend says of itself on this host.

    `opens` lists the actions that it can open at all. `cost` ranks candidates that qualify alike: rough
    milliseconds of a warm start. `unavailable` gives the reason where the backend can't run here.
    `configuration` tells this instance from others of its class, as far as a wall may depend on it: a file
    and its state, an image and its digest. Receipts are bound to it. `governs` lists the surroundings that
    code gets from `Host.now` and `Host.random_bytes` and from nowhere else. `suspends` says that a run which
    waits for an approval can be taken out of its sandbox and go on in another, of a backend that describes
    itself the same; the limits that the backend watches go on counting there. `mounts` says that code can see
    a file of the host at another path (`ExecutionPlan.files`). `environments` says that code runs in the
    interpreter, and with the packages, that a plan names (`ExecutionPlan.python`).
    """

    name: str
    version: str
    sandbox_enforcement_contract: SandboxEnforcementContract
    language: Language
    opens: frozenset[Action] = frozenset()
    cost: float = 100.0
    unavailable: str | None = None
    configuration: str = ""
    governs: frozenset[Surrounding] = frozenset()
    suspends: bool = False
    mounts: bool = False
    environments: bool = False


@dataclass(frozen=True, slots=True)
class GuestError:
    """An exception that the code did not catch; `line` is 1-based in the code as normalised."""

    type: str
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run used: seconds and bytes; None where the backend can't tell."""

    wall_time: float = 0.0
    cpu_time: float | None = None
    peak_memory: int | None = None
    bytes_written: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened in the sandbox.

    `value` is the value of the last expression statement, None if there is none. `value_repr` is its repr
    as the guest's interpreter writes it, bounded, and None exactly if the value is None. `exit_code` is set
    for `exited` alone: 0, or 1 for an uncaught exception, or what `SystemExit` said, or 128 and the number of
    the signal that ended the code. Of the protection of this very run, by control name, `configured` says
    what the backend set up, and `observed` is the read-back: what the system showed of it afterwards.
    `staged` is what the code wrote, which has not reached the host: core commits it, or drops it.
    `suspension` is set for `approval_pending` alone: the whole run as its backend wrote it down, to go on
    with in another sandbox; None where that can't be, and `detail` says why.
    """

    termination: Termination
    exit_code: int | None = None
    value: Any = None
    value_repr: str | None = None
    error: GuestError | None = None
    usage: Usage = field(default_factory=Usage)
    configured: Mapping[str, str] = field(default_factory=dict)
    observed: Mapping[str, str] = field(default_factory=dict)
    detail: str | None = None
    suspension: bytes | None = field(default=None, repr=False)
    staged: Staged | None = field(default=None, repr=False, compare=False)

    @property
    def succeeded(self) -> bool:
        """Whether the code ran to a good end."""
        return self.termination is Termination.exited and self.exit_code == 0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a host function by running code, before it happens.

    `refused` says why the arguments can't leave the sandbox; such a call is counted and recorded, not made.
    """

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a tool call: a value, or an error that is raised in the guest.

    `fatal` names a termination that ends the run now; the guest is not resumed. If it is `approval_pending`,
    a backend that `suspends` writes the run down as it waits for this very reply.
    """

    value: Any = None
    error: GuestError | None = None
    fatal: Termination | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """A file, clock or environment access of running code that the backend surfaced."""

    action: Action
    target: str


@dataclass(frozen=True, slots=True)
class Target:
    """Where running code wants to connect to."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Host(Protocol):
    """What the runtime does for a running sandbox."""

    async def call(self, call: ToolCall) -> Reply:
        """Decide, record, perform and record one tool call."""
        ...

    async def access(self, access: Access) -> bool:
        """Say whether the plan opens this access, and record it; it never creates a grant."""
        ...

    async def connect(self, target: Target) -> int:
        """Return a connected descriptor.

        Raises:
            PermissionError: the plan does not open the target.
        """
        ...

    def now(self, asked: str) -> float:
        """The time as the code is to see it, in seconds since the epoch; `asked` names what reads it.

        From any thread; it never waits.
        """
        ...

    def random_bytes(self, count: int) -> bytes:
        """The next `count` random bytes of this run; from any thread, and it never waits."""
        ...

    def write(self, stream: Literal["stdout", "stderr"], data: bytes) -> bool:
        """Take output of the code, from any thread; False once the limit `output` is passed.

        The backend ends the run with `output_limit` at the first False.
        """
        ...


class Sandbox(Protocol):
    """One opened sandbox."""

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        """Run `plan.code`; on cancellation, stop it, leave nothing running, and re-raise.

        Raises:
            SuspensionVoid: `plan.resumption` is nothing that this backend can go on with; nothing ran.
        """
        ...

    async def close(self) -> None:
        """Release everything; safe to call twice and after a failed run."""
        ...


@runtime_checkable
class Backend(Protocol):
    """A kind of sandbox. Instances are shared by all runs of a runtime, and used from several threads."""

    def describe(self) -> Descriptor:
        """Describe this backend on this host; cheap, and the same until the process ends."""
        ...

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        """Make a sandbox for runs like `plan`.

        Raises:
            LaunchFailed: no sandbox could be made; nothing ran.
        """
        ...

    async def close(self) -> None:
        """End every pool and process; no sandbox is open any more."""
        ...


@runtime_checkable
class Layered(Protocol):
    """A backend whose first wall is its language, with walls of the kernel behind it."""

    def behind(self) -> Backend:
        """Return those walls alone, round plain Python, as if the language had been broken.

        Whoever claims the boundary `kernel` for what the language keeps code from anyway is attacked there
        too: through the language an attack never gets as far as the kernel. Made anew by its class without
        arguments, it describes itself the same.
        """
        ...


QUEUE_S = 310.0
"""How long `open` may take, waiting for a free worker included."""

GRACE_S = 10.0
"""How long `run` may overstay `wall_time`, and `close` may take, before a backend counts as broken."""


async def execute(backend: Backend, plan: ExecutionPlan, host: Host) -> Outcome:
    """Run one sealed plan in a sandbox of its own: the only way in which core calls a backend.

    Raises:
        PlanNotSealed: the runtime did not make this plan.
        BackendError: the backend failed, overstayed its time, or broke its protocol.
    """
    plans.check(plan)
    if backend.describe().name != plan.backend:
        raise BackendError(f"the plan is for `{plan.backend}`, not for `{backend.describe().name}`")
    deadlines = Deadlines(min(QUEUE_S, GRACE_S))
    name = plan.backend
    try:
        sandbox = await _within(deadlines, QUEUE_S, name, "open", lambda: backend.open(plan, host))
        try:
            allowed = (plan.limits.wall_time or 0.0) + GRACE_S
            outcome = await _within(deadlines, allowed, name, "run", lambda: sandbox.run(plan, host))
        finally:
            await _within(deadlines, GRACE_S, name, "close", sandbox.close)
    finally:
        deadlines.close()
    return _checked(outcome, plan.backend)


def _checked(outcome: Outcome, name: str) -> Outcome:
    """Refuse an outcome that contradicts itself; keep the texts in it short."""
    if not isinstance(outcome, Outcome) or not isinstance(outcome.termination, Termination):
        raise BackendError(f"backend `{name}` returned no outcome")
    if outcome.termination not in _ENDINGS:
        raise BackendError(f"backend `{name}` answered `{outcome.termination}`, which is not its to say")
    if outcome.suspension is not None:
        if outcome.termination is not Termination.approval_pending:
            raise BackendError(f"backend `{name}` suspended a run that waits for nothing")
        if type(outcome.suspension) is not bytes or len(outcome.suspension) > plans.MOST_SUSPENSION:
            raise BackendError(f"backend `{name}` wrote a run down as no bytes, or as too many")
    if outcome.staged is not None and not isinstance(outcome.staged, Staged):
        raise BackendError(f"backend `{name}` returned no list of what the code wrote")
    exited = outcome.termination is Termination.exited
    if exited != isinstance(outcome.exit_code, int) or (outcome.exit_code == 0 and outcome.error is not None):
        raise BackendError(f"backend `{name}` returned an outcome that contradicts itself")
    error = outcome.error
    return Outcome(
        termination=outcome.termination,
        exit_code=outcome.exit_code,
        value=outcome.value,
        value_repr=outcome.value_repr,
        error=error and GuestError(bounded(error.type, 200), bounded(error.message, 10_000), error.line),
        usage=outcome.usage,
        configured=_short(outcome.configured),
        observed=_short(outcome.observed),
        detail=outcome.detail and bounded(outcome.detail, 1000),
        suspension=outcome.suspension,
        staged=outcome.staged,
    )


def _short(facts: Mapping[str, str]) -> dict[str, str]:
    return {bounded(key, 100): bounded(value, 1000) for key, value in facts.items()}


_ENDINGS = frozenset(Termination) - {Termination.no_backend, Termination.unknown}
"""How a run can end once a backend has it; a denial ends one by a fatal reply of the host."""


async def _within(
    deadlines: Deadlines, seconds: float, name: str, step: str, call: Callable[[], Awaitable[T]]
) -> T:
    """Cancel a call of a backend that takes too long; one that obeys can't hold its caller for ever.

    Nor may one end the process: a backend that exits has failed. A Ctrl-C of the user is passed on.
    """
    try:
        return await deadlines.within(seconds, call())
    except Overdue:
        raise BackendError(f"`{name}` did not finish `{step}` within {seconds:.0f} s") from None
    except (SystemExit, KeyboardInterrupt) as problem:
        if isinstance(problem, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise
        raise BackendError(f"`{name}` raised `{type(problem).__name__}` in `{step}`") from problem
