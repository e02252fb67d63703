"""The execution plan: all that a backend may know of a run, under a seal that only licet makes.

Rules this module keeps:

- a plan is frozen, and made by `seal` alone; `check` accepts each sealed plan once, and no copy of it;
- what a plan does not open is closed: a backend opens `opened` or less, never more.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from weakref import WeakValueDictionary

from licet import hosts, paths
from licet.contract import SandboxEnforcementContract
from licet.environments.python import Python
from licet.errors import PlanNotSealed
from licet.request import Action, Limits, Mount
from licet.surroundings import Clock


@dataclass(frozen=True, slots=True)
class Opened:
    """What a decision opens to the sandbox, in canonical form.

    `read` and `write` are absolute roots; inside them, `read_masked` and `write_masked` are paths that policy
    keeps closed. Of all these around a path, the innermost decides: a root can lie inside a masked path.
    `sealed` are paths of licet itself, closed whatever else is said. `network` holds `HOST:PORT` patterns or
    `any`, `network_masked` what policy keeps closed inside a wider pattern; `network_asked` is closed, and
    asked about when the code connects. `tools` are the names of the callables passed.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    read_masked: tuple[str, ...] = ()
    write_masked: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    network_masked: tuple[str, ...] = ()
    network_asked: tuple[str, ...] = ()
    shell: bool = False
    tools: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """By name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def opens(self, action: Action, target: str) -> bool:
        """Whether `target` is opened: a canonical path, or a host and port as `HOST:PORT`."""
        if action == "read":
            return self._opens_path(target, self.read, self.read_masked)
        if action == "write":
            return self._opens_path(target, self.write, self.write_masked)
        if action == "network":
            return self._opens_host(hosts.read_back(target))
        return self.shell if action == "shell" else action == "tool" and target in self.tools

    @property
    def connects(self) -> bool:
        """Whether there are hosts that the code may reach, or may be approved to."""
        return bool(self.network or self.network_asked)

    def asks(self, target: str) -> bool:
        """Whether a connection to `target`, as `HOST:PORT`, may be asked about when it is made."""
        wanted = hosts.read_back(target)
        return any(pattern.covers(wanted) for pattern in map(hosts.read_back, self.network_asked))

    def _opens_path(self, path: str, roots: Iterable[str], masked: Iterable[str]) -> bool:
        if any(paths.contains(seal, path) for seal in self.sealed):
            return False
        return _depth(roots, path) > _depth(masked, path)

    def _opens_host(self, host: hosts.Endpoint) -> bool:
        closed = [mask for mask in map(hosts.read_back, self.network_masked) if mask.covers(host)]
        around = (pattern for pattern in map(hosts.read_back, self.network) if pattern.covers(host))
        return any(not any(pattern.covers(mask) for mask in closed) for pattern in around)


def _depth(roots: Iterable[str], path: str) -> int:
    """How far down the innermost of `roots` around `path` lies; 0 if there is none."""
    return max((len(root) for root in roots if paths.contains(root, path)), default=0)


MOST_SUSPENSION = 64 << 20
"""How many bytes a backend may write a waiting run down as; a run that takes more can't be suspended."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """A suspended run to go on with: what its backend wrote down, and the answer that it waits for.

    The answer is a value, or an error as a type and a message.
    """

    suspension: bytes = field(repr=False)
    value: Any = None
    error: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ExecutionPlan:
    """One run, decided and authorised.

    `files` are files of the host that the code sees at other paths; each of them is opened to be read.
    `policy_class` and `tenant` say which runs may share a warm worker: two plans may do so only if both
    are equal and they are `warm`; if not, nothing that was started before the run takes part in it. `limits`
    states every limit in force; a limit that is None was asked for by nobody. Under a `frozen` clock time
    stands still, and a sleep is over at once. `python` is the interpreter and the packages that the code is
    to have, or None for those that the backend has by itself. `async_tools` are those of the tools that code
    may await. `resumption` is set if the run goes on where it was suspended.
    """

    run_id: str
    backend: str
    code: str
    inputs: Mapping[str, Any]
    stdin: bytes
    environment: Mapping[str, str]
    workdir: str
    limits: Limits
    opened: Opened
    contract: SandboxEnforcementContract
    plan_digest: str
    policy_class: str
    tenant: str | None = None
    warm: bool = True
    files: tuple[Mount, ...] = ()
    clock: Clock = "real"
    python: Python | None = None
    async_tools: frozenset[str] = frozenset()
    resumption: Resumption | None = None
    seal: str = field(default="", repr=False)


_content = tuple(field.name for field in fields(ExecutionPlan) if field.name != "seal")
_sealed: WeakValueDictionary[str, ExecutionPlan] = WeakValueDictionary()
_serial = itertools.count()
_guard = threading.Lock()


def seal(plan: ExecutionPlan) -> ExecutionPlan:
    """Return `plan` with a seal that `check` will accept once; for the runtime and the prober."""
    sealed = ExecutionPlan(**{name: getattr(plan, name) for name in _content}, seal=f"seal {next(_serial)}")
    with _guard:
        _sealed[sealed.seal] = sealed
    return sealed


def check(plan: ExecutionPlan) -> None:
    """Accept a sealed plan once.

    The seal belongs to the very object that `seal` returned, so that nothing in it can be exchanged.

    Raises:
        PlanNotSealed: the seal is missing, forged, taken from another plan, or was accepted before.
    """
    with _guard:
        genuine = _sealed.get(plan.seal) is plan
        if genuine:
            del _sealed[plan.seal]
    if not genuine:
        raise PlanNotSealed(
            f"the plan of run `{plan.run_id}` was not made by the runtime, or was used before",
            advice="call `Runtime.run`; every run needs a plan of its own, and nobody else makes them",
        )
