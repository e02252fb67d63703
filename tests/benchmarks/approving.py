"""Approvals: asking and spending durably, and the list of a store with many past ones."""

from __future__ import annotations

import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from licet.approvals import clocks
from licet.approvals.forms import Answer, ApprovalRequest, Person
from licet.approvals.store import NAME, ApprovalStore
from licet.policy.parts import DEFAULT_APPROVAL
from licet.request import Subject
from licet.state import StateDirectory, open_state
from licet.ulid import new_run_id

PAST = 100_000
Show = Callable[[str, float, str, float, str], None]


def asked() -> ApprovalRequest:
    """What is asked for a small refund."""
    digest = f"hmac-sha256:{'0' * 64}"
    document = {"code": "refund(order='A1', amount=250)\n" * 30, "call": {"tool": "refund"}, "licet": 1}
    return ApprovalRequest(
        id=new_run_id(),
        run_id=new_run_id(),
        kind="call",
        digest=digest,
        shown=digest,
        document=document,
        fields=dict.fromkeys(("code", "tool", "workdir", "backend", "arg:order", "arg:amount"), digest),
        policy_digest=digest,
        requirements=(DEFAULT_APPROVAL,),
        requester=Subject(id="ada", tenant="acme"),
        asked=clocks.now(),
        expires=1800.0,
    )


def compare_spending(folder: Path, show: Show, rounds: int) -> None:
    """Asking, answering and consuming, each against one bare write with its sync, taken in turn."""
    times: dict[str, list[float]] = {"ask": [], "answer": [], "consume": [], "ended": [], "bare": []}
    descriptor = os.open(folder / "bare", os.O_RDWR | os.O_CREAT)

    def bare() -> None:
        os.write(descriptor, bytes(1000))
        os.fdatasync(descriptor)

    with ApprovalStore(open_state(folder / ".licet")) as store:
        for number in range(rounds):
            request = asked()
            answer = Answer(Person("ann", reviewer="human"), True, request.shown, "benchmark")
            for name, work in (
                ("ask", partial(store.ask, request, frozen=bytes(1000))),
                ("bare", bare),
                ("answer", partial(store.answer, request.id, answer, request.asked)),
                ("consume", partial(store.consume, request.id, number, request.asked)),
                ("ended", partial(store.ended, request.id, "executed", request.asked)),
            ):
                began = time.perf_counter()
                work()
                times[name].append(time.perf_counter() - began)
    os.close(descriptor)
    median = {name: statistics.median(found) for name, found in times.items()}
    both = median["ask"] + median["consume"]
    show("approval asked and consumed, durable", both, "one write and fdatasync", median["bare"], "6x")
    for name in ("ask", "answer", "consume", "ended"):
        print(f"  {name:<38}{median[name] * 1e3:9.2f} ms   {median[name] / median['bare']:.2f}x")


def many_past(folder: Path, count: int) -> StateDirectory:
    """A store with `count` approvals that are over and one that is pending, written without syncs."""
    state = open_state(folder / ".licet")
    with ApprovalStore(state) as store:
        for number in range(2):
            request = asked()
            store.ask(request, frozen=bytes(1000))
            if not number:
                answer = Answer(Person("ann", reviewer="human"), True, request.shown, "benchmark")
                store.answer(request.id, answer, clocks.now())
                store.consume(request.id, 1, clocks.now())
                store.ended(request.id, "executed", clocks.now())
    with closing(sqlite3.connect(state.path / NAME, isolation_level=None)) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(approval)")]
        past = dict(
            zip(columns, db.execute("SELECT * FROM approval WHERE number = 1").fetchone(), strict=True)
        )
        names = ", ".join(columns)
        db.execute("BEGIN")
        for number in range(3, count + 2):
            row = {**past, "number": number, "id": new_run_id(), "run_id": new_run_id(), "approved": number}
            db.execute(f"INSERT INTO approval ({names}) VALUES (:{', :'.join(columns)})", row)
        db.execute("COMMIT")
    return state


def measure_list(folder: Path, count: int = PAST) -> None:
    """Print what lists of a store take, in this process and as a process of their own."""
    state = many_past(folder, count)
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for _ in range(2):  # the first compiles all modules
        began = time.perf_counter()
        command = [sys.executable, "-m", "licet", "approvals", "list", "--state", str(state.path)]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        took = time.perf_counter() - began
    print(f"`licet approvals list` over {count:,}: {took:.3f} s as a process (goal 1 s)")
    with ApprovalStore(state) as store:
        for name, work in (
            ("open ones", lambda: store.listed(["pending", "granted"])),
            ("count by state", store.counted),
            ("the last 100", lambda: store.listed(limit=100)),
            (f"all {count:,}", store.listed),
        ):
            began = time.perf_counter()
            work()
            print(f"  {name:<38}{(time.perf_counter() - began) * 1e3:9.2f} ms")
