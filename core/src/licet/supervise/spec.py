"""What to run and what became of it: the values of `licet.supervise`.

Rules this module keeps:

- every value is frozen; durations are seconds, sizes bytes; None means that nobody asked for a limit;
- the environment is exactly what is given, standard input is empty unless bytes are given.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from licet.supervise.jail.spec import Jail, Written

INTERPRETER: str = getattr(sys, "_base_executable", sys.executable) if os.name == "nt" else sys.executable
"""This interpreter. On Windows, the one of a virtual environment only starts another as its child."""


class Reason(StrEnum):
    """Why a supervised process ended."""

    exited = "exited"
    timeout = "timeout"
    cancelled = "cancelled"
    output_limit = "output_limit"
    cpu_limit = "cpu_limit"
    memory_limit = "memory_limit"
    process_limit = "process_limit"
    file_limit = "file_limit"
    launch_failed = "launch_failed"
    backend_lost = "backend_lost"
    stopped = "stopped"


@dataclass(frozen=True, slots=True)
class Snippet:
    """Python code, run in an isolated interpreter of its own.

    `inputs` become global names; each must pass `licet.values.check_crossing`. `recursion` is the
    interpreter's recursion limit. `tools` become global names as well, functions whose calls `on_call`
    answers; each with whether code may await what a call gives. `packages` are absolute directories, put at
    the end of `sys.path` in this order; `site` does not run, so no `.pth` file in them is obeyed.
    """

    code: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    recursion: int | None = None
    tools: Mapping[str, bool] = field(default_factory=dict)
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """Another program: an absolute path and its arguments, never a shell line."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spec:
    """One supervised run.

    `workdir` is an absolute path without a symbolic link on it, or nothing is started.
    `cpu_time` (rounded up to whole seconds) and `memory` (address space) bound each process of the run, not
    their sum, but for a run in a jail on a host with control groups; `processes` bounds how many there are at
    once, in a jail alone. `confine_signals` demands the kernel's wall round the run, see
    `licet.supervise.kernel`; a run that can't have it is not started. `interpreter` also runs the keeper,
    whatever is run. One keeper may supervise two runs, one after the other, only if their `sharing` is equal.
    In a `jail` (Linux), the run is the launcher's of `licet.supervise.jail`; without `warm`, nothing that was
    started for another run serves it.
    """

    work: Snippet | Program
    workdir: str
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    wall_time: float | None = None
    cpu_time: float | None = None
    memory: int | None = None
    processes: int | None = None
    confine_signals: bool = False
    interpreter: str = INTERPRETER
    sharing: str = ""
    jail: Jail | None = None
    warm: bool = True

    @property
    def tools(self) -> Mapping[str, bool]:
        """The tools that the code can call."""
        return self.work.tools if isinstance(self.work, Snippet) else {}


@dataclass(frozen=True, slots=True)
class Fault:
    """An exception that the code did not catch; `line` is 1-based."""

    type: str
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What the guest said over its private channel. Only it can say it, and it can say anything."""

    value: Any = None
    value_repr: str | None = None
    error: Fault | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """What a run used, all of its processes together; `peak_memory` is that of the largest one, if nothing
    counts them together. `bytes_written` is what lies on storage of its own in the end."""

    wall_time: float = 0.0
    cpu_time: float | None = None
    peak_memory: int | None = None
    bytes_written: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """What became of a run.

    `exit_code` or `signal` is set for `exited`. `swept` says that the keeper saw every descendant dead;
    where it is False, something may have outlived the run. `applied` tells the walls that were put up, `seen`
    what the system showed of the process before its code began, by control, `dropped` the limits that were
    stated and that this host took without keeping them. `written` is where code in a jail could write;
    whoever takes the outcome closes its descriptors.
    """

    reason: Reason
    exit_code: int | None = None
    signal: int | None = None
    report: Report = field(default_factory=Report)
    used: Used = field(default_factory=Used)
    swept: bool = True
    applied: tuple[str, ...] = ()
    seen: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    detail: str | None = None
    written: tuple[Written, ...] = ()

    def drop(self) -> None:
        """Close what came with it, where nobody is to have it."""
        for place in self.written:
            os.close(place.descriptor)
