"""Asking a function of the embedding program.

Rules this module keeps:

- the function is given the whole request, and says yes only by `request.approve(...)`; whatever else it
  returns, None included, is no answer, and `asking` counts it as a denial;
- one that blocks is called on a thread, so that the loop goes on; a thread can't be stopped, so an answer
  that nobody waits for any more goes nowhere.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

from licet.approvals.forms import Answer, ApprovalRequest
from licet.approvals.services import ApprovalService
from licet.errors import UsageError
from licet.threads import Threads

Callback = Callable[[ApprovalRequest], Answer | Awaitable[Answer | None] | None]
"""Says yes or no to a request; anything but an `Answer` is a no."""

_OF_A_SERVICE = ("name", "attended", "waits", "ask", "collect", "close")


class CallbackService:
    """A function as a service: it is asked while the run waits, and once only."""

    attended = True
    waits = False

    def __init__(self, function: Callback, name: str = "callback") -> None:
        self.name = name
        self._function = function

    async def ask(self, request: ApprovalRequest) -> AsyncIterator[Answer]:
        """Give what the function says, whatever that is."""
        yield cast("Answer", await self._answer(request))

    async def collect(self, request: ApprovalRequest) -> tuple[Answer, ...]:
        """Nothing: nobody answers later."""
        return ()

    async def close(self) -> None:
        """Nothing is held."""

    async def _answer(self, request: ApprovalRequest) -> Any:
        given = self._function(request) if _is_async(self._function) else await self._on_thread(request)
        return await given if inspect.isawaitable(given) else given

    async def _on_thread(self, request: ApprovalRequest) -> Any:
        threads = Threads("licet-approval")  # of its own: whoever asks waits for people anyway
        context = contextvars.copy_context()

        def call() -> Any:
            try:
                return context.run(self._function, request)
            except KeyboardInterrupt:  # on a thread it is not the user's
                raise RuntimeError("the function raised KeyboardInterrupt") from None

        try:
            return await threads.call(call).result()
        finally:
            threads.close(0)


def as_service(thing: ApprovalService | Callback) -> ApprovalService:
    """A service as it is, or a function as one.

    Raises:
        UsageError: it is neither.
    """
    if not isinstance(thing, type):
        if all(hasattr(thing, name) for name in _OF_A_SERVICE):
            return cast("ApprovalService", thing)
        if callable(thing):
            return CallbackService(thing)
    raise UsageError(
        f"a `{type(thing).__name__}` can't be asked for approvals",
        advice="pass a function that takes an `ApprovalRequest` and returns `request.approve(...)`, "
        "or an object with all of " + ", ".join(f"`{name}`" for name in _OF_A_SERVICE),
    )


def _is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    called = getattr(type(function), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
