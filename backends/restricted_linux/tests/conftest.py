"""Runs in jails, as the backend asks for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from licet import supervise
from licet.supervise.jail import Jail, JailLauncher, ground, needs

if sys.platform != "linux" or ground().refusal is not None:
    collect_ignore_glob = ["test_*.py"]


@dataclass(frozen=True)
class Ran:
    """What a run came to."""

    ended: supervise.ProcessOutcome
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def launcher() -> Iterator[JailLauncher]:
    found = JailLauncher()
    yield found
    found.close()


@pytest.fixture
def run(launcher: JailLauncher, tmp_path: Path) -> Callable[..., Ran]:
    """Run code in a jail that shows what it is told to, and drop what it wrote."""

    def run(code: str, jail: dict[str, Any] | None = None, **fields: Any) -> Ran:
        heard: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}

        def hear(stream: str, data: bytes) -> bool:
            heard[stream] += data
            return True

        shown = Jail(needs=needs(), workdir=str(tmp_path), **(jail or {}))
        fields = {"wall_time": 20.0, **fields}
        spec = supervise.Spec(
            supervise.Snippet(code), workdir=str(tmp_path), interpreter=needs().program, jail=shown, **fields
        )
        ended = supervise.run_blocking(spec, hear, None, launcher)
        ended.drop()
        return Ran(ended, heard["stdout"].decode(), heard["stderr"].decode())

    return run
