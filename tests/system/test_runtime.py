"""The runtime as programs use it: every stage for real, in whatever loop or thread it is called."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from licet import ExecutionRequest, Intent, Limits, Runtime, Subject, Termination
from licet.backend import Access, Backend, Descriptor, GuestError, Host, Language, Outcome, Sandbox, ToolCall
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.errors import AuditUnavailable, InvalidRequest, RunFailed, RuntimeClosed
from licet.host import MOST_ACCESSES
from licet.plan import ExecutionPlan
from licet.record import Entry, MemoryLog, Record
from licet.supervise.walls import Wall, look

EVERYTHING = SandboxEnforcementContract(
    **{control.value: Enforcement(Level.enforced, "kernel", "a test") for control in Control}
)


AT_ITS_WORD = "declared.yaml"
"""A policy that believes what backends say of themselves: a puppet proves nothing."""


@pytest.fixture(autouse=True)
def at_its_word(own_directories: Path) -> None:
    (own_directories / AT_ITS_WORD).write_text(
        "licet: 1\nextends: licet:compute\nsandbox: {evidence: declared}\n"
    )


class Puppet:
    """A backend that does what a test says, in the place of one that strangers would write."""

    def __init__(self, act: Any, *, opens: frozenset[Any] = frozenset({"tool"})) -> None:
        self.act = act
        self.closed: list[str] = []
        self._descriptor = Descriptor("puppet", "1", EVERYTHING, Language("Puppet"), opens, 1.0)

    def describe(self) -> Descriptor:
        return self._descriptor

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return self

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        outcome: Outcome = await self.act(plan, host)
        return outcome

    async def close(self) -> None:
        self.closed.append("closed")


class BrokenLog(MemoryLog):
    """A log that takes as many appends as a test says, and then none."""

    def __init__(self, takes: int) -> None:
        super().__init__()
        self.takes = takes

    async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        if self.takes == 0:
            raise AuditUnavailable("the disk is full", advice="free some space")
        self.takes -= 1
        return await super().append(entries)


def kinds(log: MemoryLog) -> list[str]:
    return [f"{r.entry.kind}:{r.entry.phase or ''}" for r in log.records()]


async def fine(plan: ExecutionPlan, host: Host) -> Outcome:
    host.write("stdout", b"fine\n")
    return Outcome(Termination.exited, exit_code=0, value=1, value_repr="1")


ALLOWED = ["request:", "decision:", "selection:", "authorization:", "execution:before", "result:after"]


def test_value_output_and_record_come_back_together() -> None:
    with Runtime() as runtime:
        result = runtime.run_sync("print('hi')\n{'a': [x, 2.5]}", inputs={"x": 1})
    assert (result.success, result.value, result.stdout) == (True, {"a": [1, 2.5]}, "hi\n")
    assert result.unwrap() == {"a": [1, 2.5]}
    assert result.backend is not None
    isolation = "kernel" if look().standing == set(Wall) else "language"
    assert (result.backend.name, result.backend.isolation) == ("monty", isolation)
    assert result.audit is not None


def test_unwrap_raises_what_went_wrong() -> None:
    with Runtime() as runtime:
        result = runtime.run_sync("x = 1\n1/0")
        denied = runtime.run_sync("open('/etc/passwd')")
    with pytest.raises(RunFailed, match=r"^ZeroDivisionError: division by zero in line 2$"):
        result.unwrap()
    with pytest.raises(RunFailed, match=r"^`read /etc/passwd` is denied: nothing allows it$"):
        denied.unwrap()


def test_no_effect_without_a_durable_before_record() -> None:
    ran: list[str] = []

    async def act(plan: ExecutionPlan, host: Host) -> Outcome:
        ran.append(plan.run_id)
        return await fine(plan, host)

    runtime = Runtime(AT_ITS_WORD, backends=[Puppet(act)], log=BrokenLog(0))
    result = runtime.run_sync("1")
    assert (result.termination, result.success, ran) == (Termination.audit_unavailable, False, [])
    assert result.detail == "the disk is full"
    assert result.advice == "free some space"


def test_a_result_that_could_not_be_recorded_is_no_success_and_loses_nothing() -> None:
    runtime = Runtime(AT_ITS_WORD, backends=[Puppet(fine)], log=BrokenLog(1))
    result = runtime.run_sync("1")
    assert (result.termination, result.success) == (Termination.audit_unavailable, False)
    assert (result.value, result.stdout, result.exit_code) == (1, "fine\n", 0)
    assert result.detail == "the code ran, but its result could not be recorded: the disk is full"


def test_best_effort_runs_and_records_the_gap_later(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text("licet: 1\nsandbox: {evidence: declared}\naudit: {mode: best_effort}\n")
    log = BrokenLog(0)
    runtime = Runtime(policy, backends=[Puppet(fine)], log=log)
    assert runtime.run_sync("1").success
    log.takes = 9
    assert runtime.run_sync("1").success
    gap = next(iter(log.records()))
    assert (gap.entry.kind, gap.entry.body) == ("log", {"event": "gap", "missing": 6})
    assert kinds(log)[1:] == ALLOWED


def test_a_bound_makes_the_trail_required_again(tmp_path: Path) -> None:
    (tmp_path / "org.yaml").write_text("licet: 1\nsandbox: {evidence: declared}\naudit: {mode: required}\n")
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "licet: 1\nsandbox: {evidence: declared}\nwithin: ./org.yaml\naudit: {mode: best_effort}\n"
    )
    runtime = Runtime(policy, backends=[Puppet(fine)], log=BrokenLog(0))
    assert runtime.run_sync("1").termination is Termination.audit_unavailable


def test_what_asks_is_denied_while_nobody_can_approve(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text("licet: 1\nsandbox: {evidence: declared}\nask: [run]\n")
    log = MemoryLog()
    result = Runtime(policy, backends=[Puppet(fine)], log=log).run_sync("1")
    assert result.termination is Termination.approval_denied
    assert result.process_exit_code == 3
    assert kinds(log) == ["request:", "decision:", "selection:", "authorization:", "result:after"]


@pytest.mark.parametrize("stage", ["running", "before the run"])
def test_a_cancelled_run_is_recorded_and_cancellation_goes_on(stage: str) -> None:
    log = MemoryLog()

    async def main() -> None:
        running = asyncio.Event()

        async def act(plan: ExecutionPlan, host: Host) -> Outcome:
            running.set()
            await asyncio.Event().wait()
            raise AssertionError

        if stage == "before the run":
            append = log.append

            async def slow(entries: Sequence[Entry]) -> tuple[Record, ...]:
                records = await append(entries)
                if any(entry.phase == "before" for entry in entries):
                    running.set()
                    await asyncio.sleep(0)
                    await asyncio.Event().wait()
                return records

            log.append = slow  # type: ignore[method-assign]
        runtime = Runtime(AT_ITS_WORD, backends=[Puppet(act)], log=log)
        task = asyncio.create_task(runtime.run("1"))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert kinds(log) == ALLOWED
    assert list(log.records())[-1].entry.body["termination"] == "cancelled"


@pytest.mark.parametrize(
    ("failure", "detail"),
    [
        (ZeroDivisionError("boom"), "`puppet` failed: ZeroDivisionError: boom"),
        (TimeoutError(), "`puppet` failed: TimeoutError: "),
    ],
)
def test_a_backend_that_fails_is_an_outcome(failure: Exception, detail: str) -> None:
    async def act(plan: ExecutionPlan, host: Host) -> Outcome:
        raise failure

    puppet = Puppet(act)
    result = Runtime(AT_ITS_WORD, backends=[puppet], log=MemoryLog()).run_sync("1")
    assert (result.termination, result.detail) == (Termination.backend_error, detail)
    assert puppet.closed == ["closed"]


def test_a_backend_that_answers_nonsense_is_an_outcome() -> None:
    async def act(plan: ExecutionPlan, host: Host) -> Any:
        return "fine"

    result = Runtime(AT_ITS_WORD, backends=[Puppet(act)], log=MemoryLog()).run_sync("1")
    assert (result.termination, result.detail) == (
        Termination.backend_error,
        "backend `puppet` returned no outcome",
    )


def test_a_tool_call_is_decided_recorded_performed_and_recorded(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text("licet: 1\nsandbox: {evidence: declared}\nallow: [tool add]\n")
    log = MemoryLog()

    async def act(plan: ExecutionPlan, host: Host) -> Outcome:
        replies = [await host.call(ToolCall(name, (2, 3))) for name in ("add", "refund")]
        return Outcome(
            Termination.exited, 0, value=[r.value if r.error is None else r.error.message for r in replies]
        )

    def add(a: int, b: int) -> int:
        # its `before` record is there before it has any effect
        assert kinds(log)[-1] == "tool_call:before"
        return a + b

    runtime = Runtime(policy, backends=[Puppet(act)], log=log)
    result = runtime.run_sync("add(2, 3)", tools={"add": add, "refund": add})
    assert result.value == [5, "`tool refund` is denied: nothing allows it"]
    assert [(c.tool, c.decision, c.outcome) for c in result.tool_calls] == [
        ("add", "allow", "returned"),
        ("refund", "deny", "denied"),
    ]
    assert kinds(log)[5:9] == ["tool_call:before", "tool_call:after"] * 2


def test_an_async_tool_and_a_tool_that_raises(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text("licet: 1\nsandbox: {evidence: declared}\nallow: [tool *]\nlimits: {tool_calls: 2}\n")

    async def act(plan: ExecutionPlan, host: Host) -> Outcome:
        replies = [await host.call(ToolCall(name)) for name in ("slow", "bad", "slow")]
        assert replies[0].value == "slept"
        assert replies[1].error is not None
        assert (replies[1].error.type, replies[1].error.message) == ("KeyError", "nope")
        assert replies[2].fatal is Termination.tool_limit
        return Outcome(Termination.tool_limit)

    async def slow() -> str:
        await asyncio.sleep(0)
        return "slept"

    def bad() -> None:
        raise KeyError("nope")

    runtime = Runtime(policy, backends=[Puppet(act)], log=MemoryLog())
    result = runtime.run_sync("slow()", tools={"slow": slow, "bad": bad})
    assert (result.termination, result.process_exit_code) == (Termination.tool_limit, 6)


def test_output_beyond_its_limits_is_shortened_counted_and_ends_the_run(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text("licet: 1\nsandbox: {evidence: declared}\nlimits: {stdout: 1kB, output: 10kB}\n")

    async def act(plan: ExecutionPlan, host: Host) -> Outcome:
        assert host.write("stdout", b"x" * 9_000)
        assert not host.write("stderr", b"y" * 2_000)
        return Outcome(Termination.output_limit)

    result = Runtime(policy, backends=[Puppet(act)], log=MemoryLog()).run_sync("1")
    assert (result.stdout_bytes, result.stdout_truncated) == (9_000, True)
    assert len(result.stdout) < 1_100
    assert (result.stderr_bytes, result.stderr_truncated) == (2_000, False)
    assert (result.termination, result.process_exit_code) == (Termination.output_limit, 6)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"limits": {"wall_time": float("nan")}}, "bounds nothing"),
        ({"inputs": {"f": print}}, "can't cross into a sandbox"),
        ({"inputs": {"x.y": 1}}, "no name that code can use"),
        ({"env": {"A=B": "1"}}, "environment variable"),
        ({"intents": (Intent("read", "a\0b"),)}, "NUL"),
        ({"workdir": "a\0b"}, "NUL"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_a_malformed_request_raises_and_records_nothing(fields: dict[str, Any], message: str) -> None:
    log = MemoryLog()
    runtime = Runtime(AT_ITS_WORD, backends=[Puppet(fine)], log=log)
    with pytest.raises(InvalidRequest, match=message):
        runtime.run_sync("1", **fields)
    with pytest.raises(InvalidRequest, match=message):
        runtime.run_sync(ExecutionRequest(code="1"), **fields)
    assert list(log.records()) == []


def test_run_sync_works_inside_a_running_loop_and_from_many_threads() -> None:
    with Runtime() as runtime:

        async def inside() -> Any:
            return runtime.run_sync("1 + 1").value

        assert asyncio.run(inside()) == 2
        found: list[Any] = []
        threads = [
            threading.Thread(target=lambda n=n: found.append(runtime.run_sync(f"{n} * 2").value))
            for n in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == [n * 2 for n in range(12)]


def test_many_runs_at_once_in_one_loop_keep_their_values_apart() -> None:
    async def main() -> list[Any]:
        async with Runtime() as runtime:
            results = await asyncio.gather(*(runtime.run(f"{n} + 1") for n in range(40)))
        return [result.value for result in results]

    assert asyncio.run(main()) == [n + 1 for n in range(40)]


def test_a_closed_runtime_runs_nothing_more() -> None:
    runtime = Runtime()
    assert runtime.run_sync("1").success
    runtime.close()
    runtime.close()
    with pytest.raises(RuntimeClosed, match="this runtime is closed"):
        runtime.run_sync("2")


def test_a_log_that_was_lent_stays_open_for_its_owner() -> None:
    closed: list[str] = []

    class Lent(MemoryLog):
        async def close(self) -> None:
            closed.append("closed")

    log = Lent()
    for _ in range(2):
        with Runtime(AT_ITS_WORD, backends=[Puppet(fine)], log=log) as runtime:
            assert runtime.run_sync("1").success
    assert (closed, len(list(log.records()))) == ([], 2 * len(ALLOWED))


@pytest.mark.parametrize("policy", ["licet:compute", "licet:trusted"])
def test_closing_ends_the_runs_under_way_and_records_them(policy: str, own_directories: Path) -> None:
    runtime = Runtime(policy)
    started = own_directories / "started"
    code = (
        "while True: pass"
        if policy == "licet:compute"
        else f"open({str(started)!r}, 'w'); import time; time.sleep(60)"
    )
    ended: list[BaseException] = []

    def work() -> None:
        try:
            runtime.run_sync(code)
        except BaseException as problem:
            ended.append(problem)

    thread = threading.Thread(target=work)
    thread.start()
    log = own_directories / ".licet" / "log"
    while not any(b'"phase":"before"' in segment.read_bytes() for segment in log.glob("*.jsonl")):
        thread.join(0.01)
    runtime.close()
    thread.join(20)
    assert not thread.is_alive()
    assert [type(problem) for problem in ended] == [asyncio.CancelledError]
    last = json.loads(sorted(log.glob("*.jsonl"))[-1].read_text().splitlines()[-1])
    assert (last["kind"], last["body"]["termination"]) == ("result", "cancelled")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_run_sync_works_in_a_forked_child() -> None:
    runtime = Runtime(AT_ITS_WORD, backends=[Puppet(fine)], log=MemoryLog())
    assert runtime.run_sync("1").success
    child = os.fork()
    if child == 0:
        os._exit(0 if runtime.run_sync("1").success else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("failure", [SystemExit(3), asyncio.CancelledError()])
def test_a_backend_cannot_take_the_caller_with_it(failure: BaseException) -> None:
    async def act(plan: ExecutionPlan, host: Host) -> Outcome:
        raise failure

    result = Runtime(AT_ITS_WORD, backends=[Puppet(act)], log=MemoryLog()).run_sync("1")
    assert result.termination is Termination.backend_error


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome("exited", exit_code=0),  # type: ignore[arg-type]
        Outcome(Termination.exited),
        Outcome(Termination.timeout, exit_code=0),
        Outcome(Termination.no_backend),
        Outcome(Termination.exited, 0, error=GuestError("E", "m")),
    ],
)
def test_an_outcome_that_contradicts_itself_is_the_backends_fault(outcome: Outcome) -> None:
    async def act(plan: ExecutionPlan, host: Host) -> Outcome:
        return outcome

    log = MemoryLog()
    result = Runtime(AT_ITS_WORD, backends=[Puppet(act)], log=log).run_sync("1")
    assert (result.termination, kinds(log)) == (Termination.backend_error, ALLOWED)


def test_one_run_cannot_spoil_the_record_of_another() -> None:
    """A guest that asks for an endless path is refused; the log it writes to stays sound for everybody."""
    hidden = (
        "from pathlib import Path\ndef f(P): return P('a' * 5_000_000)\n"
        "def g(x): return x.exists()\ng(f(Path))"
    )

    async def main() -> list[Any]:
        async with Runtime() as runtime:
            return await asyncio.gather(
                runtime.run("sum(range(300000))"), runtime.run(hidden), runtime.run("2")
            )

    honest, evil, after = asyncio.run(main())
    assert (honest.success, after.success) == (True, True)
    assert evil.termination in (Termination.exited, Termination.policy_denied)


def test_accesses_beyond_their_number_are_refused_and_counted(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text("licet: 1\nsandbox: {evidence: declared}\nallow: [read ./data]\n")
    target = str(tmp_path / "data" / "x")

    async def act(plan: ExecutionPlan, host: Host) -> Outcome:
        answers = [await host.access(Access("read", target)) for _ in range(MOST_ACCESSES + 5)]
        return Outcome(
            Termination.exited, 0, value=[sum(answers), await host.access(Access("read", "a" * 9999))]
        )

    log = MemoryLog()
    result = Runtime(policy, backends=[Puppet(act, opens=frozenset({"read"}))], log=log).run_sync("1")
    assert result.value == [MOST_ACCESSES, False]
    assert kinds(log).count("access:") == MOST_ACCESSES
    assert list(log.records())[-1].entry.body["accesses"] == MOST_ACCESSES + 6


def test_a_gap_outlives_the_process_that_had_it(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text("licet: 1\nsandbox: {evidence: declared}\naudit: {mode: best_effort}\n")
    (tmp_path / ".licet").write_text("no directory")
    with Runtime(policy, backends=[Puppet(fine)]) as runtime:
        result = runtime.run_sync("1")
    assert (result.success, result.audit) == (True, None)
    (tmp_path / ".licet").unlink()
    with Runtime(policy, backends=[Puppet(fine)]) as runtime:
        assert runtime.run_sync("1").success
    text = next((tmp_path / ".licet" / "log").glob("*.jsonl")).read_text()
    assert '"event":"gap","missing":6' in text


def test_the_subject_and_the_digests_are_in_the_record_and_the_content_is_not() -> None:
    log = MemoryLog()
    runtime = Runtime(AT_ITS_WORD, backends=[Puppet(fine)], log=log)
    runtime.run_sync(
        "secret = 'tell nobody'", inputs={"token": "s3cr3t"}, subject=Subject(id="ann", on_behalf_of="bob")
    )
    request = next(iter(log.records())).entry.body
    assert request["subject"]["id"] == "ann"
    assert request["subject"]["asserted_by"] == "caller"
    assert request["inputs"] == ["token"]
    text = str([record.as_json() for record in log.records()])
    assert "tell nobody" not in text
    assert "s3cr3t" not in text


def test_a_lower_limit_holds_and_a_higher_one_is_lowered() -> None:
    log = MemoryLog()
    runtime = Runtime(AT_ITS_WORD, backends=[Puppet(fine)], log=log)
    result = runtime.run_sync("1", limits=Limits(wall_time="1s", memory="4GiB"))
    assert [(c.field, c.requested, c.effective) for c in result.changes] == [
        ("limits.memory", 4 << 30, 256 << 20)
    ]
    assert next(iter(log.records())).entry.body["limits"]["wall_time"] == "1.0"


def test_backends_are_protocols() -> None:
    assert isinstance(Puppet(fine), Backend)
