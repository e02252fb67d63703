"""Tools as code calls them: directly, awaited, side by side; what they are given and what they give."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from licet.backend import GuestError, Reply, Termination, ToolCall, execute
from licet.errors import BackendError
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


async def _given(call: ToolCall) -> Reply:
    return Reply(value=[list(call.args), dict(call.kwargs)])


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
