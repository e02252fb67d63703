"""Tests of runs that wait, for a backend that says that it `suspends` them.

Rules this module keeps: a suspended run goes on in another instance of the backend, after the first is
closed; what it comes to then is what the same code comes to that never waited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from licet.backend import Backend, Outcome, Reply, Termination, ToolCall
from licet.errors import SuspensionVoid
from licet.plan import Opened, Resumption
from licet.surroundings import ByteStream
from licet.testing.bench import Bench, Ran
from licet.testing.host import RecordingHost

_CODE = """\
def total(items):
    found = []
    for item in items:
        try:
            found.append([item, ask(item, note="n")])
        except ValueError as problem:
            found.append([item, str(problem)])
        print("asked", item)
    return found
kept = {"before": [1, 2]}
print("begins")
[total(["a", "b", "c"]), kept]
"""
_DRAWS = "import random\nfirst = random.random()\nask(1)\n[first, random.random(), random.random()]"
_TOOLS = Opened(tools=("ask",))
_RAISED = ("ValueError", "not approved")
_LONGEST_S = 0.4
_SHORT_LOOP = "ask(1)\ncount = 0\nwhile count < 200000:\n    count += 1\n"


@dataclass
class Approver(RecordingHost):
    """A host whose tool `ask` doubles what it is given; the calls of the numbers in `waits` wait instead."""

    waits: tuple[int, ...] = ()
    calls: int = 0
    asked: Any = None
    seed: bytes = b"one"
    stream: ByteStream | None = None

    async def call(self, call: ToolCall) -> Reply:
        """Answer it, or let it wait."""
        self.calls += 1
        if self.calls not in self.waits:
            return Reply(value=call.args[0] * 2)
        self.asked = call
        return Reply(fatal=Termination.approval_pending)

    def random_bytes(self, count: int) -> bytes:
        """The next of the seed."""
        self.stream = self.stream or ByteStream(self.seed)
        return self.stream.take(count)


class Suspension:
    """A run is taken out of one sandbox and goes on in another."""

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_a_suspended_run_comes_to_the_same(
        self, number: int, bench: Bench, make_backend: Callable[[], Backend]
    ) -> None:
        plain = _suspends(bench, _CODE).run(_CODE, Approver(), opened=_TOOLS)
        assert plain.ended == ("exited", 0)
        host = Approver(waits=(number,))
        first = bench.run(_CODE, host, opened=_TOOLS)
        assert first.outcome.termination is Termination.approval_pending
        assert first.outcome.suspension is not None, first.outcome.detail
        assert (host.asked.name, host.asked.args[1:], host.asked.kwargs) == ("ask", (), {"note": "n"})
        asyncio.run(bench.backend.close())
        other = Bench(make_backend(), bench.workdir)
        given = Resumption(first.outcome.suspension, value=host.asked.args[0] * 2)
        second = _closing(other, other.run(_CODE, host, opened=_TOOLS, resumption=given))
        assert _what_came(second) == _what_came(plain)

    def test_a_run_can_wait_again_and_again(self, bench: Bench) -> None:
        plain = _suspends(bench, _CODE).run(_CODE, Approver(), opened=_TOOLS)
        host = Approver(waits=(1, 2, 3))
        ran = bench.run(_CODE, host, opened=_TOOLS)
        for _ in host.waits:
            given = Resumption(_written(ran.outcome), value=host.asked.args[0] * 2)
            ran = bench.run(_CODE, host, opened=_TOOLS, resumption=given)
        assert (_what_came(ran), host.calls) == (_what_came(plain), 3)

    def test_a_denial_is_raised_where_the_call_stands(self, bench: Bench) -> None:
        host = Approver(waits=(2,))
        first = _suspends(bench, _CODE).run(_CODE, host, opened=_TOOLS)
        given = Resumption(_written(first.outcome), error=_RAISED)
        ran = bench.run(_CODE, host, opened=_TOOLS, resumption=given)
        assert ran.ended == ("exited", 0)
        assert ran.outcome.value == [[["a", "aa"], ["b", _RAISED[1]], ["c", "cc"]], {"before": [1, 2]}]

    def test_randomness_goes_on(self, bench: Bench) -> None:
        if "random" not in bench.descriptor.governs:
            pytest.skip(f"`{bench.descriptor.name}` does not govern the randomness")
        plain = _suspends(bench, _DRAWS).run(_DRAWS, Approver(), opened=_TOOLS)
        host = Approver(waits=(1,))
        first = bench.run(_DRAWS, host, opened=_TOOLS)
        given = Resumption(_written(first.outcome), value=2)
        assert bench.run(_DRAWS, host, opened=_TOOLS, resumption=given).outcome.value == plain.outcome.value

    def test_what_was_spent_of_the_time_is_spent(self, bench: Bench) -> None:
        """The second half is short, and would have ended in time if nothing had been spent before."""

        class Slow(Approver):
            async def call(self, call: ToolCall) -> Reply:
                await asyncio.sleep(_LONGEST_S)
                return await super().call(call)

        host = Slow(waits=(1,))
        limits = {"wall_time": 30.0}
        first = _suspends(bench, _SHORT_LOOP).run(_SHORT_LOOP, host, opened=_TOOLS, limits=limits)
        given = Resumption(_written(first.outcome), value=2)
        shorter = {"wall_time": _LONGEST_S}
        second = bench.run(_SHORT_LOOP, host, opened=_TOOLS, limits=shorter, resumption=given)
        assert second.outcome.termination is Termination.timeout
        assert first.outcome.usage.wall_time >= _LONGEST_S
        assert second.outcome.usage.wall_time >= first.outcome.usage.wall_time

    def test_what_it_did_not_write_down_is_void(self, bench: Bench) -> None:
        _suspends(bench, _CODE)
        for written in (b"", b"x" * 100, b"\0" * 1000):
            with pytest.raises(SuspensionVoid):
                bench.run(_CODE, Approver(), opened=_TOOLS, resumption=Resumption(written, value=1))
        bench.works()

    def test_a_run_that_waits_leaves_the_backend_sound(self, bench: Bench) -> None:
        first = _suspends(bench, _CODE).run(_CODE, Approver(waits=(1,)), opened=_TOOLS)
        assert _written(first.outcome)
        bench.works()


def _suspends(bench: Bench, code: str) -> Bench:
    if not bench.descriptor.suspends:
        pytest.skip(f"`{bench.descriptor.name}` does not suspend runs")
    bench.needs(code)
    return bench


def _written(outcome: Outcome) -> bytes:
    assert outcome.termination is Termination.approval_pending
    assert outcome.suspension is not None, outcome.detail
    return outcome.suspension


def _closing(bench: Bench, ran: Ran) -> Ran:
    asyncio.run(bench.backend.close())
    return ran


def _what_came(ran: Ran) -> tuple[object, ...]:
    """All but usage and what was set up."""
    told = ran.outcome
    return *ran.ended, told.value, told.value_repr, told.error, ran.stdout, ran.stderr
