"""Whether a path names a Python that runs can use, in a closed set of answers.

Rules this module keeps: each answer has a stable name; the candidate is run under supervision, since it may
be anything; nothing is cached.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from licet.supervise.calls import run_blocking
from licet.supervise.spec import Program, Reason, Spec

STARTUP_TIME = 3.0
OLDEST = (3, 11)

_QUESTION = "import sys; print('python', *sys.version_info[:3], sys.implementation.name)"
_ANSWER = re.compile(rb"python (\d{1,4}) (\d{1,4}) (\d{1,4}) (\w{1,40})\r?\n")


class InterpreterStatus(StrEnum):
    """What probing found."""

    ok = "ok"
    empty_path = "empty_path"
    not_found = "not_found"
    not_executable = "not_executable"
    permission_denied = "permission_denied"
    launch_failed = "launch_failed"
    startup_timeout = "startup_timeout"
    invalid_python = "invalid_python"
    unsupported_version = "unsupported_version"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What is known of an interpreter; `version` and `implementation` are set if it answered."""

    path: str
    status: InterpreterStatus
    version: tuple[int, int, int] | None = None
    implementation: str | None = None
    detail: str | None = None


def probe_interpreter(path: str, *, startup_time: float = STARTUP_TIME) -> Interpreter:
    """Look at `path` and, if it is a program, ask it for its version. Blocks for `startup_time` at most."""
    refused = _refuse(path)
    if refused is not None:
        return Interpreter(path, refused)
    answer = bytearray()

    def keep(stream: str, data: bytes) -> bool:
        if stream == "stdout":
            answer.extend(data[:1000])
        return len(answer) <= 1000

    absolute = str(Path(path).absolute())
    question = Program((absolute, "-I", "-S", "-c", _QUESTION))
    outcome = run_blocking(Spec(work=question, workdir="/", wall_time=startup_time), keep)
    if outcome.reason is Reason.timeout:
        return Interpreter(path, InterpreterStatus.startup_timeout)
    if outcome.reason is Reason.launch_failed:
        return Interpreter(path, InterpreterStatus.launch_failed, detail=outcome.detail)
    found = _ANSWER.fullmatch(bytes(answer))
    if found is None or outcome.exit_code != 0:
        return Interpreter(path, InterpreterStatus.invalid_python)
    version = (int(found[1]), int(found[2]), int(found[3]))
    supported = version[:2] >= OLDEST
    status = InterpreterStatus.ok if supported else InterpreterStatus.unsupported_version
    return Interpreter(path, status, version, found[4].decode())


def _refuse(path: str) -> InterpreterStatus | None:
    """What can be said without running anything."""
    if not path.strip():
        return InterpreterStatus.empty_path
    try:
        mode = os.stat(path)  # noqa: PTH116 - a path with a NUL raises ValueError here, as a Path hides
    except PermissionError:
        return InterpreterStatus.permission_denied
    except (OSError, ValueError):
        return InterpreterStatus.not_found
    if not os.path.isfile(path):  # noqa: PTH113
        return InterpreterStatus.not_executable
    if not os.access(path, os.X_OK):
        return (
            InterpreterStatus.permission_denied if mode.st_mode & 0o111 else InterpreterStatus.not_executable
        )
    return None
