"""Scanning the parts of a log: here, or in several processes that run beside this one.

Rules this module keeps:

- the answers come in the order of the parts, and are the same wherever a part was scanned;
- the processes are this interpreter with this module alone: the program that verifies is not run again in
  them, and they end when their input does, however this process ends;
- a process that can't be started, or dies, costs time: its parts are scanned here.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO

from licet.errors import AuditUnavailable
from licet.state import StateDirectory

from licet_audit import contents
from licet_audit.verification.scan import Accepted, Part, accepted, read

WORTHWHILE = 16
"""Parts from which on further processes are worth their start."""
_AHEAD = 2  # parts that a process has to do at a time


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def scan(part: Part, state: StateDirectory) -> Accepted | None:
    """Accept a part of the log, or None where it has to be judged line by line."""
    try:
        return accepted(read(part), state.log_id, partial(contents.state_of, state))
    except (OSError, AuditUnavailable):
        return None  # judging it line by line says why


def scanned(
    parts: Sequence[Part], state: StateDirectory, workers: int = 1
) -> Iterator[tuple[Part, Accepted | None]]:
    """Scan all parts in order, with `workers` processes where there are many parts."""
    crew: list[_Worker] = []
    try:
        if workers > 1 and len(parts) >= WORTHWHILE and sys.executable:
            for _ in range(workers):
                crew.append(_Worker(state))  # one by one: an interruption ends those that are there
        for turn, worker in enumerate(crew):
            worker.ask(parts[turn :: len(crew)])
        for number, part in enumerate(parts):
            if not crew:
                yield part, scan(part, state)
                continue
            found = crew[number % len(crew)].answer(parts[number % len(crew) :: len(crew)])
            yield part, scan(part, state) if isinstance(found, _Dead) else found
    finally:
        for worker in crew:
            worker.end()


class _Dead:
    """The answer of a process that gives none."""


class _Worker:
    """One process, which answers in the order that it is asked."""

    def __init__(self, state: StateDirectory) -> None:
        self._asked = 0
        self._answered = 0
        self._process: subprocess.Popen[bytes] | None = None
        command = [sys.executable, "-P", "-m", __spec__.name, str(state.path), state.log_id]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # an interrupt of the terminal is for this process alone
            )
        except OSError:
            return

    def ask(self, parts: Sequence[Part]) -> None:
        """Give it some of `parts`, which are all that are its to do, ahead of the next answer."""
        process = self._process
        if process is None or process.stdin is None:
            return
        try:
            for part in parts[self._asked : self._answered + _AHEAD]:
                process.stdin.write(json.dumps(part).encode("ascii") + b"\n")
                self._asked += 1
            process.stdin.flush()
        except OSError:
            self.end()

    def answer(self, parts: Sequence[Part]) -> Accepted | _Dead | None:
        """Its answer for the next of `parts`."""
        self.ask(parts)
        if self._process is None or self._process.stdout is None:
            return _Dead()
        try:
            found = _take(self._process.stdout)
        except (OSError, EOFError):
            self.end()
            return _Dead()
        self._answered += 1
        return found

    def end(self) -> None:
        """Leave no process behind."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with contextlib.suppress(OSError):  # what is left in the pipes interests nobody
                process.communicate()


def _take(file: IO[bytes]) -> Accepted | None:
    """Read one answer.

    Raises:
        EOFError: there is no whole one.
    """
    size = file.read(8)
    data = file.read(int.from_bytes(size, "big")) if len(size) == 8 else b""
    if not data or len(data) != int.from_bytes(size, "big"):
        raise EOFError
    found: Accepted | None = pickle.loads(data)  # from our own child, over a pipe that nobody else has
    return found


def _work() -> None:
    """Scan the parts that come on stdin, one a line, until it ends."""
    gc.disable()  # nothing here makes cycles
    state = StateDirectory(Path(sys.argv[1]), sys.argv[2])
    output = sys.stdout.buffer
    for line in sys.stdin.buffer:
        data = pickle.dumps(scan(Part(*json.loads(line)), state), pickle.HIGHEST_PROTOCOL)
        output.write(len(data).to_bytes(8, "big"))
        output.write(data)
        output.flush()


if __name__ == "__main__":
    try:
        _work()
    except BrokenPipeError:
        os._exit(1)  # who asked has gone
