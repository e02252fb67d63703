"""Feeds code to a session and answers, snapshot by snapshot, whatever it asks for.

Rules this module keeps:

- one path: every call, file, name, sleep and variable that Monty surfaces passes `_answer` before it happens;
- unknown names are not defined, and calls of them are calls of tools only where `calls` says so;
- once the run is stopped nothing more is answered;
- a run is written down only where a session can go on with nothing but that;
- what the host must not be made to build (see `trailing`) is not read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from licet import values
from licet.backend import Access, Host, Termination
from licet.errors import BackendError
from licet.plan import MOST_SUSPENSION, ExecutionPlan, Resumption
from licet.writes.staged import StorageFull
from pydantic_monty import (
    FunctionSnapshot,
    FutureSnapshot,
    MontyComplete,
    MontyError,
    MontyRuntimeError,
    NameLookupSnapshot,
)

from licet_monty import answers, prelude, suspension, tools
from licet_monty.bounds import ACCESSES
from licet_monty.bridge import Bridge, Interrupted
from licet_monty.calls import Calls, HostFailed, Waiting
from licet_monty.files import FILE_CALLS, Files
from licet_monty.prelude import Known
from licet_monty.suspension import Announced, Past
from licet_monty.worker import Worker

if TYPE_CHECKING:
    from pydantic_monty import SyncSnapshot

T = TypeVar("T")
A = TypeVar("A")


class Control(Protocol):
    """The run that this is the dialogue of; `stopped` is set once it has ended."""

    stopped: threading.Event

    def stop(self, cause: Termination) -> None:
        """End the run for this cause."""
        ...

    def spent(self) -> tuple[float, float]:
        """Seconds that the run has taken, and of processor time, since its beginning."""
        ...


class Dialogue:
    """What one run says to its session, and hears; `past` is set for one that was suspended.

    `suspended` is the run as it was written down, `unsuspended` why it was not.
    """

    def __init__(
        self,
        worker: Worker,
        plan: ExecutionPlan,
        host: Host,
        bridge: Bridge,
        run: Control,
        past: Past | None = None,
    ) -> None:
        self._session = worker.session
        self._bounds = worker.bounds
        self._plan = plan
        self._host = host
        self._bridge = bridge
        self._run = run
        self._stopped = run.stopped
        self._stop = run.stop
        self._source = ""
        self._answered = 0
        self._accesses = past.accesses if past else 0
        self._calls = Calls(plan, host, bridge, run.stop, self._write_down)
        self._due: dict[int, float] = {}
        self._slept = past.slept if past else 0.0
        self.fault: Exception | None = None
        self.files = Files(plan, self._allows, past.came_upon if past else None)
        self.suspended: bytes | None = None
        self.unsuspended: str | None = None

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
        self._source = code
        workdir = self._plan.workdir if self._plan.workdir.startswith("/") else "/"
        snapshot: SyncSnapshot = self._session.feed_start(
            code, inputs=inputs, print_callback=self._print, cwd=workdir
        )
        return self._to_the_end(snapshot)

    def go_on(self, code: str, past: Past, dump: bytes, resumption: Resumption) -> MontyComplete:
        """Go on where the run was suspended that `code` was fed to, in a session that was given nothing.

        Raises:
            SuspensionVoid: it can't be loaded, or waits for something else than was written down.
            Interrupted, HostFailed, pydantic_monty.MontyError, RuntimeError: as `feed` does.
        """
        self._source = code
        try:
            snapshot: object = self._session.load_snapshot(dump, print_callback=self._print)
        except (MontyError, RuntimeError) as problem:
            if self._stopped.is_set():
                raise Interrupted from None
            raise suspension.void(f"monty can't go on with these bytes: {problem}") from None
        return self._to_the_end(self._calls.go_on(snapshot, past.announced, resumption))

    def _to_the_end(self, snapshot: SyncSnapshot) -> MontyComplete:
        while not isinstance(snapshot, MontyComplete):
            if self._stopped.is_set():
                raise Interrupted
            self._answered += 1
            snapshot = self._answer(snapshot)
        return snapshot

    def _write_down(self, snapshot: Waiting, announced: Announced) -> None:
        """Write the run down as it waits, if that is all that is left of it."""
        self.unsuspended = self._hindrance()
        if self.unsuspended is not None:
            return
        try:
            dump = snapshot.dump()
        except MontyRuntimeError as problem:
            self.unsuspended = f"monty can't write it down: {problem}"
            return
        wall, cpu = self._run.spent()
        past = Past(
            announced=announced,
            fed=suspension.fed_digest(self._source),
            tools=self._plan.opened.tools,
            wall=wall,
            cpu=cpu,
            accesses=self._accesses,
            slept=self._slept,
            memory=self._bounds.memory,
            suspensions=self._bounds.suspensions - self._answered,
            came_upon=self.files.came_upon(),
        )
        written = suspension.write(past, dump)
        if len(written) > MOST_SUSPENSION:
            self.unsuspended = f"it takes {len(written)} bytes, at most {MOST_SUSPENSION} are kept"
        else:
            self.suspended = written

    def _hindrance(self) -> str | None:
        """Why the run can't be suspended; None if it can."""
        if self._calls.are_under_way or self._due:
            return "other calls or sleeps of its code are under way"
        if self.files.is_changed:
            return "it has changed files, which only a run that ends can commit"
        try:
            values.check_crossing(dict(self._plan.inputs))
        except ValueError as problem:
            return f"it has inputs that are no plain data: {problem}"
        return None

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
        source = self._source.encode("utf-8", "replace")
        return source[snapshot.position.start : snapshot.position.end].decode("utf-8", "replace")
