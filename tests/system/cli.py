"""Running the command line as its users do, in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)


def licet(*arguments: str, stdin: bytes = b"", timeout: float = 60) -> Ran:
    """Run `licet` with these arguments and wait for it."""
    done = subprocess.run(
        [sys.executable, "-m", "licet", *arguments], input=stdin, capture_output=True, timeout=timeout
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Start `licet` in a process group of its own and do not wait.

    Signals are as in a shell: a job in the background, such as these tests may be, hands on ignored ones.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "licet", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=heed_signals,
    )


def heed_signals() -> None:
    """Have the signals of a user end the process that is about to begin."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
