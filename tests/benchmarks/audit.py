"""Appending to the audit log, against plain JSONL with one fdatasync an event, on the same file system."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import orjson
from licet.plain import plain_body
from licet.record import Entry
from licet.state import open_state
from licet_audit.log import DurableLog

Seconds = float
EVENTS = 400  # in one measurement of one writer
BODY = plain_body({f"field_{n:02}": "x" * 38 for n in range(22)})  # a line of 1.5 KB
WRITER = {"host": "host.example", "pid": 4711, "instance": "0123456789abcdef", "version": "1.0"}


def entry() -> Entry:
    """An event, as a stage of a run makes one."""
    time_text = "2026-11-29T17:00:00.000000000Z"
    return Entry("request", "01JCCCCCCCCCCCCCCCCCCCCCCC", BODY, time_text, time.monotonic_ns())


def plain(folder: Path, events: int) -> Seconds:
    """Seconds an event, for one writer of plain lines."""
    descriptor = os.open(folder / "plain.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    began = time.perf_counter()
    for seq in range(events):
        one = entry()
        place = {"v": 1, "log": "0" * 32, "seq": seq, "prev": "0" * 64, "writer": WRITER}
        event = {"kind": one.kind, "run_id": one.run_id, "time": one.time, "mono_ns": str(one.mono_ns)}
        os.write(descriptor, orjson.dumps({**place, **event, "body": one.body}) + b"\n")
        os.fdatasync(descriptor)
    seconds = time.perf_counter() - began
    os.close(descriptor)
    return seconds / events


async def appends(log: DurableLog, events: int) -> None:
    """One task that appends one event after another."""
    for _ in range(events):
        await log.append([entry()])


async def tasks(log: DurableLog, number: int, events: int) -> Seconds:
    """Seconds an event, for tasks of one loop that share so many events."""
    began = time.perf_counter()
    await asyncio.gather(*(appends(log, events // number) for _ in range(number)))
    return (time.perf_counter() - began) / (events // number * number)


def processes(folder: Path, number: int, events: int) -> Seconds:
    """Seconds an event, for processes that append to one log, from the first event to the last."""
    command = [sys.executable, __file__, str(folder), str(events // number)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    started = [subprocess.Popen(command, text=True, **pipes) for _ in range(number)]  # type: ignore[call-overload]
    for each in started:
        each.stdout.readline()  # it has joined the log
    began = time.perf_counter()
    for each in started:
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in started:
        each.stdout.readline()  # its last event is durable
    seconds = time.perf_counter() - began
    for each in started:
        each.communicate()
    return seconds / (events // number * number)


def compare_appends(
    folder: Path, show: Callable[[str, Seconds, str, Seconds, str], None], rounds: int
) -> None:
    """Measure all three in turn with their peer, and show the medians."""
    state = folder / ".licet"

    async def main() -> dict[str, list[Seconds]]:
        found: dict[str, list[Seconds]] = {"peer": [], "1 task": [], "64 tasks": [], "8 processes": []}
        log = DurableLog(open_state(state))
        await appends(log, 50)
        for _ in range(rounds):
            found["1 task"].append(await tasks(log, 1, EVENTS))
            found["peer"].append(plain(folder, EVENTS))
            found["64 tasks"].append(await tasks(log, 64, EVENTS * 8))
            found["peer"].append(plain(folder, EVENTS))
            found["8 processes"].append(processes(state, 8, EVENTS * 4))
        await log.close()
        return found

    found = {name: statistics.median(times) for name, times in asyncio.run(main()).items()}
    goals = {"1 task": "1.3x", "64 tasks": "0.25x", "8 processes": "1.25x"}
    for name, goal in goals.items():
        show(f"append, {name}", found[name], "plain JSONL, fdatasync each", found["peer"], goal)


async def _member(folder: str, events: str) -> None:
    log = DurableLog(open_state(Path(folder)))
    await appends(log, 12)
    print("joined", flush=True)
    sys.stdin.readline()
    await appends(log, int(events))
    print("done", flush=True)
    await log.close()


if __name__ == "__main__":
    asyncio.run(_member(*sys.argv[1:]))
