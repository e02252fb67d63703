"""One supervised run, from the start of its process to the proof that nothing of it is left.

Rules this module keeps:

- it blocks its own thread and needs no event loop, no signal handler and no child watcher of the program;
- both output streams are drained from start to end, whatever the caller makes of the data;
- the first cause that ends a run is the one that is told; after it the run has `GRACE` seconds to be gone,
  then the host kills what it can reach by itself and says that it is not sure;
- every descriptor is closed and the keeper is reaped on every way out.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable

from licet.supervise import bootstrap, tree
from licet.supervise.calls import GRACE, OnOutput, Stream
from licet.supervise.channel import Channel
from licet.supervise.descriptors import Descriptors
from licet.supervise.spec import ProcessOutcome, Program, Reason, Spec, Used
from licet.supervise.stop import Stop

CHUNK = 1 << 16


def run_blocking(spec: Spec, on_output: OnOutput, stop: Stop | None = None) -> ProcessOutcome:
    """Run `spec` to its end, as `licet.supervise.run_blocking` says.

    Raises:
        ValueError: an input can't cross to the code.
    """
    with Descriptors() as fds:
        run = _Run(spec, on_output, stop, fds)
        try:
            run.launch()
            run.loop()
        except _Unlaunched as problem:
            return ProcessOutcome(Reason.launch_failed, detail=str(problem))
        finally:
            run.reap()
        if run.raised is not None:
            raise run.raised
        return run.outcome()


class _Unlaunched(Exception):
    """Nothing was started, and why."""


class _Run:
    """The state of one run. Each `_on_…` method handles one descriptor that became ready."""

    def __init__(self, spec: Spec, on_output: OnOutput, stop: Stop | None, fds: Descriptors) -> None:
        self.spec = spec
        self.on_output = on_output
        self.stop = stop
        self.fds = fds
        self.selector = fds.selector()
        self.channel = Channel(bootstrap.FRAME_LIMIT, program=isinstance(spec.work, Program))
        self.began = time.monotonic()
        self.deadline = None if spec.wall_time is None else self.began + spec.wall_time
        self.keeper: subprocess.Popen[bytes] | None = None
        self.guest: tree.Guest | None = None
        self.cause: Reason | None = None
        self.grace: float | None = None
        self.over = False
        self.status: int | None = None
        self.peak_memory: int | None = None
        self.cpu_time: float | None = None
        self.ended = 0.0
        self.failure: str | None = None
        self.raised: BaseException | None = None
        self.lines = b""
        self.to_keeper = memoryview(b"")
        self.to_stdin = memoryview(spec.stdin)
        self.control = -1

    # -- start

    def launch(self) -> None:
        """Start the keeper with its descriptors, and register ours."""
        fds = self.fds
        workdir = self._open_workdir()
        out, out_child = fds.pipe()
        err, err_child = fds.pipe()
        channel, channel_child = fds.pipe()
        self.control, control_child = fds.socketpair()
        stdin, stdin_child = (-1, fds.null()) if not self.spec.stdin else reversed(fds.pipe())
        self.to_keeper = memoryview(
            bootstrap.message(
                self.spec, host=os.getpid(), control=control_child, channel=channel_child, workdir=workdir
            )
        )
        self._spawn(control_child, (stdin_child, out_child, err_child), (channel_child, workdir))
        for fd in (workdir, out_child, err_child, channel_child, control_child, stdin_child):
            fds.close(fd)
        self._listen(out, lambda: self._on_output("stdout", out))
        self._listen(err, lambda: self._on_output("stderr", err))
        self._listen(channel, lambda: self._on_channel(channel))
        self._listen(self.control, self._on_control, selectors.EVENT_READ | selectors.EVENT_WRITE)
        if self.spec.stdin:
            self._listen(stdin, lambda: self._on_stdin(stdin), selectors.EVENT_WRITE)
        if self.stop is not None:
            self.selector.register(self.stop.fileno(), selectors.EVENT_READ, self._on_stop)

    def _open_workdir(self) -> int:
        try:
            return self.fds.folder(self.spec.workdir)
        except (OSError, ValueError) as problem:
            why = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
            raise _Unlaunched(
                f"working directory `{self.spec.workdir}` can't be entered: {why.lower()}"
            ) from None

    def _spawn(self, control: int, stdio: tuple[int, int, int], passed: tuple[int, ...]) -> None:
        try:
            self.keeper = subprocess.Popen(
                bootstrap.command(self.spec.interpreter, control),
                stdin=stdio[0],
                stdout=stdio[1],
                stderr=stdio[2],
                env=dict(self.spec.environment),
                cwd="/",
                close_fds=True,
                pass_fds=(control, *passed),
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            why = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
            raise _Unlaunched(f"`{self.spec.interpreter}` can't be started: {why.lower()}") from None
        tree.forbid_core_dumps(self.keeper.pid)

    def _listen(self, fd: int, handler: Callable[[], object], events: int = selectors.EVENT_READ) -> None:
        os.set_blocking(fd, False)
        self.selector.register(fd, events, handler)

    def _drop(self, fd: int) -> None:
        self.selector.unregister(fd)
        self.fds.close(fd)

    # -- the loop

    def loop(self) -> None:
        """Serve every descriptor until the tree is gone, or the grace is over."""
        while not self.over:
            for key, _ in self.selector.select(self._patience()):
                if key.fd in self.selector.get_map():
                    key.data()
            now = time.monotonic()
            if self.grace is not None:
                if now >= self.grace and not self.over:
                    self._abandon("the run did not end when it was killed")
            elif self.deadline is not None and now >= self.deadline:
                self.end(Reason.timeout)
        self.ended = time.monotonic()
        self._drain()

    def _patience(self) -> float | None:
        until = self.grace if self.grace is not None else self.deadline
        return None if until is None else max(until - time.monotonic(), 0.0)

    def end(self, cause: Reason) -> None:
        """Have the keeper end the tree; only the first cause counts."""
        if self.cause is None and not self.over:
            self.cause = cause
            self.grace = time.monotonic() + GRACE
            self._hang_up()

    def _hang_up(self) -> None:
        """Close our side of the control socket: the keeper takes that as its order."""
        self.to_keeper = memoryview(b"")
        try:
            self.selector.modify(self.control, selectors.EVENT_READ, self.selector.get_key(self.control).data)
            with socket.socket(fileno=os.dup(self.control)) as control:
                control.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the keeper is gone already, and its end of the socket tells so

    def _abandon(self, why: str) -> None:
        """The keeper is lost: kill what can be reached from here."""
        self.over = True
        self.failure = why
        if self.keeper is not None:
            tree.kill(self.keeper.pid)
        if self.guest is not None:
            self.guest.kill_session()

    def _on_output(self, stream: Stream, fd: int) -> bool:
        data = _read(fd)
        if data:
            self._deliver(stream, data)
        elif data is not None:
            self._drop(fd)
        return bool(data)

    def _deliver(self, stream: Stream, data: bytes) -> None:
        if self.raised is not None:
            return
        try:
            if not self.on_output(stream, data):
                self.end(Reason.output_limit)
        except BaseException as problem:
            self.raised = problem
            self.end(Reason.output_limit)

    def _on_channel(self, fd: int) -> bool:
        data = _read(fd)
        if data is None:
            return False
        self.channel.feed(data) if data else self.channel.end()
        if self.channel.closed:
            self._drop(fd)
        return not self.channel.closed

    def _on_stdin(self, fd: int) -> None:
        try:
            self.to_stdin = self.to_stdin[os.write(fd, self.to_stdin[:CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            self.to_stdin = memoryview(b"")  # nobody reads it any more
        if not self.to_stdin:
            self._drop(fd)

    def _on_stop(self) -> None:
        if self.stop is not None:
            self.selector.unregister(self.stop.fileno())
        self.end(Reason.cancelled)

    def _on_control(self) -> None:
        if self.to_keeper:
            try:
                self.to_keeper = self.to_keeper[os.write(self.control, self.to_keeper) :]
            except BlockingIOError:
                pass
            except OSError:
                self.to_keeper = memoryview(b"")
            if not self.to_keeper:
                handler = self.selector.get_key(self.control).data
                self.selector.modify(self.control, selectors.EVENT_READ, handler)
        try:
            data = os.read(self.control, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(self.control)
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
        """Take one line of the keeper."""
        word, _, rest = line.partition(" ")
        if word == "started" and self.keeper is not None:
            self.guest = tree.Guest(int(rest), self.keeper.pid, self.fds)
        elif word == "ended":
            status, peak = rest.split()
            self.status, self.peak_memory = int(status), int(peak)
            self.over = True
        elif word == "failed":
            self.failure = rest
            self.over = True

    def _lose_keeper(self) -> None:
        """The keeper ended without a word."""
        if self.guest is None and self.channel.applied is None:
            self.over = True
            if self.cause is None:
                self.failure = "the interpreter ended before it ran anything"
            else:
                self.status = 0
            return
        if self.cause is None:
            self.cause = Reason.backend_lost
        self._abandon("the keeper of the run was killed")

    # -- the end

    def _drain(self) -> None:
        """Take what is still in the pipes; a stranger who holds one open can't prolong the run."""
        until = time.monotonic() + GRACE
        for key in list(self.selector.get_map().values()):
            if key.fd != self.control and key.events == selectors.EVENT_READ and key.data != self._on_stop:
                while key.data() and time.monotonic() < until:
                    pass

    def reap(self) -> None:
        """Wait for the keeper, killing it first if it should still be there."""
        keeper = self.keeper
        if keeper is None:
            return
        if not self.over:
            self._abandon("the supervision of the run failed")
        try:
            _, status, usage = os.wait4(keeper.pid, 0)
            self.cpu_time = usage.ru_utime + usage.ru_stime
            keeper.returncode = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            keeper.returncode = 0  # the program reaps every child by itself

    def outcome(self) -> ProcessOutcome:
        """Say what happened."""
        used = Used(self.ended - self.began, self.cpu_time, self.peak_memory)
        ended = self.status is not None
        if self.cause is None and (not ended or self.channel.failure is not None):
            why = self.channel.failure or self.failure
            return ProcessOutcome(Reason.launch_failed, used=used, detail=why)
        reason, exit_code, number = self._verdict()
        return ProcessOutcome(
            reason=reason,
            exit_code=exit_code,
            signal=number,
            report=self.channel.report,
            used=used,
            swept=ended,
            applied=self.channel.applied or (),
            detail=self.failure or self.channel.fault,
        )

    def _verdict(self) -> tuple[Reason, int | None, int | None]:
        if self.cause is not None or self.status is None:
            return self.cause or Reason.backend_lost, None, None
        code = os.waitstatus_to_exitcode(self.status)
        if code >= 0:
            error = self.channel.report.error
            out_of_memory = error is not None and error.type == "MemoryError" and code == 1
            if out_of_memory and self.spec.memory is not None:
                return Reason.memory_limit, None, None
            return Reason.exited, code, None
        if self.spec.cpu_time is not None and (
            code == -signal.SIGXCPU
            or (code == -signal.SIGKILL and (self.cpu_time or 0.0) >= self.spec.cpu_time)
        ):
            return Reason.cpu_limit, None, None
        return Reason.exited, None, -code


def _read(fd: int) -> bytes | None:
    """Read what is there: b"" at the end of the stream, None if there is nothing now."""
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""
