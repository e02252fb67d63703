"""Feeds code to a session and answers, snapshot by snapshot, whatever it asks for.

Rules this module keeps:

- one path: every call, file, name, sleep and variable that Monty surfaces passes `_answer` before it happens;
- unknown names are not defined: a tool is a name that the plan opens, and nothing else is;
- once the run is stopped nothing more is answered;
- what the host must not be made to build (see `trailing`) is not read, save the arguments of opened tools.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pydantic_monty
from licet.backend import Access, Host, Termination, ToolCall
from licet.plan import ExecutionPlan
from pydantic_monty import FunctionSnapshot, FutureSnapshot, MontyComplete, NameLookupSnapshot

from licet_monty import answers, tools
from licet_monty.bounds import ACCESSES
from licet_monty.bridge import Bridge, Interrupted

if TYPE_CHECKING:
    from pydantic_monty import ExternalResult, ExternalSettledResult, MontySession, SyncSnapshot

T = TypeVar("T")
A = TypeVar("A")
Stop = Callable[[Termination], None]


class HostFailed(Exception):
    """The host raised while it was asked; its exception is the cause of this one."""


class Dialogue:
    """What one run says to its session, and hears."""

    def __init__(
        self,
        session: MontySession,
        plan: ExecutionPlan,
        host: Host,
        bridge: Bridge,
        stopped: threading.Event,
        stop: Stop,
    ) -> None:
        self._session = session
        self._plan = plan
        self._host = host
        self._bridge = bridge
        self._stopped = stopped
        self._stop = stop
        self._source = b""
        self._accesses = 0
        self._settled: dict[int, tuple[str, ExternalSettledResult]] = {}
        self._due: dict[int, float] = {}
        self._slept = 0.0
        self.fault: Exception | None = None

    def feed(self, code: str, inputs: dict[str, Any]) -> MontyComplete:
        """Run one piece of code to its end; its output is not read here.

        Raises:
            Interrupted: the run was stopped.
            HostFailed: the host raised.
            pydantic_monty.MontyError, RuntimeError: what `ending.of` tells apart.
        """
        self._source = code.encode("utf-8", "replace")
        workdir = self._plan.workdir if self._plan.workdir.startswith("/") else "/"
        snapshot: SyncSnapshot = self._session.feed_start(
            code, inputs=inputs, print_callback=self._print, cwd=workdir
        )
        while not isinstance(snapshot, MontyComplete):
            if self._stopped.is_set():
                raise Interrupted
            snapshot = self._answer(snapshot)
        return snapshot

    def _print(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        """Hand output to the host; raising here would not stop the code, so the run is stopped instead."""
        try:
            within = self._stopped.is_set() or self._host.write(stream, text.encode("utf-8", "replace"))
        except Exception as problem:
            self.fault = problem
            self._stop(Termination.backend_error)
            return
        if not within:
            self._stop(Termination.output_limit)

    def _answer(self, snapshot: FunctionSnapshot | NameLookupSnapshot | FutureSnapshot) -> SyncSnapshot:
        if isinstance(snapshot, FunctionSnapshot):
            if snapshot.is_os_function:
                return self._system(snapshot)
            if snapshot.object_id is None and snapshot.function_name in self._plan.opened.tools:
                return self._tool(snapshot)
            return snapshot.resume(answers.undefined(snapshot.function_name))
        if isinstance(snapshot, NameLookupSnapshot):
            if snapshot.object_id is None and snapshot.variable_name in self._plan.opened.tools:
                return snapshot.resume(value=tools.stand_in(snapshot.variable_name))
            return snapshot.resume()
        return self._settle(snapshot)

    def _system(self, snapshot: FunctionSnapshot) -> SyncSnapshot:
        name = snapshot.function_name
        if name == "import":
            return snapshot.resume(answers.missing_module(snapshot.args[0]))
        if name == "os.environ":
            return snapshot.resume({"return_value": dict(self._plan.environment)})
        if name == "os.getenv":
            return snapshot.resume(answers.getenv(self._call_text(snapshot), self._plan.environment))
        if name == "os.urandom":
            draw = partial(self._told, self._host.random_bytes)
            return snapshot.resume(answers.random_bytes(snapshot.args[0], draw))
        if name in answers.CLOCKS:
            now = partial(self._told, self._host.now)
            return snapshot.resume(answers.clock(name, snapshot.args, now))
        if name in answers.SLEEPS:
            self._sleep(self._elapsed() + float(snapshot.args[0]))
            return snapshot.resume({"return_value": None})
        if name in answers.ASYNC_SLEEPS:
            self._due[snapshot.call_id] = self._elapsed() + float(snapshot.args[0])
            return snapshot.resume({"future": ...})
        if name == "Path.absolute":
            return snapshot.resume({"return_value": snapshot.args[0]})
        accesses = answers.file_accesses(name, snapshot.args)
        return snapshot.resume(self._file(accesses)) if accesses else snapshot.resume_not_handled()

    def _file(self, accesses: Sequence[Access]) -> ExternalResult:
        """Have accesses recorded, and refuse them: files come to Monty as mounts, and there is none."""
        for access in accesses:
            self._accesses += 1
            if self._accesses > ACCESSES:
                self._stop(Termination.file_limit)
                raise Interrupted
            self._ask(partial(self._host.access, access))
        return answers.refuse_file(accesses[0].target)

    def _tool(self, snapshot: FunctionSnapshot) -> SyncSnapshot:
        name = snapshot.function_name
        result = self._call(name, snapshot)
        if snapshot.allow_eager_await:  # `await f()`: the code wants an awaitable
            self._settled[snapshot.call_id] = (name, result)
            return snapshot.resume({"future": ...})
        return _resume(name, snapshot.resume, result)

    def _call(self, name: str, snapshot: FunctionSnapshot) -> ExternalSettledResult:
        args, kwargs = snapshot.args, snapshot.kwargs
        why = tools.why_refused(args, kwargs)
        if why is not None:
            return tools.refused(name, why)
        call = ToolCall(name, args, kwargs, self._line(snapshot))
        reply = self._ask(partial(self._host.call, call))
        if reply.fatal is not None:
            self._stop(reply.fatal)
            raise Interrupted
        return {"return_value": reply.value} if reply.error is None else tools.raised(reply.error)

    def _settle(self, snapshot: FutureSnapshot) -> SyncSnapshot:
        """Settle one of the futures that the code waits for: a tool's, or the sleep that ends first."""
        for call in snapshot.pending_call_ids:
            if call in self._settled:
                name, result = self._settled.pop(call)
                return _resume(name, _keyed(snapshot, call), result)
        call = min(snapshot.pending_call_ids, key=lambda pending: (self._due.get(pending, 0.0), pending))
        self._sleep(self._due.pop(call, 0.0))
        return snapshot.resume({call: {"return_value": None}})

    def _elapsed(self) -> float:
        """What sleeps are measured by: time, or under a clock that stands the sleeps that are over."""
        return self._slept if self._plan.clock == "frozen" else time.monotonic()

    def _sleep(self, until: float) -> None:
        """Wait until then, or until the run is stopped; the deadline stops it, so any length is safe."""
        if self._plan.clock == "frozen":
            self._slept = max(self._slept, until)
        elif self._stopped.wait(min(max(until - time.monotonic(), 0.0), threading.TIMEOUT_MAX)):
            raise Interrupted

    def _told(self, tell: Callable[[A], T], about: A) -> T:
        """What the host says at once."""
        try:
            return tell(about)
        except Exception as problem:
            raise HostFailed from problem

    def _ask(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            return self._bridge.ask(make)
        except Interrupted:
            raise
        except Exception as problem:
            raise HostFailed from problem

    def _line(self, snapshot: FunctionSnapshot) -> int | None:
        """The line of a call in the plan's code; None inside `eval` and `exec`."""
        if snapshot.position.filename.startswith("<string>"):
            return None
        return self._source.count(b"\n", 0, snapshot.position.start) + 1

    def _call_text(self, snapshot: FunctionSnapshot) -> str:
        if snapshot.position.filename.startswith("<string>"):
            return ""
        return self._source[snapshot.position.start : snapshot.position.end].decode("utf-8", "replace")


def _keyed(snapshot: FutureSnapshot, call: int) -> Callable[[ExternalSettledResult], SyncSnapshot]:
    return lambda given: snapshot.resume({call: given})


def _resume(
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
