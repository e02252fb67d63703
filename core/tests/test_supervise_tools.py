"""Calls of tools over the private channel: who may call, what a hostile guest can send, what is left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from licet import supervise, values
from licet.supervise import Answered, Called, ProcessOutcome, Reason, Snippet, Spec, calling
from licet.supervise.channel import Channel

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no calls are carried on Windows")

OnCall = Callable[[Called], Coroutine[Any, Any, Answered]]
CHANNEL = """\
import os
held = [cell.cell_contents for cell in f.__closure__]
[fd] = [one._channel for one in held if hasattr(one, "_channel")]
"""
"""Code that finds its channel, as any code can."""


class Tools:
    """Answers with what it was given, and keeps it."""

    def __init__(self) -> None:
        self.calls: list[Called] = []

    async def __call__(self, called: Called) -> Answered:
        self.calls.append(called)
        return Answered(values.encode(values.from_json(called.arguments)))


def run(code: str, on_call: OnCall, is_async: bool = False, wall_time: float = 20.0) -> ProcessOutcome:
    snippet = Snippet(code, tools={"f": is_async, "g": False})
    spec = Spec(snippet, "/", wall_time=wall_time)
    return asyncio.run(supervise.run(spec, lambda stream, data: True, on_call=on_call))


def test_a_call_and_its_reply() -> None:
    tools = Tools()
    outcome = run("f(1, a=2)", tools)
    assert (outcome.reason, outcome.report.value) == (Reason.exited, [[1], {"a": 2}])
    assert [(one.number, one.name, one.line) for one in tools.calls] == [(1, "f", 1)]


def test_tools_that_nobody_answers_are_not_begun() -> None:
    spec = Spec(Snippet("1", tools={"f": False}), "/")
    with pytest.raises(NotImplementedError, match="nothing carries the calls"):
        supervise.run_blocking(spec, lambda stream, data: True)


def test_a_fork_does_not_call_and_spoils_nothing() -> None:
    tools = Tools()
    code = """\
import os
told, tell = os.pipe()
child = os.fork()
if child == 0:
    try:
        f(1)
    except RuntimeError as problem:
        os.write(tell, str(problem).encode())
    os._exit(0)
os.waitpid(child, 0)
[f(2), os.read(told, 1000).decode()]"""
    assert run(code, tools).report.value == [
        [[2], {}],
        "f() is called by the process that was started, and not by a fork",
    ]
    assert len(tools.calls) == 1


def test_a_thread_that_outlives_the_code_still_calls() -> None:
    code = """\
import threading
ended = threading.Event()
def late():
    threading.main_thread().join()
    print(f(1))
threading.Thread(target=late).start()
"early\""""
    heard: list[bytes] = []
    spec = Spec(Snippet(code, tools={"f": False}), "/", wall_time=20.0)

    def hear(stream: str, data: bytes) -> bool:
        heard.append(data)
        return True

    outcome = asyncio.run(supervise.run(spec, hear, on_call=Tools()))
    assert (outcome.exit_code, outcome.report.value, b"".join(heard)) == (0, "early", b"[[1], {}]\n")


def test_a_signal_that_interrupts_a_call_loses_no_other() -> None:
    async def on_call(called: Called) -> Answered:
        if called.name == "g":
            await asyncio.sleep(0.3)
        return Answered(called.number)

    code = """\
import signal
def ring(number, frame):
    raise TimeoutError("rang")
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    g()
except TimeoutError as problem:
    told = str(problem)
[told, f(), f(), g(), f()]"""
    assert run(code, on_call).report.value == ["rang", 2, 3, 4, 5]


def test_loops_and_threads_share_one_channel() -> None:
    code = """\
import asyncio, threading
found = []
def work():
    for step in range(50):
        found.append(g(step) == [[step], {}])
async def main():
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for step in range(30):
        given = await asyncio.gather(*[f(step, n) for n in range(10)])
        found.extend(one == [[step, n], {}] for n, one in enumerate(given))
    for thread in threads:
        thread.join()
asyncio.run(main())
[len(found), all(found)]"""
    tools = Tools()
    outcome = run(code, tools, is_async=True)
    assert (outcome.report.error, outcome.report.value) == (None, [450, True])
    assert len({one.number for one in tools.calls}) == 450


def test_an_async_tool_that_is_called_where_no_loop_runs_gives_its_value() -> None:
    code = "import asyncio\nasync def main():\n    return await f(2), g(3)\n[f(1), *asyncio.run(main())]"
    assert run(code, Tools(), is_async=True).report.value == [[[1], {}], [[2], {}], [[3], {}]]


def test_without_threads_an_awaited_call_is_made_at_once() -> None:
    code = """\
import asyncio, _thread
def none(*args):
    raise RuntimeError("can't start new thread")
_thread.start_new_thread = none
async def main():
    return await asyncio.gather(f(1), f(2))
asyncio.run(main())"""
    assert run(code, Tools(), is_async=True).report.value == [[[1], {}], [[2], {}]]


def test_an_awaited_call_that_is_cancelled_leaves_the_next_ones_alone() -> None:
    asked: list[str] = []

    async def on_call(called: Called) -> Answered:
        asked.append(called.arguments)
        if "slow" in called.arguments:
            await asyncio.sleep(0.2)
        return Answered(called.arguments)

    code = """\
import asyncio
async def main():
    try:
        await asyncio.wait_for(f("slow"), 0.01)
    except TimeoutError:
        pass
    return await f("quick")
asyncio.run(main())"""
    assert run(code, on_call, is_async=True).report.value == '[["quick"],{}]'
    assert len(asked) == 2


FORGED = {
    "a name that is no tool": ("b'C' + bytes(3) + b'\\7' + bytes(4) + b'\\0\\4open[[],{}]'", 0),
    "no name": ("b'C' + bytes(10)", 0),
    "a name longer than the frame": ("b'C' + bytes(8) + b'\\xff\\xff' + b'f'", None),
    "a cut off head": ("b'C123'", None),
    "no text": ("b'C' + bytes(8) + b'\\0\\1f\\xff\\xfe'", 1),
    "neither call nor JSON": ("b'X'", None),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_frames_reach_nobody_unless_they_are_calls(name: str) -> None:
    frame, heard = FORGED[name]
    calls: list[Called] = []

    async def on_call(called: Called) -> Answered:
        calls.append(called)
        return Answered(1)

    code = f"{CHANNEL}frame = {frame}\nos.write(fd, len(frame).to_bytes(4, 'big') + frame)\nf('after')"
    outcome = run(code, on_call)
    if heard is None:  # nothing more is read: the channel is closed, and the call says so
        assert outcome.report.error is None
        assert (outcome.exit_code, calls) == (1, [])
        assert "unusable" in (outcome.detail or "")
    else:
        assert (outcome.exit_code, outcome.report.value) == (0, 1)
        assert len(calls) == heard + 1


def test_a_frame_beyond_the_limit_closes_the_channel() -> None:
    code = f"""{CHANNEL}
os.write(fd, (1 << 30).to_bytes(4, 'big'))
try:
    f()
except RuntimeError as problem:
    print(problem, flush=True)"""
    outcome = run(code, Tools())
    assert (outcome.exit_code, "more than the limit" in (outcome.detail or "")) == (0, True)


def test_who_reads_no_replies_waits_and_the_host_keeps_a_bounded_number() -> None:
    under_way = 0
    most = 0

    async def on_call(called: Called) -> Answered:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        return Answered("x" * 100_000)

    code = f"""{CHANNEL}
frame = b'C' + bytes(8) + b'\\0\\1f[[],{{}}]' + b' ' * 30_000
data = len(frame).to_bytes(4, 'big') + frame
while True:
    os.write(fd, data)"""
    outcome = run(code, on_call, wall_time=2.0)
    assert outcome.reason is Reason.timeout
    assert calling.MOST_UNDER_WAY <= most <= calling.MOST_UNDER_WAY + 20


def test_a_last_reply_ends_the_run() -> None:
    async def on_call(called: Called) -> Answered:
        return Answered(last=True)

    outcome = run("try:\n    f()\nfinally:\n    print('went on')", on_call)
    assert (outcome.reason, outcome.exit_code, outcome.swept) == (Reason.stopped, None, True)


def test_what_on_call_raises_is_raised_again() -> None:
    async def on_call(called: Called) -> Answered:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        run("f()", on_call)


def test_a_cancelled_run_cancels_its_calls_first() -> None:
    told: list[str] = []

    async def main() -> None:
        begun = asyncio.Event()

        async def on_call(called: Called) -> Answered:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                told.append("cancelled")
            return Answered()

        spec = Spec(Snippet("f()", tools={"f": False}), "/")
        task = asyncio.ensure_future(supervise.run(spec, lambda stream, data: True, on_call=on_call))
        await begun.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        told.append("over")

    asyncio.run(main())
    assert told == ["cancelled", "over"]


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")
def test_nothing_is_left_of_runs_with_tools() -> None:
    run("f()", Tools())
    gc.collect()
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(5):
        run("f()", Tools())
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


def _call(number: int, line: int, name: bytes, arguments: bytes) -> bytes:
    body = b"C" + number.to_bytes(4, "big") + line.to_bytes(4, "big") + len(name).to_bytes(2, "big")
    body += name + arguments
    return len(body).to_bytes(4, "big") + body


HELLO = b'\0\0\0\x0e{"begun":true}'


def test_a_channel_takes_calls_before_and_after_the_report() -> None:
    taken: list[Called] = []
    channel = Channel(1000, taken.append)
    report = b'{"value":1,"repr":"1"}'
    frames = [HELLO, _call(1, 2, b"f", b"[]"), len(report).to_bytes(4, "big") + report]
    data = b"".join([*frames, _call(2, 0, b"g", b"{}"), len(report).to_bytes(4, "big") + report])
    for piece in range(0, len(data), 5):
        channel.feed(data[piece : piece + 5])
    assert taken == [Called(1, "f", 2, "[]"), Called(2, "g", None, "{}")]
    assert (channel.report.value, channel.fault, channel.closed) == (1, None, False)


def test_a_channel_without_tools_takes_no_calls() -> None:
    channel = Channel(1000)
    channel.feed(HELLO + _call(1, 2, b"f", b"[]"))
    assert channel.closed
    assert "unusable" in (channel.fault or "")


def test_no_call_comes_before_the_bootstrap() -> None:
    taken: list[Called] = []
    channel = Channel(1000, taken.append)
    channel.feed(_call(1, 2, b"f", b"[]"))
    assert (channel.closed, taken) == (True, [])
