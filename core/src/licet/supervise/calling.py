"""The calls of tools by a guest, from the frame that it sent to the reply that it gets.

Rules this module keeps:

- a tool is a name that the run was given, and nothing else is;
- a reply finds its call by its number; calls run side by side, and are answered in the order of ending;
- while `MOST_UNDER_WAY` calls wait for their reply, or replies for the guest to take them, nothing more is
  read of it: the guest waits, and the host keeps no more than that;
- replies go from host to child only, so that `marshal` is safe for them;
- what the caller raises, and a reply that is the last, ends the run.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

from licet.supervise.asking import Answered

if TYPE_CHECKING:
    from licet.supervise.asking import OnCall
    from licet.supervise.channel import Called
    from licet.supervise.courier import Answer, Courier
    from licet.supervise.wires import Wires

MOST_UNDER_WAY = 64


class Calls:
    """The calls of one run, whose guest is at `channel`; all of it happens in the run's thread.

    `end` is called with what was raised, or None, when a call ends the run.
    """

    def __init__(
        self,
        tools: Collection[str],
        on_call: OnCall,
        courier: Courier,
        wires: Wires,
        channel: int,
        end: Callable[[BaseException | None], object],
    ) -> None:
        self._tools = frozenset(tools)
        self._on_call = on_call
        self._courier = courier
        self._wires = wires
        self._channel = channel
        self._end = end
        self._under_way = 0

    def take(self, called: Called) -> None:
        """Have a call answered."""
        self._count(1)
        if called.name not in self._tools:
            self._reply(called, Answered(error=("NameError", f"name {called.name!r} is not defined")))
            return
        make = partial(self._on_call, called)
        self._courier.ask(make, partial(self._answer, called))

    def _answer(self, called: Called, answer: Answer[Answered]) -> None:
        if answer.value is None or answer.value.last:
            self._end(answer.problem)
        else:
            self._reply(called, answer.value)

    def _reply(self, called: Called, answered: Answered) -> None:
        body = marshal.dumps((called.number, answered.error, answered.tree))
        self._wires.send(self._channel, len(body).to_bytes(4, "big") + body, lambda: self._count(-1))

    def _count(self, change: int) -> None:
        self._under_way += change
        self._wires.hold(self._channel, self._under_way >= MOST_UNDER_WAY)
