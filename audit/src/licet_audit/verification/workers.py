"""Scanning the parts of a log: here, and in several processes that run beside this one.

Rules this module keeps:

- the answers come in the order of the parts, and are the same wherever a part was scanned;
- the processes are this interpreter with this module alone: the program that verifies is not run again in
  them, and they end when their input does, however this process ends;
- this process waits for none of them to start, and scans itself while it has no answer to take;
- a process that can't be started, or dies, costs time: its parts are scanned here.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import sys
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import IO, TYPE_CHECKING, NamedTuple

from licet.errors import AuditUnavailable
from licet.state import StateDirectory

from licet_audit import contents
from licet_audit.verification.parts import Part, read
from licet_audit.verification.scan import Accepted, accepted

if TYPE_CHECKING:
    import subprocess

WORTHWHILE = 32
"""Parts from which on further processes are worth their start."""
_AHEAD = 3  # parts that a process has to do at a time
_KEPT = 64  # answers that wait for one before them
_HEAD = 8  # bytes that say how long an answer is


class Log(NamedTuple):
    """Which log is scanned; the first `as_signed` of its records are not spelled again."""

    state: StateDirectory
    as_signed: int


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def scan(part: Part, log: Log) -> Accepted | None:
    """Accept a part of the log, or None where it has to be judged line by line."""
    try:
        return accepted(read(part), log.state.log_id, partial(contents.state_of, log.state), log.as_signed)
    except (OSError, AuditUnavailable):
        return None  # judging it line by line says why


def scanned(
    parts: Sequence[Part], log: Log, workers: int = 1
) -> Generator[tuple[Part, Accepted | None], None, None]:
    """Scan all parts in order; where there are many, `workers` processes do, this one included.

    Whoever may stop halfway closes it, which ends the processes.
    """
    crew = _Crew(parts, log)
    try:
        if len(parts) >= WORTHWHILE and sys.executable:
            crew.start(workers - 1)
        for number, part in enumerate(parts):
            yield part, crew.answer(number)
    finally:
        crew.end()


class _Crew:
    """Shares out parts, in order, to those who have nothing to do."""

    def __init__(self, parts: Sequence[Part], log: Log) -> None:
        self._parts = parts
        self._log = log
        self._next = 0  # part that nobody has yet
        self._answers: dict[int, Accepted | None] = {}
        self._inbox = SimpleQueue[tuple[_Worker, bytes | None]]()
        self._workers = list[_Worker]()

    def start(self, count: int) -> None:
        """Let `count` further processes help."""
        for _ in range(count):
            self._workers.append(_Worker(self._log, self._inbox))  # an interruption ends those that are there

    def answer(self, number: int) -> Accepted | None:
        """The answer for a part; each is asked for once, in order."""
        while True:
            self._take_in()
            if number in self._answers:
                return self._answers.pop(number)
            if self._next < len(self._parts) and len(self._answers) < _KEPT:
                self._scan(self._next)
                self._next += 1
            else:
                self._take_in(wait=True)

    def end(self) -> None:
        """Leave no process behind."""
        for worker in self._workers:
            worker.end()

    def _take_in(self, *, wait: bool = False) -> None:
        """Take what has been answered, and give who answered more to do."""
        while wait or not self._inbox.empty():
            wait = False
            worker, data = self._inbox.get()
            if data is None:
                worker.end()
                for number in worker.asked:
                    self._scan(number)
                worker.asked.clear()
                continue
            if data:
                # from our own child, over a pipe that nobody else has
                self._answers[worker.asked.pop(0)] = pickle.loads(data)
            while len(worker.asked) < _AHEAD and self._next < len(self._parts):
                worker.ask(self._next, self._parts[self._next])
                self._next += 1

    def _scan(self, number: int) -> None:
        self._answers[number] = scan(self._parts[number], self._log)


class _Worker:
    """One process, which answers in the order that it is asked.

    A thread puts its answers into the inbox: nothing at first, once it is ready; None, when it is no more.
    """

    def __init__(self, log: Log, inbox: SimpleQueue[tuple[_Worker, bytes | None]]) -> None:
        import subprocess  # here, since those processes need it least

        self.asked: list[int] = []
        """The parts that it has not answered yet."""
        self._inbox = inbox
        self._process: subprocess.Popen[bytes] | None = None
        state, as_signed = log
        command = [sys.executable, "-P", "-m", __spec__.name, str(state.path), state.log_id, str(as_signed)]
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # an interrupt of the terminal is for this process alone
            )
            self._thread = Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
            self._thread.start()

    def ask(self, number: int, part: Part) -> None:
        """Give it a part to do."""
        self.asked.append(number)
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):  # then it is no more, which its thread tells
                self._process.stdin.write(json.dumps(part).encode("ascii") + b"\n")
                self._process.stdin.flush()

    def end(self) -> None:
        """Leave no process behind."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        self._thread.join()
        for file in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what is left in the pipes interests nobody
                if file is not None:
                    file.close()
        process.wait()

    def _listen(self, file: IO[bytes]) -> None:
        try:
            while True:
                self._inbox.put((self, _take(file)))
        except (OSError, EOFError):
            self._inbox.put((self, None))


def _take(file: IO[bytes]) -> bytes:
    """Read one answer.

    Raises:
        EOFError: there is no whole one.
    """
    head = file.read(_HEAD)
    size = int.from_bytes(head, "big")
    data = file.read(size)
    if len(head) < _HEAD or len(data) < size:
        raise EOFError
    return data


def _give(file: IO[bytes], data: bytes) -> None:
    file.write(len(data).to_bytes(_HEAD, "big") + data)
    file.flush()


def _work() -> None:
    """Scan the parts that come on stdin, one a line, until it ends."""
    gc.disable()  # nothing here makes cycles
    path, log_id, as_signed = sys.argv[1:]
    log = Log(StateDirectory(Path(path), log_id), int(as_signed))
    _give(sys.stdout.buffer, b"")
    for line in sys.stdin.buffer:
        found = scan(Part(*json.loads(line)), log)
        _give(sys.stdout.buffer, pickle.dumps(found, pickle.HIGHEST_PROTOCOL))


if __name__ == "__main__":
    try:
        _work()
    except BrokenPipeError:
        os._exit(1)  # who asked has gone
