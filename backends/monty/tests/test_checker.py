"""The type checker of Monty: what it finds, what it never does, and when it gives up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from licet import toolkit
from licet.calling import signature_of
from licet.errors import TypesUnchecked
from licet.policy import PolicyStack
from licet.stubs import stub_of
from licet.testing.strategies import document_of
from licet.type_checker import TypeChecker, TypeFinding
from licet_monty import checker
from licet_monty.backend import MontyBackend

STACK = PolicyStack(document_of("licet: 1\n", "root", "/p"))
HEADER = "from typing import Any, Generator\n"


async def lookup(wallet: int, deep: bool = False) -> dict[str, int]: ...
async def count(text: str) -> int: ...
async def maybe() -> int | None: ...
def pay(order: str, /, amount: int, *, note: str | None = None) -> None: ...


TOOLS = toolkit([lookup, count, maybe, pay])
STUBS = HEADER + "\n".join(stub_of(t, signature_of(t.name, STACK, t.handler)) for t in TOOLS.values())


@asynccontextmanager
async def _backend() -> AsyncIterator[MontyBackend]:
    backend = MontyBackend()
    try:
        yield backend
    finally:
        await backend.close()


def found(code: str, stubs: str = STUBS) -> list[tuple[int, int, str]]:
    async def check() -> tuple[TypeFinding, ...]:
        async with _backend() as backend:
            return await backend.check_types(code, stubs)

    return [(one.line, one.column, one.code) for one in asyncio.run(check())]


def test_the_backend_offers_it() -> None:
    assert isinstance(MontyBackend(), TypeChecker)


@pytest.mark.parametrize(
    "code",
    [
        "lookup(7)['a'] + 1",
        "(await lookup(7))['a'] + 1",
        "import asyncio\nasync def main():\n    a, b = await asyncio.gather(count('x'), lookup(1))\n"
        "    return a + b['x']\nasyncio.run(main())",
        "waiting = [count(t) for t in 'ab']\nimport asyncio\nawait asyncio.gather(*waiting)",
        "count('a')\ncount('b')\n1",
        "maybe()\nawait maybe()",
        "pay('A1', 3, note='x')",
        "",
        "# only a comment",
    ],
)
def test_a_tool_is_called_with_and_without_await(code: str) -> None:
    assert found(code) == []


@pytest.mark.parametrize(
    ("code", "findings"),
    [
        ("lookup('a')", [(1, 8, "invalid-argument-type")]),
        ("x = 1\nlookup(1).nope", [(2, 1, "unresolved-attribute")]),
        ("count('a') + 'b'", [(1, 1, "unsupported-operator")]),
        ("pay(order='A1', amount=1)", [(1, 5, "positional-only-parameter-as-kwarg")]),
        ("pay('A1', 1, why=2)", [(1, 14, "unknown-argument")]),
        ("pay('A1')", [(1, 1, "missing-argument")]),
        ("if True:\n    missing", [(2, 5, "unresolved-reference")]),
    ],
)
def test_what_does_not_fit_is_found_where_it_stands(code: str, findings: list[tuple[int, int, str]]) -> None:
    assert found(code) == findings


@pytest.mark.parametrize(
    "head",
    ["", "# type: ignore\n", "# ty: ignore\n", "x = '''", "x = (", "x = [{", "x = f'{", "x = 1\\",
     "def f():\n    (", "\\\n", "lambda: (", "'''\n", "f'''{'''", "x = (\n#"],
)  # fmt: skip
def test_nothing_of_the_code_runs_whatever_it_leaves_open(
    head: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its twin, the same code without the line that ends it, runs where it can be parsed."""
    for code in (f"print('ran')\n{head}", f"{head}\nprint('ran')"):
        try:
            found(code, "")
        except TypesUnchecked:
            continue
    assert capfd.readouterr().out == ""


def test_the_twin_without_the_last_line_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed: list[str] = []
    monkeypatch.setattr(checker, "_STOP", "")
    monkeypatch.setattr(checker, "_nothing", lambda stream, text: printed.append(text))
    with pytest.raises(TypesUnchecked, match="said nothing of a line that is wrong"):
        found("print('ran')", "")
    assert printed == ["ran\n"]


@pytest.mark.parametrize(
    "code",
    ["(" * 5000 + "1" + ")" * 5000, "x = a" + ".b" * 100_000, "x = " + "-" * 100_000 + "1"],
)
def test_code_that_is_nested_too_deep_is_said_to_be_unchecked(code: str) -> None:
    with pytest.raises(TypesUnchecked, match="too deeply nested"):
        found(code)


def test_a_checker_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "CHECK_S", 0.3)
    code = "\n".join(f"x{i} = x{i - 1} if count('') else {i}" for i in range(1, 30_000))
    with pytest.raises(TypesUnchecked, match="gave up"):
        found(code)


def test_a_checker_that_takes_too_much_memory_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "_MEMORY", 8 << 20)
    with pytest.raises(TypesUnchecked, match="memory"):
        found("missing\n" * 10_000)


def test_findings_are_bounded() -> None:
    assert len(found("missing\n" * 2000)) == checker.MOST_FINDINGS


def test_checks_at_once_do_not_see_each_other() -> None:
    async def check() -> list[tuple[TypeFinding, ...]]:
        async with _backend() as backend:
            texts = [f"first = {n}\nsecond" if n % 2 else "first" for n in range(6)]
            return await asyncio.gather(*(backend.check_types(text, "") for text in texts))

    lines = [[one.line for one in each] for each in asyncio.run(check())]
    assert lines == [[1], [2]] * 3
