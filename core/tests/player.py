"""A backend that runs Python in place, no sandbox at all: time, randomness and tools are its host's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from licet.backend import Descriptor, GuestError, Host, Language, Outcome, Sandbox, Termination, ToolCall
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.plan import ExecutionPlan

EVERYTHING = SandboxEnforcementContract(
    **{control.value: Enforcement(Level.enforced, "kernel", "a test") for control in Control}
)


class Ended(BaseException):
    """The host ended the run."""


class Player:
    """Its code sees `now(what)`, `rand(count)`, `print` and the tools that are opened."""

    def __init__(self, version: str = "1", name: str = "player") -> None:
        self._descriptor = Descriptor(
            name,
            version,
            EVERYTHING,
            Language("Python"),
            frozenset({"read", "write", "network", "shell", "tool"}),  # type: ignore[arg-type]
            governs=frozenset({"clock", "random"}),
        )

    def describe(self) -> Descriptor:
        return self._descriptor

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return self

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        loop = asyncio.get_running_loop()

        def caller(name: str) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                made = host.call(ToolCall(name, args, kwargs))
                reply = asyncio.run_coroutine_threadsafe(made, loop).result()
                if reply.fatal is not None:
                    raise Ended(reply.fatal)
                if reply.error is not None:
                    raise RuntimeError(f"{reply.error.type}: {reply.error.message}")
                return reply.value

            return call

        def show(*what: Any) -> None:
            host.write("stdout", (" ".join(map(str, what)) + "\n").encode())

        names = {name: caller(name) for name in plan.opened.tools}
        code = compile(plan.code, "guest", "exec")
        world = {"now": host.now, "rand": host.random_bytes, "print": show, **plan.inputs, **names}
        try:
            await asyncio.to_thread(exec, code, world)
        except Ended as end:
            return Outcome(Termination(end.args[0]))
        except Exception as problem:
            error = GuestError(type(problem).__name__, str(problem))
            return Outcome(Termination.exited, exit_code=1, error=error)
        value = world.get("value")
        return Outcome(
            Termination.exited, exit_code=0, value=value, value_repr=None if value is None else repr(value)
        )

    async def close(self) -> None:
        return
