"""Tools as code calls them: directly, awaited, side by side; what they are given and what they give."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from licet.backend import GuestError, Reply, Termination, ToolCall, execute
from licet.errors import BackendError
from licet.request import Limits
from licet_monty.backend import MontyBackend

TOOL_CALLS = [
    "find(1, 'two', three=[3.0, None])",
    "await find(1, 'two', three=[3.0, None])",
    "f = find\nf(1, 'two', three=[3.0, None])",
    "[find(i, 'two', three=[3.0, None]) for i in [1]][0]",
    "async def main():\n    return await find(1, 'two', three=[3.0, None])\nawait main()",
    "def call(g): return g(1, 'two', three=[3.0, None])\ncall(find)",
    "find(*[1, 'two'], **{'three': [3.0, None]})",
]


@pytest.mark.parametrize("code", TOOL_CALLS)
def test_tools_are_called_directly_or_awaited(code: str, run: Any, host: Any) -> None:
    outcome = run(code, host, tools=("find",))
    assert (outcome.error, outcome.value) == (None, ["find", [1, "two"], {"three": [3.0, None]}])
    assert [(call.name, call.args, call.kwargs) for call in host.calls] == [
        ("find", (1, "two"), {"three": [3.0, None]})
    ]


def test_a_call_has_its_line(run: Any, host: Any) -> None:
    run("é = 1\n\nfind()\nx = [\n  find()]\neval('find()')\nfind()", host, tools=("find",))
    assert [call.line for call in host.calls] == [3, 5, None, 7]


def test_only_opened_names_are_tools(run: Any, host: Any) -> None:
    for code in ("other()", "other", "h = find\nother()", "__import__('os')", "find.other()"):
        outcome = run(code, host, tools=("find",))
        assert outcome.error.type in ("NameError", "AttributeError")
    assert host.calls == []


def test_replies_of_every_kind(run: Any, make_host: Any) -> None:
    async def reply(call: ToolCall) -> Reply:
        kind = call.args[0]
        if kind == "value":
            return Reply(value={"a": (1, b"x")})
        if kind == "object":
            return Reply(value=object())
        if kind == "surrogate":
            return Reply(value=["\ud800"])
        return Reply(error=GuestError(kind, "why"))

    code = """
found = []
for kind in kinds:
    try:
        found.append(ask(kind))
    except Exception as problem:
        found.append(f"{type(problem)} {problem}")
try:
    await ask("object")
except TypeError as problem:
    found.append(f"{problem}")
found"""
    kinds = ["value", "object", "surrogate", "ValueError", "PermissionError", "HTTPError", "MemoryError"]
    outcome = run(code, make_host(tool=reply), tools=("ask",), inputs={"kinds": kinds})
    assert outcome.value[0] == {"a": (1, b"x")}
    assert outcome.value[1].startswith("<class 'TypeError'> ask() returned what can't enter the sandbox: ")
    assert outcome.value[2].startswith("<class 'TypeError'> ask() returned what can't enter the sandbox: ")
    assert outcome.value[3:7] == [
        "<class 'ValueError'> why",
        "<class 'PermissionError'> why",
        "<class 'RuntimeError'> HTTPError: why",
        "<class 'RuntimeError'> MemoryError: why",
    ]
    assert outcome.value[7].startswith("ask() returned what can't enter the sandbox: ")


@pytest.mark.parametrize("fatal", [Termination.tool_limit, Termination.policy_denied])
def test_a_fatal_reply_ends_the_run(fatal: Termination, run: Any, make_host: Any) -> None:
    async def refuse(call: ToolCall) -> Reply:
        return Reply(fatal=fatal)

    host = make_host(tool=refuse)
    code = "try:\n    f()\nexcept BaseException: pass\nfinally:\n    print('still here')"
    outcome = run(code, host, tools=("f",))
    assert (outcome.termination, outcome.exit_code, host.stdout) == (fatal, None, b"")


def test_objects_of_the_code_do_not_reach_a_tool(run: Any, host: Any) -> None:
    bomb = "x = 1\nfor i in range(40): x = [x, x]\n"
    for code, why in [
        ("class P: pass\nfind(P())", "hold a `P`, which is no plain data"),
        ("class P: pass\nfind(a=[{'b': P()}])", "hold a `P`, which is no plain data"),
        (f"{bomb}find(x)", "are too much: at most 100000 values"),
        (f"class P: pass\n{bomb}p = P()\np.x = x\nfind(p)", "hold a `P`, which is no plain data"),
    ]:
        error = run(code, host, tools=("find",)).error
        assert (error.type, why in error.message) == ("TypeError", True)
    assert host.calls == []


def test_tools_run_on_the_callers_loop_in_its_context(make_plan: Any, make_host: Any, backend: Any) -> None:
    from contextvars import ContextVar

    from licet.backend import execute

    span: ContextVar[str] = ContextVar("span", default="none")
    seen: list[Any] = []

    async def look(call: ToolCall) -> Reply:
        seen.append((asyncio.get_running_loop(), span.get()))
        return Reply()

    async def main() -> None:
        span.set("mine")
        await execute(backend, make_plan("f()", tools=("f",)), make_host(tool=look))
        assert seen == [(asyncio.get_running_loop(), "mine")]

    asyncio.run(main())


async def _echo(call: ToolCall) -> Reply:
    return Reply(value=call.args[0])


async def _given(call: ToolCall) -> Reply:
    return Reply(value=[list(call.args), dict(call.kwargs)])


CROSSING = [
    None, True, 0, -1, 2**53, 2**53 + 1, -(2**200), 10**6000, 1.5, -0.0, 1e300, 1e-7, "", "é\n'\"\\\0",
    "x" * 200_000, "😀" * 1000, b"", b"\x00\xff", 1j, [], [1, [2, [3]]], (), (1, (2,)), {}, {"a": {"b": []}},
    {1: 2}, {"$type": 1},
    {(1, 2): 3, None: 4}, set(), {1, 2}, frozenset({1}), date(2020, 1, 2), datetime(2020, 1, 2, 3, 4, 5, 6),
    datetime(2020, 1, 2, tzinfo=UTC), time(1, 2, 3), timedelta(days=-1, microseconds=5), Decimal("1.50"),
]  # fmt: skip


@pytest.mark.parametrize(
    "value", CROSSING, ids=lambda value: repr(value)[:30] if value != 10**6000 else "huge"
)
def test_data_reaches_a_tool_and_comes_back_as_it_is(value: Any, run: Any, make_host: Any) -> None:
    host = make_host(tool=_echo)
    outcome = run("echo(x, k=[x])", host, tools=("echo",), inputs={"x": value})
    assert (outcome.error, outcome.value) == (None, value)
    (call,) = host.calls
    assert [(type(one), one) for one in (*call.args, *call.kwargs["k"])] == [(type(value), value)] * 2


def test_floats_that_are_no_numbers_reach_a_tool(run: Any, make_host: Any) -> None:
    host = make_host(tool=_echo)
    assert math.isnan(run("echo(float('nan'))", host, tools=("echo",)).value)
    assert run("[echo(float('inf')), echo([-float('inf')])]", host, tools=("echo",)).value == [
        math.inf,
        [-math.inf],
    ]


def test_keywords_of_any_name_reach_a_tool(run: Any, make_host: Any) -> None:
    code = "f(**{'name': 1, 'args': 2, 'line': 3, 'self': 4, '$type': 5})"
    outcome = run(code, make_host(tool=_given), tools=("f",))
    assert outcome.value == [[], {"name": 1, "args": 2, "line": 3, "self": 4, "$type": 5}]


BOMB = "x = 1\nfor i in range(60): x = ({0})\n"
REFUSED = {
    "shared tuples": (BOMB.format("x, x") + "f(x)", "are too much: at most 100000 values"),
    "shared tuples in a set": (BOMB.format("x, x") + "f({x})", "are too much: at most 100000 values"),
    "shared lists": (BOMB.format("[x, x]") + "f(a=x)", "are too much: at most 100000 values"),
    "a deep list": ("x = []\nfor i in range(100_000): x = [x]\nf(x)", "are nested deeper than 100 levels"),
    "a wide list": ("f([0] * 1_000_000)", "are too much"),
    "many arguments": ("f(*[0] * 200_000)", "are too much"),
    "a long text": ("f('a' * 5_000_000)", "are too much"),
    "a huge integer": ("f(1 << 40_000_000)", "are too much"),
    "a cycle": ("x = []\nx.append(x)\nf(x)", "contain themselves"),
    "a function": ("f(lambda: 1)", "hold a `function`, which is no plain data"),
    "a tool": ("f(f)", "which is no plain data"),
    "a class": ("class A: pass\nf(A)", "which is no plain data"),
    "a pattern": ("import re\nf(re.compile('a'))", "hold a `re.Pattern`, which is no plain data"),
    "a module": ("import math\nf([math])", "which is no plain data"),
    "a dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\nf(A(1))",
        "hold a `A`, which is no plain data",
    ),
    "integers of one hash": ("f({(2 ** 61 - 1) * i for i in range(5000)})", "can't be read"),
    "an instance whose repr lies": (
        "class A:\n    def __repr__(self): return '\"' * 10 ** 6\nf(A())",
        "hold a `A`, which is no plain data",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("how", ["{}", "await {}"])
def test_what_is_no_plain_data_is_refused_in_the_code(name: str, how: str, run: Any, host: Any) -> None:
    code, why = REFUSED[name]
    *before, call = code.split("\n")
    code = "\n".join(
        [
            *before,
            "try:",
            f"    {how.format(call)}",
            "except TypeError as problem:",
            "    told = str(problem)",
        ]
    )
    outcome = run(f"{code}\ntold", host, tools=("f",), limits=Limits(wall_time=30.0))
    assert outcome.error is None
    assert outcome.value.startswith("the arguments of f() ")
    assert why in outcome.value
    assert outcome.value.endswith("; pass numbers, texts, lists, dicts")
    assert host.calls == []


TAMPERING = [
    "def __licet_arguments__(*a): return 'x'\nf(1)",
    "def __licet_arguments__(*a): return '[' * 100_000\nf(1)",
    'def __licet_arguments__(*a): return \'[[{"$type": "opaque", "type": "int", "repr": "1"}], {}]\'\nf(1)',
    "def __licet_arguments__(*a): return '[[], {}, 1]'\nf(1)",
    "def __licet_arguments__(*a): return '[[' + '[],' * 5_000_000 + '1], {}]'\nf(1)",
    "def __licet_arguments__(*a): return '[[' + '\"\",' * 5_000_000 + '1], {}]'\nf(1)",
    "def __licet_arguments__(*a): return [[1]]\nf(1)",
    "__licet_line__ = 'x' * 10_000_000\nf(1, 2)",
    "__licet_call__('f', '1', '[[], {}]')",
    "__licet_call__(['f'], {'f'})",
    "exec(\"__licet_call__('f', '1', '[[], {}]')\")",
    "h = __licet_call__\nh('f', '1', '[[], {}]')",
    "__licet_now__('open', 1)",
    "__licet_now__('x' * 1_000_000)",
    "await __licet_later__(1, __licet_place__=('open', 1))",
    "__licet_partial__ = __licet_dumps__ = None\nf(1, 2)",
    "__licet_call__ = open\nf('/etc/passwd')",
    "__licet_call__ = eval\nf(1)",
]


@pytest.mark.parametrize("code", TAMPERING)
def test_code_that_tampers_reaches_no_tool_but_by_texts(code: str, run: Any, make_host: Any) -> None:
    host = make_host(tool=_given)
    outcome = run(code, host, tools=("f",), limits=Limits(wall_time=30.0))
    assert outcome.termination == "exited"
    assert all(call.name == "f" and type(call.args) is tuple for call in host.calls)
    assert outcome.error is not None or host.calls


def test_code_may_call_its_variables_as_it_likes(run: Any, make_host: Any) -> None:
    names = "str = int = float = bool = list = dict = tuple = set = type = exec = isinstance = repr"
    code = f"{names} = 5\nf([1, {{2}}], 'x')"
    assert run(code, make_host(tool=_given), tools=("f",)).value == [[[1, {2}], "x"], {}]


@pytest.mark.parametrize(
    "code", ["def f(x): return 8\nf(1)", "f = lambda x: 8\nf(1)", "for f in [8]: pass\nf", "g = f\nf = 8\nf"]
)
def test_a_name_that_the_code_binds_is_the_codes(code: str, run: Any, host: Any) -> None:
    assert run(code, host, tools=("f",)).value == 8
    assert host.calls == []


WAYS = [
    ("h = {'a': f}\nh['a'](1)", [1]),
    ("class A:\n    def __init__(self): self.g = f\nA().g(1)", [1]),
    ("from functools import partial\npartial(f, 1)(2)", [1, 2]),
    ("from functools import reduce\nreduce(f, [1, 2])", [1, 2]),
    ("def r(n): return f(n) if n == 0 else r(n - 1)\nr(100)", [0]),
    ("def outer():\n    def inner(x): return f(x)\n    return inner\nouter()(1)", [1]),
    ("eval('f(1)')", [1]),
    ("exec('y = f(1)')\ny", [1]),
    ("exec('async def m(): return f(1)')\nawait m()", [1]),
    ("f(x for x in [1, 2])", [[1, 2]]),
    ("f(\n  1, # one, two\n)", [1]),
    ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    y = f(1)\ny", [1]),
    ("g = f\nawait g(1)", [1]),
    ("async def call(g): return await g(1)\nawait call(f)", [1]),
    ("import asyncio\n(await asyncio.gather(*[g(1) for g in [f]]))[0]", [1]),
    ("import asyncio\nasyncio.run(f(1))", [1]),
    ("x = f(1)\nasync def m(): return x\nawait m()", [1]),
    ("t = f(1)\nawait t", [1]),
    ("def make(i): return f(i)\nawait make(1)", [1]),
    ("make = lambda i: f(i)\nawait make(1)", [1]),
    ("eval(f'{await f(1)}')[0][0]; await f(1)", [1]),
]


@pytest.mark.parametrize(("code", "args"), WAYS)
def test_every_way_to_call_a_tool_works(code: str, args: list[Any], run: Any, make_host: Any) -> None:
    outcome = run(code, make_host(tool=_given), tools=("f",))
    assert (outcome.error, outcome.value) == (None, [args, {}])


SYNCHRONOUS = [
    "list(map(f, [1]))",
    "sorted([2, 1], key=f)",
    "sorted([2, 1], key=lambda x: f(x))",
    "max([1], key=f)",
    "filter(f, [1])",
    "class A:\n    def __repr__(self): return f(1)\nf'{A()}'",
    "class A:\n    def __eq__(self, o): return f(1)\nA() == 1",
    "from collections import defaultdict\ndefaultdict(f)[1]",
]


@pytest.mark.parametrize("code", SYNCHRONOUS)
def test_a_call_where_monty_cannot_wait_gets_advice(code: str, run: Any, host: Any) -> None:
    outcome = run(code, host, tools=("f",))
    assert (outcome.error.type, outcome.error.message) == (
        "NotImplementedError",
        "a tool cannot suspend in this synchronous context",
    )
    assert outcome.detail.startswith("call tools in a loop or a comprehension, not from inside map, sorted")
    assert host.calls == []


def test_errors_have_the_line_of_the_code(run: Any, make_host: Any) -> None:
    async def fail(call: ToolCall) -> Reply:
        return Reply(error=GuestError("ValueError", "bad"))

    for call in ("f(1)", "await f(1)", "f(print)"):
        error = run(
            f"def g():\n    return 1\n\nasync def h():\n    return {call}\nawait h()",
            make_host(tool=fail),
            tools=("f",),
        ).error
        assert error.line == 5
    assert run("f(1)\n\n1 / 0", make_host(), tools=("f",)).error == GuestError(
        "ZeroDivisionError", "division by zero", 3
    )


class Together:
    """A tool of which no call ends before `number` are under way."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.under_way = 0
        self.all_there = asyncio.Event()

    async def __call__(self, call: ToolCall) -> Reply:
        self.under_way += 1
        if self.under_way == self.number:
            self.all_there.set()
        await self.all_there.wait()
        return Reply(value=call.args[0])


GATHER = "await asyncio.gather(*tasks)"
TOGETHER = [
    "await asyncio.gather(*[f(i) for i in range(3)])",
    "from asyncio import gather as g\nlist(await g(f(0), f(1), f(2)))",
    "async def main():\n    return await asyncio.gather(*(f(i) for i in range(3)))\nasyncio.run(main())",
    f"tasks = []\nfor i in range(3):\n    tasks.append(f(i))\n{GATHER}",
    "tasks = {i: f(i) for i in range(3)}\nawait asyncio.gather(*tasks.values())",
    "async def one(i): return await f(i)\nawait asyncio.gather(*[one(i) for i in range(3)])",
    f"async def one(i):\n    x = await f(i)\n    return x\ntasks = one(0), one(1), f(2)\n{GATHER}",
    "def one(i): return f(i)\nawait asyncio.gather(*[one(i) for i in range(3)])",
    "a, b, c = f(0), f(1), f(2)\nasync def main(): return await asyncio.gather(a, b, c)\nawait main()",
]


@pytest.mark.parametrize("code", TOGETHER)
def test_awaited_calls_are_under_way_side_by_side(code: str, run: Any, make_host: Any) -> None:
    host = make_host(tool=Together(3))
    outcome = run(f"import asyncio\n{code}", host, tools=("f",))
    assert (outcome.termination, outcome.error, outcome.value) == (Termination.exited, None, [0, 1, 2])


def test_calls_arrive_in_the_order_in_which_they_end(run: Any, make_host: Any) -> None:
    ends = [asyncio.Event() for _ in range(3)]

    async def in_turn(call: ToolCall) -> Reply:
        number = call.args[0]
        if number:
            await ends[number - 1].wait()
        return Reply(value=number)

    async def note(call: ToolCall) -> Reply:
        ends[call.args[0]].set()
        return Reply()

    async def tool(call: ToolCall) -> Reply:
        return await (in_turn if call.name == "f" else note)(call)

    code = """
import asyncio
seen = []
async def one(i):
    seen.append(await f(i))
    note(i)
await asyncio.gather(one(2), one(1), one(0))
seen"""
    assert run(code, make_host(tool=tool), tools=("f", "note")).value == [0, 1, 2]


def test_sleeps_and_tools_overlap(run: Any, make_host: Any) -> None:
    asleep = asyncio.Event()

    async def tool(call: ToolCall) -> Reply:
        if call.name == "slept":
            asleep.set()
        else:
            await asleep.wait()  # set by code that runs on only after its sleep
        return Reply(value=call.name)

    code = """
import asyncio
async def nap():
    await asyncio.sleep(0.01)
    return slept()
await asyncio.gather(f(), nap())"""
    assert run(code, make_host(tool=tool), tools=("f", "slept")).value == ["f", "slept"]


def test_one_failure_among_many_is_caught_and_the_others_are_cancelled_at_the_end(
    run: Any, make_host: Any
) -> None:
    ended: list[str] = []

    async def tool(call: ToolCall) -> Reply:
        if call.args[0] == "bad":
            return Reply(error=GuestError("ValueError", "bad"))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            await asyncio.sleep(0)
            ended.append("joined")
            raise
        raise AssertionError

    code = """
import asyncio
try:
    await asyncio.gather(f("good"), f("bad"))
except ValueError as problem:
    told = str(problem)
told"""
    outcome = run(code, make_host(tool=tool), tools=("f",))
    assert (outcome.value, ended) == ("bad", ["cancelled", "joined"])


def test_a_call_that_nobody_awaits_never_happens(run: Any, host: Any) -> None:
    outcome = run("import asyncio\nx = f(1)\nasync def never(): await x\n2", host, tools=("f",))
    assert (outcome.value, host.calls) == (2, [])


@pytest.mark.parametrize("code", ["await f(1)", "import asyncio\nawait asyncio.gather(g(1), f(2))"])
def test_a_fatal_reply_among_many_ends_the_run(code: str, run: Any, make_host: Any) -> None:
    async def tool(call: ToolCall) -> Reply:
        if call.name == "f":
            return Reply(fatal=Termination.policy_denied)
        await asyncio.Event().wait()
        raise AssertionError

    host = make_host(tool=tool)
    outcome = run(f"try:\n    pass\nfinally:\n    pass\n{code}\nprint('on')", host, tools=("f", "g"))
    assert (outcome.termination, host.stdout) == (Termination.policy_denied, b"")


def test_a_host_that_fails_among_many_ends_the_run(
    make_plan: Any, make_host: Any, backend: MontyBackend
) -> None:
    async def broken(call: ToolCall) -> Reply:
        raise OSError("log full")

    plan = make_plan("try:\n    await f()\nexcept BaseException: pass\nprint('on')", tools=("f",))
    host = make_host(tool=broken)
    with pytest.raises(OSError, match=r"^log full$"):
        asyncio.run(execute(backend, plan, host))
    assert host.stdout == b""


def test_a_host_that_cancels_itself_ends_the_run(
    make_plan: Any, make_host: Any, backend: MontyBackend
) -> None:
    async def cancelled(call: ToolCall) -> Reply:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match=r"^a call of the host was cancelled$"):
        asyncio.run(execute(backend, make_plan("f()", tools=("f",)), make_host(tool=cancelled)))


def test_tools_stay_known_in_a_sandbox(make_plan: Any, make_host: Any, backend: MontyBackend) -> None:
    async def main() -> list[Any]:
        host = make_host(tool=_given)
        plans = [
            make_plan("keep = f\nkeep(1)", tools=("f",)),
            make_plan("[keep(2), g(3)]", tools=("f", "g")),
            make_plan(
                "try:\n    f(4)\nexcept NameError as problem:\n    told = str(problem)\ntold", tools=("g",)
            ),
        ]
        sandbox = await backend.open(plans[0], host)
        found = [(await sandbox.run(plan, host)).value for plan in plans]
        await sandbox.close()
        return found

    assert asyncio.run(main()) == [[[1], {}], [[[2], {}], [[3], {}]], "name 'f' is not defined"]


def test_a_sandbox_that_was_fed_without_tools_gets_none(
    make_plan: Any, host: Any, backend: MontyBackend
) -> None:
    async def main() -> None:
        first, second = make_plan("1"), make_plan("f()", tools=("f",))
        sandbox = await backend.open(first, host)
        await sandbox.run(first, host)
        with pytest.raises(BackendError, match=r"^the first run in this sandbox had no tools"):
            await sandbox.run(second, host)
        await sandbox.close()

    asyncio.run(main())
