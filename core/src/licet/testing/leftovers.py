"""Tests of what is left: no process, thread, descriptor or file stays once a backend is closed."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from licet.backend import Backend
from licet.testing.bench import Bench
from licet.testing.host import RecordingHost
from licet.testing.machine import look


class Leftovers:
    """Rounds of good, failed, late, flooding and cancelled runs leave as much as none."""

    def test_a_closed_backend_leaves_nothing(
        self, make_backend: Callable[[], Backend], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        places = [tmp_path / name for name in ("work", "temporary")]
        for place in places:
            place.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(places[1]))
        monkeypatch.setenv("TMPDIR", str(places[1]))
        asyncio.run(_round(make_backend(), places[0]))  # whatever is made once for all, is
        before = look(*places)
        for _ in range(3):
            asyncio.run(_round(make_backend(), places[0]))
        _nothing_is_left(look(*places, settled=before).beyond(before))

    def test_a_backend_in_use_does_not_grow(self, bench: Bench, tmp_path: Path) -> None:
        """Descriptors and threads for each run would end a long-lived host."""

        async def runs(count: int) -> None:
            for number in range(count):
                await bench.execute(f"print({number})\n{number}")

        asyncio.run(runs(3))
        before = look(tmp_path)
        asyncio.run(runs(10))
        _nothing_is_left(look(tmp_path).beyond(before))


def _nothing_is_left(left: list[str]) -> None:
    if left:
        pytest.fail("\n  ".join(("these are left behind", *left)), pytrace=False)


async def _round(backend: Backend, workdir: Path) -> None:
    bench = Bench(backend, workdir)
    await asyncio.gather(bench.execute("1"), bench.execute("1 / 0"), bench.execute("("))
    await bench.execute(bench.busy, limits={"wall_time": 0.2})
    await bench.execute(bench.flood, RecordingHost(output=10_000))
    run = asyncio.create_task(bench.execute(bench.busy))
    await asyncio.sleep(0.02)
    run.cancel()
    await asyncio.wait([run])
    await backend.close()
