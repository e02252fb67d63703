"""Approvals as runs meet them: asked, answered by whoever is there or comes later, used once, recorded."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from answering import assert_log_verifies, take
from licet import ExecutionRequest, Runtime, Subject, Termination
from licet.approvals.forms import Answer, ApprovalRequest
from licet.approvals.queue import QueueService
from licet.approvals.store import ApprovalStore
from licet.backend import Descriptor, Host, Language, Outcome, Sandbox, ToolCall
from licet.cli.approvals.office import opened
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.errors import ApprovalsUnavailable, AuditUnavailable, NoApproval
from licet.plan import ExecutionPlan
from licet.record import MemoryLog
from licet.state import open_state

POLICY = """\
licet: 1
allow: [tool find]
ask: [tool refund]
approval: {unattended: queue, from: [finance], count: 2, expires: 1h}
sandbox: {evidence: declared, only: [monty]}
"""
ASKS_TO_RUN = """\
licet: 1
ask: [run]
approval: {unattended: queue}
sandbox: {evidence: declared, only: [monty]}
"""
CODE = "print('asking')\nanswer = refund('A1', amount=5)\nanswer.upper()"


class Shop:
    """Tools of a host, and what they did."""

    def __init__(self) -> None:
        self.refunded: list[tuple[str, int]] = []

    def refund(self, order: str, amount: int) -> str:
        """Pay back."""
        self.refunded.append((order, amount))
        return f"refunded {amount}"

    @property
    def tools(self) -> dict[str, Any]:
        return {"refund": self.refund}


@pytest.fixture
def policy(own_directories: Path) -> Callable[[str], str]:
    def write(text: str, name: str = "licet.yaml") -> str:
        (own_directories / name).write_text(text)
        return str(own_directories / name)

    return write


def store_of(runtime: Runtime) -> ApprovalStore:
    return ApprovalStore(open_state(runtime.state_path))


@pytest.fixture(autouse=True)
def every_log_verifies(own_directories: Path) -> Iterator[None]:
    """Whatever a test did, the trail of it is one that an outsider can check."""
    yield
    assert_log_verifies(own_directories)


# -- as a whole


def test_without_a_service_it_is_denied(policy: Callable[[str], str]) -> None:
    with Runtime(policy(ASKS_TO_RUN)) as runtime:
        result = runtime.run_sync("6 * 7")
    assert result.termination is Termination.approval_denied
    assert result.detail == "an approval is needed, and no approval service is configured"
    assert (result.process_exit_code, result.approval) == (3, None)


def test_whoever_is_there_is_asked_and_it_runs(policy: Callable[[str], str]) -> None:
    seen: list[ApprovalRequest] = []

    def ask(request: ApprovalRequest) -> Answer:
        seen.append(request)
        return request.approve("ann")

    log = MemoryLog()
    with Runtime(policy(ASKS_TO_RUN), approvals=[ask], log=log) as runtime:
        result = runtime.run_sync("6 * 7", subject=Subject(id="bob"))
        assert (result.success, result.value) == (True, 42)
        assert result.approval is not None and result.approval.state == "consumed"
        (request,) = seen
        assert request.document["code"] == "6 * 7"
        assert request.run_id == result.run_id
    entries = [record.entry for record in log.records()]
    events = [entry.body["event"] for entry in entries if entry.kind == "approval"]
    assert events == [
        "asked",
        "waiting",
        "answered",
        "granted",
        "consuming",
        "resumed",
        "consumed",
        "executed",
    ]
    steps = [entry.body.get("event", entry.kind) for entry in entries]
    assert steps.index("consuming") < steps.index("consumed") < steps.index("execution")


@pytest.mark.parametrize("answer", [None, "yes", 1, True, "ALLOW ", object()])
def test_whatever_is_no_answer_denies(policy: Callable[[str], str], answer: object) -> None:
    with Runtime(policy(ASKS_TO_RUN), approvals=[lambda request: answer]) as runtime:
        result = runtime.run_sync("6 * 7")
    assert (result.termination, result.value) == (Termination.approval_denied, None)


def test_a_program_that_fails_denies(policy: Callable[[str], str]) -> None:
    def broken(request: ApprovalRequest) -> Answer:
        raise RuntimeError("no")

    with Runtime(policy(ASKS_TO_RUN), approvals=[broken]) as runtime:
        assert runtime.run_sync("6 * 7").termination is Termination.approval_denied


def test_a_run_waits_and_goes_on(policy: Callable[[str], str]) -> None:
    name = policy(ASKS_TO_RUN)
    with Runtime(name, approvals=[QueueService()]) as runtime:
        first = runtime.run_sync("6 * 7")
        assert (first.termination, first.process_exit_code) == (Termination.approval_pending, 4)
        assert first.approval is not None and first.approval.state == "pending"
        again = asyncio.run(runtime.resume(first.run_id))
        assert again.termination is Termination.approval_pending
        take(runtime, first.approval.request.id, "ann")
    with Runtime(name, approvals=[QueueService()]) as runtime:
        last = asyncio.run(runtime.resume(first.run_id))
        assert (last.success, last.value, last.run_id) == (True, 42, first.run_id)
        spent = asyncio.run(runtime.resume(first.run_id))
        assert (spent.termination, spent.process_exit_code) == (Termination.approval_denied, 3)
        assert "was used before" in (spent.detail or "")


def test_a_policy_that_changed_voids_it(policy: Callable[[str], str]) -> None:
    name = policy(ASKS_TO_RUN)
    with Runtime(name, approvals=[QueueService()]) as runtime:
        first = runtime.run_sync("6 * 7")
        take(runtime, first.approval.request.id, "ann")  # type: ignore[union-attr]
    policy(ASKS_TO_RUN + "limits: {wall_time: 7s}\n")
    with Runtime(name, approvals=[QueueService()]) as runtime:
        result = asyncio.run(runtime.resume(first.run_id))
        assert result.termination is Termination.approval_denied
        assert result.detail == "the policy is not the one any more under which this was approved"
        with store_of(runtime) as store:
            assert store.of_run(first.run_id)[0].state == "withdrawn"


def test_nobody_resumes_what_never_waited(policy: Callable[[str], str]) -> None:
    with Runtime(policy(ASKS_TO_RUN)) as runtime, pytest.raises(NoApproval, match="no run `01X` waits"):
        asyncio.run(runtime.resume("01X"))


# -- a call of a tool inside running code


def test_a_call_waits_for_two_of_finance_and_happens_once(policy: Callable[[str], str]) -> None:
    name, shop = policy(POLICY), Shop()
    with Runtime(name, approvals=[QueueService()]) as runtime:
        first = runtime.run_sync(CODE, tools=shop.tools)
        assert first.termination is Termination.approval_pending
        assert shop.refunded == []
        approval = first.approval.request.id  # type: ignore[union-attr]
        take(runtime, approval, "ann", groups=("finance",))
        assert asyncio.run(runtime.resume(first.run_id, tools=shop.tools)).process_exit_code == 4
        take(runtime, approval, "bea", groups=("finance",))
    with Runtime(name, approvals=[QueueService()]) as runtime:
        last = asyncio.run(runtime.resume(first.run_id, tools=shop.tools))
        assert (last.success, last.value, last.stdout) == (True, "REFUNDED 5", "asking\n")
        assert shop.refunded == [("A1", 5)]
        spent = asyncio.run(runtime.resume(first.run_id, tools=shop.tools))
        assert (spent.process_exit_code, shop.refunded) == (3, [("A1", 5)])


def test_a_call_is_approved_while_its_run_is_there(policy: Callable[[str], str]) -> None:
    shop = Shop()
    asked: list[ApprovalRequest] = []

    async def desk(request: ApprovalRequest) -> Answer:
        asked.append(request)
        return request.approve("ann", groups=("finance",))

    text = POLICY.replace("count: 2", "count: 1")
    with Runtime(policy(text), approvals=[desk]) as runtime:
        result = runtime.run_sync("[refund('A', amount=n) for n in (1, 2)]", tools=shop.tools)
    assert result.value == ["refunded 1", "refunded 2"]
    assert [one.document["call"]["arguments"] for one in asked] == [
        {"args": ['"A"'], "kwargs": {"amount": "1"}},
        {"args": ['"A"'], "kwargs": {"amount": "2"}},
    ]
    assert len({one.digest for one in asked}) == 2
    assert [call.outcome for call in result.tool_calls] == ["returned", "returned"]


def test_code_may_go_on_without_what_was_denied(policy: Callable[[str], str]) -> None:
    shop = Shop()
    code = "try:\n    refund('A', amount=1)\nexcept PermissionError as problem:\n    answer = 'no'\nanswer"
    text = POLICY.replace("count: 2", "count: 1")
    desk = [lambda request: request.deny("ann", groups=("finance",), reason="too much")]
    with Runtime(policy(text), approvals=desk) as runtime:
        result = runtime.run_sync(code, tools=shop.tools)
        assert (result.success, result.value) == (True, "no")
        assert [call.outcome for call in result.tool_calls] == ["denied"]
        plain = runtime.run_sync("refund('A', amount=1)", tools=shop.tools)
    assert (plain.termination, plain.process_exit_code) == (Termination.approval_denied, 3)
    assert "too much" in (plain.detail or "")
    assert shop.refunded == []


def test_a_grant_that_reaches_further_asks_once(policy: Callable[[str], str]) -> None:
    shop, asked = Shop(), []

    def desk(request: ApprovalRequest) -> Answer:
        asked.append(request)
        return request.approve("ann", groups=("finance",), scope="shape", vary=("amount",), uses=3)

    text = POLICY.replace("count: 2", "count: 1")
    with Runtime(policy(text), approvals=[desk]) as runtime:
        code = "[refund('A', amount=n) for n in (1, 2, 3, 4)]"
        result = runtime.run_sync(code, tools=shop.tools)
        assert result.success, result
    assert len(asked) == 2
    assert [amount for _, amount in shop.refunded] == [1, 2, 3, 4]


def test_one_of_two_runs_is_approved_and_the_other_still_waits(policy: Callable[[str], str]) -> None:
    with Runtime(policy(ASKS_TO_RUN), approvals=[QueueService()]) as runtime:
        one, two = runtime.run_sync("1"), runtime.run_sync("2")
        take(runtime, one.approval.request.id, "ann")  # type: ignore[union-attr]
        assert asyncio.run(runtime.resume(two.run_id)).process_exit_code == 4
        assert asyncio.run(runtime.resume(one.run_id)).value == 1


def test_a_run_that_stays_is_answered_by_another_process(policy: Callable[[str], str]) -> None:
    with Runtime(policy(ASKS_TO_RUN), approvals=[QueueService()]) as runtime:

        async def main() -> Any:
            run = asyncio.create_task(runtime.run("6 * 7", wait=60))
            while True:
                with contextlib.suppress(Exception), store_of(runtime) as store:
                    if pending := store.listed(("pending",)):
                        break
                await asyncio.sleep(0.01)
            await asyncio.to_thread(take, runtime, pending[0].request.id, "ann")
            return await run

        assert asyncio.run(main()).value == 42


def test_two_processes_resume_and_one_goes_on(policy: Callable[[str], str]) -> None:
    name = policy(ASKS_TO_RUN)
    with Runtime(name, approvals=[QueueService()]) as runtime:
        first = runtime.run_sync("6 * 7")
        take(runtime, first.approval.request.id, "ann")  # type: ignore[union-attr]
    code = (
        "import asyncio, sys\nfrom licet import Runtime\n"
        "runtime = Runtime(sys.argv[1], approvals=[])\n"
        "print(asyncio.run(runtime.resume(sys.argv[2])).value)\nruntime.close()\n"
    )
    command = [sys.executable, "-c", code, name, first.run_id]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) for _ in range(2)]
    told = sorted(one.communicate(timeout=60)[0].strip() for one in both)
    assert told == ["42", "None"]


def test_a_frozen_request_is_the_request(policy: Callable[[str], str]) -> None:
    request = ExecutionRequest(code="n + 1", inputs={"n": 2.5}, subject=Subject(id="bob", session="s"))
    with Runtime(policy(ASKS_TO_RUN), approvals=[QueueService()]) as runtime:
        first = runtime.run_sync(request)
        take(runtime, first.approval.request.id, "ann")  # type: ignore[union-attr]
        assert asyncio.run(runtime.resume(first.run_id)).value == 3.5


# -- what happens meanwhile


def test_what_was_revoked_before_it_began_never_begins(policy: Callable[[str], str]) -> None:
    name = policy(ASKS_TO_RUN)
    with Runtime(name, approvals=[QueueService()]) as runtime:
        first = runtime.run_sync("6 * 7")
        approval = first.approval.request.id  # type: ignore[union-attr]
        take(runtime, approval, "ann")
        with opened(None, str(runtime.state_path)) as office:
            stored = office.store.get(approval)
            assert stored.state == "granted"
            office.recorded(
                first.run_id, lambda clerk, trail: clerk.end(stored, "revoked", trail, "a mistake")
            )
        result = asyncio.run(runtime.resume(first.run_id))
    assert (result.termination, result.process_exit_code) == (Termination.approval_denied, 3)
    assert result.detail == f"the approval {approval} is revoked: a mistake"
    command = [sys.executable, "-m", "licet", "audit", "query", "--json"]
    (told,) = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert (told["termination"], told["approval_state"]) == ("approval_denied", "revoked")


def test_a_tampered_suspended_run_never_goes_on(policy: Callable[[str], str]) -> None:
    shop = Shop()
    with Runtime(policy(POLICY.replace("count: 2", "count: 1")), approvals=[QueueService()]) as runtime:
        first = runtime.run_sync(CODE, tools=shop.tools)
        take(runtime, first.approval.request.id, "ann", groups=("finance",))  # type: ignore[union-attr]
        with contextlib.closing(sqlite3.connect(runtime.state_path / "approvals.sqlite")) as db, db:
            (sealed,) = db.execute("SELECT sealed FROM content WHERE sealed IS NOT NULL").fetchone()
            changed = bytearray(sealed)
            changed[-40] ^= 1
            db.execute("UPDATE content SET sealed = ? WHERE sealed IS NOT NULL", (bytes(changed),))
        result = asyncio.run(runtime.resume(first.run_id, tools=shop.tools))
        assert result.termination is Termination.approval_denied
        assert "damaged, forged, or sealed on another host" in (result.detail or "")
        assert shop.refunded == []


def test_another_tool_is_not_what_was_shown(policy: Callable[[str], str]) -> None:
    shop = Shop()

    def refund(order: str, amount: int, currency: str = "EUR") -> str:
        raise AssertionError("never")

    with Runtime(policy(POLICY.replace("count: 2", "count: 1")), approvals=[QueueService()]) as runtime:
        first = runtime.run_sync(CODE, tools=shop.tools)
        take(runtime, first.approval.request.id, "ann", groups=("finance",))  # type: ignore[union-attr]
        result = asyncio.run(runtime.resume(first.run_id, tools={"refund": refund}))
    assert result.termination is Termination.approval_denied
    assert "is not what was shown" in (result.detail or ""), result


def test_a_run_that_is_cancelled_still_waits_if_it_may(policy: Callable[[str], str]) -> None:
    name = policy(ASKS_TO_RUN)

    async def cancelled(runtime: Runtime) -> str:
        run = asyncio.create_task(runtime.run("6 * 7", wait=60))
        while True:
            with contextlib.suppress(ApprovalsUnavailable, AuditUnavailable), store_of(runtime) as store:
                if found := store.listed():
                    break
            await asyncio.sleep(0.01)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return found[0].request.run_id

    with Runtime(name, approvals=[QueueService()]) as runtime:
        run_id = asyncio.run(cancelled(runtime))
        with store_of(runtime) as store:
            (stored,) = store.of_run(run_id)
        assert stored.state == "pending"
        take(runtime, stored.request.id, "ann")
        assert asyncio.run(runtime.resume(run_id)).value == 42


def test_a_run_that_is_cancelled_withdraws_what_nobody_can_answer_later(policy: Callable[[str], str]) -> None:
    asked = asyncio.Event()

    async def slow(request: ApprovalRequest) -> Answer:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("never")

    async def cancelled(runtime: Runtime) -> None:
        run = asyncio.create_task(runtime.run("6 * 7"))
        await asked.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    with Runtime(policy(ASKS_TO_RUN), approvals=[slow]) as runtime:
        asyncio.run(cancelled(runtime))
        with store_of(runtime) as store:
            (stored,) = store.listed()
    assert (stored.state, stored.reason) == ("withdrawn", "the run was cancelled")


class Alive:
    """A backend that can't suspend a run, in the place of one that strangers would write."""

    def describe(self) -> Descriptor:
        contract = SandboxEnforcementContract(
            **{control.value: Enforcement(Level.enforced, "kernel", "a test") for control in Control}
        )
        return Descriptor("alive", "1", contract, Language("Alive"), frozenset({"tool"}), 1.0)

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return self

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        calls = (host.call(ToolCall("refund", ("A",), {"amount": n}, 1)) for n in (1, 2))
        replies = await asyncio.gather(*calls)
        return Outcome(
            Termination.exited, exit_code=0, value=[r.value or (r.error and r.error.message) for r in replies]
        )

    async def close(self) -> None: ...


def test_a_sandbox_that_can_not_be_suspended_waits_alive(policy: Callable[[str], str]) -> None:
    shop = Shop()
    asked: list[ApprovalRequest] = []

    async def desk(request: ApprovalRequest) -> Answer:
        asked.append(request)
        act = request.approve if len(asked) == 1 else request.deny
        return act("ann", groups=("finance",))

    text = POLICY.replace("count: 2", "count: 1").replace("only: [monty]", "only: [alive]")
    with Runtime(policy(text), approvals=[desk], backends=[Alive()]) as runtime:
        result = runtime.run_sync("1", tools=shop.tools)
    first, second = result.value
    assert first == "refunded 1"
    assert "is denied" in second
    assert shop.refunded == [("A", 1)]


def test_a_sandbox_that_can_not_be_suspended_waits_for_nobody_who_is_not_there(
    policy: Callable[[str], str],
) -> None:
    shop = Shop()
    text = POLICY.replace("only: [monty]", "only: [alive]")
    with Runtime(policy(text), approvals=[QueueService()], backends=[Alive()]) as runtime:
        result = runtime.run_sync("1", tools=shop.tools)
    assert result.value == ["nobody answered in time, and the sandbox can't wait without its process"] * 2
    assert shop.refunded == []


class Told:
    """A service that passes on what it is asked, and hears of answers later."""

    name, attended, waits = "told", False, True

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, request: ApprovalRequest) -> AsyncIterator[Answer]:
        await asyncio.sleep(0.01)
        self.asked.append(request.id)
        for answer in await self.collect(request):
            yield answer

    async def collect(self, request: ApprovalRequest) -> tuple[Answer, ...]:
        return (request.approve("ann"),) if len(self.asked) > 1 else ()

    async def close(self) -> None: ...


def test_whoever_is_only_told_of_it_is_told_before_the_run_is_left_to_wait(
    policy: Callable[[str], str],
) -> None:
    told = Told()
    with Runtime(policy(ASKS_TO_RUN), approvals=[told]) as runtime:
        first = runtime.run_sync("6 * 7")
        assert first.process_exit_code == 4
        assert told.asked == [first.approval.request.id]  # type: ignore[union-attr]
        assert runtime.resume_sync(first.run_id).value == 42
