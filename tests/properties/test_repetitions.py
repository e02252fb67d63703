"""`what_is_repeated_comes_to_the_same`: generated programs on a real backend, run, recorded and run again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from licet import Runtime
from licet.record import MemoryLog
from licet.workbench.history.kept import request_of
from licet.workbench.history.past import past_of, stand_ins
from licet.workbench.history.repeated import differences, reasons
from licet_monty.backend import MontyBackend

HEAD = "import asyncio, datetime, os, random, time\nfound = []\n"
POLICY = "licet: 1\nsandbox: {evidence: declared}\naudit: {content: kept}\n"
LINES = st.lists(
    st.sampled_from(
        [
            "print(random.random())",
            "print(random.Random().random(), random.sample(range(50), 4))",
            "random.seed()\nprint(random.random())",
            "random.seed(5)",
            "print(os.urandom(9).hex(), os.urandom(1300)[-1])",
            "print(sorted(range(9), key=lambda _: random.random()))",
            "print(time.time(), time.time_ns(), time.monotonic())",
            "print(time.perf_counter() - time.perf_counter())",
            "print(time.process_time())",
            "print(datetime.datetime.now(), datetime.date.today())",
            "print(datetime.datetime.now(datetime.timezone.utc).isoformat(), time.ctime())",
            "if os.urandom(1)[0] % 2:\n    print('odd', time.time())",
            "for n in range(random.randint(0, 3)):\n    found.append((n, time.time()))",
            "await asyncio.gather(asyncio.sleep(0.001), asyncio.sleep(0.002))",
            "time.sleep(0.001)",
            "assert os.urandom(1)[0] % 4, str(time.time())",
            "print(hash('a'), {'x', 'y', 'z'})",
        ]
    ),
    max_size=7,
)


@pytest.mark.parametrize("world", ["", "clock: frozen\nrandom: seeded\n"])
def test_what_is_repeated_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(POLICY + world)
    log = MemoryLog()
    options: dict[str, Any] = {"log": log, "managed": tmp_path / "none"}
    with Runtime("p.yaml", backends=[MontyBackend(workers=1)], **options) as runtime:

        @settings(
            max_examples=20,
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(LINES)
        def comes_to_the_same(lines: list[str]) -> None:
            code = HEAD + "\n".join((*lines, "found"))
            first = runtime.run_sync(code)
            assert first.termination.value == "exited"
            records = log.records_of(first.run_id)
            request = request_of(records, log.content, runtime.stack)
            request = request.model_copy(update={"tools": stand_ins(records)})
            again, rerun = asyncio.run(runtime.rerun(request, past_of(records, log.content)))
            assert differences(records, again, rerun.differences, rerun.digest, log.content) == ()
            assert (again.stdout, again.value_repr, again.error) == (
                first.stdout,
                first.value_repr,
                first.error,
            )
            assert list(reasons(records, again, rerun.digests)) == []

        comes_to_the_same()
