"""Runs on Windows, for real or under Wine, and an eye on the processes that they leave."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from licet.supervise import ProcessOutcome, Program, Snippet, Spec, Stop, run_blocking

if sys.platform == "win32":
    import _winapi

SYNCHRONIZE = 0x00100000


class Watched:
    """Processes that announced themselves as `pid N`, each held by a handle from that moment on."""

    def __init__(self) -> None:
        self.handles: dict[int, int] = {}

    def hear(self, text: bytes) -> None:
        for line in text.splitlines():
            if line.startswith(b"pid "):
                pid = int(line.split()[1])
                self.handles[pid] = _winapi.OpenProcess(SYNCHRONIZE, False, pid)

    def dead(self, within: float = 0.0) -> list[bool]:
        """For each, whether it is gone, or goes within so many seconds."""
        milliseconds = int(within * 1000)
        return [
            _winapi.WaitForSingleObject(handle, milliseconds) == _winapi.WAIT_OBJECT_0
            for handle in self.handles.values()
        ]

    def close(self) -> None:
        for handle in self.handles.values():
            _winapi.CloseHandle(handle)


@dataclass
class Ran:
    outcome: ProcessOutcome
    stdout: bytes
    stderr: bytes


@dataclass
class Runner:
    workdir: str
    watched: Watched = field(default_factory=Watched)

    def __call__(
        self,
        work: str | Snippet | Program,
        *,
        on_output: Callable[[str, bytes], bool] = lambda stream, data: True,
        stop: Stop | None = None,
        **options: Any,
    ) -> Ran:
        written = {"stdout": bytearray(), "stderr": bytearray()}

        def keep(stream: str, data: bytes) -> bool:
            written[stream].extend(data)
            self.watched.hear(data)
            return on_output(stream, data)

        work = Snippet(work) if isinstance(work, str) else work
        spec = Spec(work=work, **{"workdir": self.workdir, "wall_time": 60.0, **options})
        return Ran(run_blocking(spec, keep, stop), bytes(written["stdout"]), bytes(written["stderr"]))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Runner]:
    runner = Runner(str(tmp_path))
    yield runner
    runner.watched.close()
