"""One supervised run on Windows, from the start of its process to the proof that nothing of it is left.

Rules this module keeps, the same as on other systems:

- it blocks its own thread and needs no event loop, nor any other thread; both streams are drained throughout;
- the first cause that ends a run is the one that is told; then its job is terminated, always, whoever is
  still in it, and the run has `GRACE` seconds to be gone;
- a stranger who holds a pipe open prolongs a run by `LINGER` at most;
- every handle is closed on every way out, and with the last one of the job dies whatever was in it.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from functools import partial

from licet.supervise.bootstrap import FRAME_LIMIT, guest_message
from licet.supervise.calls import GRACE, OnOutput, Stream
from licet.supervise.channel import Channel
from licet.supervise.spec import ProcessOutcome, Program, Reason, Snippet, Spec, Used
from licet.supervise.stop import Stop
from licet.supervise.windows import bootstrap, commandline, environment, launch, layouts, pipes, winapi
from licet.supervise.windows.handles import Handles
from licet.supervise.windows.job import Job
from licet.supervise.windows.limits import JobLimits

LINGER = 0.2


def run_blocking(spec: Spec, on_output: OnOutput, stop: Stop | None = None) -> ProcessOutcome:
    """Run `spec` to its end, as `licet.supervise.run_blocking` says.

    Raises:
        ValueError: an input can't cross to the code.
    """
    message = guest_message(spec)
    with Handles() as handles:
        run = _Run(spec, on_output, stop, handles)
        try:
            run.begin(message)
            run.loop()
        except _Unlaunched as problem:
            return ProcessOutcome(Reason.launch_failed, detail=str(problem))
        finally:
            run.sweep()
        if run.raised is not None:
            raise run.raised
        return run.outcome()


class _Unlaunched(Exception):
    """Nothing was started, and why."""


class _Run:
    """The state of one run. Each source is an event and what to do once it is set."""

    def __init__(self, spec: Spec, on_output: OnOutput, stop: Stop | None, handles: Handles) -> None:
        self.spec = spec
        self.on_output = on_output
        self.stop = stop
        self.handles = handles
        self.snippet = isinstance(spec.work, Snippet)
        self.channel = Channel(FRAME_LIMIT)
        self.began = time.monotonic()
        self.deadline = None if spec.wall_time is None else self.began + spec.wall_time
        self.limits = JobLimits(spec.cpu_time, spec.memory)
        self.job: Job | None = None
        self.process: int | None = None
        self.readers: dict[pipes.Reader, Callable[[bytes], None]] = {}
        self.writers: list[pipes.Writer] = []
        self.stdin: int = 0
        self.to_stdin: pipes.Writer | None = None
        self.cause: Reason | None = None
        self.exited = False
        self.swept = False
        self.exit_code = 0
        self.ended = 0.0
        self.raised: BaseException | None = None

    # -- start

    def begin(self, message: bytes) -> None:
        """Start the process in its job, and begin to serve its pipes."""
        self._look_at_workdir()
        try:
            job = self.job = Job(self.handles, self.limits)
            stdin, stdin_child = pipes.create(self.handles, write=True)
            out, out_child = pipes.create(self.handles, read=True)
            err, err_child = pipes.create(self.handles, read=True)
            passed: tuple[int, ...] = ()
            if self.snippet:
                channel, channel_child = pipes.create(self.handles, read=True, write=True)
                passed = (channel_child,)
            self.process = launch.start(
                self._command(passed), job, (stdin_child, out_child, err_child), passed, self.handles
            )
        except (OSError, ValueError) as problem:
            raise _Unlaunched(f"`{self._program()}` can't be started: {_why(problem)}") from None
        for handle in (stdin_child, out_child, err_child, *passed):
            self.handles.close(handle)
        self._read(out, lambda data: self._deliver("stdout", data))
        self._read(err, lambda data: self._deliver("stderr", data))
        if self.snippet:
            self._read(channel, self._hear)
            self.writers.append(pipes.Writer(channel, self.handles, message))
        self._feed(stdin)

    def _look_at_workdir(self) -> None:
        try:
            if not stat.S_ISDIR(os.stat(self.spec.workdir).st_mode):  # noqa: PTH116 - a NUL raises here
                raise NotADirectoryError(errno.ENOTDIR, "not a directory")
        except (OSError, ValueError) as problem:
            raise _Unlaunched(
                f"working directory `{self.spec.workdir}` can't be entered: {_why(problem)}"
            ) from None

    def _program(self) -> str:
        return self.spec.work.argv[0] if isinstance(self.spec.work, Program) else self.spec.interpreter

    def _command(self, passed: tuple[int, ...]) -> launch.Command:
        work = self.spec.work
        if isinstance(work, Program):
            arguments = work.argv
        else:
            arguments = bootstrap.arguments(self.spec.interpreter, passed[0])
        return launch.Command(
            program=arguments[0],
            line=commandline.join(arguments),
            directory=self.spec.workdir,
            environment=environment.block(self.spec.environment, os.environ),
        )

    def _read(self, pipe: int, take: Callable[[bytes], None]) -> None:
        self.readers[pipes.Reader(pipe, self.handles)] = take

    def _feed(self, stdin: int) -> None:
        self.stdin = stdin
        self.to_stdin = pipes.Writer(stdin, self.handles, self.spec.stdin)
        self.writers.append(self.to_stdin)
        self._tidy()

    # -- the loop

    def loop(self) -> None:
        """Serve every source until the process ends or there is a cause to end it."""
        while not self.exited and self.cause is None:
            self._serve(self._patience())
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.end(Reason.timeout)
        self.ended = time.monotonic()

    def _patience(self) -> float | None:
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)

    def end(self, cause: Reason) -> None:
        """End the run; only the first cause counts."""
        if self.cause is None and not self.exited:
            self.cause = cause

    def _serve(self, seconds: float | None) -> None:
        """Wait for one source, then serve every one that is ready, so that none starves another."""
        sources = self._sources()
        events = [event for event, _ in sources]
        first = winapi.wait(events, seconds)
        if first is None:
            return
        for event, handle in sources[first:]:
            if winapi.wait([event], 0) is not None:
                handle()
        self._tidy()

    def _sources(self) -> list[tuple[int, Callable[[], None]]]:
        sources: list[tuple[int, Callable[[], None]]] = []
        if not self.exited and self.process is not None:
            sources.append((self.process, self._on_exit))
        if self.stop is not None and self.cause is None and not self.exited:
            sources.append((self.stop.fileno(), lambda: self.end(Reason.cancelled)))
        sources += [(reader.event, partial(self._on_data, reader)) for reader in self.readers]
        sources += [(writer.event, writer.go_on) for writer in self.writers]
        return sources

    def _on_exit(self) -> None:
        self.exited = True

    def _on_data(self, reader: pipes.Reader) -> None:
        data = reader.take()
        if data:
            self.readers[reader](data)

    def _tidy(self) -> None:
        """Forget what is closed, and close standard input once all of it is written."""
        for reader in [reader for reader in self.readers if reader.closed]:
            del self.readers[reader]
        self.writers = [writer for writer in self.writers if not writer.closed]
        if self.to_stdin is not None and self.to_stdin.closed:
            self.handles.close(self.stdin)

    def _deliver(self, stream: Stream, data: bytes) -> None:
        if self.raised is not None or self.cause is Reason.output_limit:
            return
        try:
            if not self.on_output(stream, data):
                self.end(Reason.output_limit)
        except BaseException as problem:
            self.raised = problem
            self.end(Reason.output_limit)

    def _hear(self, data: bytes) -> None:
        if not self.channel.closed:
            self.channel.feed(data)

    # -- the end

    def sweep(self) -> None:
        """End whatever is in the job, take what is left in the pipes, and let go of them."""
        if self.job is not None and self.process is not None:
            self.job.terminate()
            self.swept = self.job.wait_empty(GRACE)
            if self.exited:
                self.exit_code = winapi.exit_code(self.process)
            self._drain()
            self.channel.end()
        for end in (*self.readers, *self.writers):
            end.call_off()

    def _drain(self) -> None:
        """Read until the pipes end, as they do when their last writer dies, but wait no longer than that."""
        until = time.monotonic() + LINGER
        self.exited = True
        while self.readers and time.monotonic() < until:
            self._serve(max(until - time.monotonic(), 0.0))

    def outcome(self) -> ProcessOutcome:
        """Say what happened."""
        assert self.job is not None
        reason, exit_code = self._verdict()
        used = Used(self.ended - self.began, self.job.cpu_time(), self.job.peak_memory())
        if self.cause is None and self.snippet and not self.channel.begun:
            why = "the interpreter ended before it ran anything"
            return ProcessOutcome(Reason.launch_failed, used=used, detail=why)
        return ProcessOutcome(
            reason=reason,
            exit_code=exit_code,
            report=self.channel.report,
            used=used,
            swept=self.swept,
            applied=self._applied(),
            seen=self._seen(),
            dropped=self._dropped(),
            detail=self.channel.fault if self.swept else "the run did not end when it was killed",
        )

    def _applied(self) -> tuple[str, ...]:
        assert self.job is not None
        kept = self.job.kept
        limits = (("cpu_time", kept.cpu_time), ("memory", kept.memory))
        return ("job object", "handle list", *(f"limit {n} at {v}" for n, v in limits if v is not None))

    def _seen(self) -> dict[str, str]:
        """The limits that the job read back with."""
        assert self.job is not None
        kept = {"cpu_time_limit": self.job.kept.cpu_time, "memory_limit": self.job.kept.memory}
        return {name: f"the job has {value}" for name, value in kept.items() if value is not None}

    def _dropped(self) -> tuple[str, ...]:
        assert self.job is not None
        asked, kept = self.limits, self.job.kept
        return tuple(n for n in ("cpu_time", "memory") if getattr(asked, n) != getattr(kept, n))

    def _verdict(self) -> tuple[Reason, int | None]:
        assert self.job is not None
        if self.cause is not None:
            return self.cause, None
        limit = self.job.kept.cpu_time
        if (
            limit is not None
            and self.exit_code == layouts.ERROR_NOT_ENOUGH_QUOTA
            and self.job.user_time() >= limit
        ):
            return Reason.cpu_limit, None
        error = self.channel.report.error
        out_of_memory = error is not None and error.type == "MemoryError" and self.exit_code == 1
        if out_of_memory and self.job.kept.memory is not None:
            return Reason.memory_limit, None
        return Reason.exited, self.exit_code


def _why(problem: OSError | ValueError) -> str:
    """What went wrong in the words of every system, not in those of this one's language."""
    if isinstance(problem, OSError) and problem.errno is not None:
        return os.strerror(problem.errno).lower()
    return str(problem)
