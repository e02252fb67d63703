"""Runs that wait when their process dies: they are not lost until somebody resumes them, and dies as well."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict

import pytest
from approving import ASKED, CALL, answers, approval, asking, entry, going_on, resumed, waiting
from forging import failed, told, verify
from licet.approvals import telling
from licet.record import Entry, Record
from licet.state import StateDirectory
from licet_audit.log import DurableLog
from licet_audit.reader import LogReader
from licet_audit.retention.survey import survey

Append = Callable[..., list[Record]]
DIE = """
import asyncio, json, os, sys
from pathlib import Path
from licet.record import Entry
from licet.state import open_state
from licet_audit.log import DurableLog
entries = [Entry(**{**one, "kept": ()}) for one in json.load(sys.stdin)]
asyncio.run(DurableLog(open_state(Path(sys.argv[1])), segment_bytes=int(sys.argv[2])).append(entries))
os.kill(os.getpid(), 9)
"""


def die_after(state: StateDirectory, entries: Sequence[Entry], segment_bytes: int = 2**26) -> None:
    content = json.dumps([asdict(one) for one in entries])
    command = [sys.executable, "-c", DIE, state.path, str(segment_bytes)]
    died = subprocess.run(command, input=content, text=True, timeout=30, check=False)
    assert died.returncode == -9


def ends(state: StateDirectory) -> list[Record]:
    return [one for one in LogReader(state).records() if one.entry.kind == "result"]


def _spent(after: int) -> list[Entry]:
    """The run goes on, up to where its approval is spent."""
    return going_on(CALL, after=after)[:3]


@pytest.mark.parametrize("request_", [ASKED, CALL], ids=["run", "call"])
def test_a_run_that_waits_is_not_lost_with_its_process(
    state: StateDirectory, append: Append, request_: object
) -> None:
    die_after(state, [*asking(request_), waiting(request_)])  # type: ignore[arg-type]
    append([])
    assert ends(state) == []
    assert "waiting for an approval: 1" in told(verify(state), "outcomes")[1]


def test_the_same_without_waiting_is_lost(state: StateDirectory, append: Append) -> None:
    die_after(state, asking(CALL))
    append([])
    (end,) = ends(state)
    assert end.entry.body["termination"] == "unknown"
    assert end.entry.body["unknown_effects"] == []  # nobody let the call happen


@pytest.mark.parametrize("segment_bytes", [2**26, 900])
def test_who_resumes_a_run_and_dies_loses_it(
    state: StateDirectory, append: Append, segment_bytes: int
) -> None:
    append([*asking(CALL), waiting(CALL), *answers(CALL)], segment_bytes=segment_bytes)
    before = list(LogReader(state).records())
    die_after(state, [resumed(CALL)], segment_bytes)
    append([])
    (end,) = ends(state)
    execution = next(one for one in before if one.entry.kind == "execution")
    assert end.entry.body["termination"] == "unknown"
    assert end.entry.body["execution_seq"] == execution.seq
    assert end.entry.body["instance"] != execution.writer["instance"]
    assert end.entry.body["unknown_effects"] == []
    append([])
    assert ends(state) == [end]


def test_a_call_that_an_approval_was_spent_on_may_have_taken_effect(
    state: StateDirectory, append: Append
) -> None:
    before = append([*asking(CALL), waiting(CALL), *answers(CALL)])
    die_after(state, _spent(before[-1].seq + 1))
    append([])
    (end,) = ends(state)
    call = next(one for one in before if one.entry.kind == "tool_call")
    assert end.entry.body["unknown_effects"] == [
        {"seq": call.seq, "sequence": 1, "tool": "pay", "call_digest": "call-1"}
    ]
    assert failed(verify(state)) == {}


def test_a_run_that_is_resumed_and_waits_again_is_not_lost(state: StateDirectory, append: Append) -> None:
    append([*asking(CALL), waiting(CALL)])
    die_after(state, [resumed(CALL), waiting(CALL)])
    append([])
    assert ends(state) == []


def test_a_run_that_the_living_resumed_is_left_alone(state: StateDirectory, append: Append) -> None:
    die_after(state, [*asking(CALL), waiting(CALL)])

    async def run() -> None:
        living = DurableLog(state)
        await living.append([resumed(CALL)])
        await asyncio.to_thread(append, [entry("request", {}, "other")])
        assert ends(state) == []
        await living.append([entry("result", {"termination": "exited"}, phase="after")])
        await living.close()

    asyncio.run(run())
    assert [one.entry.body["termination"] for one in ends(state)] == ["exited"]


def test_a_run_that_never_began_has_nothing_to_lose(state: StateDirectory, append: Append) -> None:
    append([*asking(), waiting(), *answers()])
    die_after(state, [resumed()])
    append([])
    assert ends(state) == []


def test_who_closes_while_a_run_waits_leaves_no_trace_of_a_writer(
    state: StateDirectory, append: Append
) -> None:
    append([*asking(CALL), waiting(CALL)])
    assert list((state.path / "writers").iterdir()) == []


def test_what_others_record_of_it_does_not_make_a_run_theirs(state: StateDirectory, append: Append) -> None:
    first = append([*asking(CALL), waiting(CALL)])
    append([approval(telling.over("A1", "denied", "no"))])
    assert survey(state).runs["R"].instance == first[0].writer["instance"]
