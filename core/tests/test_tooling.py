"""What a caller may bring as tools, and what a tool says of itself."""

import asyncio
import functools
import inspect
from collections.abc import Iterator
from typing import Any

import licet
import pytest
from licet import Tool, tool, toolkit
from licet.errors import InvalidRequest
from licet.request import ExecutionRequest, Intent, as_request
from licet.toolkits import MOST_TOOLS


def find(order: str, deep: bool = False) -> str:
    """Find an order."""
    return f"{order} {deep}"


async def pay(order: str, amount: int = 1) -> int:
    return amount


class Spec:
    def __init__(self, name: str, kind: object = "str", required: bool = True) -> None:
        self.name, self.type_annotation, self.required = name, kind, required


class Framework:
    """A tool of an agent framework: a name, what it takes, and `execute`, which takes names alone."""

    name = "lookup"
    description = "Look a policy up."
    parameters = (Spec("wallet", "int"), Spec("note", "str", False), Spec("why"))

    async def execute(self, **arguments: Any) -> dict[str, Any]:
        return arguments


class Schema:
    name = "search"
    description = "Search."

    def __init__(self) -> None:
        self.input_schema = {
            "type": "object",
            "properties": {"text": {"type": "string"}, "most": {"type": "integer"}},
            "required": ["text"],
        }

    def run(self, **arguments: Any) -> dict[str, Any]:
        return arguments


class Kit:
    def __init__(self, *items: Any) -> None:
        self.tools = items


class Listing:
    def list_tools(self) -> list[Any]:
        return [find, pay]


class Called:
    name = "called"

    async def __call__(self, x: int) -> int:
        return x


def each() -> Iterator[Any]:
    yield find
    yield pay


@pytest.mark.parametrize(
    "source", [{"find": find, "pay": pay}, Kit(find, pay), Listing(), [find, pay], each()]
)
def test_a_mapping_a_toolkit_and_callables_are_the_same_tools(source: Any) -> None:
    made = toolkit(source)
    assert [(one.name, one.handler, one.is_async) for one in made.values()] == [
        ("find", find, False),
        ("pay", pay, True),
    ]
    assert made["find"].description == "Find an order."


def test_a_request_takes_what_a_toolkit_is_and_keeps_it() -> None:
    request = as_request("1", {"tools": each()})
    assert dict(request.tools) == {"find": find, "pay": pay}
    assert dict(as_request(request, {"learn": True}).tools) == {"find": find, "pay": pay}
    assert ExecutionRequest(code="1", tools=None).tools == {}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (find, "`function` is no source of tools"),
        (7, "`int` is no source of tools"),
        ("find", "`str` is no source of tools"),
        ([find, find], "two tools are called `find`"),
        ({3: find}, "a tool has a text as its name, found a `int`"),
        ([functools.partial(find, "A")] * 2, "two tools are called `find`"),
        ([object()], "a `object` has no name"),
        ({"find": 5}, "the tool `find` can't be called: it is a `int`"),
        ({"class": find}, "the tool `class` has no name that code can use"),
        ({"__find": find}, "the tool `__find` has no name that code can use"),
        ([lambda: 1], "the tool `<lambda>` has no name that code can use"),
        ((find for _ in iter(int, 1)), f"more than {MOST_TOOLS} tools"),
    ],
)
def test_what_is_no_source_of_tools_is_refused(source: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        toolkit(source)
    assert message in str(refused.value)


def test_a_listing_that_has_to_be_awaited_is_refused_and_left_clean() -> None:
    class Later:
        async def list_tools(self) -> list[Any]:
            return [find]

    with pytest.raises(InvalidRequest, match="has to be awaited"):
        toolkit(Later())


def test_what_is_awaitable_is_found_behind_partials_methods_and_objects() -> None:
    async def method(self: object, x: int) -> int:
        return x

    bound = type("Bound", (), {"method": method})().method
    made = toolkit(
        {
            "a": functools.partial(functools.partial(pay, "A")),
            "b": bound,
            "c": Called(),
            "d": functools.partial(Called()),
            "e": find,
            "f": dict,
        }
    )
    assert {name: one.is_async for name, one in made.items()} == {
        "a": True, "b": True, "c": True, "d": True, "e": False, "f": False,
    }  # fmt: skip


def test_a_tool_of_a_framework_gets_names_for_positions() -> None:
    made = toolkit([Framework()])["lookup"]
    assert (made.is_async, made.description) == (True, "Look a policy up.")
    assert str(inspect.signature(made.handler)) == "(wallet: int, note: str = None, *, why: str)"
    assert asyncio.run(made.handler(7, why="x")) == {"wallet": 7, "why": "x"}  # nothing is filled in
    for args, kwargs in (
        ((1, "n", "w"), {}),
        ((1,), {"wallet": 2, "why": "x"}),
        ((1,), {"why": "x", "z": 1}),
    ):
        with pytest.raises(TypeError):
            asyncio.run(made.handler(*args, **kwargs))


def test_a_tool_that_declares_json_schema_gets_names_for_positions() -> None:
    made = toolkit([Schema()])["search"]
    assert str(inspect.signature(made.handler)) == "(text: str, most: int = None)"
    assert made.handler("x", 3) == {"text": "x", "most": 3}
    assert made.handler(most=3, text="x") == {"text": "x", "most": 3}


def test_a_framework_tool_around_a_function_takes_what_the_function_takes() -> None:
    class Wrapped:
        name = "wrapped"
        handler = staticmethod(find)

        def execute(self, **arguments: Any) -> str:
            return find(**arguments)

    made = toolkit([Wrapped()])["wrapped"]
    assert list(inspect.signature(made.handler).parameters) == ["order", "deep"]
    assert made.handler("A", True) == "A True"


def test_the_decorator_leaves_the_function_as_it_is() -> None:
    @tool
    def bare(x: int) -> int:
        return x + 1

    @licet.tool(
        name="send",
        touches=["network api.example.com:443", "write /srv/out", "shell"],
        idempotent=True,
        timeout="1.5s",
        most_bytes="64KiB",
        description="Send it.",
    )
    async def sends(x: int) -> int:
        return x * 2

    assert (bare(1), asyncio.run(sends(2)), sends.__name__) == (2, 4, "sends")
    assert list(toolkit([bare, sends])) == ["bare", "send"]
    made = toolkit([sends])["send"]
    assert [str(act) for act in made.touches] == ["network api.example.com:443", "write /srv/out", "shell"]
    assert (made.idempotent, made.timeout, made.most_bytes, made.description) == (
        True,
        1.5,
        64 << 10,
        "Send it.",
    )


def test_what_was_said_of_a_tool_stays_with_what_wraps_it() -> None:
    class Service:
        @tool(touches="shell")
        def reboot(self, now: bool) -> None: ...

    @tool(touches="shell")
    def wipe(path: str) -> None: ...

    @functools.wraps(wipe)
    def logged(*args: Any) -> None:
        wipe(*args)

    service = Service()
    made = toolkit({"a": service.reboot, "b": functools.partial(wipe, "/x"), "c": logged, "d": wipe})
    assert [[str(act) for act in one.touches] for one in made.values()] == [["shell"]] * 4
    assert made["a"].handler == service.reboot  # bound to its object
    assert made["d"].name == "d"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"touches": ["run"]}, "touches `run`, which is nothing that a tool can touch"),
        ({"touches": ["tool other"]}, "touches `tool other`, which is nothing"),
        ({"touches": ["fly away"]}, "touches `fly away`, which is nothing"),
        ({"touches": ["write out"]}, "touches `write out`, whose path depends on the directory"),
        ({"touches": ["network example.com"]}, "touches `network example.com`"),
        ({"touches": ["shell sh"]}, "`shell` takes no target"),
        ({"timeout": "soon"}, "`timeout`: expected a duration"),
        ({"timeout": 0}, "`timeout`"),
        ({"most_bytes": -1}, "`most_bytes`"),
        ({"most_bytes": "1GiB"}, "at most 4194304 cross"),
        ({"name": "a-b"}, "the tool `a-b` has no name that code can use"),
    ],
)
def test_a_malformed_field_is_refused_where_it_is_said(said: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        tool(**said)(find)
    assert message in str(refused.value)


def test_a_tool_made_by_hand_is_checked_when_it_is_used() -> None:
    for wrong in (
        Tool("find", find, touches=(Intent("run"),)),
        Tool("find", find, timeout=-1.0),
        Tool("find", find, most_bytes=0),
        Tool("find", 5),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidRequest):
            toolkit([wrong])
    same = Tool("find", find, touches=(Intent("shell", when="call"),))
    assert toolkit([same])["find"] is same


def test_an_input_and_a_tool_of_one_name_are_refused_with_advice(normalized: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        normalized("1", tools=[find], inputs={"find": 1})
    assert (refused.value.message, refused.value.advice) == (
        "`find` is both an input and a tool",
        "give one of them another name",
    )
