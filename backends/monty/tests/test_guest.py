"""What code is told by its surroundings: environment, files, time, randomness, tools."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from licet.backend import Access, GuestError, Reply, Termination, ToolCall
from licet.request import Limits


def test_the_environment_is_the_plans(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    code = """
import os
[os.getenv("LANG"), os.getenv("SECRET"), os.getenv("SECRET", "none"), sorted(os.environ),
 "SECRET" in os.environ, os.environ.get("SECRET"), os.environ["LANG"]]"""
    outcome = run(code, environment={"LANG": "C"})
    assert outcome.value == ["C", None, "none", ["LANG"], False, None, "C"]
    assert run("import os\nos.getenv('HOME')").value is None


def test_getenv_reads_literal_texts_alone(run: Any) -> None:
    for call in ("os.getenv(name)", "os.getenv('A', [])", "eval('os.getenv(\"A\")')", "os.getenv(*['A'])"):
        outcome = run(f"import os\nname = 'A'\n{call}", environment={"A": "1"})
        assert outcome.error.type == "NotImplementedError"
        assert "os.environ.get" in outcome.error.message


@pytest.mark.parametrize(
    ("code", "accesses"),
    [
        ("open('/etc/passwd')", [Access("read", "/etc/passwd")]),
        ("open('a/../b', 'w')", [Access("write", "/home/work/b")]),
        ("open('b', 'ab')", [Access("write", "/home/work/b")]),
        ("import os\nos.listdir('/')", [Access("read", "/")]),
        ("import os\nos.path.exists('/etc')", [Access("read", "/etc")]),
        ("import os\nos.remove('x')", [Access("write", "/home/work/x"), Access("write", "/home/work")]),
        ("import os\nos.rmdir('x')", [Access("write", "/home/work/x"), Access("write", "/home/work")]),
        (
            "import os\nos.rename('x', '/y/z')",
            [Access("write", path) for path in ("/home/work/x", "/home/work", "/y/z", "/y")],
        ),
        ("import os\nos.makedirs('x/y')", [Access("write", "/home/work/x/y")]),
        ("import os\nos.chdir('/tmp')", [Access("read", "/tmp")]),
        ("from pathlib import Path\nPath('x').write_text('y')", [Access("write", "/home/work/x")]),
        ("from pathlib import Path\nPath('x').read_bytes()", [Access("read", "/home/work/x")]),
        ("from pathlib import Path\nPath('x').resolve()", [Access("read", "/home/work/x")]),
        (
            "from pathlib import Path\nPath('x').unlink()",
            [Access("write", "/home/work/x"), Access("write", "/home/work")],
        ),
    ],
)
def test_every_file_access_surfaces_and_is_refused(
    code: str, accesses: list[Access], run: Any, host: Any
) -> None:
    outcome = run(code, host)
    assert outcome.error.type == "PermissionError"
    assert "(this run may not " in outcome.error.message
    assert host.accesses == accesses


def test_listing_what_is_refused_finds_nothing(run: Any, host: Any) -> None:
    code = "import os\nfrom pathlib import Path\n[list(Path('/etc').glob('*')), list(os.walk('/etc'))]"
    assert run(code, host).value == [[], []]
    assert host.accesses == [Access("read", "/etc"), Access("read", "/etc")]


def test_a_host_that_allows_an_access_opens_nothing_that_the_plan_does_not(run: Any, make_host: Any) -> None:
    class Generous(make_host):  # type: ignore[misc]
        async def access(self, access: Access) -> bool:
            return True

    assert run("open('/etc/passwd')", Generous()).error.type == "FileNotFoundError"


def test_paths_are_the_plans(run: Any) -> None:
    code = """
import os
from pathlib import Path
[os.getcwd(), f'{Path("x").absolute()}', os.path.abspath('..')]"""
    assert run(code).value == ["/home/work", "/home/work/x", "/home"]


def test_sleeps_in_tasks_overlap(run: Any) -> None:
    code = """
import asyncio
async def nap(seconds):
    await asyncio.sleep(seconds)
    return seconds
await asyncio.gather(nap(0.2), nap(0.1), nap(0.2))"""
    outcome = run(code)
    assert outcome.value == [0.2, 0.1, 0.2]
    assert 0.2 <= outcome.usage.wall_time < 0.45


def test_clock_and_randomness_are_real(run: Any) -> None:
    code = "import os, random, time\n[time.time() > 1.7e9, random.random(), len(os.urandom(5))]"
    first, second = run(code).value, run(code).value
    assert (first[0], first[2]) == (True, 5)
    assert first[1] != second[1]
    assert run("import os\nos.urandom(2 ** 21)").error.type == "ValueError"


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
        (
            "from collections import namedtuple\nP = namedtuple('P', 'a')\nfind(P(1))",
            "hold a `P`, which is no plain",
        ),
        (f"{bomb}find(x)", "are more than 100000 values"),
        (f"class P: pass\n{bomb}p = P()\np.x = x\nfind(p)", "hold a `P`, which is no plain data"),
    ]:
        error = run(code, host, tools=("find",)).error
        assert (error.type, why in error.message) == ("TypeError", True)
    assert host.calls == []


def test_calls_inside_sorted_and_map_get_advice(run: Any, host: Any) -> None:
    for code in ("list(map(find, [1]))", "sorted([2, 1], key=find)", "sorted([2, 1], key=lambda x: find(x))"):
        outcome = run(code, host, tools=("find",))
        assert outcome.error.type == "NotImplementedError"
        assert (
            outcome.detail == "call tools in a loop or a comprehension, not from inside map, sorted or filter"
        )
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


def test_inputs_are_names_of_the_code(run: Any) -> None:
    inputs = {"orders": [{"id": 1, "tags": ("a", {"b"})}], "limit": 2.5, "empty": None}
    assert run("[orders, limit, empty]", inputs=inputs).value == [inputs["orders"], 2.5, None]


def test_code_of_any_shape_keeps_its_lines(run: Any) -> None:
    code = "# -*- coding: latin-1 -*-\n\n'''doc\n\\'''\n'''\nx = 1; (x +\n 1/0)"
    assert run(code).error == GuestError("ZeroDivisionError", "division by zero", 7)
    assert run("x = 1\r\n1/0\r\n").error.line == 2


def test_a_limit_of_memory_holds_for_each_run_anew(run: Any) -> None:
    for _ in range(5):
        code = "x = 'a' * 5_000_000\nlen(x)"
        assert run(code, limits=Limits(wall_time=5.0, memory=8 << 20)).value == 5_000_000
