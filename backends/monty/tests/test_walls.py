"""Workers behind walls of the kernel: what stands is what is claimed, and nothing is started without."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from licet.backend import Layered, Termination, execute
from licet.contract import Level
from licet.errors import LaunchFailed
from licet.probe import verify
from licet.probe.attacks import here
from licet.request import Limits
from licet.supervise.walls import Wall, Walls, launcher, look
from licet_monty import binary, digests
from licet_monty.backend import MontyBackend
from licet_monty.behind import BehindMonty
from licet_monty.claims import BEHIND

pytestmark = pytest.mark.skipif(
    set(Wall) - look().standing != set(), reason=f"a wall is missing here: {look().missing}"
)


def _run(backend: MontyBackend, plan: Any, host: Any) -> Any:
    async def main() -> Any:
        try:
            return await execute(backend, plan, host)
        finally:
            await backend.close()

    return asyncio.run(main())


def _standing(*walls: Wall) -> Walls:
    return Walls(frozenset(walls), {}, look().landlock if Wall.files in walls else 0)


@pytest.mark.parametrize(
    "walls", [(), (Wall.apart,), (Wall.privileges,), (Wall.calls,), (Wall.files,), tuple(Wall)], ids=str
)
def test_monty_runs_behind_whichever_walls_there_are(
    walls: tuple[Wall, ...], make_plan: Any, host: Any
) -> None:
    code = """
import asyncio, datetime, json, os, random, re, time
time.sleep(0.001)
async def one():
    await asyncio.sleep(0.001)
    return 1
values = asyncio.run(asyncio.gather(one(), one()))
[sum(range(1000)), len('x' * 10 ** 6), json.dumps({'a': 1}), re.sub('a', 'b', 'aa'), values]
"""
    outcome = _run(MontyBackend(walls=_standing(*walls)), make_plan(code), host)
    assert outcome.error is None
    assert outcome.value == [499500, 1000000, '{"a": 1}', "bb", [1, 1]]
    assert ("seccomp mode 2" in outcome.observed["syscall_filter"]) == (Wall.calls in walls)


@pytest.mark.parametrize(
    ("code", "limits", "ending"),
    [
        ("while True: pass", Limits(wall_time=0.2), Termination.timeout),
        ("x = []\nwhile True: x.append('a' * 10000)", Limits(memory=8 << 20), Termination.memory_limit),
        ("'a' * 10 ** 9", Limits(wall_time=5.0, memory=8 << 20), Termination.memory_limit),
        ("x = 10 ** 100000\nfor i in range(100): x = x * x", Limits(wall_time=0.3), Termination.timeout),
    ],
)
def test_limits_end_a_walled_worker_as_they_did(
    code: str, limits: Limits, ending: Termination, make_plan: Any, host: Any
) -> None:
    assert _run(MontyBackend(), make_plan(code, limits=limits), host).termination is ending


def test_what_a_worker_says_on_standard_error_reaches_nobody() -> None:
    """It tells of an allocation that failed there, which no terminal of the user should show."""
    script = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from conftest import RecordingHost, seal
from licet.backend import execute
from licet.request import Limits
from licet.supervise.walls import Walls
from licet_monty.backend import MontyBackend
backend = MontyBackend(walls=Walls() if sys.argv[1] == "open" else None)
plan = seal("'a' * 10 ** 9", limits=Limits(wall_time=5.0, memory=8 << 20))
print(asyncio.run(execute(backend, plan, RecordingHost())).termination)
"""
    told = [
        subprocess.run([sys.executable, "-c", script, how], capture_output=True, text=True, check=True)
        for how in ("open", "walled")
    ]
    assert [done.stdout for done in told] == ["memory_limit\n"] * 2
    assert told[1].stderr == ""


def test_no_descriptor_of_the_host_gets_to_a_worker(make_plan: Any, make_host: Any) -> None:
    secret = os.memfd_create("secret")
    os.set_inheritable(secret, True)
    try:
        seen = [
            _run(MontyBackend(walls=walls), make_plan("1"), make_host()).observed["handle_isolation"]
            for walls in (_standing(Wall.apart), Walls())
        ]
    finally:
        os.close(secret)
    assert seen[0] == "the worker holds 3 descriptors"
    assert seen[1] != seen[0]


def test_a_wall_that_can_not_be_put_up_starts_nothing(
    make_plan: Any, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "_LIMITS", {7: 64, 99: 0})
    with pytest.raises(LaunchFailed, match=r"^Monty .*: its launcher could not limit resource 99$"):
        _run(MontyBackend(), make_plan("1"), host)


def test_a_worker_without_a_wall_that_was_described_is_not_used(
    make_plan: Any, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    weaker = _standing(Wall.apart)
    confined = launcher.Confinement
    monkeypatch.setattr(
        "licet_monty.walls.Confinement", lambda argv, _, **rest: confined(argv, weaker, **rest)
    )
    with pytest.raises(LaunchFailed, match=r"^a worker stands without walls .*: .*Seccomp 0"):
        _run(MontyBackend(walls=_standing(Wall.calls)), make_plan("1"), host)


def test_another_binary_than_was_described_is_not_started(tmp_path: Path, make_plan: Any, host: Any) -> None:
    found = binary.locate()
    assert found is not None
    mine = tmp_path / "monty"
    shutil.copy(found, mine)
    backend = MontyBackend(binary=mine)

    async def main() -> list[Any]:
        values = [(await execute(backend, make_plan("1"), host)).value]
        os.link(mine, tmp_path / "another name")  # which changes the file's times, and nothing else
        values.append((await execute(backend, make_plan("2"), host)).value)
        mine.unlink()
        mine.write_bytes(found.read_bytes() + b"\0")
        mine.chmod(0o755)
        with pytest.raises(LaunchFailed, match=r"^the binary `.*/monty` is not the one any more"):
            await execute(backend, make_plan("3"), host)
        mine.unlink()
        with pytest.raises(LaunchFailed, match=r"^the binary `.*/monty` can't be read: no such file"):
            await execute(backend, make_plan("4"), host)
        await backend.close()
        return values

    assert asyncio.run(main()) == [1, 2]


def test_a_digest_is_computed_once_for_a_file_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "_known", {})
    home = tmp_path / "state"
    monkeypatch.setattr(digests.state, "user_state_path", lambda: home)
    monkeypatch.setattr(digests.state, "user_state", lambda: home)
    file = tmp_path / "binary"
    file.write_bytes(b"one")
    one = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    assert digests.sha256(file) == one
    assert not home.exists(), "no directory is made for it"
    home.mkdir(mode=0o700)
    digests._known.clear()
    assert digests.sha256(file) == one
    [kept] = (home / "binaries").iterdir()
    assert json.loads(kept.read_text()) == {"file": digests.as_it_is(file), "sha256": one}
    digests._known.clear()
    kept.write_text(json.dumps({"file": digests.as_it_is(file), "sha256": "0" * 64}))
    assert digests.sha256(file) == "0" * 64, "it was remembered"
    digests._known.clear()
    kept.chmod(0o666)
    assert digests.sha256(file) == one, "what others may write counts for nothing"
    digests._known.clear()
    kept.write_text("{")
    assert digests.sha256(file) == one
    file.write_bytes(b"two")
    assert digests.sha256(file) == "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"


def test_what_stands_behind_the_language_is_what_is_claimed() -> None:
    backend = MontyBackend()
    assert isinstance(backend, Layered)
    behind = backend.behind().describe()
    assert behind.sandbox_enforcement_contract == backend.describe().sandbox_enforcement_contract
    assert behind.configuration == backend.describe().configuration
    assert behind.language.modules is None


def test_native_code_behind_the_language_gets_nowhere() -> None:
    attacks = tuple(attack for attack in here() if attack.quick and attack.control in BEHIND)
    report = asyncio.run(verify([BehindMonty()], attacks=attacks))
    assert [f"{r.control}/{r.variant}: {r.observed}" for r in report.results if r.outcome != "held"] == []
    assert {result.twin for result in report.results} == {"got through"}
    assert {result.control for result in report.results} >= set(BEHIND) - {"orphan_cleanup"}


def test_the_runs_behind_the_language_are_ended(make_plan: Any, make_host: Any) -> None:
    def run(code: str, host: Any, wall_time: float) -> Termination:
        behind = BehindMonty()
        plan = make_plan(code, limits=Limits(wall_time=wall_time), backend="behind_monty")
        ending: Termination = asyncio.run(execute(behind, plan, host)).termination
        return ending

    assert run("while True: pass", make_host(), 0.5) is Termination.timeout
    assert (
        run("while True: print('x' * 1000)", make_host(output_limit=5000), 30.0) is Termination.output_limit
    )
    assert run("raise SystemExit(3)", make_host(), 30.0) is Termination.exited


def test_without_walls_nothing_stands_behind_the_language() -> None:
    none = MontyBackend(walls=Walls())
    assert none.behind().describe().unavailable == "there are no walls of the kernel here"
    claims = none.describe().sandbox_enforcement_contract
    assert {claims[control].boundary for control in BEHIND if claims[control].level is Level.enforced} == {
        "language"
    }
