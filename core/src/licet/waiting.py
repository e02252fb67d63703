"""What of a run waits for an approval, be it a call of a tool or a connection, and who gets it approved.

Rules this module keeps:

- one thing of a run waits at a time, and whatever comes after it has its turn when that is settled;
- a run that is written down for what waits asks about nothing else any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from licet.backend import GuestError, Reply
from licet.decide import Decision
from licet.policy.parts import Approval

Obstacle = Callable[[Sequence[Approval]], str | None]
"""Why nobody can give these approvals; None if somebody can, so that a call waits and its run with it."""

Alive = Callable[[], Awaitable[Reply]]
"""Has approved what waits, and settles it, while its sandbox waits for the reply."""


def nobody(demands: Sequence[Approval]) -> str | None:
    """Nobody can be asked."""
    return "it needs an approval, and nobody can give one"


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """What waits for an approval: decided, recorded and not performed.

    Of a call of a tool, `name` is that of the tool and `arguments` are JSON. Of a connection, `arguments` is
    its canonical target.
    """

    sequence: int
    name: str
    digest: str
    arguments: str = field(repr=False)
    line: int | None = None
    kind: Literal["tool", "network"] = "tool"


class Waits:
    """What waits in one run. `call` is it, `asked` the decision on it if this process made that.

    `obstacle` says why nobody can approve something, or None. `lasting` says that a call that waits ends the
    sandbox, which goes on from it later.
    """

    def __init__(self, obstacle: Obstacle = nobody, call: WaitingCall | None = None) -> None:
        self.call = call
        self.asked: Decision | None = None
        self.lasting = True
        self._obstacle = obstacle
        self._alive: Alive | None = None
        self._turn = asyncio.Lock()

    def ask_alive(self, alive: Alive, *, lasting: bool) -> None:
        """Have things approved by `alive` while the sandbox waits; calls too, unless they are `lasting`."""
        self._alive, self.lasting = alive, lasting

    def obstacle(self, decision: Decision) -> str | None:
        """Why what this decision asks about can't be approved; None if somebody can say yes to it."""
        return self._obstacle(decision.demands)

    async def hold(self, call: WaitingCall, decision: Decision) -> None:
        """Let `call` wait until `settled`, whatever becomes of the sandbox; the first one is it."""
        async with self._turn:
            if self.call is None:
                self.call, self.asked = call, decision

    async def answered(self, call: WaitingCall, decision: Decision) -> Reply:
        """Let `call` wait while the sandbox does, and give what it is settled with."""
        if self._alive is None:
            return _refused(nobody(decision.demands) or "")
        async with self._turn:
            if self.call is not None:
                return _refused("the run waits for another approval")
            self.call, self.asked = call, decision
            try:
                return await self._alive()
            finally:
                self.call = None

    def settled(self) -> WaitingCall | None:
        """What waited, which from here on does no more; None if nothing did."""
        call, self.call = self.call, None
        return call


def _refused(why: str) -> Reply:
    return Reply(error=GuestError("PermissionError", why))
