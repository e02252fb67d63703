"""Attacks on approvals: two who resume at once, cancelled and killed at each step, changed in between."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from answering import assert_log_verifies, take
from licet import Runtime, Termination
from licet.approvals.clocks import now
from licet.approvals.forms import ApprovalRequest
from licet.approvals.queue import QueueService
from licet.approvals.store import ApprovalStore
from licet.errors import ApprovalClosed
from licet.state import open_state

ASKS_FOR_A_CALL = """\
licet: 1
allow: [tool find]
ask: [tool refund]
approval: {unattended: queue}
sandbox: {evidence: declared, only: [monty]}
"""
ASKS_TO_RUN = """\
licet: 1
ask: [run]
approval: {unattended: queue}
sandbox: {evidence: declared, only: [monty]}
"""
CODE = """\
try:
    said = refund('A1')
except PermissionError:
    said = 'no'
find(said)
said
"""


class Shop:
    """Tools of a host, and what they did."""

    def __init__(self) -> None:
        self.did: list[str] = []

    async def refund(self, order: str) -> str:
        """Pay back."""
        self.did.append("refund")
        return "ok"

    async def find(self, name: str) -> str:
        """Look up."""
        self.did.append(f"find {name}")
        return name

    @property
    def tools(self) -> dict[str, Any]:
        return {"refund": self.refund, "find": self.find}


@pytest.fixture
def policy(own_directories: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        (own_directories / "licet.yaml").write_text(text)
        return str(own_directories / "licet.yaml")

    return write


@pytest.fixture(autouse=True)
def every_log_verifies(own_directories: Path) -> Iterator[None]:
    """Whatever was tried, the trail of it is one that an outsider can check."""
    yield
    assert_log_verifies(own_directories)


def records(place: Path) -> list[dict[str, Any]]:
    paths = sorted((place / ".licet").rglob("*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def ends(place: Path, run_id: str) -> list[str]:
    """How the run ended, as often as that is recorded."""
    return [
        one["body"]["termination"]
        for one in records(place)
        if one["kind"] == "result" and one["run_id"] == run_id
    ]


def test_of_four_who_resume_suspended_code_one_goes_on(
    policy: Callable[[str], str], own_directories: Path
) -> None:
    shop = Shop()

    async def main() -> list[Any]:
        async with Runtime(policy(ASKS_FOR_A_CALL), approvals=[QueueService()]) as runtime:
            first = await runtime.run(CODE, tools=shop.tools)
            assert first.approval is not None
            await asyncio.to_thread(take, runtime, first.approval.request.id)
            resumed = [runtime.resume(first.run_id, tools=shop.tools) for _ in range(4)]
            return await asyncio.gather(*resumed)

    results = asyncio.run(main())
    assert Counter(one.termination for one in results) == {
        Termination.exited: 1,
        Termination.approval_denied: 3,
    }
    assert shop.did == ["refund", "find ok"]
    assert ends(own_directories, results[0].run_id) == ["exited"]


def test_of_four_who_resume_a_run_one_ends_it(policy: Callable[[str], str], own_directories: Path) -> None:
    async def main() -> list[Any]:
        async with Runtime(policy(ASKS_TO_RUN), approvals=[QueueService()]) as runtime:
            first = await runtime.run("6 * 7")
            assert first.approval is not None
            await asyncio.to_thread(take, runtime, first.approval.request.id)
            return await asyncio.gather(*(runtime.resume(first.run_id) for _ in range(4)))

    results = asyncio.run(main())
    assert sorted(one.value or 0 for one in results) == [0, 0, 0, 42]
    assert ends(own_directories, results[0].run_id) == ["exited"]


@pytest.mark.parametrize("approve", [True, False])
def test_who_waits_and_who_resumes_meanwhile_end_a_run_once(
    policy: Callable[[str], str], own_directories: Path, approve: bool
) -> None:
    shop = Shop()

    async def main() -> list[Any]:
        async with Runtime(policy(ASKS_FOR_A_CALL), approvals=[QueueService()]) as runtime:
            waits = asyncio.create_task(runtime.run(CODE, tools=shop.tools, wait=60))
            with ApprovalStore(open_state(runtime.state_path)) as store:
                while not (found := store.listed(("pending",))):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            request = found[0].request
            resumes = asyncio.create_task(runtime.resume(request.run_id, tools=shop.tools, wait=60))
            await asyncio.to_thread(take, runtime, request.id, approve=approve)
            return await asyncio.gather(waits, resumes)

    results = asyncio.run(main())
    assert sorted(one.value or "" for one in results) == ["", "ok" if approve else "no"]
    assert shop.did == (["refund", "find ok"] if approve else ["find no"])
    assert ends(own_directories, results[0].run_id) == ["exited"]


def test_suspended_code_under_another_policy_is_over_and_the_log_is_sound(
    policy: Callable[[str], str], own_directories: Path
) -> None:
    shop, name = Shop(), policy(ASKS_FOR_A_CALL)
    with Runtime(name, approvals=[QueueService()]) as runtime:
        first = runtime.run_sync(CODE, tools=shop.tools)
        take(runtime, first.approval.request.id)  # type: ignore[union-attr]
    policy(ASKS_FOR_A_CALL + "limits: {wall_time: 7s}\n")
    with Runtime(name, approvals=[QueueService()]) as runtime:
        result = asyncio.run(runtime.resume(first.run_id, tools=shop.tools))
    assert result.detail == "the policy is not the one any more under which this was approved"
    assert result.approval is not None and result.approval.state == "withdrawn"
    assert (shop.did, ends(own_directories, first.run_id)) == ([], [])


@pytest.mark.parametrize("unattended", ["queue", "deny"])
@pytest.mark.parametrize("text", [ASKS_TO_RUN, ASKS_FOR_A_CALL], ids=["run", "call"])
def test_a_run_that_is_cancelled_at_any_time_has_an_end_or_waits(
    policy: Callable[[str], str], own_directories: Path, text: str, unattended: str
) -> None:
    async def ask(request: ApprovalRequest) -> Any:
        await asyncio.sleep(0.02)
        return request.approve("ann")

    shop = Shop()
    request: dict[str, Any] = {"tools": shop.tools} if text == ASKS_FOR_A_CALL else {}
    code = CODE if text == ASKS_FOR_A_CALL else "6 * 7"
    name = policy(text.replace("queue", unattended))

    async def main() -> None:
        services = [ask, *([QueueService()] if unattended == "queue" else [])]
        async with Runtime(name, approvals=services) as runtime:
            for step in range(16):
                run = asyncio.create_task(runtime.run(code, **request))
                await asyncio.sleep(step * 0.01)
                run.cancel()
                await asyncio.gather(run, return_exceptions=True)
            with ApprovalStore(open_state(runtime.state_path)) as store:
                assert store.recover(now()) == ()  # no use was left behind
                waits = {one.request.run_id for one in store.listed(("pending", "granted"))}
        assert unattended == "queue" or not waits
        began = {one["run_id"] for one in records(own_directories) if one["kind"] == "request"}
        assert {run: len(ends(own_directories, run)) for run in began} == {
            run: int(run not in waits) for run in began
        }

    asyncio.run(main())


def test_a_no_that_comes_while_the_grant_is_spent_is_told_as_too_late(
    policy: Callable[[str], str], own_directories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Runtime(policy(ASKS_TO_RUN), approvals=[QueueService()]) as runtime:
        first = runtime.run_sync("6 * 7")
        assert first.approval is not None
        approval = first.approval.request.id
        take(runtime, approval)
        answer, ran = ApprovalStore.answer, []

        def too_late(store: ApprovalStore, *given: Any) -> Any:
            ran.append(asyncio.run(runtime.resume(first.run_id)).value)
            return answer(store, *given)

        monkeypatch.setattr(ApprovalStore, "answer", too_late)
        with pytest.raises(ApprovalClosed, match="is spent"):
            take(runtime, approval, approve=False, person="bea", reviewer="human")
    assert ran == [42]
    said = [one["body"] for one in records(own_directories) if one["body"].get("event") == "answered"]
    assert [(one["answer"], one["counts"]) for one in said] == [("approve", True), ("deny", False)]


@pytest.mark.parametrize("column", ["run_id", "id", "shown"])
def test_a_row_that_was_moved_to_another_run_is_void(policy: Callable[[str], str], column: str) -> None:
    moved = "01M8Q3ZZZZZZZZZZZZZZZZZZZZ"
    with Runtime(policy(ASKS_TO_RUN), approvals=[QueueService()]) as runtime:
        first = runtime.run_sync("6 * 7")
        assert first.approval is not None
        take(runtime, first.approval.request.id)
        with contextlib.closing(sqlite3.connect(runtime.state_path / "approvals.sqlite")) as db, db:
            db.execute(f"UPDATE approval SET {column} = ?", (moved,))
        result = asyncio.run(runtime.resume(moved if column == "run_id" else first.run_id))
        assert (result.value, result.detail) == (None, "what is kept of it is not what was shown")


FORKED = """\
import asyncio, os, sys, time
from licet.approvals.desk import Desk
from licet.approvals.queue import QueueService
from licet.state import open_state
from pathlib import Path
desk = Desk([QueueService()], lambda: open_state(Path(sys.argv[1])))
asyncio.run(desk.of_run("R"))
with desk._office.clerk.store._file._alone():
    if not (child := os.fork()):
        store = asyncio.run(desk._at_work()).store  # opening takes the lock that the parent holds
        os._exit(0)
    time.sleep(1)  # it would be over in no time
    waited = os.waitpid(child, os.WNOHANG) == (0, 0)
print(waited, os.waitpid(child, 0)[1])
asyncio.run(desk.close())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_forked_process_has_a_store_and_a_lock_of_its_own(own_directories: Path) -> None:
    command = [sys.executable, "-c", FORKED, str(own_directories / ".licet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "True 0\n", done.stderr


DIES = """\
import asyncio, os, signal, sys
from licet import Runtime
from licet.approvals.queue import QueueService
from licet.approvals.store import ApprovalStore
spend = ApprovalStore.consume
def dies(*given, **how):
    if sys.argv[3] == "after":
        spend(*given, **how)
    os.kill(os.getpid(), signal.SIGKILL)
ApprovalStore.consume = dies
async def main():
    async with Runtime(sys.argv[1], approvals=[QueueService()]) as runtime:
        await runtime.resume(sys.argv[2])
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
@pytest.mark.parametrize(("when", "value"), [("before", 42), ("after", None)])
def test_who_is_killed_while_it_spends_leaves_a_sound_log(
    policy: Callable[[str], str], own_directories: Path, when: str, value: int | None
) -> None:
    name = policy(ASKS_TO_RUN)
    with Runtime(name, approvals=[QueueService()]) as runtime:
        first = runtime.run_sync("6 * 7")
        take(runtime, first.approval.request.id)  # type: ignore[union-attr]
    killed = subprocess.run([sys.executable, "-c", DIES, name, first.run_id, when], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    with Runtime(name, approvals=[QueueService()]) as runtime:
        assert asyncio.run(runtime.resume(first.run_id)).value == value
        runtime.run_sync("1")
    events = [one["body"].get("event") for one in records(own_directories) if one["kind"] == "approval"]
    assert ("unknown" in events) is (when == "after")
