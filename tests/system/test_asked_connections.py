"""Connections that policy asks about: people are asked when the code connects, and everybody can check it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from answering import assert_log_verifies
from licet import Runtime
from licet.approvals.forms import Answer, ApprovalRequest
from licet.approvals.queue import QueueService
from licet.backend import Descriptor, Host, Language, Outcome, Sandbox, Target, Termination
from licet.connections import MOST_CONNECTIONS, MOST_QUESTIONS
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.plan import ExecutionPlan
from licet.record import MemoryLog
from licet.request import Intent
from licet.supervise.notify.standing import shortfall

POLICY = """\
licet: 1
ask: ['network 127.0.0.0/8:{port}']
approval: {{unattended: queue}}
sandbox: {{evidence: declared, only: [reaching]}}
"""
NOT_OPENED = "is not opened by this run's policy"


class Reaching:
    """A backend that connects: one target after the other, or `at_once` all together."""

    def __init__(self, *targets: tuple[str, int], at_once: bool = False) -> None:
        self.targets = [Target(*one) for one in targets]
        self.at_once = at_once

    def describe(self) -> Descriptor:
        contract = SandboxEnforcementContract(
            **{control.value: Enforcement(Level.enforced, "kernel", "a test") for control in Control}
        )
        return Descriptor("reaching", "1", contract, Language("Reaching"), frozenset({"network"}), 1.0)

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return self

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        if self.at_once:
            value = list(await asyncio.gather(*(self._tried(host, one) for one in self.targets)))
        else:
            value = [await self._tried(host, one) for one in self.targets]
        return Outcome(Termination.exited, exit_code=0, value=value)

    async def _tried(self, host: Host, target: Target) -> str:
        try:
            descriptor = await host.connect(target)
        except OSError as problem:
            return f"{type(problem).__name__}: {problem}"
        with socket.socket(fileno=descriptor) as connection:
            return str(connection.getpeername()[0])

    async def close(self) -> None: ...


class Desk:
    """Answers what it is asked: yes to hosts that it knows."""

    def __init__(self, *known: str) -> None:
        self.known = known
        self.asked: list[ApprovalRequest] = []

    def ask(self, request: ApprovalRequest) -> Answer:
        self.asked.append(request)
        yes = request.document["connection"]["host"] in self.known
        return (request.approve if yes else request.deny)("ann")

    @property
    def targets(self) -> list[str]:
        return [one.document["connection"]["target"] for one in self.asked]


@pytest.fixture
def port() -> Iterator[int]:
    """A port where somebody listens, at every address of this machine's own."""
    with socket.create_server(("0.0.0.0", 0), backlog=128) as server:
        yield int(server.getsockname()[1])


@pytest.fixture(autouse=True)
def every_log_verifies(own_directories: Path) -> Iterator[None]:
    yield
    assert_log_verifies(own_directories)


@pytest.fixture
def policy(own_directories: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        (own_directories / "licet.yaml").write_text(text)
        return str(own_directories / "licet.yaml")

    return write


def ran(policy: str, backend: Reaching, desk: Any, log: MemoryLog | None = None, **request: Any) -> Any:
    approvals = [desk.ask if isinstance(desk, Desk) else desk] if desk is not None else []
    with Runtime(policy, approvals=approvals, backends=[backend], log=log) as runtime:
        result = runtime.run_sync("1", **request)
    assert result.termination is Termination.exited, result.detail
    return result.value


def test_a_yes_opens_a_target_for_the_rest_of_the_run_and_a_no_closes_it(
    policy: Callable[[str], str], port: int
) -> None:
    desk = Desk("127.0.0.1")
    wanted = [("127.0.0.1", port), ("127.0.0.2", port)] * 2
    first, refused, again, refused_again = ran(policy(POLICY.format(port=port)), Reaching(*wanted), desk)
    assert (first, again) == ("127.0.0.1", "127.0.0.1")
    assert "is denied" in refused and refused == refused_again
    assert desk.targets == [f"127.0.0.1:{port}", f"127.0.0.2:{port}"]


def test_whoever_is_asked_sees_where_it_goes_and_the_code(policy: Callable[[str], str], port: int) -> None:
    desk = Desk("127.0.0.1")
    ran(policy(POLICY.format(port=port)), Reaching(("127.0.0.1", port)), desk)
    (request,) = desk.asked
    assert (request.kind, request.document["code"], request.document["call"]) == ("call", "1", None)
    assert request.document["connection"] == {
        "target": f"127.0.0.1:{port}",
        "host": "127.0.0.1",
        "port": port,
        "sequence": 1,
    }
    (asks,) = request.document["asks"]
    assert (asks["intent"]["action"], asks["intent"]["target"]) == ("network", f"127.0.0.1:{port}")


def test_it_is_recorded_in_order_with_what_was_reached(policy: Callable[[str], str], port: int) -> None:
    log = MemoryLog()
    desk = Desk("127.0.0.1")
    wanted = [("127.0.0.1", port), ("127.0.0.1", port), ("127.0.0.2", port)]
    ran(policy(POLICY.format(port=port)), Reaching(*wanted), desk, log)
    entries = [one.entry for one in log.records()]
    began = next(place for place, one in enumerate(entries) if one.kind == "execution")
    told = [
        one.body.get("event") or one.body.get("state") or (one.phase, one.body.get("allowed"))
        for one in entries[began + 1 :]
        if one.kind in ("access", "approval", "authorization")
    ]
    spent = ["asked", "answered", "granted", "consuming", "consumed", "granted"]
    assert told == [
        ("before", None),
        *spent,
        (None, True),
        "executed",
        ("after", None),
        (None, True),
        ("after", None),
        ("before", None),
        "asked",
        "answered",
        "denied",
        "denied",
        (None, False),
    ]
    accesses = [one for one in entries if one.kind == "access"]
    digests = [one.body["call_digest"] for one in accesses if "call_digest" in one.body]
    assert digests[0] == digests[1] == digests[2] != digests[3] == digests[4]
    reached = [one.body for one in accesses if one.phase == "after"]
    assert [(one["addresses"], one["outcome"]) for one in reached] == [(["127.0.0.1"], "connected")] * 2


def test_many_at_once_are_one_question_a_target(policy: Callable[[str], str], port: int) -> None:
    desk = Desk("127.0.0.1", "127.0.0.3")
    wanted = [(f"127.0.0.{last}", port) for last in (1, 2, 3) * 4]
    answers = ran(policy(POLICY.format(port=port)), Reaching(*wanted, at_once=True), desk)
    assert [one for one in answers if "denied" not in one] == ["127.0.0.1", "127.0.0.3"] * 4
    assert sorted(desk.targets) == [f"127.0.0.{last}:{port}" for last in (1, 2, 3)]


def test_people_are_asked_so_often_and_no_more(policy: Callable[[str], str], port: int) -> None:
    desk = Desk()
    wanted = [(f"127.0.0.{last}", port) for last in range(1, MOST_QUESTIONS + 3)]
    answers = ran(policy(POLICY.format(port=port)), Reaching(*wanted), desk)
    assert len(desk.asked) == MOST_QUESTIONS
    limit = f"has to be approved, and one run asks about at most {MOST_QUESTIONS} targets"
    assert [limit in one for one in answers] == [False] * MOST_QUESTIONS + [True] * 2


def test_a_run_makes_so_many_connections_and_no_more(policy: Callable[[str], str]) -> None:
    wanted = [("127.0.0.1", 9)] * (MOST_CONNECTIONS + 1)
    answers = ran(policy(POLICY.format(port=80)), Reaching(*wanted), None, MemoryLog())
    assert NOT_OPENED in answers[-2]
    assert answers[-1] == f"PermissionError: one run makes at most {MOST_CONNECTIONS} connections"


@pytest.mark.parametrize("others", [(), ("127.0.0.2",)])
def test_a_request_that_lists_its_intents_is_not_asked_about_others(
    policy: Callable[[str], str], port: int, others: tuple[str, ...]
) -> None:
    asked: list[ApprovalRequest] = []

    def ask(request: ApprovalRequest) -> Answer:
        asked.append(request)
        return request.approve("ann")

    text = POLICY.format(port=port) + "allow: [run]\n"
    listed = [Intent("run", None), *(Intent("network", f"{host}:{port}") for host in others)]
    wanted = Reaching(("127.0.0.1", port), *((host, port) for host in others))
    refused, *reached = ran(policy(text), wanted, ask, intents=listed)
    assert refused == f"PermissionError: `127.0.0.1:{port}` {NOT_OPENED}"
    assert (tuple(reached), [one.kind for one in asked]) == (others, ["run"] * len(others))


@pytest.mark.parametrize("denied", ["127.0.0.1", "127.0.0.0/30:{port}"])
def test_nobody_is_asked_about_what_is_denied(policy: Callable[[str], str], port: int, denied: str) -> None:
    desk = Desk("127.0.0.1", "127.0.0.4")
    text = f"{POLICY.format(port=port)}deny: ['network {denied.format(port=port)}']\n"
    wanted = Reaching(("127.0.0.1", port), ("127.0.0.4", port))
    refused, reached = ran(policy(text), wanted, desk)
    assert refused.startswith(f"PermissionError: `network 127.0.0.1:{port}` is denied: ")
    assert reached == "127.0.0.4"
    assert desk.targets == [f"127.0.0.4:{port}"]


def test_a_yes_to_a_name_is_none_to_what_is_inside_behind_it(policy: Callable[[str], str], port: int) -> None:
    desk = Desk("inside.example.com")
    text = POLICY.format(port=port).replace("127.0.0.0/8", "*.example.com")

    async def resolve(*given: Any, **named: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    class Lying(Reaching):
        async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
                return await super().run(plan, host)

    (answer,) = ran(policy(text), Lying(("inside.example.com", port)), desk)
    assert "resolves to an address that is not public" in answer
    assert desk.targets == [f"inside.example.com:{port}"]


def test_nothing_is_looked_up_before_somebody_says_yes(policy: Callable[[str], str], port: int) -> None:
    looked_up: list[str] = []
    text = POLICY.format(port=port).replace("127.0.0.0/8", "*.example.com")

    async def resolve(host: str, *given: Any, **named: Any) -> list[Any]:
        looked_up.append(host)
        return []

    class Watched(Reaching):
        async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
                return await super().run(plan, host)

    wanted = [("no.example.com", port), ("yes.example.com", port)]
    ran(policy(text), Watched(*wanted), Desk("yes.example.com"))
    assert looked_up == ["yes.example.com"]


def test_without_anybody_to_ask_it_is_refused_and_the_code_goes_on(
    policy: Callable[[str], str], port: int
) -> None:
    wanted = Reaching(("127.0.0.1", port), ("127.0.0.1", port))
    answers = ran(policy(POLICY.format(port=port)), wanted, None)
    assert answers == ["PermissionError: an approval is needed, and no approval service is configured"] * 2


def test_nobody_who_is_not_there_is_waited_for(policy: Callable[[str], str], port: int) -> None:
    (answer,) = ran(policy(POLICY.format(port=port)), Reaching(("127.0.0.1", port)), QueueService())
    assert answer == (
        "PermissionError: nobody answered in time, and the sandbox can't wait without its process"
    )


def test_a_run_that_is_cancelled_while_it_waits_withdraws_its_question(
    policy: Callable[[str], str], port: int
) -> None:
    async def cancelled(runtime: Runtime, entered: asyncio.Event) -> None:
        run = asyncio.ensure_future(runtime.run("1"))
        await entered.wait()
        run.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await run

    async def all_of_it() -> None:
        entered = asyncio.Event()

        async def slow(request: ApprovalRequest) -> Answer:
            entered.set()
            await asyncio.Event().wait()
            raise AssertionError

        backend = Reaching(("127.0.0.1", port))
        with Runtime(policy(POLICY.format(port=port)), approvals=[slow], backends=[backend]) as runtime:
            await cancelled(runtime, entered)

    asyncio.run(all_of_it())
    lines = [line for file in Path(".licet/log").glob("*.jsonl") for line in file.read_text().splitlines()]
    log = [json.loads(line) for line in lines]
    events = [one["body"].get("event") for one in log if one["kind"] == "approval"]
    assert events == ["asked", "withdrawn"]
    assert [one["body"].get("allowed") for one in log if one["kind"] == "access"] == [None]


def test_no_descriptor_is_left(policy: Callable[[str], str], port: int) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    def once() -> None:
        wanted = [("127.0.0.1", port), ("127.0.0.2", port)]
        ran(policy(POLICY.format(port=port)), Reaching(*wanted, at_once=True), Desk("127.0.0.1"))

    once()
    before = count()
    once()
    assert count() <= before


@pytest.mark.skipif(shortfall() is not None, reason=str(shortfall()))
def test_real_code_in_a_jail_waits_in_its_call_of_connect(policy: Callable[[str], str], port: int) -> None:
    desk = Desk("127.0.0.1")
    text = POLICY.format(port=port).replace("[reaching]", "[restricted_linux]")
    code = f"""
import socket
told = []
for last in (1, 2, 1):
    try:
        with socket.create_connection((f"127.0.0.{{last}}", {port})) as reached:
            told.append("connected")
    except OSError as problem:
        told.append(type(problem).__name__)
told
"""
    with Runtime(policy(text), approvals=[desk.ask]) as runtime:
        result = runtime.run_sync(code)
    assert result.value == ["connected", "PermissionError", "connected"]
    assert desk.targets == [f"127.0.0.1:{port}", f"127.0.0.2:{port}"]
