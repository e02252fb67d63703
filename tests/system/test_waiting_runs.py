"""A run that waits for an approval survives its process, goes on elsewhere, and comes to the same."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import waiting
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from licet import Runtime, suspending, suspension
from licet.backend import Outcome, Termination
from licet.errors import SuspensionVoid
from licet.request import Limits
from licet_monty.backend import MontyBackend
from waiting import Desk, Half

NONE: frozenset[int] = frozenset()
CODE = """\
import random, time
def pay(orders):
    for order in orders:
        print("asking for", order)
        try:
            yielded.append(refund(order, amount=len(yielded)))
        except PermissionError as problem:
            yielded.append(str(problem))
yielded = [find("ann")]
print(random.random(), time.time())
pay(["o1", "o2", "o3"])
print(random.random())
yielded
"""


@pytest.fixture(scope="module")
def backend() -> Iterator[MontyBackend]:
    backend = MontyBackend(workers=2)
    yield backend
    asyncio.run(backend.close())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where state and keys are."""
    folder = tmp_path_factory.mktemp("waiting")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("STATE", "CACHE", "CONFIG"):
            patch.setenv(f"XDG_{name}_HOME", str(folder / name))
        patch.chdir(folder)
        (folder / "policy.yaml").write_text(waiting.POLICY)
        yield folder


@pytest.fixture(scope="module")
def desk(place: Path, backend: MontyBackend) -> Iterator[Callable[..., Desk]]:
    with Runtime(place / "policy.yaml", backends=[backend]) as runtime:
        yield lambda code, **fields: Desk(runtime, backend, code, **fields)


def whole(desk: Desk, refusing: frozenset[int] = NONE) -> Half:
    return asyncio.run(desk.begin(NONE, refusing))


def halves(desk: Desk, waits: frozenset[int], refusing: frozenset[int] = NONE) -> tuple[Half, int]:
    """The run, taken apart wherever one of these calls waits; and into how many parts."""
    half, parts = asyncio.run(desk.begin(waits, refusing)), 1
    while half.outcome.termination is Termination.approval_pending:
        sealed, call = desk.suspend(half)
        half, parts = asyncio.run(desk.go_on(sealed, call, waits, refusing)), parts + 1
    return half, parts


# -- two processes


@pytest.mark.parametrize("act", ["approve", "deny"])
def test_a_run_survives_its_process(place: Path, desk: Callable[..., Desk], act: str) -> None:
    def process(act: str) -> dict[str, Any]:
        command = [sys.executable, waiting.__file__, act, CODE, str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    first, second = process("begin"), process(act)
    assert len({first.pop("pid"), second.pop("pid"), os.getpid()}) == 3
    assert first["ended"] == ["approval_pending", None, "the call of `refund` waits for an approval"]
    assert [call["sequence"] for call in first["calls"]] == [1]
    sealed = (place / "sealed").read_bytes()
    assert b"asking for" not in sealed
    plain = whole(desk(CODE), frozenset({2} if act == "deny" else ())).told()
    assert second == plain
    assert second["stdout"].splitlines()[0].endswith(f" {waiting.AT.timestamp()}")
    assert [call["outcome"] for call in second["calls"]] == [
        "returned",
        "returned" if act == "approve" else "denied",
        "returned",
        "returned",
    ]


# -- any program, anywhere


PIECES = (
    "print('p', n)",
    "seen.append(random.random())",
    "seen.append(refund('o', amount=n))",
    "seen.append([refund(name) for name in ('a', 'b')])",
    "seen.append(find('x'))",
    "seen.append(time.time() - began)",
    "seen.append(os.urandom(3).hex())",
    "n += 1",
    "seen.append(eval('refund(str(n))'))",
    "seen.append(await refund('later'))",
    "seen.extend(await asyncio.gather(find('y'), refund('z')))",
    "it = iter(range(3)); seen.append([next(it), refund('i'), next(it)])",
    "kept = (lambda a: [a, refund('l')])(n); seen.append(kept)",
    "raise ValueError(str(n))",
    "1 / 0",
)
HEAD = "import asyncio, os, random, time\nbegan = time.time()\nseen = []\nn = 0\n"


@st.composite
def programs(draw: st.DrawFn) -> str:
    body = draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6))
    lines = [piece for piece in body if draw(st.booleans()) or "refund" in piece] or [PIECES[2]]
    if draw(st.booleans()):
        inside = "".join(f"        {line}\n" for line in lines if "await" not in line) or "        pass\n"
        caught = "    except Exception as problem:\n        seen.append(str(problem))\n"
        return f"{HEAD}for n in range(2):\n    try:\n{inside}{caught}seen"
    return HEAD + "\n".join(lines) + "\nseen"


def test_a_run_that_waited_comes_to_what_it_would_have(desk: Callable[..., Desk]) -> None:
    parts_seen = []

    @settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(programs(), st.frozensets(st.integers(1, 6)), st.frozensets(st.integers(1, 6), max_size=2))
    @example(CODE, frozenset({2, 3, 4}), frozenset({3}))
    def same(code: str, waits: frozenset[int], refusing: frozenset[int]) -> None:
        clerk = desk(code)
        plain = whole(clerk, refusing)
        ended, parts = halves(clerk, waits, refusing)
        parts_seen.append(parts)
        assert ended.told() == plain.told()

    same()
    assert max(parts_seen) > 2, "nothing waited"


# -- limits are not begun anew


def test_the_number_of_calls_goes_on(desk: Callable[..., Desk]) -> None:
    one = desk("for i in range(9): refund('o')", limits=Limits(tool_calls=4))
    plain = whole(one)
    ended, parts = halves(one, frozenset({2, 4}))
    assert (parts, ended.told()) == (3, plain.told())
    assert ended.outcome.termination is Termination.tool_limit
    assert len(ended.host.tool_calls) == 4


def test_output_goes_on_counting(desk: Callable[..., Desk]) -> None:
    code = "print('a' * 3000)\nrefund('o')\nprint('b' * 3000)\nrefund('o')\nprint('c')"
    one = desk(code, limits=Limits(output=5000, stdout=1000))
    first = asyncio.run(one.begin(frozenset({1})))
    second = asyncio.run(one.go_on(*one.suspend(first)))
    assert second.outcome.termination is Termination.output_limit
    out, _ = second.host.written()
    plain, _ = whole(one).host.written()
    assert out == plain
    assert (out.head[:2], out.total) == (b"aa", 6002)


# -- what binds it


@pytest.fixture
def waits(desk: Callable[..., Desk]) -> tuple[Desk, bytes, Any]:
    one = desk(CODE)
    return one, *one.suspend(asyncio.run(one.begin(frozenset({2}))))


def test_another_policy_voids_it(waits: tuple[Desk, bytes, Any], place: Path, backend: MontyBackend) -> None:
    _, sealed, call = waits
    (place / "other.yaml").write_text(waiting.POLICY.replace("tool find", "tool find, network a.example:443"))
    with Runtime(place / "other.yaml", backends=[backend]) as runtime:
        other = Desk(runtime, backend, CODE)
        with pytest.raises(SuspensionVoid, match=r"the (plan|policy) changed while the run waited"):
            asyncio.run(other.go_on(sealed, call))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"code": CODE + "\n"}, "plan"),
        ({"inputs": {"x": 1}}, "plan"),
        ({"limits": Limits(output=7)}, "plan"),
    ],
)
def test_another_request_voids_it(waits: tuple[Desk, bytes, Any], change: dict[str, Any], named: str) -> None:
    one, sealed, call = waits
    one.request = one.request.model_copy(update=change)
    with pytest.raises(SuspensionVoid, match=f"the {named} changed while the run waited"):
        asyncio.run(one.go_on(sealed, call))


@pytest.mark.parametrize(
    ("change", "named"),
    [({"version": "other"}, "version of the backend"), ({"configuration": "other"}, "interpreter")],
)
def test_another_backend_voids_it(
    waits: tuple[Desk, bytes, Any], change: dict[str, Any], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, sealed, call = waits
    prepared = one.prepared()
    chosen = prepared.selection.chosen
    assert chosen is not None
    other = replace(chosen, descriptor=replace(chosen.descriptor, **change))
    prepared = replace(prepared, selection=replace(prepared.selection, chosen=other))
    with pytest.raises(SuspensionVoid, match=f"the {named} changed while the run waited"):
        suspending.reopen(sealed, prepared, waiting.RUN, call, one.digest.key())


def test_another_run_call_or_key_voids_it(waits: tuple[Desk, bytes, Any]) -> None:
    one, sealed, call = waits
    with pytest.raises(SuspensionVoid, match="the run changed"):
        asyncio.run(one.go_on(sealed, call, run_id="01JD7K0000000000000000000S"))
    for change in ({"sequence": 3}, {"name": "find"}, {"digest": "hmac-sha256:0"}):
        with pytest.raises(SuspensionVoid, match=r"call that waits|tool that waits"):
            asyncio.run(one.go_on(sealed, replace(call, **change)))
    with pytest.raises(SuspensionVoid, match="sealed on another host"):
        suspending.reopen(sealed, one.prepared(), waiting.RUN, call, bytes(32))


def test_one_changed_bit_voids_it(waits: tuple[Desk, bytes, Any]) -> None:
    one, sealed, call = waits
    prepared, key = one.prepared(), one.digest.key()
    for place in range(0, len(sealed), 97):
        forged = bytearray(sealed)
        forged[place] ^= 4
        with pytest.raises(SuspensionVoid):
            suspending.reopen(bytes(forged), prepared, waiting.RUN, call, key)


def test_who_gets_past_the_seal_does_not_exchange_the_call(waits: tuple[Desk, bytes, Any]) -> None:
    """What was approved is performed from what was sealed apart from the dump; the dump has to agree."""
    one, sealed, call = waits
    half = asyncio.run(one.go_on(sealed, call, tamper=lambda dump: dump.replace(b'[["o1"]', b'[["o9"]')))
    assert half.outcome.termination is Termination.launch_failed
    assert half.outcome.detail == "the call that waits is not the one that was written down"


def test_a_run_that_was_not_suspended_is_not_sealed(desk: Callable[..., Desk]) -> None:
    one = desk("import asyncio\nawait asyncio.gather(refund('a'), asyncio.sleep(9))")
    half = asyncio.run(one.begin(frozenset({1})))
    with pytest.raises(ValueError, match=r"^other calls or sleeps of its code are under way$"):
        one.suspend(half)
    done = Outcome(Termination.exited, exit_code=0)
    with pytest.raises(ValueError, match="no call of it waits"):
        suspending.suspend(half.prepared, half.plan.run_id, whole(desk("1")).host, done, bytes(32))


# -- what is recorded


def test_the_records_of_both_halves_are_those_of_one_call(waits: tuple[Desk, bytes, Any]) -> None:
    one, sealed, call = waits
    first = asyncio.run(one.begin(frozenset({2})))
    second = asyncio.run(one.go_on(sealed, call))
    phases = [
        [(r.entry.phase, r.entry.body["sequence"]) for r in half.log.records() if r.entry.kind == "tool_call"]
        for half in (first, second)
    ]
    assert phases[0] == [("before", 1), ("after", 1), ("before", 2)]
    assert phases[1][:3] == [("after", 2), ("before", 3), ("after", 3)]
    assert suspension.bound(sealed).sequence == 2
