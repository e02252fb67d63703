"""Feeds code to a session and answers, snapshot by snapshot, whatever it asks for.

Rules this module keeps:

- one path: every call, file, name, sleep and variable that Monty surfaces passes `_answer` before it happens;
- unknown names are not defined, and calls of them are calls of tools only where `calls` says so;
- once the run is stopped nothing more is answered;
- what the host must not be made to build (see `trailing`) is not read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from licet.backend import Access, Host, Termination
from licet.errors import BackendError
from licet.plan import ExecutionPlan
from licet.writes.staged import StorageFull
from pydantic_monty import FunctionSnapshot, FutureSnapshot, MontyComplete, NameLookupSnapshot

from licet_monty import answers, prelude, tools
from licet_monty.bounds import ACCESSES
from licet_monty.bridge import Bridge, Interrupted
from licet_monty.calls import Calls, HostFailed
from licet_monty.files import FILE_CALLS, Files
from licet_monty.prelude import Known

if TYPE_CHECKING:
    from pydantic_monty import MontySession, SyncSnapshot

T = TypeVar("T")
A = TypeVar("A")
Stop = Callable[[Termination], None]


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
        self._calls = Calls(plan, host, bridge, stop)
        self._due: dict[int, float] = {}
        self._slept = 0.0
        self.fault: Exception | None = None
        self.files = Files(plan, self._allows)

    def define_tools(self, known: Known) -> None:
        """Make the tools of the plan callable in the session; `known` says what it has been given before.

        Raises:
            BackendError: the session has been fed, without the prelude.
            Interrupted, pydantic_monty.MontyError, RuntimeError: as `feed` does.
        """
        wanted = tuple(name for name in self._plan.opened.tools if name not in known.tools)
        first, known.fed = not known.fed, True
        known.trusted |= first and bool(wanted)
        self._calls.trusted = known.trusted
        if wanted and not known.trusted:
            raise BackendError("the first run in this sandbox had no tools, so no later one has")
        if wanted:
            head, inputs = (prelude.HEAD, dict(prelude.INPUTS)) if first else ("", {})
            self.feed(head + prelude.definitions(wanted), inputs)
            known.tools.update(wanted)

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
            called = self._calls.answer(snapshot)
            return called or snapshot.resume(tools.undefined(snapshot.function_name))
        if isinstance(snapshot, NameLookupSnapshot):
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
        return self._file(snapshot) if name in FILE_CALLS else snapshot.resume_not_handled()

    def _file(self, snapshot: FunctionSnapshot) -> SyncSnapshot:
        try:
            answer = self.files.answer(snapshot.function_name, snapshot.args, snapshot.kwargs)
        except StorageFull:
            self._stop(Termination.file_limit)
            raise Interrupted from None
        return snapshot.resume(answer)

    def _allows(self, action: Literal["read", "write"], path: str) -> bool:
        """Have an access decided and recorded."""
        self._accesses += 1
        if self._accesses > ACCESSES:
            self._stop(Termination.file_limit)
            raise Interrupted
        return self._ask(partial(self._host.access, Access(action, path)))

    def _settle(self, snapshot: FutureSnapshot) -> SyncSnapshot:
        """Settle one of the futures that the code waits for: the tool or the sleep that ends first.

        Under a clock that stands no sleep ends while a tool works.
        """
        sleeps = [call for call in snapshot.pending_call_ids if call in self._due]
        shortest = min(sleeps, key=lambda call: (self._due[call], call), default=None)
        until = self._due[shortest] if shortest is not None and self._plan.clock == "real" else None
        settled = self._calls.settle(snapshot, until)
        if settled is not None:
            return settled
        if shortest is None:  # begun by an earlier run of this sandbox, and cancelled at its end
            return snapshot.resume({snapshot.pending_call_ids[0]: answers.CANCELLED})
        self._sleep(self._due.pop(shortest))
        return snapshot.resume({shortest: {"return_value": None}})

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

    def _call_text(self, snapshot: FunctionSnapshot) -> str:
        if snapshot.position.filename.startswith("<string>"):
            return ""
        return self._source[snapshot.position.start : snapshot.position.end].decode("utf-8", "replace")
