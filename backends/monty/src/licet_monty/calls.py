"""Calls of tools by running code, from the function in the sandbox to the reply that it gets.

Rules this module keeps:

- arguments are read of two calls alone, those of the prelude; they are known by the feed and the place in it
  where they stand, and code has no way to stand there;
- a tool is a name that the plan opens, and nothing else is;
- a fatal reply stops the run, and nothing is resumed; any other goes back into the code;
- a run whose call waits for approval is written down before it is stopped, and goes on with that call alone;
- calls that the code awaits run side by side, and arrive in the order in which they end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pydantic_monty
from licet.backend import GuestError, Host, Reply, Termination
from licet.plan import ExecutionPlan, Resumption
from pydantic_monty import FunctionSnapshot, FutureSnapshot

from licet_monty import tools
from licet_monty.bridge import Bridge, Interrupted
from licet_monty.prelude import FEED, LATER_CALL, NOW_CALL, PLACES
from licet_monty.suspension import Announced, text_digest, void

if TYPE_CHECKING:
    from pydantic_monty import ExternalSettledResult, SyncSnapshot


Waiting = FunctionSnapshot | FutureSnapshot
"""A session that waits for the reply to a call."""

WriteDown = Callable[[Waiting, Announced], None]
"""Write a session down that waits for an approval."""

Texts = tuple[str, str, str]
"""What the prelude hands over with a call: name, line, arguments."""


class HostFailed(Exception):
    """The host raised while it was asked; its exception is the cause of this one."""


class Calls:
    """The tools of one run: which are under way, and what came of them.

    `trusted` says that the session was fed the prelude before anything else.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        host: Host,
        bridge: Bridge,
        stop: Callable[[Termination], None],
        write_down: WriteDown,
    ) -> None:
        self._opened = frozenset(plan.opened.tools)
        self._in_order = plan.clock == "frozen"
        self._host = host
        self._bridge = bridge
        self._stop = stop
        self._write_down = write_down
        self.trusted = False
        self._under_way: dict[int, Texts] = {}
        self._refusals: dict[int, ExternalSettledResult] = {}

    @property
    def are_under_way(self) -> bool:
        """Whether there are calls that the code has yet to hear of, beside the one that is being answered."""
        return bool(self._under_way or self._refusals)

    def answer(self, snapshot: FunctionSnapshot) -> SyncSnapshot | None:
        """Perform the call of a tool and resume; None if this is no call of a tool.

        Raises:
            Interrupted: the run was stopped, perhaps by this call.
            HostFailed: the host raised.
        """
        if not (self.trusted and snapshot.object_id is None and is_hand_over(snapshot)):
            return None
        texts: Texts = snapshot.args
        name, line, arguments = texts
        if name not in self._opened:
            return self._refuse(snapshot, tools.undefined(name))
        call = tools.read_call(name, line, arguments)
        if snapshot.function_name == LATER_CALL:
            self._under_way[snapshot.call_id] = texts
            self._bridge.begin(snapshot.call_id, partial(self._host.call, call))
            return snapshot.resume({"future": ...})
        ask = partial(self._bridge.ask, partial(self._host.call, call))
        return resume(name, snapshot.resume, self._result(snapshot, snapshot.call_id, texts, ask))

    def settle(self, snapshot: FutureSnapshot, until: float | None) -> SyncSnapshot | None:
        """Settle one of the calls that the code waits for, the first that ends; None if `until` comes before.

        Under a clock that stands it is the first that was made, so that a run can be repeated.

        Raises:
            Interrupted: the run was stopped, perhaps by this call.
            HostFailed: the host raised.
        """
        waiting = frozenset(snapshot.pending_call_ids)
        for refused in waiting & self._refusals.keys():
            return snapshot.resume({refused: self._refusals.pop(refused)})
        keys = waiting & self._under_way.keys()
        if keys and self._in_order:
            keys = frozenset({min(keys)})
        call = self._bridge.first(keys, until) if keys else None
        if call is None:
            return None
        texts = self._under_way.pop(call)
        result = self._result(snapshot, call, texts, partial(self._bridge.take, call))
        return resume(texts[0], _keyed(snapshot, call), result)

    def go_on(self, snapshot: object, announced: Announced, resumption: Resumption) -> SyncSnapshot:
        """Resume a loaded session with the answer that it waits for.

        Raises:
            SuspensionVoid: it waits for something else than was written down.
        """
        self.trusted = True
        error = None if resumption.error is None else GuestError(*resumption.error)
        result = _given(Reply(resumption.value, error))
        if _waits_for(snapshot, announced):
            if isinstance(snapshot, FutureSnapshot):
                return resume(announced.tool, _keyed(snapshot, announced.call), result)
            if isinstance(snapshot, FunctionSnapshot):
                return resume(announced.tool, snapshot.resume, result)
        raise void("the call that waits is not the one that was written down")

    def _refuse(self, snapshot: FunctionSnapshot, why: ExternalSettledResult) -> SyncSnapshot:
        if snapshot.function_name == NOW_CALL:
            return snapshot.resume(why)
        self._refusals[snapshot.call_id] = why
        return snapshot.resume({"future": ...})

    def _result(
        self, snapshot: Waiting, call: int, texts: Texts, reply_of: Callable[[], Reply]
    ) -> ExternalSettledResult:
        try:
            reply = reply_of()
        except Interrupted:
            raise
        except Exception as problem:
            raise HostFailed from problem
        if reply.fatal is not None:
            if reply.fatal is Termination.approval_pending:
                awaited = isinstance(snapshot, FutureSnapshot)
                self._write_down(snapshot, Announced(call, texts[0], text_digest(*texts), awaited))
            self._stop(reply.fatal)
            raise Interrupted
        return _given(reply)


def is_hand_over(snapshot: FunctionSnapshot) -> bool:
    """Whether a call is one of the two that the prelude makes, whose arguments are texts."""
    place = snapshot.position
    return place.filename == FEED and PLACES.get(place.start) == snapshot.function_name


def _waits_for(snapshot: object, announced: Announced) -> bool:
    """Whether a session waits for this very call, and for nothing else."""
    if announced.awaited:
        return isinstance(snapshot, FutureSnapshot) and list(snapshot.pending_call_ids) == [announced.call]
    if not isinstance(snapshot, FunctionSnapshot) or snapshot.object_id is not None:
        return False
    if snapshot.function_name != NOW_CALL or not is_hand_over(snapshot):
        return False
    return snapshot.call_id == announced.call and text_digest(*snapshot.args) == announced.digest


def _given(reply: Reply) -> ExternalSettledResult:
    return {"return_value": reply.value} if reply.error is None else tools.raised(reply.error)


def _keyed(snapshot: FutureSnapshot, call: int) -> Callable[[ExternalSettledResult], SyncSnapshot]:
    return lambda given: snapshot.resume({call: given})


def resume(
    name: str, resume: Callable[[ExternalSettledResult], SyncSnapshot], result: ExternalSettledResult
) -> SyncSnapshot:
    """Resume with a result; if it can't enter the sandbox, with an error that says so."""
    try:
        return resume(result)
    except pydantic_monty.MontyConversionError as problem:
        return resume(tools.unanswerable(name, problem))
    except pydantic_monty.MontyRuntimeError as problem:
        kind = type(problem.exception())
        if problem.traceback() or kind not in (TypeError, UnicodeEncodeError, ValueError):
            raise
        return resume(tools.unanswerable(name, problem))
