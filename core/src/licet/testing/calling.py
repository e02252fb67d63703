"""Tests of tools, for a backend that says that it `opens` them.

Rules this module keeps: what a tool is given, and what the code is given, is compared as a whole; how often
a tool may be called is not a backend's to watch.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from licet import values
from licet.backend import GuestError, Reply, Termination, ToolCall
from licet.plan import Opened
from licet.testing.bench import Bench
from licet.testing.host import RecordingHost

_TOOLS = Opened(tools=("ask", "wait"))
_AWAITED = frozenset({"wait"})
_NESTED = "x = 1\nfor i in range(60):\n    x = [x, x]\n"
_REFUSED = (
    "ask(print)",
    "ask(a=[{'b': len}])",
    "x = []\nx.append(x)\nask(x)",
    f"{_NESTED}ask(x)",
    "x = []\nfor i in range(200):\n    x = [x]\nask(x)",
    "ask('a' * 5000000)",
)
_KINDS = ("ValueError", "PermissionError", "TimeoutError", "ConnectionError", "HTTPError", "MemoryError")
_RAISED = """\
found = []
for kind in kinds:
    try:
        ask(kind)
    except Exception as problem:
        found.append(f"{type(problem).__name__}: {problem}")
found"""
_CAUGHT = "try:\n    ask()\nexcept BaseException:\n    pass\nfinally:\n    print('went on')\n"
_TOGETHER = """\
import asyncio
async def main():
    return await asyncio.gather(wait(0), wait(1), wait(2))
asyncio.run(main())"""
_THREADS = """\
import threading
found = []
def one(number):
    for step in range(20):
        found.append(ask(number, step) == [number, step])
threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
[len(found), all(found)]"""


@dataclass
class _Asked(RecordingHost):
    """A host whose tools give back what they are given; `reply` answers instead where there is one."""

    reply: Reply | None = None
    calls: list[ToolCall] = field(default_factory=list)
    refused: list[ToolCall] = field(default_factory=list)

    async def call(self, call: ToolCall) -> Reply:
        """Answer it."""
        if call.refused is not None:
            self.refused.append(call)
            return Reply(error=GuestError("TypeError", call.refused))
        self.calls.append(call)
        return self.reply or Reply(value=[*call.args, *([dict(call.kwargs)] if call.kwargs else [])])


class Calling:
    """Calls leave the sandbox as they were made, and replies enter it as they were given."""

    def test_a_tool_gets_what_it_is_given(self, bench: Bench) -> None:
        given = [None, True, -(2**70), 1.5, "ü\0\n", b"\0\xff", (1, [2]), {1: {"a"}}, {"$type": "x"}]
        code = "ask(*given, name=given, args=1)"
        host = _Asked()
        outcome = _calling(bench, code).run(code, host, opened=_TOOLS, inputs={"given": given}).outcome
        assert (outcome.error, outcome.value) == (None, [*given, {"name": given, "args": 1}])
        [call] = host.calls
        assert (call.name, call.args, call.kwargs) == ("ask", tuple(given), {"name": given, "args": 1})
        assert [type(one) for one in call.args] == [type(one) for one in given]

    def test_a_call_has_its_line(self, bench: Bench) -> None:
        code, host = "ask()\n\nx = [\n  ask()]\neval('ask()')\nask()", _Asked()
        _calling(bench, code).run(code, host, opened=_TOOLS)
        assert [call.line for call in host.calls] == [1, 4, None, 6]

    @pytest.mark.parametrize("code", _REFUSED)
    def test_what_is_no_plain_data_is_refused(self, code: str, bench: Bench) -> None:
        host = _Asked()
        outcome = _calling(bench, code).run(code, host, opened=_TOOLS, limits={"wall_time": 30.0}).outcome
        assert outcome.error is not None
        assert outcome.error.type == "TypeError"
        assert outcome.error.message.startswith("the arguments of ask() ")
        assert (len(host.calls), [call.name for call in host.refused]) == (0, ["ask"])

    def test_an_error_is_the_nearest_exception(self, bench: Bench) -> None:
        @dataclass
        class Failing(_Asked):
            async def call(self, call: ToolCall) -> Reply:
                return Reply(error=GuestError(call.args[0], "why"))

        code = _RAISED
        ran = _calling(bench, code).run(code, Failing(), opened=_TOOLS, inputs={"kinds": [*_KINDS]})
        assert ran.outcome.value == [
            "ValueError: why",
            "PermissionError: why",
            "TimeoutError: why",
            "OSError: ConnectionError: why",
            "RuntimeError: HTTPError: why",
            "RuntimeError: MemoryError: why",
        ]

    def test_a_reply_that_cannot_enter_is_an_error(self, bench: Bench) -> None:
        code = "try:\n    ask()\nexcept TypeError as problem:\n    told = str(problem)\ntold"
        ran = _calling(bench, code).run(code, _Asked(reply=Reply(value=object())), opened=_TOOLS)
        assert ran.outcome.value.startswith("ask() returned what can't enter the sandbox: ")

    @pytest.mark.parametrize("fatal", [Termination.tool_limit, Termination.policy_denied])
    def test_a_fatal_reply_ends_the_run(self, fatal: Termination, bench: Bench) -> None:
        ran = _calling(bench, _CAUGHT).run(_CAUGHT, _Asked(reply=Reply(fatal=fatal)), opened=_TOOLS)
        assert (ran.outcome.termination, ran.outcome.exit_code, ran.stdout) == (fatal, None, b"")

    def test_what_the_host_raises_ends_the_run(self, bench: Bench) -> None:
        class Lost(Exception):
            pass

        @dataclass
        class Losing(_Asked):
            async def call(self, call: ToolCall) -> Reply:
                raise Lost

        with pytest.raises(Lost):
            _calling(bench, _CAUGHT).run(_CAUGHT, Losing(), opened=_TOOLS)
        bench.works()

    def test_other_names_are_no_tools(self, bench: Bench) -> None:
        code, host = "other()", _Asked()
        outcome = _calling(bench, code).run(code, host, opened=_TOOLS).outcome
        assert outcome.error == GuestError("NameError", "name 'other' is not defined", 1)
        assert host.calls == []

    def test_awaited_calls_are_under_way_together(self, bench: Bench) -> None:
        all_there = asyncio.Event()

        @dataclass
        class Together(_Asked):
            async def call(self, call: ToolCall) -> Reply:
                self.calls.append(call)
                if len(self.calls) == 3:
                    all_there.set()
                await all_there.wait()
                return Reply(value=call.args[0])

        ran = _calling(bench, _TOGETHER).run(_TOGETHER, Together(), opened=_TOOLS, async_tools=_AWAITED)
        assert (ran.outcome.error, ran.outcome.value) == (None, [0, 1, 2])

    def test_threads_get_each_their_own_reply(self, bench: Bench) -> None:
        host = _Asked()
        ran = _calling(bench, _THREADS).run(_THREADS, host, opened=_TOOLS)
        assert (ran.outcome.error, ran.outcome.value, len(host.calls)) == (None, [160, True], 160)

    def test_time_goes_on_while_a_tool_works(self, bench: Bench) -> None:
        cancelled: list[bool] = []

        @dataclass
        class Slow(_Asked):
            async def call(self, call: ToolCall) -> Reply:
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.append(True)
                return Reply()

        code = "ask()"
        ran = _calling(bench, code).run(code, Slow(), opened=_TOOLS, limits={"wall_time": 0.5})
        assert (ran.outcome.termination, cancelled) == (Termination.timeout, [True])

    def test_large_data_goes_both_ways(self, bench: Bench) -> None:
        code, given = "ask(given)[0] == given", ["é" * 200_000, b"x" * 500_000, [*range(20_000)]]
        host = _Asked()
        ran = _calling(bench, code).run(code, host, opened=_TOOLS, inputs={"given": given})
        assert (ran.outcome.error, ran.outcome.value) == (None, True)
        assert values.to_json(host.calls[0].args[0]) == values.to_json(given)


def _calling(bench: Bench, code: str) -> Bench:
    if "tool" not in bench.descriptor.opens:
        pytest.skip(f"`{bench.descriptor.name}` opens no tools")
    bench.needs(code)
    return bench
