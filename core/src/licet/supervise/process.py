"""One supervised run, from the start of its process to the proof that nothing of it is left.

Rules this module keeps:

- it blocks its own thread and needs no event loop, no signal handler and no child watcher of the program;
- both output streams are drained from start to end, whatever the caller makes of the data;
- the first cause that ends a run is the one that is told; after it the run has `GRACE` seconds to be gone,
  then the host kills what it can reach by itself and says that it is not sure;
- the code begins once its walls were looked at from outside;
- every descriptor is closed and the keeper is reaped on every way out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container
from typing import TYPE_CHECKING

from licet.supervise import bootstrap, readback, tree
from licet.supervise.answering import answer_calls, answer_connections
from licet.supervise.calls import GRACE, OnOutput, Stream
from licet.supervise.channel import Channel
from licet.supervise.descriptors import Descriptors
from licet.supervise.holding import Holder, Supplier
from licet.supervise.keeper import PATIENCE, Ends, Keeper
from licet.supervise.spec import ProcessOutcome, Reason, Spec, Used
from licet.supervise.stop import Stop
from licet.supervise.verdict import verdict
from licet.supervise.wires import Wires, read

if TYPE_CHECKING:
    from licet.supervise.asking import Asking
    from licet.supervise.jail.spec import Written


def run_blocking(
    spec: Spec,
    on_output: OnOutput,
    stop: Stop | None = None,
    launcher: Supplier | None = None,
    asking: Asking | None = None,
) -> ProcessOutcome:
    """Run `spec` to its end, as `licet.supervise.run_blocking` says.

    Raises:
        ValueError: an input can't cross to the code.
    """
    began = time.monotonic()
    try:
        return _run_once(spec, on_output, stop, launcher, asking, began)
    except _NotTaken:
        return _run_once(spec, on_output, stop, None, asking, began)


def _run_once(
    spec: Spec,
    on_output: OnOutput,
    stop: Stop | None,
    launcher: Supplier | None,
    asking: Asking | None,
    began: float,
) -> ProcessOutcome:
    with Descriptors() as fds:
        run = _Run(spec, on_output, stop, launcher, asking, fds, began)
        try:
            run.launch()
            run.loop()
        except _Unlaunched as problem:
            return ProcessOutcome(Reason.launch_failed, detail=str(problem))
        finally:
            run.part()
            run.close()
        if run.raised is not None:
            for place in run.written:
                os.close(place.descriptor)
            raise run.raised
        return run.outcome()


class _Unlaunched(Exception):
    """Nothing was started, and why."""


class _NotTaken(Exception):
    """The keeper that waited was gone before it took the run: nothing has begun, so it can begin anew."""


def _reason(problem: OSError | ValueError) -> str:
    return str((isinstance(problem, OSError) and problem.strerror) or problem).lower()


class _Run:
    """The state of one run. Each `_on_…` method handles one descriptor that became ready."""

    def __init__(
        self,
        spec: Spec,
        on_output: OnOutput,
        stop: Stop | None,
        launcher: Supplier | None,
        asking: Asking | None,
        fds: Descriptors,
        began: float,
    ) -> None:
        self.spec = spec
        self.on_output = on_output
        self.stop = stop
        # no keeper may last that the code can reach, or that would look an interpreter up in the workdir
        may_last = spec.confine_signals and os.path.isabs(spec.interpreter)  # noqa: PTH117
        self.launcher = launcher if (may_last and spec.warm) or spec.jail is not None else None
        self.fds = fds
        self.wires = Wires(fds)
        self.channel = Channel(bootstrap.FRAME_LIMIT)
        self.asking = asking
        self.began = began
        self.deadline = None if spec.wall_time is None else began + spec.wall_time
        self.keeper: Holder | None = None
        self.taken = True
        self.take_until: float | None = None
        self.look_at: float | None = None
        self.reached: Container[Reason] = ()
        self.guest: tree.Guest | None = None
        self.walls: tuple[str, ...] | None = None
        self.seen: dict[str, str] = {}
        self.cause: Reason | None = None
        self.grace: float | None = None
        self.over = False
        self.status: int | None = None
        self.peak_memory: int | None = None
        self.cpu_time: float | None = None
        self.ended = 0.0
        self.used = Used()
        self.failure: str | None = None
        self.raised: BaseException | None = None
        self.lines = b""
        self.written: tuple[Written, ...] = ()

    # -- start

    def launch(self) -> None:
        """Have a keeper started that owns its ends of everything, and register ours."""
        fds = self.fds
        self.orders = bootstrap.guest_message(self.spec)
        workdir = self._open_workdir()
        out, out_child = fds.pipe()
        err, err_child = fds.pipe()
        self.to_guest, channel_child = fds.socketpair()
        stdin, stdin_child = (-1, fds.null()) if not self.spec.stdin else reversed(fds.pipe())
        ends = Ends(stdin_child, out_child, err_child, channel_child, workdir)
        self.keeper = keeper = self._find_keeper(ends)
        for fd in ends:
            fds.close(fd)
        self.wires.drain_to(out, lambda: self._on_output("stdout", out))
        self.wires.drain_to(err, lambda: self._on_output("stderr", err))
        self.wires.drain_to(self.to_guest, lambda: self._on_channel(self.to_guest))
        if self.asking is not None:
            self.channel = answer_calls(self.asking, self.spec.tools, self.wires, self.to_guest, self._finish)
        self.wires.listen(keeper.control, lambda: self._on_control(keeper))
        self.wires.send(keeper.control, keeper.message(self.spec))
        if self.spec.stdin:
            self.wires.feed(stdin, self.spec.stdin)
        if self.stop is not None:
            self.wires.listen(self.stop.fileno(), self._on_stop)

    def _finish(self, problem: BaseException | None) -> None:
        """End the run with an answer that is its last, or with what was raised instead of one."""
        self.raised = self.raised or problem
        self.end(Reason.stopped)

    def _ask_launcher(self, launcher: Supplier, ends: Ends) -> Holder | None:
        try:
            return launcher.find(ends, self.spec)
        except OSError as problem:
            raise _Unlaunched(problem.strerror or str(problem)) from None

    def _find_keeper(self, ends: Ends) -> Holder:
        keeper = self._ask_launcher(self.launcher, ends) if self.launcher is not None else None
        if keeper is not None:
            self.taken = keeper.fresh
            self.take_until = None if keeper.fresh else time.monotonic() + PATIENCE
            return keeper
        spec = self.spec
        try:
            return Keeper(spec.interpreter, spec.environment, ends)
        except (OSError, ValueError) as problem:
            raise _Unlaunched(f"`{spec.interpreter}` can't be started: {_reason(problem)}") from None

    def _open_workdir(self) -> int:
        try:
            return self.fds.folder(self.spec.workdir)
        except (OSError, ValueError) as problem:
            what = f"working directory `{self.spec.workdir}`"
            raise _Unlaunched(f"{what} can't be entered: {_reason(problem)}") from None

    # -- the loop

    def loop(self) -> None:
        """Serve every descriptor until the tree is gone, or the grace is over."""
        while not self.over:
            self.wires.serve(self._patience())
            self._look_at_the_clock()
        self.ended = time.monotonic()
        self.wires.drain(lambda: time.monotonic() < self.ended + GRACE)

    def _look_at_the_clock(self) -> None:
        now = time.monotonic()
        if self.grace is not None:
            if now >= self.grace and not self.over:
                self._abandon("the run did not end when it was killed")
        elif self.deadline is not None and now >= self.deadline:
            self.end(Reason.timeout)
        elif self.keeper is not None and self.look_at is not None and now >= self.look_at:
            self._look_at_usage(self.keeper, now)
        if self.keeper is not None and self.take_until is not None and now >= self.take_until:
            self.take_until = None
            self.keeper.kill()  # it does not even read; its end is heard on the control socket

    def _look_at_usage(self, keeper: Holder, now: float) -> None:
        passed = keeper.used_up()
        if passed is not None:
            self.end(passed)
        self.look_at = None if keeper.look_each is None else now + keeper.look_each

    def _patience(self) -> float | None:
        until = [self.deadline if self.grace is None else self.grace, self.take_until, self.look_at]
        moments = [moment for moment in until if moment is not None]
        return max(min(moments) - time.monotonic(), 0.0) if moments else None

    def end(self, cause: Reason) -> None:
        """Have the keeper end the tree; only the first cause counts."""
        if self.cause is None and not self.over:
            self.cause = cause
            self.grace = time.monotonic() + GRACE
            if self.keeper is not None:
                self.wires.unsend(self.keeper.control)
                self.keeper.hang_up()

    def _abandon(self, why: str) -> None:
        """The keeper is lost: kill what can be reached from here."""
        self.over = True
        self.failure = why
        if self.keeper is not None:
            self.keeper.kill()
        if self.guest is not None:
            self.guest.kill_session()

    def _on_output(self, stream: Stream, fd: int) -> bool:
        data = read(fd)
        if data:
            self._deliver(stream, data)
        elif data is not None:
            self.wires.drop(fd)
        return bool(data)

    def _deliver(self, stream: Stream, data: bytes) -> None:
        if self.raised is not None or self.cause is Reason.output_limit:
            return  # drained while the tree dies, and handed on no more
        try:
            if not self.on_output(stream, data):
                self.end(Reason.output_limit)
        except BaseException as problem:
            self.raised = problem
            self.end(Reason.output_limit)

    def _on_channel(self, fd: int) -> bool:
        data = read(fd)
        if data is None:
            return False
        self.channel.feed(data) if data else self.channel.end()
        if self.channel.closed:
            self.wires.drop(fd)
        return not self.channel.closed

    def _on_stop(self) -> None:
        if self.stop is not None:
            self.wires.drop(self.stop.fileno())
        self.end(Reason.cancelled)

    def _on_control(self, keeper: Holder) -> None:
        data = keeper.hear()
        if data is None:
            return
        if not data:
            self.wires.drop(keeper.control)
            if not self.over:
                self._lose_keeper()
            return
        *lines, self.lines = (self.lines + data).split(b"\n")
        try:
            for line in lines:
                self._hear(line.decode("utf-8", "replace"))
        except ValueError:
            self._lose_keeper()

    def _hear(self, line: str) -> None:
        """Take one line of the keeper, or of the guest before it is let loose."""
        word, _, rest = line.partition(" ")
        if word == "taken":
            self.taken, self.take_until = True, None
        elif word == "started" and self.keeper is not None:
            self.guest = tree.Guest(int(rest), self.keeper.pid, self.fds)
        elif word == "ready":
            self.walls = tuple(rest.split(", "))
        elif word == "failed":
            self.failure = rest
        if word in ("started", "ready") and self.guest is not None and self.walls is not None:
            self._let_begin(self.guest.pid)
        if word == "ended":
            status, peak, cpu = rest.split()
            self.status, self.peak_memory, self.cpu_time = int(status), int(peak), float(cpu)
            self.over = True

    def _let_begin(self, guest: int) -> None:
        """Look at the guest, whose walls stand now, and send it its code."""
        if self.keeper is None:
            return
        self.keeper.settled()
        if self.keeper.look_each is not None:
            self.look_at = time.monotonic() + self.keeper.look_each
        try:
            self.seen = self.keeper.look(guest, self.spec)
        except readback.NotTaken as problem:
            self.failure = str(problem)
            self.end(Reason.launch_failed)
        else:
            if self.keeper.listener is not None and self.spec.jail is not None:
                names = self.spec.jail.names
                answer_connections(
                    self.asking, self.keeper.listener, names, self.wires, self.fds, self._finish
                )
            self.wires.send(self.to_guest, self.orders)

    def _lose_keeper(self) -> None:
        """The keeper ended without a word."""
        if not self.taken and self.cause is None:
            raise _NotTaken
        if self.guest is None and self.walls is None:
            self.over = True
            if self.cause is None:
                self.failure = self.failure or "the interpreter ended before it ran anything"
            else:
                self.status = 0
            return
        if self.cause is None:
            self.cause = Reason.backend_lost
        self._abandon("the keeper of the run was killed")

    # -- the end

    def part(self) -> None:
        """Wait for the end of the keeper, unless it may wait for another run."""
        if self.keeper is None:
            return
        if not self.over:
            self._abandon("the supervision of the run failed")
        self.written, self.reached = self.keeper.written(), self.keeper.reached()
        told = Used(self.ended - self.began, self.cpu_time, self.peak_memory)
        self.used = self.keeper.used(told)
        if self.launcher is not None:
            self.launcher.part(self.keeper, well=self.status is not None and self.cause is None)
        else:
            self.keeper.wait()

    def close(self) -> None:
        """Hold on to nothing that holds on to this: what it was started by goes when its owner lets it go."""
        self.wires.close()
        self.channel.close()

    def outcome(self) -> ProcessOutcome:
        """Say what happened."""
        used = self.used
        ended = self.status is not None
        if self.cause is None and (not ended or self.failure is not None):
            return ProcessOutcome(Reason.launch_failed, used=used, detail=self.failure, written=self.written)
        report = self.channel.report
        reason, exit_code, number = verdict(
            self.spec,
            self.status,
            self.cause,
            report.error,
            begun=self.channel.begun,
            reached=self.reached,
            cpu_time=self.cpu_time,
        )
        detail = self.failure or self.channel.fault
        if reason is Reason.launch_failed and self.failure is None:
            detail = "the interpreter ended before it ran anything"
        return ProcessOutcome(
            reason=reason,
            exit_code=exit_code,
            signal=number,
            report=report,
            used=used,
            swept=ended,
            applied=self.walls or (),
            seen=self.seen,
            detail=detail,
            written=self.written,
        )
