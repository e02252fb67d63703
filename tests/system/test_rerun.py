"""`licet audit rerun` as users type it: the same, another, denied now, impossible."""

import asyncio
import json
from pathlib import Path

import pytest
from cli import Ran, licet
from licet import Runtime
from licet.result import ExecutionResult

KEPT = "licet: 1\nextends: licet:compute\naudit: {content: kept}\n"
CODE = """\
import datetime, os, random, time
print(random.random(), os.urandom(4).hex(), random.sample(range(99), 3))
began = time.time()
print(datetime.datetime.now(), datetime.date.today(), time.perf_counter() - began)
print(sorted(range(9), key=lambda _: random.random()))
[x, round(began)]
"""


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where everything is; evidence is made once for all of it."""
    return tmp_path_factory.mktemp("rerun")


@pytest.fixture(autouse=True)
def place(top: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(top / name))
    place: Path = top / request.node.name.replace("[", "-").rstrip("]")
    place.mkdir()
    monkeypatch.chdir(place)
    (place / "p.yaml").write_text(KEPT)
    (place / "code.py").write_text(CODE)
    return place


def ran(*arguments: str) -> str:
    """Run the code, and give the id of the run."""
    done = licet("run", "code.py", "--policy", "p.yaml", "--json", *arguments)
    assert done.code == 0, done.err
    return str(done.json["run_id"])


def rerun(run: str, *arguments: str) -> Ran:
    return licet("audit", "rerun", run, "--state", ".licet", *arguments)


@pytest.mark.parametrize("world", ["real", "frozen"])
def test_a_run_comes_to_the_same(place: Path, world: str) -> None:
    random = "seeded" if world == "frozen" else "real"
    (place / "p.yaml").write_text(f"{KEPT}clock: {world}\nrandom: {random}\n")
    run = ran("--input", "x=3")
    for id_of_it in (run, run[:12].lower()):
        again = rerun(id_of_it)
        assert (again.code, again.err) == (0, "")
        assert again.out.startswith("✓ came to the same")
    told = rerun(run, "--json")
    assert (told.code, told.json["outcome"], told.json["differences"]) == (0, "same", [])
    shown = licet("audit", "show", told.json["rerun"], "--state", ".licet")
    assert f"run {run}" in shown.out
    assert licet("audit", "verify", "--state", ".licet").code == 0


def test_what_differs_is_shown(place: Path) -> None:
    (place / "p.yaml").write_text(KEPT + "screen: {mode: report}\nenv: {MODE: quick}\n")
    (place / "code.py").write_text("import os\nprint('as before')\nprint(os.environ.get('MODE'))")
    run = ran()
    (place / "p.yaml").write_text(KEPT + "screen: {mode: report}\nenv: {MODE: slow}\n")
    again = rerun(run)
    assert again.code == 1
    for text in (
        "✗ differs",
        "the policy has changed",
        "its environment is not what it was",
        "-quick",
        "+slow",
    ):
        assert text in again.out
    told = rerun(run, "--json").json
    assert [one["what"] for one in told["differences"]] == ["stdout"]
    assert told["differences"][0]["diff"][-2:] == ["-quick", "+slow"]


def test_it_is_decided_by_the_policy_in_force(place: Path) -> None:
    run = ran("--input", "x=3")
    (place / "p.yaml").write_text(KEPT + "deny: [run]\n")
    again = rerun(run)
    assert (again.code, "✗ denied now" in again.out) == (3, True)
    (place / "open.yaml").write_text(KEPT)
    assert rerun(run, "--policy", "open.yaml").code == 0


def test_what_was_not_kept_is_given_and_has_to_be_the_same(place: Path) -> None:
    (place / "p.yaml").write_text(KEPT.replace("kept", "digest"))
    run = ran("--input", "x=3")
    assert (rerun(run).code, rerun(run, "--json").json["reason"]) == (4, "its code is not kept")
    assert rerun(run, "--code", "code.py").code == 4, "its input is not there"
    assert rerun(run, "--code", "code.py", "--input", "x=3").code == 0
    other = rerun(run, "--code", "code.py", "--input", "x=4")
    assert (other.code, "not the inputs of the run" in other.err) == (2, True)
    (place / "code.py").write_text(CODE + "\n0")
    other = rerun(run, "--code", "code.py", "--input", "x=3", "--json")
    assert (other.code, json.loads(other.out)["error"]["slug"]) == (2, "usage")


def test_what_was_erased_can_not_be_repeated(place: Path) -> None:
    run = ran("--input", "x=3")
    assert licet("audit", "erase", run, "--state", ".licet", "--reason", "asked for", "--yes").code == 0
    again = rerun(run, "--json")
    assert (again.code, again.json["reason"]) == (4, "its code is erased")


def test_a_run_that_looked_at_its_clock_too_often_can_not_be_repeated(place: Path) -> None:
    (place / "code.py").write_text("import time\nfor i in range(1001):\n    time.time()\n")
    again = rerun(ran(), "--json")
    assert again.code == 4
    assert again.json["reason"] == "it read its clock 1001 times, and not all of that is recorded"


def test_a_run_that_never_ran_can_not_be_repeated(place: Path) -> None:
    denied = licet("run", "-c", "import ctypes", "--policy", "p.yaml", "--json")
    assert denied.code == 3
    again = rerun(str(denied.json["run_id"]))
    assert (again.code, "its code never ran" in again.out) == (4, True)


def test_a_run_that_failed_fails_again(place: Path) -> None:
    (place / "code.py").write_text("import random\nprint('so far')\n{}[random.random()]\n")
    failed = licet("run", "code.py", "--policy", "p.yaml", "--json")
    assert failed.code == 1
    assert rerun(str(failed.json["run_id"])).code == 0


@pytest.mark.parametrize("run", ["01JZZZZZZZ", "x"])
def test_no_such_run(place: Path, run: str) -> None:
    ran("--input", "x=3")
    assert rerun(run).code == 2


def test_calls_side_by_side_end_in_the_order_in_which_they_ended(place: Path) -> None:
    (place / "p.yaml").write_text(KEPT + "allow: [tool double]\n")
    last_first = [asyncio.Event() for _ in range(4)]

    async def double(n: int) -> int:
        """The first four end from the last to the first."""
        if n < 3:
            await last_first[n + 1].wait()
        if n < 4:
            last_first[n].set()
        return 2 * n

    code = """
import asyncio
ends = []
async def work(n):
    ends.append(await double(n))
    return await double(100 + len(ends))
print(await asyncio.gather(*[work(n) for n in range(4)]), ends)
"""

    async def first() -> ExecutionResult:
        async with Runtime("p.yaml") as runtime:
            return await runtime.run(code, tools={"double": double})

    result = asyncio.run(first())
    assert result.stdout == "[208, 206, 204, 202] [6, 4, 2, 0]\n"
    again = rerun(result.run_id)
    assert (again.code, again.err) == (0, "")
