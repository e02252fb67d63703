"""A run that waits is written down whole and goes on as it was, or it is said why not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pydantic_monty
import pytest
from licet import plan as plans
from licet.backend import Access, Host, Outcome, Reply, Termination, ToolCall, execute
from licet.errors import BackendError, SuspensionVoid
from licet.plan import ExecutionPlan, Opened, Resumption
from licet.request import Limits
from licet.testing import Bench
from licet.testing.suspension import Suspension
from licet_monty import dialogue, suspension
from licet_monty.backend import MontyBackend
from licet_monty.prelude import FEED, HEAD, NOW_CALL

TOOLS = ("f", "refund")
OPENED = Opened(tools=TOOLS)
PLENTY = Limits(wall_time=30.0)


@dataclass
class Story:
    """Runs of one piece of code whose tool `refund` waits for an approval, on one host."""

    backend: MontyBackend
    make_plan: Any
    host: Any
    code: str
    opened: Opened = OPENED
    limits: Limits = PLENTY
    more: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        async def tool(call: ToolCall) -> Reply:
            if call.name == "refund":
                return Reply(fatal=Termination.approval_pending)
            return Reply(value=[call.name, *call.args])

        self.host.tool = tool

    def plan(self, **fields: Any) -> Any:
        plan = self.make_plan(self.code, limits=self.limits)
        return plans.seal(replace(plan, **{"opened": self.opened, **(self.more or {}), **fields}))

    def run(self, **fields: Any) -> Outcome:
        outcome: Outcome = asyncio.run(execute(self.backend, self.plan(**fields), self.host))
        return outcome

    def go_on(self, written: bytes, value: Any = None, error: Any = None, **fields: Any) -> Outcome:
        return self.run(resumption=Resumption(written, value, error), **fields)

    def suspended(self) -> bytes:
        outcome = self.run()
        assert (outcome.termination, outcome.detail) == (Termination.approval_pending, None)
        assert outcome.suspension is not None
        return outcome.suspension


@pytest.fixture
def story(backend: MontyBackend, make_plan: Any, host: Any) -> Callable[..., Story]:
    return lambda code, **fields: Story(backend, make_plan, host, code, **fields)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("refund(1)", 7),
        ("x = refund(1)\nx + 1", 8),
        ("def a():\n    return [refund(i) for i in range(1)]\na()", [7]),
        ("eval('refund(1)') + 1", 8),
        ("exec('x = refund(1)')\n[x]", [7]),
        ("it = iter([1, 2, 3])\nnext(it)\nx = refund(1)\n[next(it), x]", [2, 7]),
        ("class A:\n    def m(self): return [self.b, refund(1)]\na = A()\na.b = 2\na.m()", [2, 7]),
        ("import re\np = re.compile('a+')\nrefund(1)\np.findall('baa')", ["aa"]),
        ("x = await refund(1)\n[x]", [7]),
        ("import asyncio\nx = await asyncio.gather(f(2), refund(1))\nx", [["f", 2], 7]),
        ("async def g():\n    return await refund(1)\nawait g()", 7),
        ("try:\n    x = refund(1)\nfinally:\n    y = f(1)\n[x, y]", [7, ["f", 1]]),
        ("s = 'x' * 1000000\nrefund(1)\nlen(s)", 1000000),
        ("import os\nfrom pathlib import Path\nrefund(1)\nstr(Path('a').absolute())", "/home/work/a"),
        ("x = refund(1)\nimport os\n[os.getenv('A'), x]", ["1", 7]),
    ],
)
def test_it_goes_on_where_it_stood(story: Any, code: str, value: Any) -> None:
    one = story(code, more={"environment": {"A": "1"}})
    outcome = one.go_on(one.suspended(), 7)
    assert (outcome.termination, outcome.error) == (Termination.exited, None)
    assert outcome.value == value


def test_a_denial_has_the_line_of_the_call_and_can_be_caught(story: Any) -> None:
    one = story("print('a')\n\nrefund(1)")
    outcome = one.go_on(one.suspended(), error=("PermissionError", "not approved"))
    assert (outcome.exit_code, outcome.error.type, outcome.error.line) == (1, "PermissionError", 3)
    assert outcome.error.message == "not approved"
    one = story("try:\n    refund(1)\nexcept PermissionError as e:\n    x = str(e)\nx")
    assert one.go_on(one.suspended(), error=("PermissionError", "no")).value == "no"


def test_what_the_answer_is_it_crosses_like_any_reply(story: Any) -> None:
    one = story("x = refund(1)\nx")
    written = one.suspended()
    for answer in ({"a": [1, None, b"x"]}, (1, 2), "ü", 1.5):
        assert one.go_on(written, answer).value == answer
    assert one.go_on(written, "\ud800").error.message.startswith("refund() returned what can't enter")


def test_output_before_and_after_is_written_once(story: Any) -> None:
    one = story("print('before')\nrefund(1)\nprint('after')")
    one.go_on(one.suspended())
    assert one.host.stdout == b"before\nafter\n"


def test_the_same_bytes_can_go_on_twice_which_their_store_has_to_prevent(story: Any) -> None:
    one = story("x = refund(1)\nx")
    written = one.suspended()
    assert [one.go_on(written, answer).value for answer in (1, 2)] == [1, 2]


def test_it_waits_again_with_all_counters(story: Any) -> None:
    one = story("a = refund(1)\nb = refund(2)\n[a, b]")
    first = one.suspended()
    second = one.go_on(first, 1)
    assert second.termination is Termination.approval_pending
    assert one.go_on(second.suspension, 2).value == [1, 2]
    earlier, later = (suspension.read(written)[0] for written in (first, second.suspension))
    assert later.wall > earlier.wall
    assert later.suspensions < earlier.suspensions
    assert [call.args for call in one.host.calls] == [(1,), (2,)]


# -- what can't be suspended


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import asyncio\nawait asyncio.gather(slow(1), refund(1))", "other calls or sleeps"),
        ("import asyncio\nawait asyncio.gather(refund(1), asyncio.sleep(20))", "other calls or sleeps"),
    ],
)
def test_other_things_under_way_are_not_left_behind(story: Any, code: str, why: str) -> None:
    one = story(code, opened=Opened(tools=(*TOOLS, "slow")))
    waits = one.host.tool
    cancelled = []

    async def tool(call: ToolCall) -> Reply:
        if call.name != "slow":
            return await waits(call)  # type: ignore[no-any-return]
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(call.args)
        return Reply()

    one.host.tool = tool
    outcome = one.run()
    assert (outcome.termination, outcome.suspension) == (Termination.approval_pending, None)
    assert outcome.detail == "other calls or sleeps of its code are under way"
    assert cancelled == ([(1,)] if "slow" in code else [])


def test_two_calls_that_wait_at_once_are_no_run_that_can_be_suspended(story: Any) -> None:
    outcome = story("import asyncio\nawait asyncio.gather(refund(1), refund(2))").run()
    assert (outcome.termination, outcome.suspension) == (Termination.approval_pending, None)


@pytest.fixture
def files(tmp_path: Path, make_host: Any) -> Any:
    """A host that opens `tmp_path`, and the fields of a plan that do."""

    class Opening(make_host):  # type: ignore[misc]
        async def access(self, access: Access) -> bool:
            self.accesses.append(access)
            return True

    root = str(tmp_path)
    (tmp_path / "a").write_text("l1\nl2\nl3")
    return Opening(), Opened(read=(root,), write=(root,), tools=TOOLS), {"workdir": root}


def test_what_was_written_is_not_lost_silently(backend: Any, make_plan: Any, files: Any) -> None:
    host, opened, more = files
    one = Story(backend, make_plan, host, "open('b', 'w').write('x')\nrefund(1)", opened, more=more)
    outcome = one.run()
    assert (outcome.termination, outcome.suspension) == (Termination.approval_pending, None)
    assert outcome.detail == "it has changed files, which only a run that ends can commit"


def test_files_that_are_read_stay_open_and_are_written_afterwards(
    backend: Any, make_plan: Any, files: Any, tmp_path: Path
) -> None:
    host, opened, more = files
    code = "with open('a') as h:\n    x = h.readline()\n    refund(1)\n    y = h.read()\n"
    code += "open('a', 'w').write(y)\n[x, y]"
    one = Story(backend, make_plan, host, code, opened, more=more)
    outcome = one.go_on(one.suspended())
    assert outcome.value == ["l1\n", "l2\nl3"]
    [edit] = outcome.staged.edits  # type: ignore[union-attr]
    assert edit.seen is not None
    assert edit.seen.is_same((tmp_path / "a").stat())
    assert edit.seen.sha256 is not None


def test_a_file_that_others_changed_while_it_waited_is_seen_as_it_was_first(
    backend: Any, make_plan: Any, files: Any, tmp_path: Path
) -> None:
    host, opened, more = files
    code = "x = open('a').read()\nrefund(1)\nopen('a', 'w').write(x + '!')"
    one = Story(backend, make_plan, host, code, opened, more=more)
    written = one.suspended()
    (tmp_path / "a").write_text("theirs")
    [edit] = one.go_on(written).staged.edits  # type: ignore[union-attr]
    assert edit.seen is not None
    assert not edit.seen.is_same((tmp_path / "a").stat())


def test_what_is_too_large_is_told(story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialogue, "MOST_SUSPENSION", 10_000)
    outcome = story("refund(1)").run()
    assert (outcome.termination, outcome.suspension) == (Termination.approval_pending, None)
    assert outcome.detail.endswith("bytes, at most 10000 are kept")


def test_an_input_that_is_no_plain_data_is_told(story: Any) -> None:
    @dataclass
    class Point:
        x: int

    given = {"p": pydantic_monty.ClassInstance(Point(1))}
    outcome = story("refund(1)", more={"inputs": given}).run()
    assert outcome.suspension is None
    assert outcome.detail.startswith("it has inputs that are no plain data: ")


# -- limits


def test_memory_is_what_it_was(story: Any) -> None:
    code = "x = 'a' * 3000000\nrefund(1)\ny = 'b' * 14000000\n1"
    one = story(code, limits=Limits(wall_time=30.0, memory=16 << 20))
    assert one.go_on(one.suspended()).termination is Termination.memory_limit


def test_a_run_that_leaves_no_memory_to_be_written_down_in_is_told(story: Any) -> None:
    one = story("x = 'a' * 6000000\nrefund(1)", limits=Limits(wall_time=30.0, memory=10 << 20))
    outcome = one.run()
    assert (outcome.termination, outcome.suspension) == (Termination.approval_pending, None)
    assert outcome.detail.startswith("monty can't write it down: MemoryError: ")


def test_accesses_go_on_counting(backend: Any, make_plan: Any, files: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(dialogue, "ACCESSES", 3)
    host, opened, more = files
    code = "from pathlib import Path\n[Path(n).exists() for n in 'bc']\nrefund(1)\nPath('d').exists()\n"
    one = Story(backend, make_plan, host, code + "Path('e').exists()", opened, more=more)
    assert one.go_on(one.suspended()).termination is Termination.file_limit


def test_suspensions_of_monty_go_on_counting(story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("licet_monty.bounds.SUSPENSIONS", 20)
    monkeypatch.setattr("licet_monty.bounds._JITTER_BITS", 0)
    code = "for i in range({}): f(i)\nrefund(1)\nfor i in range(10): f(i)"
    one = story(code.format(5))
    assert one.go_on(one.suspended()).termination is Termination.exited
    one = story(code.format(15))
    assert one.go_on(one.suspended()).termination is Termination.tool_limit


def test_processor_time_goes_on_counting(story: Any) -> None:
    one = story("for i in range(1000000): pass\nrefund(1)\nwhile True: pass")
    past, dump = suspension.read(one.suspended())
    assert past.cpu > 0
    one.limits = Limits(wall_time=60.0, cpu_time=30.0)
    spent = suspension.write(replace(past, cpu=29.9), dump)  # as if it had computed for longer
    outcome = one.go_on(spent)
    assert outcome.termination is Termination.cpu_limit
    assert outcome.usage.cpu_time > 29.9


# -- attacks that get past the seal


def test_another_call_in_the_dump_is_not_gone_on_with(story: Any) -> None:
    one = story("refund('order-1', 10)")
    written = one.suspended()
    assert written.count(b'["order-1", 10]') == 1
    for old, new in ((b'["order-1", 10]', b'["order-2", 10]'), (b"refund", b"refunt")):
        with pytest.raises(SuspensionVoid, match=r"^(the call that waits is not|monty can't go on)"):
            one.go_on(written.replace(old, new))
    assert one.go_on(written, 1).value == 1


def test_a_run_that_waits_for_something_else_is_not_gone_on_with(story: Any) -> None:
    now, later = story("x = 1\nrefund(1)"), story("y = 1\nawait refund(1)")
    (a, first), (b, second) = (suspension.read(one.suspended()) for one in (now, later))
    for one, past, dump in ((now, a, second), (later, b, first)):
        with pytest.raises(SuspensionVoid, match="the call that waits is not the one that was written down"):
            one.go_on(suspension.write(past, dump))
    for one, past, dump in ((now, a, first), (later, b, second)):
        wrong = replace(past, announced=replace(past.announced, call=past.announced.call + 1))
        with pytest.raises(SuspensionVoid, match="the call that waits"):
            one.go_on(suspension.write(wrong, dump))


def test_other_code_is_not_what_was_suspended(story: Any) -> None:
    written = story("refund(1)").suspended()
    with pytest.raises(SuspensionVoid, match="or it is of other code"):
        story("refund(2)").go_on(written)


@pytest.mark.parametrize("size", [0, 7, 20, 200, 2000])
def test_a_part_of_it_is_void_and_the_worker_is_not_used_again(story: Any, size: int) -> None:
    one = story("refund(1)")
    with pytest.raises(SuspensionVoid):
        one.go_on(one.suspended()[:size])
    assert story("refund(1)").suspended()


def test_a_sandbox_that_ran_code_goes_on_with_nothing(story: Any) -> None:
    one = story("x = refund(1)\n[x]")
    written = one.suspended()

    async def twice() -> object:
        plain, going = one.plan(code="1"), one.plan(resumption=Resumption(written, 1))
        sandbox = await one.backend.open(plain, one.host)
        try:
            await sandbox.run(plain, one.host)
            return await sandbox.run(going, one.host)
        finally:
            await sandbox.close()

    with pytest.raises(BackendError, match="no suspended run can go on in it"):
        asyncio.run(twice())


def test_code_of_a_later_run_can_not_stand_where_the_prelude_stands(story: Any) -> None:
    """The numbers of feeds go on, so that the place of the prelude is never given to anybody else."""
    one = story("x = refund(1)\nx")
    written = one.suspended()
    forged = " " * HEAD.index(f"{NOW_CALL}(") + f"{NOW_CALL}('f', '1', '[[666], {{}}]')"

    async def twice() -> tuple[Outcome, Outcome]:
        going, later = one.plan(resumption=Resumption(written, 5)), one.plan(code=f"if 1:\n{forged}")
        sandbox = await one.backend.open(going, one.host)
        try:
            return await sandbox.run(going, one.host), await sandbox.run(later, one.host)
        finally:
            await sandbox.close()

    first, second = asyncio.run(twice())
    assert (FEED, first.value) == ("<python-input-0>", 5)
    assert second.error is not None
    assert second.error.message == f"name '{NOW_CALL}' is not defined"
    assert [call.name for call in one.host.calls] == ["refund"]


# -- the kit sees what is wrong


class Twin(MontyBackend):
    """Monty, each of whose runs is changed in one way."""

    def __init__(self, change: str) -> None:
        super().__init__(workers=1)
        self.change = change

    async def open(self, plan: ExecutionPlan, host: Host) -> Any:
        return TwinSandbox(await super().open(plan, host), self.change)


class TwinSandbox:
    """One sandbox of it."""

    def __init__(self, inner: Any, change: str) -> None:
        self.inner, self.change, self.close = inner, change, inner.close

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        if plan.resumption is not None and self.change == "begins anew":
            plan = replace(plan, resumption=None)
        if plan.resumption is not None and self.change == "forgets what was spent":
            past, dump = suspension.read(plan.resumption.suspension)
            written = suspension.write(replace(past, wall=0.0), dump)
            plan = replace(plan, resumption=replace(plan.resumption, suspension=written))
        if self.change == "draws again" and plan.resumption is not None:
            host.random_bytes(32)
            plan = replace(plan, code=f"import random\nrandom.seed()\n{plan.code}", resumption=None)
        try:
            outcome: Outcome = await self.inner.run(plan, host)
        except SuspensionVoid:
            if self.change != "believes anything":
                raise
            return Outcome(Termination.exited, exit_code=0)
        return replace(outcome, suspension=None) if self.change == "keeps nothing" else outcome


@pytest.mark.parametrize(
    ("change", "test"),
    [
        ("keeps nothing", "test_a_run_that_waits_leaves_the_backend_sound"),
        ("begins anew", "test_a_run_can_wait_again_and_again"),
        ("begins anew", "test_a_denial_is_raised_where_the_call_stands"),
        ("draws again", "test_randomness_goes_on"),
        ("forgets what was spent", "test_what_was_spent_of_the_time_is_spent"),
        ("believes anything", "test_what_it_did_not_write_down_is_void"),
    ],
)
def test_the_kit_finds_a_twin_by_its_fault(change: str, test: str, tmp_path: Path) -> None:
    run = getattr(Suspension(), test)
    bench = Bench(Twin("nothing"), tmp_path)
    run(bench)
    twin = Bench(Twin(change), tmp_path)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        run(twin)
    asyncio.run(bench.backend.close())
    asyncio.run(twin.backend.close())
