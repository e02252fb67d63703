"""PyFly's own examples through the bridge: as they were written, but for the import."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from licet import Runtime, Tool, pyfly, tool
from licet.errors import InvalidRequest, LaunchFailed
from licet.pyfly import (
    Capability,
    CodeSafetyError,
    ExecutionEnvironment,
    ExecutionError,
    ExecutionLimits,
    ExecutionResult,
    MontyEnvironment,
    SafetyPolicy,
    SandboxUnavailableError,
    SecureScriptRunner,
    analyze_code,
    toolkit_external_functions,
)
from licet.record import MemoryLog


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def test_the_quick_start() -> None:
    async def main() -> None:
        runner = SecureScriptRunner(MontyEnvironment())

        result = await runner.execute("a = 2\nb = 3\na * b")
        assert result.success and result.output == 6

        bad = await runner.execute("import os\nos.system('rm -rf /')")
        assert bad.success is False
        assert bad.error_type == "CodeSafetyError"
        assert bad.violations == ["line 2: `os.system('rm -rf /')` needs `shell`"]

    run(main)


def test_limits() -> None:
    async def main() -> None:
        env = MontyEnvironment()
        result = await env.run_code("40 + 2", limits=ExecutionLimits(
            timeout_seconds=5.0,        # wall-clock cap
            max_memory_bytes=64 * 1024 * 1024,
            max_recursion_depth=500,
        ))  # fmt: skip
        assert (result.success, result.output) == (True, 42)

    run(main)


def test_the_screen() -> None:
    report = analyze_code("().__class__.__bases__[0].__subclasses__()")
    assert not report.safe

    policy = SafetyPolicy(allowed_modules=frozenset({"math", "statistics"}))
    assert analyze_code("import math, statistics\nmath.sqrt(2)", policy).safe
    assert analyze_code("import math\nimport json", policy).messages() == [
        "line 2: the module `json` is not allowed"
    ]


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "import socket",
        "import os; os.remove('x')",
        "eval('1')",
        "exec('1')",
        "__import__('os')",
        "open('x')",
        "x = (",
        "getattr(1, '__subclasses__')",
        "'{0.__globals__}'.format(len)",
        "1" + "+1" * 100_000,
    ],
)
def test_what_pyfly_refuses_and_what_it_missed_is_unsafe(code: str) -> None:
    assert not analyze_code(code).safe


@dataclass
class ParameterSpec:
    name: str
    type_annotation: str
    required: bool = True


@dataclass
class FrameworkTool:
    """A tool as PyFly has them: called by names, with guards and listeners of its own around the handler."""

    name: str
    handler: Callable[..., Any]
    parameters: list[ParameterSpec] | None = None
    heard: list[dict[str, Any]] = field(default_factory=list)

    async def execute(self, **arguments: Any) -> Any:
        self.heard.append(arguments)
        found = self.handler(**arguments)
        return await found if asyncio.iscoroutine(found) else found


class Toolkit:
    def __init__(self, *tools: FrameworkTool) -> None:
        self.tools = list(tools)


async def fetch_orders(customer_id: int) -> list[int]:
    await asyncio.sleep(0)
    return [customer_id, 7]


def summarize_orders(orders: list[int], unit: str = "EUR") -> str:
    return f"{sum(orders)} {unit}"


def test_code_mode() -> None:
    fetch = FrameworkTool("fetch_orders", fetch_orders, [ParameterSpec("customer_id", "int")])
    summary = FrameworkTool("summarize", summarize_orders)
    my_toolkit = Toolkit(fetch, summary)

    async def main() -> None:
        runner = SecureScriptRunner(MontyEnvironment())
        funcs = toolkit_external_functions(my_toolkit)  # {tool_name: callable}
        result = await runner.execute(
            "totals = fetch_orders(customer_id)\nsummarize(totals)",
            inputs={"customer_id": 42},
            external_functions=funcs,
        )  # fmt: skip
        assert result.output == "49 EUR", result.error
        surplus = await runner.execute("summarize([1], 'EUR', 3)", external_functions=funcs)
        assert surplus.error_type == "TypeError"
        only = toolkit_external_functions(my_toolkit, names=["summarize"])
        missing = await runner.execute("fetch_orders(1)", external_functions=only)
        assert missing.error_type == "NameError"

    run(main)
    assert fetch.heard == [{"customer_id": 42}]
    assert summary.heard == [{"orders": [42, 7]}]


def test_what_is_no_toolkit_or_no_tool_of_it() -> None:
    with pytest.raises(ExecutionError, match="no source of tools"):
        toolkit_external_functions(42)
    with pytest.raises(KeyError):
        toolkit_external_functions([summarize], names=["transfer"])


def test_what_a_tool_says_of_itself_comes_with_it() -> None:
    @tool(touches=["network api.example.com:443"])
    def fetch() -> int:
        return 1

    made: Tool = toolkit_external_functions([fetch])["fetch"]
    assert [str(one) for one in made.touches] == ["network api.example.com:443"]


async def lookup_policy(wallet_id: int) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"wallet_id": wallet_id, "review": "human"}


def summarize(policy: dict[str, Any]) -> str:
    return f"Wallet {policy['wallet_id']}: {policy['review']} review"


def test_the_deterministic_mixed_tool_example(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        runner = SecureScriptRunner(MontyEnvironment())
        limits = ExecutionLimits(
            timeout_seconds=5.0,
            max_memory_bytes=64 * 1024 * 1024,
            max_recursion_depth=100,
        )
        pure = await runner.execute("sum([2, 3, 5])", limits=limits)
        assert pure.success and pure.output == 10
        result = await runner.execute(
            "policy = lookup_policy(wallet_id)\nsummarize(policy)",
            inputs={"wallet_id": 42},
            external_functions={
                "lookup_policy": lookup_policy,
                "summarize": summarize,
            },
            limits=limits,
        )
        assert result.success, result.error
        assert result.output == "Wallet 42: human review"
        print(result.output)

    run(main)
    assert capsys.readouterr().out == "Wallet 42: human review\n"


# What the guide says in words


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.mark.parametrize("limits", [{"max_allocations": 5}, {"timeout_seconds": -1}, {"max_memory_bytes": 0}])
def test_a_limit_that_nobody_can_keep_is_a_value_error(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"max_allocations|wall_time|memory"):
        ExecutionLimits(**limits)


@pytest.mark.parametrize(
    ("default", "asked", "effective"),
    [(None, None, 30.0), (None, 5.0, 5.0), (None, 90.0, 30.0), (90.0, None, 90.0), (600.0, 600.0, 120.0)],
)
def test_limits_are_only_lowered(
    default: float | None, asked: float | None, effective: float, log: MemoryLog
) -> None:
    async def main() -> None:
        with Runtime("licet:agent", log=log) as runtime:
            limits = ExecutionLimits(timeout_seconds=default) if default else None
            env = MontyEnvironment(default_limits=limits, runtime=runtime)
            assert (await env.run_code("1", limits=ExecutionLimits(timeout_seconds=asked))).success

    run(main)
    (request,) = [record.entry.body for record in log.records() if record.entry.kind == "request"]
    assert float(request["limits"]["wall_time"]) == effective


def test_each_way_to_fail_has_its_type() -> None:
    async def main() -> None:
        runner = SecureScriptRunner(MontyEnvironment())

        async def typed(code: str, **given: Any) -> tuple[str | None, str | None, list[str]]:
            result = await runner.execute(code, **given)
            assert (result.success, result.output, bool(result.error)) == (False, None, True)
            return result.error_type, result.termination, result.violations

        async def fail() -> None:
            raise LookupError("no such order")

        second = ExecutionLimits(timeout_seconds=1.0)
        assert await typed("1/0") == ("ZeroDivisionError", "exited", [])
        assert await typed("x = (") == ("SyntaxError", "exited", [])
        assert await typed("fail()", external_functions={"fail": fail}) == ("LookupError", "exited", [])
        assert await typed("while True: pass", limits=second) == ("timeout", "timeout", [])

    run(main)


def test_what_no_sandbox_can_run_has_a_type_too(own_directories: Path) -> None:
    async def main() -> None:
        (own_directories / "p.yaml").write_text("licet: 1\nextends: licet:agent\nsandbox: {only: [monty]}\n")
        with Runtime("p.yaml", log=MemoryLog()) as runtime:
            runner = SecureScriptRunner(MontyEnvironment(runtime=runtime))
            result = await runner.execute("class A(Exception): pass")
        assert (result.success, result.output, bool(result.error)) == (False, None, True)
        assert (result.error_type, result.termination) == ("SandboxUnavailableError", "no_backend")

    run(main)


def test_what_is_refused_is_in_the_trail(log: MemoryLog) -> None:
    async def main() -> None:
        with Runtime("licet:agent", log=log) as runtime:
            runner = SecureScriptRunner(MontyEnvironment(runtime=runtime))
            for code in ("open('/etc/passwd').read()", "eval('1')"):
                bad = await runner.execute(code)
                assert (bad.error_type, len(bad.violations)) == ("CodeSafetyError", 1)
                ends = [r.entry.body["termination"] for r in log.records() if r.entry.kind == "result"]
                assert ends[-1] == bad.termination == "policy_denied"

    run(main)
    assert {record.entry.kind for record in log.records()} == {"request", "decision", "selection", "result"}


def test_no_file_is_opened_whatever_policy_would_open(own_directories: Path, log: MemoryLog) -> None:
    (own_directories / "data.txt").write_text("secret")
    code = "from pathlib import Path\nname = 'data' + '.txt'\nPath(name).read_text()"

    async def main() -> None:
        with Runtime("licet:agent", log=log) as runtime:
            assert (await runtime.run(code)).value == "secret"
            result = await MontyEnvironment(runtime=runtime).run_code(code)
            assert (result.success, result.output) == (False, None)

    run(main)


def test_policy_decides_which_functions_are_granted(own_directories: Path, log: MemoryLog) -> None:
    (own_directories / "licet.yaml").write_text(
        "licet: 1\nextends: licet:compute\nrules: [{id: freeze, deny: run, unless: {group: oncall}}]\n"
    )
    moved: list[int] = []

    async def main() -> None:
        with Runtime("licet.yaml", log=log) as runtime:
            env = MontyEnvironment(runtime=runtime)
            frozen = await env.run_code("1")
            assert (frozen.error_type, frozen.violations) == ("policy_denied", [])
        (own_directories / "licet.yaml").write_text(
            "licet: 1\nextends: licet:compute\nallow: [tool summarize]\n"
        )
        with Runtime("licet.yaml", log=log) as runtime:
            env = MontyEnvironment(runtime=runtime)
            assert env.capabilities == {Capability.COMPUTE, Capability.EXTERNAL_FUNCTIONS}
            denied = await env.run_code("transfer(1)", external_functions={"transfer": moved.append})
            assert denied.error_type == "PermissionError"
        with Runtime("licet:compute", log=log) as runtime:
            assert MontyEnvironment(runtime=runtime).capabilities == {Capability.COMPUTE}

    run(main)
    assert moved == []


class Recorder:
    """An environment of somebody else, which screens nothing."""

    capabilities = frozenset({Capability.COMPUTE})

    def __init__(self) -> None:
        self.ran: list[str] = []

    async def run_code(self, code: str, **given: Any) -> ExecutionResult:
        self.ran.append(code)
        return ExecutionResult(success=True)


def test_an_environment_that_does_not_screen_never_sees_unsafe_code() -> None:
    other = Recorder()
    assert isinstance(other, ExecutionEnvironment)

    async def main() -> None:
        runner = SecureScriptRunner(other, SafetyPolicy(denied_modules=frozenset({"json"})))
        for code in ("eval('1')", "open('x')", "x = (", "import json"):
            assert (await runner.execute(code)).error_type == "CodeSafetyError"
        assert (await runner.execute("1")).success

    run(main)
    assert other.ran == ["1"]


@pytest.mark.parametrize(
    ("policy", "code", "message"),
    [
        ({"denied_modules": {"json"}}, "import json", "line 1: `json`: the policy denies the module"),
        ({"denied_modules": {"xml"}}, "import xml.dom", "line 1: `xml.dom`: the policy denies the module"),
        ({"denied_builtins": {"sum"}}, "x = 1\nsum = sum", "line 2: the built-in `sum` is denied"),
        ({"allowed_modules": {"math"}}, "from os import sep", "line 1: the module `os` is not allowed"),
    ],
)
def test_a_policy_of_the_caller_refuses_before_the_environment(
    policy: dict[str, set[str]], code: str, message: str
) -> None:
    fields: dict[str, Any] = {name: frozenset(value) for name, value in policy.items()}

    async def main() -> None:
        assert analyze_code(code).safe
        runner = SecureScriptRunner(MontyEnvironment(), SafetyPolicy(**fields))
        result = await runner.execute(code)
        assert result.violations[0].startswith(message)
        assert (result.error_type, result.run_id, result.termination) == ("CodeSafetyError", None, None)

    run(main)


def test_nobody_skips_the_screen_for_one_call() -> None:
    with pytest.raises(TypeError, match="skip_safety"):
        SecureScriptRunner(Recorder()).execute("eval('1')", skip_safety=True)  # type: ignore[call-arg]


def test_a_policy_that_only_reports_lets_the_sandbox_refuse(own_directories: Path, log: MemoryLog) -> None:
    (own_directories / "licet.yaml").write_text("licet: 1\nextends: licet:compute\nscreen: {mode: report}\n")

    async def main() -> None:
        with Runtime("licet.yaml", log=log) as runtime:
            runner = SecureScriptRunner(MontyEnvironment(runtime=runtime))
            opened = await runner.execute("open('x')")
            assert (opened.error_type, opened.termination) == ("CodeSafetyError", "policy_denied")
            assert (await runner.execute("locals()")).termination != "policy_denied"

    run(main)


def test_dunder_access_has_no_switch() -> None:
    with pytest.raises(ValueError, match="deny_dunder_access"):
        SafetyPolicy(deny_dunder_access=False)


def test_the_scrubber_reads_every_text() -> None:
    value = "print('mine')\n{'mine': ['mine', b'mine', 1, None], 'n': ('a mine', {'mine'})}"

    async def main() -> None:
        env = MontyEnvironment()
        runner = SecureScriptRunner(env, output_scrubber=lambda s: s.replace("mine", "[x]"))
        result = await runner.execute(value)
        assert result.stdout == "[x]\n"
        assert result.output == {"[x]": ["[x]", b"[x]", 1, None], "n": ("a [x]", {"[x]"})}
        failed = await runner.execute("raise ValueError('mine')")
        assert failed.error == "ValueError: [x] in line 1"
        refused = await runner.execute("open('mine')")
        assert refused.violations[0].startswith("line 1: `open('[x]')` needs `read ")
        assert "mine" not in repr((result, failed, refused))

    run(main)


@pytest.mark.parametrize("scrubber", [lambda text: text[1000], lambda text: None])
def test_a_scrubber_that_fails_lets_nothing_through(scrubber: Any) -> None:
    async def main() -> None:
        result = await SecureScriptRunner(MontyEnvironment(), output_scrubber=scrubber).execute(
            "print('mine')\n'mine'"
        )
        assert result.success
        assert (result.stdout.startswith("[withheld: "), result.output.startswith("[withheld: ")) == (
            True,
            True,
        )
        assert "mine" not in repr(result)

    run(main)


def test_secrets_are_scrubbed_without_any_scrubber() -> None:
    async def main() -> None:
        result = await MontyEnvironment().run_code("'ghp_' + 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'")
        assert "[redacted: " in result.output

    run(main)


def test_nothing_stays_between_runs_and_loops() -> None:
    env = MontyEnvironment()

    async def first() -> None:
        assert (await env.run_code("kept = 1\nkept")).output == 1

    async def second() -> None:
        assert (await env.run_code("kept")).error_type == "NameError"
        await env.aclose()

    run(first)
    run(second)


def test_a_lent_runtime_stays_open(log: MemoryLog) -> None:
    async def main() -> None:
        async with Runtime("licet:agent", log=log) as runtime:
            async with MontyEnvironment(runtime=runtime) as env:
                assert (await env.run_code("1")).output == 1
            assert (await runtime.run("2")).value == 2
        async with MontyEnvironment() as env:
            own = env.runtime
        with pytest.raises(ExecutionError, match="closed"):
            await own.run("1")

    run(main)


def test_cancelling_a_run_ends_it(log: MemoryLog) -> None:
    async def main() -> None:
        started = asyncio.Event()

        async def wait() -> None:
            started.set()
            await asyncio.Event().wait()

        async with Runtime("licet:agent", log=log) as runtime:
            env = MontyEnvironment(runtime=runtime)
            running = asyncio.create_task(env.run_code("wait()", external_functions={"wait": wait}))
            await started.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    run(main)
    (end,) = [record.entry.body for record in log.records() if record.entry.kind == "result"]
    assert end["termination"] == "cancelled"


def test_without_a_sandbox_there_is_no_environment(log: MemoryLog) -> None:
    with (
        Runtime("licet:agent", log=log, backends=[]) as runtime,
        pytest.raises(SandboxUnavailableError, match="no sandbox"),
    ):
        MontyEnvironment(runtime=runtime)


def test_what_can_not_be_asked_is_an_execution_error() -> None:
    assert issubclass(SandboxUnavailableError, ExecutionError)
    assert issubclass(CodeSafetyError, ExecutionError)
    assert SandboxUnavailableError is LaunchFailed

    async def main() -> None:
        env = MontyEnvironment()
        for given in ({"inputs": {"a b": 1}}, {"inputs": {"a": object()}}, {"external_functions": {"f": 1}}):
            with pytest.raises(ExecutionError) as raised:
                await env.run_code("1", **given)
            assert isinstance(raised.value, InvalidRequest)

    run(main)


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "migrate-from-pyfly.md"


def test_the_page_on_migration_shows_what_happens(own_directories: Path) -> None:
    text = PAGE.read_text("utf-8")
    for name, content in re.findall(r"```yaml\n# (\S+)\n(.*?)```", text, re.DOTALL):
        (own_directories / name).write_text(content, "utf-8")
        assert Runtime(name).stack.root.file.endswith(name)
    blocks = [
        block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "# before" not in block
    ]
    names: dict[str, Any] = {}

    async def main() -> None:
        for block in blocks:
            code = compile(block, PAGE.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            made = eval(code, names)
            if made is not None:
                await made
        await names["environment"].runtime.aclose()

    run(main)
    assert len(blocks) == 6


@pytest.mark.parametrize("made", [ExecutionLimits, ExecutionResult, SafetyPolicy])
def test_every_field_is_on_the_page(made: Any) -> None:
    text = PAGE.read_text("utf-8")
    assert [one.name for one in dataclasses.fields(made) if f"`{one.name}" not in text] == []


def test_every_name_is_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    assert [name for name in pyfly.__all__ if f"`{name}" not in text] == []
