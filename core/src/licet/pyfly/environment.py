"""The environment under PyFly's name: a `Runtime`, asked for no more than the functions it is handed.

Rules this module keeps:

- the request lists its intents, and lists none, so that policy opens the tools handed over and nothing else;
- which sandbox runs is selected, as ever, by what it holds; nothing here knows one by name;
- a runtime that was lent is not closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol, Self, runtime_checkable

from licet.errors import LaunchFailed
from licet.pyfly.outcomes import ExecutionLimits, ExecutionResult, lowest, outcome_of
from licet.runtime import Runtime

DEFAULT_POLICY = "licet:agent"
DEFAULT_LIMITS = ExecutionLimits(timeout_seconds=30.0)

Functions = Mapping[str, Any]
"""Callables, or tools of `licet.toolkit`, by the names that code calls them by."""


class Capability(StrEnum):
    """What an environment can grant to code; no environment of the bridge grants the last two."""

    COMPUTE = "compute"
    EXTERNAL_FUNCTIONS = "external_functions"
    FILESYSTEM = "filesystem"
    NETWORK = "network"


@runtime_checkable
class ExecutionEnvironment(Protocol):
    """Something that runs code, and says as a result how it went."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can grant."""

    async def run_code(
        self,
        code: str,
        *,
        inputs: Mapping[str, Any] | None = None,
        external_functions: Functions | None = None,
        limits: ExecutionLimits | None = None,
    ) -> ExecutionResult:
        """Run `code` with `inputs` as globals; it may call `external_functions`."""


class MontyEnvironment:
    """Runs code under a policy, by default `licet:agent`, without anything of the host but functions.

    The name is PyFly's. The sandbox is selected by what it holds; under a policy that opens no file and no
    host that is Monty today. `default_limits` hold for every run, and a run may only lower them. To bring a
    policy, settings or a log, bring a `runtime`; it stays yours to close.

    Raises:
        SandboxUnavailableError: no sandbox can be used here.
    """

    screens = True
    """A run refuses by itself, and records, what licet's screen finds in the code."""

    def __init__(
        self, *, default_limits: ExecutionLimits | None = None, runtime: Runtime | None = None
    ) -> None:
        self._limits = default_limits or DEFAULT_LIMITS
        self._lent = runtime is not None
        self.runtime = runtime or Runtime(DEFAULT_POLICY)
        if all(offer.descriptor.unavailable is not None for offer in self.runtime.offers()):
            raise LaunchFailed("no sandbox can be used here", advice="`licet doctor` says what is missing")

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the policy in force lets code have: computation, and functions if it allows any tool."""
        tools = any(entry.action == "tool" for entry in self.runtime.stack.root.allow)
        return frozenset({Capability.COMPUTE, *((Capability.EXTERNAL_FUNCTIONS,) if tools else ())})

    async def run_code(
        self,
        code: str,
        *,
        inputs: Mapping[str, Any] | None = None,
        external_functions: Functions | None = None,
        limits: ExecutionLimits | None = None,
    ) -> ExecutionResult:
        """Run `code` if policy lets it, and say how it went.

        Raises:
            ExecutionError: an input, a function or its name can't be used.
        """
        bounds = lowest(self._limits, limits or ExecutionLimits())
        given: dict[str, Any] = {"inputs": inputs or {}, "tools": external_functions or {}, "limits": bounds}
        return outcome_of(await self.runtime.run(code, intents=(), **given))

    async def aclose(self) -> None:
        """End the workers that wait for further runs; not those of a runtime that was lent."""
        if not self._lent:
            await self.runtime.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
