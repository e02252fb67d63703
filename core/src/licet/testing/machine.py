"""What a backend can leave behind in this process and below it: descriptors, threads, processes, files.

Rules this module keeps:

- looking changes nothing; what the system does not show counts as not there;
- a thread or a process on its way out is waited for, by event and not by the clock.
"""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from licet.probe import traces

_PATIENCE_S = 5.0


@dataclass(frozen=True)
class Machine:
    """What there is: descriptors by what they lead to, threads and processes by name, files by path."""

    descriptors: Counter[str]
    threads: Counter[str]
    processes: Counter[str]
    files: Counter[str]

    def beyond(self, before: Machine) -> list[str]:
        """What there is now that was not there `before`, in words."""
        kinds = ("descriptors", "threads", "processes", "files")
        more = [(kind, getattr(self, kind) - getattr(before, kind)) for kind in kinds]
        return [f"{kind}: {count} more of {name}" for kind, found in more for name, count in found.items()]


def look(*folders: Path, settled: Machine | None = None) -> Machine:
    """What there is now; with `settled`, once whatever is beyond it had the time to end."""
    gc.collect()
    if settled is not None:
        _wait()
    return Machine(
        descriptors=Counter(_descriptors()),
        threads=Counter(_name(thread) for thread in threading.enumerate()),
        processes=Counter(_command(pid) for pid in traces.descendants(os.getpid())),
        files=Counter(str(path) for folder in folders for path in folder.rglob("*")),
    )


def _wait() -> None:
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(_PATIENCE_S)
    below = traces.Watched(traces.descendants(os.getpid()))
    try:
        below.outlive(_PATIENCE_S)
    finally:
        below.close()


def _descriptors() -> Iterator[str]:
    """What each descriptor leads to, without the number that tells one socket or pipe from another."""
    folder = Path("/proc/self/fd")
    if not folder.exists():
        return
    for entry in folder.iterdir():
        try:
            target = str(entry.readlink())
        except OSError:  # the one that reads the folder
            continue
        yield target.partition(":[")[0]


def _name(thread: threading.Thread) -> str:
    return thread.name.rstrip("0123456789_-")


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "a process"
    return words[0].decode("utf-8", "replace") or "a process that nobody has waited for"
