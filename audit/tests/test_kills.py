"""Eight processes append runs to one log and are killed at random moments; new ones take their places."""

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from licet.state import StateDirectory
from licet_audit.reader import LogReader

PROGRAM = Path(__file__).with_name("writer_process.py")
WRITERS = 8
SEGMENT_BYTES = (3_000, 20_000, 10**7)


class Writers:
    """The processes, and what each said: a file of lines, one for what became durable."""

    def __init__(self, state: StateDirectory, folder: Path, chance: random.Random) -> None:
        self.state = state
        self.folder = folder
        self.chance = chance
        self.running: list[tuple[subprocess.Popen[bytes], Path]] = []
        self.started = 0

    def start(self) -> None:
        said = self.folder / f"said-{self.started}"
        size = str(self.chance.choice(SEGMENT_BYTES))
        command = [sys.executable, PROGRAM, self.state.path, f"p{self.started}", "1000000", size]
        with said.open("wb") as output:
            process = subprocess.Popen([*command, self.folder / "effects"], stdout=output)
        self.running.append((process, said))
        self.started += 1

    def kill_one(self) -> None:
        """Kill one of them some time after it has said so many lines, or while it starts."""
        process, said = self.running.pop(self.chance.randrange(len(self.running)))
        lines = self.chance.choice([0, *range(1, 30)])
        while said.read_bytes().count(b"\n") < lines:
            assert process.poll() is None
            time.sleep(0.001)
        time.sleep(self.chance.random() * (0.01 if lines else 0.3))
        process.kill()
        assert process.wait(timeout=30) == -9

    def said(self) -> list[tuple[str, str, int]]:
        """What whole lines say: what, which run, which record."""
        lines = [line for path in self.folder.glob("said-*") for line in path.read_text().splitlines(True)]
        words = [line.split() for line in lines if line.endswith("\n")]
        return [(what, run, int(seq)) for what, run, seq in words]


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize(
    ("seed", "kills"), [(1, 20), *(pytest.param(seed, 100, marks=pytest.mark.soak) for seed in range(2, 7))]
)
def test_kills_lose_no_record_and_leave_no_effect_without_one(
    state: StateDirectory, tmp_path: Path, append: Callable[..., object], seed: int, kills: int
) -> None:
    writers = Writers(state, tmp_path, random.Random(seed))
    try:
        for _ in range(WRITERS):
            writers.start()
        for _ in range(kills):
            writers.kill_one()
            writers.start()
    finally:
        for process, _ in writers.running:
            process.kill()
            process.wait(timeout=30)
    append([])

    records = list(LogReader(state).records())
    place = {(one.entry.kind, one.entry.run_id, one.entry.phase): one.seq for one in records}
    said = writers.said()
    for what, run, seq in said:
        kind, phase = {"began": ("execution", "before"), "ended": ("result", "after")}[what]
        assert place[kind, run, phase] == seq, f"{what} {run} was acknowledged as #{seq}"
    effects = (tmp_path / "effects").read_text().splitlines()
    assert [run for run in effects if ("execution", run, "before") not in place] == []
    began = Counter(one.entry.run_id for one in records if one.entry.kind == "execution")
    ended = Counter(one.entry.run_id for one in records if one.entry.kind == "result")
    assert began == ended == Counter(dict.fromkeys(began, 1))
    unknown = {one.entry.run_id for one in records if one.entry.body.get("termination") == "unknown"}
    assert not unknown & {run for what, run, _ in said if what == "ended"}
    assert 0 < len(unknown) <= writers.started
    assert LogReader(state).verify().status == "proven"
    print(f"{kills} kills: {len(records)} records, {len(effects)} effects, {len(unknown)} runs unknown")
