"""Runs that are repeated: the same code comes to the same, and whatever is another is told where it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from licet import ExecutionRequest, Runtime, Tool
from licet.backend import Access, Host, Outcome, Termination
from licet.errors import UsageError
from licet.plan import ExecutionPlan
from licet.record import MemoryLog, Record
from licet.rerun import Past, Rerun
from licet.result import ExecutionResult
from licet.workbench.history.kept import request_of
from licet.workbench.history.past import past_of, stand_ins
from licet.workbench.history.recorded import NotReplayable
from licet.workbench.history.repeated import Difference, differences, reasons
from player import Player

KEPT = "licet: 1\nsandbox: {evidence: declared}\naudit: {content: kept}\nallow: [tool *]\n"
Tools = Mapping[str, Callable[..., Any]]


def counting() -> Tools:
    """Tools that never answer twice alike, and count how often they were called."""
    calls: list[Any] = []

    def find(order: str, amount: int = 1) -> dict[str, Any]:
        calls.append((order, amount))
        return {"order": order, "n": len(calls), "at": time.perf_counter_ns(), "price": Decimal("1.10")}

    async def later(x: int) -> tuple[int, int]:
        calls.append(x)
        return x, len(calls)

    def broken(x: int) -> None:
        calls.append(x)
        raise KeyError(f"no {x}, {len(calls)}")

    def seen() -> list[Any]:
        return calls

    return {"find": find, "later": later, "broken": broken, "seen": seen}


class Place:
    """Runs in one log, under one policy at a time."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.log = MemoryLog()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "xdg"))
        self.under(KEPT)

    def under(self, policy: str) -> None:
        (self.folder / "p.yaml").write_text(policy)

    def runtime(self, backend: Any = None) -> Runtime:
        return Runtime("p.yaml", log=self.log, backends=[backend or Player()], managed=self.folder / "none")

    def run(self, code: str, backend: Any = None, **fields: Any) -> ExecutionResult:
        with self.runtime(backend) as runtime:
            return runtime.run_sync(code, **fields)

    def records(self, result: ExecutionResult) -> tuple[Record, ...]:
        return self.log.records_of(result.run_id)

    def past(self, result: ExecutionResult) -> Past:
        return past_of(self.records(result), self.log.content)

    def again(
        self,
        result: ExecutionResult,
        *,
        past: Past | None = None,
        backend: Any = None,
        given: Mapping[str, bytes] | None = None,
        **fields: Any,
    ) -> tuple[ExecutionResult, Rerun]:
        """Repeat a run as `licet audit rerun` does."""
        records = self.records(result)
        past = past or self.past(result)
        with self.runtime(backend) as runtime:
            request = request_of(records, self.log.content, runtime.stack, given or {})
            request = request.model_copy(update={"tools": stand_ins(records), **fields})
            return asyncio.run(runtime.rerun(request, past))

    def differences(self, result: ExecutionResult, repeated: tuple[ExecutionResult, Rerun]) -> list[str]:
        again, rerun = repeated
        found = differences(self.records(result), again, rerun.differences, rerun.digest, self.log.content)
        return [f"{one.what}: {one.how}" for one in found]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    yield Place(tmp_path, monkeypatch)


LINES = st.lists(
    st.sampled_from(
        [
            "print(now('time.time'))",
            "print(now('datetime.now'), now('datetime.now'))",
            "print(rand(3).hex())",
            "print(rand(0), rand(2000)[-1])",
            "print(find('a'))",
            "print(find('a', 2), find(amount=3, order='b'))",
            "print(find(str(now('x')), rand(1)[0]))",
            "print(later(7))",
            "try: broken(1)\nexcept RuntimeError as e: print(e)",
            "value = [rand(2), given, now('end')]",
            "if rand(1)[0] % 2: broken(2)",
            "for i in range(int.from_bytes(rand(1)) % 4): print(i, now('loop'), later(i))",
        ]
    ),
    max_size=8,
)


@pytest.mark.parametrize(
    "world", ["", "clock: frozen\n", "random: seeded\n", "clock: frozen\nrandom: seeded\n"]
)
def test_what_is_repeated_comes_to_the_same(place: Place, world: str) -> None:
    place.under(KEPT + world)

    @settings(max_examples=25, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(LINES)
    def comes_to_the_same(lines: list[str]) -> None:
        tools = counting()
        code = "\n".join((*lines, "print('end')"))
        first = place.run(code, tools=tools, inputs={"given": {"k": (1, None)}})
        assert first.termination is Termination.exited, first
        called = len(tools["seen"]())
        repeated = place.again(first)
        assert place.differences(first, repeated) == []
        again = repeated[0]
        assert (again.stdout, again.value, again.error) == (first.stdout, first.value, first.error)
        assert [c.outcome for c in again.tool_calls] == [c.outcome for c in first.tool_calls]
        assert len(tools["seen"]()) == called, "a tool was called again"
        assert list(reasons(place.records(first), again, repeated[1].digests)) == []

    comes_to_the_same()


def test_a_repetition_is_not_repeated_but_what_it_repeats_can_be_again(place: Place) -> None:
    first = place.run("print(now('a'), rand(4), find('x'))", tools=counting())
    for _ in range(2):
        again = place.again(first)
        assert place.differences(first, again) == []
        with pytest.raises(NotReplayable, match=f"it repeats the run `{first.run_id}` itself"):
            place.past(again[0])


def test_a_repetition_is_a_run_of_its_own_that_says_of_which(place: Place) -> None:
    first = place.run("print(1)")
    again, _ = place.again(first)
    assert again.run_id != first.run_id
    bodies = [one.entry.body for one in place.records(again)]
    assert bodies[0]["rerun_of"] == first.run_id
    assert [one.entry.kind for one in place.records(again)] == [
        one.entry.kind for one in place.records(first)
    ]


def test_two_runs_have_other_random_bytes_unless_they_are_seeded(place: Place) -> None:
    code = "print(rand(8).hex())"
    assert place.run(code).stdout != place.run(code).stdout
    place.under(KEPT + "random: seeded\n")
    one, two = place.run(code), place.run(code)
    assert one.stdout == two.stdout
    assert place.run(f"{code}\n").stdout != one.stdout, "another plan has other bytes"


def test_no_record_holds_the_key_of_random_bytes_or_any_of_them(place: Place) -> None:
    first = place.run("print(rand(8).hex(), rand(32).hex())")
    told = "".join(str(one.as_json()) for one in place.log.records())
    with place.runtime() as runtime:
        past = place.past(first)
        key = runtime._digest.of_random(past.random, past.run_id)
    assert key.hex() not in told
    assert not any(part in told for part in first.stdout.split())


def test_a_frozen_clock_stands_at_the_instant_of_the_request(place: Place) -> None:
    place.under(KEPT + "clock: frozen\n")
    first = place.run("print(now('a') == now('b'))\nvalue = now('c')")
    assert first.stdout == "True\n"
    assert first.value == place.past(first).at
    records = place.records(first)
    assert [one for one in records if one.entry.kind == "access"] == []
    assert records[-1].entry.body["surroundings"] == {
        "clock_readings": 3,
        "clock_unrecorded": 0,
        "random_bytes": 0,
    }


def test_a_clock_that_goes_on_is_recorded_in_order_and_is_never_set_back(place: Place) -> None:
    first = place.run("now('a')\nnow('a')\nfind('x')\nnow('b')\nnow('a')", tools=counting())
    told = [
        (one.entry.kind, one.entry.body.get("target"), len(one.entry.body.get("readings", ())))
        for one in place.records(first)
        if one.entry.kind in ("access", "tool_call")
    ]
    assert told == [
        ("access", "a", 2),
        ("tool_call", None, 0),
        ("tool_call", None, 0),
        ("access", "b", 1),
        ("access", "a", 1),
    ]
    times = [value for _, value in place.past(first).readings]
    assert times == sorted(times)
    assert abs(times[0] - time.time()) < 60


def test_a_run_that_read_its_clock_too_often_is_not_repeated(place: Place) -> None:
    fits = place.run("for i in range(1000): print(now('t'))")
    assert place.differences(fits, place.again(fits)) == []
    over = place.run("for i in range(1001): now('t')")
    assert place.records(over)[-1].entry.body["surroundings"]["clock_unrecorded"] == 1
    with pytest.raises(NotReplayable, match="read its clock 1001 times"):
        place.past(over)


def test_a_call_that_could_not_be_made_is_told_the_same_again(place: Place) -> None:
    """The stand-ins of a repetition know no `most_bytes`: what was refused is taken from the record."""
    tools = {"find": Tool("find", lambda text: text, most_bytes=10)}
    code = """
for given in (("x" * 20,), (), ("y",)):
    try: print(find(*given))
    except RuntimeError as problem: print(problem)
"""
    first = place.run(code, tools=tools)
    assert [line.partition(":")[0] for line in first.stdout.splitlines()] == ["TypeError", "TypeError", "y"]
    repeated = place.again(first)
    assert (repeated[0].stdout, place.differences(first, repeated)) == (first.stdout, [])
    assert list(place.past(first).refusals) == [1, 2]


TAMPERED: list[tuple[str, Callable[[Past], Past], list[str]]] = [
    (
        "result",
        lambda past: _with_call(past, 1, reply=replace(past.calls[1].reply, value={"n": 99})),
        ["stdout: standard output is another"],
    ),
    (
        "tool",
        lambda past: _with_call(past, 1, tool="later"),
        ["course: call 1: `find` is called, and it was `later` then"],
    ),
    (
        "arguments",
        lambda past: _with_call(past, 2, digest="hmac-sha256:00"),
        ["course: call 2: `find` is called with other arguments than then"],
    ),
    (
        "decision",
        lambda past: _with_call(past, 1, effect="deny"),
        ["course: call 1: `find` was denied then, and is allowed now"],
    ),
    (
        "one refusal more",
        lambda past: replace(past, calls={2: past.calls[2]}, refusals={1: None}),
        ["course: call 1: `find` is called, and its arguments did not fit then"],
    ),
    (
        "one call less",
        lambda past: replace(past, calls={1: past.calls[1]}),
        ["course: call 2: `find` is called, and the recorded run has no such call"],
    ),
    (
        "one call more",
        lambda past: replace(past, calls={**past.calls, 3: past.calls[1]}),
        ["course: 2 calls of tools were made, and 3 then"],
    ),
    (
        "time",
        lambda past: replace(past, readings=[("t", 5.0)]),
        ["stdout: standard output is another"],
    ),
    (
        "reader",
        lambda past: replace(past, readings=[("u", past.readings[0][1])]),
        ["course: reading 1 of the clock: `t` reads it, and `u` did then"],
    ),
    (
        "one reading more",
        lambda past: replace(past, readings=[*past.readings, ("t", 1.0)]),
        ["course: the clock was read 1 times, and 2 times then"],
    ),
    (
        "random",
        lambda past: replace(past, run_id="01M8PF1X2K3RKWJH563V7K0ABA"),
        ["stdout: standard output is another"],
    ),
]


def _with_call(past: Past, number: int, **change: Any) -> Past:
    return replace(past, calls={**past.calls, number: replace(past.calls[number], **change)})


@pytest.mark.parametrize(("change", "expected"), [one[1:] for one in TAMPERED], ids=[o[0] for o in TAMPERED])
def test_what_is_another_than_then_is_told(
    place: Place, change: Callable[[Past], Past], expected: list[str]
) -> None:
    code = "print(find('a'))\nprint(now('t'), rand(9))\nprint(find('b', 5)['n'])"
    first = place.run(code, tools=counting())
    found = place.differences(first, place.again(first, past=change(place.past(first))))
    assert found[: len(expected)] == expected


def test_a_difference_in_output_is_shown_line_by_line(place: Place) -> None:
    first = place.run("print('a')\nprint(find('x')['n'])\nprint('c')", tools=counting())
    past = place.past(first)
    again, rerun = place.again(
        first, past=_with_call(past, 1, reply=replace(past.calls[1].reply, value={"n": 2}))
    )
    found = differences(place.records(first), again, rerun.differences, rerun.digest, place.log.content)
    assert found == (
        Difference(
            "stdout",
            "standard output is another",
            ("--- then", "+++ now", "@@ -1,3 +1,3 @@", " a", "-1", "+2", " c"),
        ),
    )


def test_a_repetition_that_is_denied_now_runs_nothing(place: Place) -> None:
    first = place.run("print(1)")
    place.under(KEPT + "deny: [run]\n")
    again, rerun = place.again(first)
    assert (again.termination, again.backend) == (Termination.policy_denied, None)
    assert rerun.differences == []


def test_a_call_that_is_denied_now_ends_the_repetition(place: Place) -> None:
    code = "print(find('a', 500))\nprint('after')"
    first = place.run(code, tools=counting())
    place.under(KEPT + "rules: [{id: big, deny: tool find, if: args.amount > 100}]\n")
    again, rerun = place.again(first)
    assert again.termination is Termination.policy_denied
    assert rerun.differences == ["call 1: `find` was allowed then, and is denied now"]
    assert "after" not in again.stdout


def test_a_denial_of_then_is_met_again(place: Place) -> None:
    place.under(KEPT + "rules: [{id: big, deny: tool find, if: args.amount > 100}]\n")
    code = "try: find('a', 500)\nexcept RuntimeError as e: print(e)"
    first = place.run(code, tools=counting())
    assert "PermissionError" in first.stdout
    assert place.differences(first, place.again(first)) == []


def test_declared_parameters_bind_positions_again(place: Place) -> None:
    place.under(KEPT + "tools: {find: {order: string, amount: int?}}\n")
    first = place.run("print(find('a', 2))", tools=counting())
    assert place.differences(first, place.again(first)) == []


def test_other_code_or_inputs_are_refused(place: Place) -> None:
    first = place.run("print(x)", inputs={"x": 1})
    with pytest.raises(UsageError, match="this is not the code of the run"):
        place.again(first, given={"code": b"print(x) "})
    with pytest.raises(UsageError, match="this is not the inputs of the run"):
        place.again(first, given={"inputs": b'{"x":2}'})
    assert place.differences(first, place.again(first, given={"code": b"print(x)"})) == []


def test_without_content_the_code_is_given_and_calls_can_not_be_repeated(place: Place) -> None:
    place.under(KEPT.replace("kept", "digest"))
    first = place.run("print(rand(2), now('t'))")
    with pytest.raises(NotReplayable, match="its code is not kept"):
        place.again(first)
    assert place.differences(first, place.again(first, given={"code": b"print(rand(2), now('t'))"})) == []
    calling = place.run("print(find('a'))", tools=counting())
    with pytest.raises(NotReplayable, match="what call 1 gave was not kept"):
        place.past(calling)


def test_erased_results_can_not_be_repeated(place: Place) -> None:
    first = place.run("print(find('a'))", tools=counting())
    with pytest.raises(NotReplayable, match="what call 1 gave is erased"):
        past_of(place.records(first), lambda commitment: None)


def test_a_run_that_never_ran_or_was_ended_from_outside_is_not_repeated(place: Place) -> None:
    with pytest.raises(NotReplayable, match=r"its code never ran \(exited\)"):
        place.past(place.run("1 +"))
    place.under(KEPT + "deny: [run]\n")
    with pytest.raises(NotReplayable, match=r"its code never ran \(policy denied\)"):
        place.past(place.run("1"))
    unended = place.records(place.run("1"))[:-1]
    with pytest.raises(NotReplayable, match="it has no recorded end"):
        past_of(unended, place.log.content)


class Writer(Player):
    """Writes wherever its plan lets it, and says what is opened."""

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        opened = plan.opened
        host.write("stdout", str([bool(x) for x in (opened.read, opened.write, opened.network)]).encode())
        if "effect" in plan.code:
            await host.access(Access("write", str(Path(plan.workdir) / "out" / "f")))
        return Outcome(Termination.exited, exit_code=0)


def test_what_had_an_effect_is_not_repeated_and_nothing_else_is_opened(place: Place) -> None:
    for name in ("in", "out"):
        (place.folder / name).mkdir()
    place.under(KEPT.replace("[tool *]", "[read ./in, write ./out, network a.example:443]"))
    first = place.run("effect = 1", backend=Writer())
    with pytest.raises(NotReplayable, match=r"it had an effect, `write .*out/f`, which is not repeated"):
        place.past(first)
    harmless = place.run("1", backend=Writer())
    assert harmless.stdout == "[True, True, True]"
    again, rerun = place.again(harmless, backend=Writer())
    assert again.stdout == "[True, False, False]"
    assert list(reasons(place.records(harmless), again, rerun.digests)) == [
        "write, network was open then, and is closed here: effects are not repeated",
        "files are read as they are now",
    ]


def test_another_version_of_the_backend_is_told_first(place: Place) -> None:
    first = place.run("print(1)")
    place.under(KEPT + "env: {A: b}\n")
    again, rerun = place.again(first, backend=Player(version="2"))
    assert list(reasons(place.records(first), again, rerun.digests)) == [
        "`player` is another version: 1 then, 2 now",
        "the policy has changed since",
        "its environment is not what it was",
    ]


def test_it_runs_on_the_same_backend_or_not_at_all(place: Place) -> None:
    first = place.run("print(1)")
    again, _ = place.again(first, backend=Player(name="other"))
    assert again.termination is Termination.no_backend


def test_requests_of_other_subjects_are_repeated_for_whoever_asks(place: Place) -> None:
    first = place.run("print(1)", subject={"id": "ann", "tenant": "t"})
    again, _ = place.again(first, subject=ExecutionRequest(code="").subject)
    assert place.records(again)[0].entry.body["subject"]["id"] == "unknown"
