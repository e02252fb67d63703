"""Processes that want one grant, and processes that are killed: the state is right afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from asked import answer, request
from licet.approvals import clocks
from licet.approvals.forms import StoredApproval
from licet.approvals.presence import FOLDER
from licet.approvals.store import ApprovalStore
from licet.errors import ApprovalClosed, NoApproval
from licet.state import StateDirectory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a system that kills by signals")

_BEGIN = """
import sqlite3, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from asked import answer, request
from licet.approvals import clocks
from licet.approvals.store import ApprovalStore
from licet.errors import ApprovalClosed
from licet.state import open_state
now = clocks.now
state = open_state(Path(sys.argv[2]))

def say(word):
    print(word, flush=True)
    return sys.stdin.readline().strip()
"""

_RACER = f"""{_BEGIN}
store = ApprovalStore(state)
wanted = say("ready")
while wanted:
    try:
        store.consume(wanted, 1, now())
        outcome = "won"
    except ApprovalClosed:
        outcome = "lost"
    wanted = say(outcome)
"""

_KILLED = f"""{_BEGIN}
class Stopping(sqlite3.Connection):
    armed = sys.argv[3] == "open"

    def execute(self, statement, *values):
        stops = Stopping.armed and statement == "COMMIT"
        if stops and sys.argv[4] == "before":
            say("here")
        found = super().execute(statement, *values)
        if stops and sys.argv[4] == "after":
            say("here")
        return found

plain = sqlite3.connect
sqlite3.connect = lambda *values, **named: plain(*values, factory=Stopping, **named)
store = ApprovalStore(state)
Stopping.armed = True
at = now()
{{
    "ask": lambda: store.ask(request("A2", asked=at), frozen=b"frozen"),
    "answer": lambda: store.answer("pending", answer(request("pending")), at),
    "deny": lambda: store.answer("pending", answer(request("pending"), approve=False), at),
    "revoke": lambda: store.end("granted", "revoked", at, reason="no"),
    "consume": lambda: store.consume("granted", 7, at),
    "resume": lambda: store.consume("granted", 7, at, resuming=True),
    "suspend": lambda: store.suspend("pending", b"sealed"),
    "expire": lambda: store.expired(at),
    "forget": lambda: store.forget("run-pending"),
}}[sys.argv[3]]()
"""

_USER = f"""{_BEGIN}
store = ApprovalStore(state)
store.consume("granted", 7, now())
if say("using") == "end":
    store.ended("granted", "executed", now())
    store.close()
    say("ended")
"""


@contextmanager
def child(script: str, state: StateDirectory, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", script, str(Path(__file__).parent.parent), str(state.path), *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str], word: str | None = None) -> str:
    """What a process says, after it was told something."""
    assert process.stdin is not None
    assert process.stdout is not None
    if word is not None:
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def grant(store: ApprovalStore, id: str) -> None:
    to = request(id, asked=clocks.now())
    store.ask(to, frozen=b"frozen", sealed=b"sealed")
    store.answer(id, answer(to), clocks.now())


def race(state: StateDirectory, tries: int) -> None:
    with ApprovalStore(state) as store, ExitStack() as stack:
        racers = [stack.enter_context(child(_RACER, state)) for _ in range(2)]
        assert [told(racer) for racer in racers] == ["ready", "ready"]
        winners = set()
        for n in range(tries):
            grant(store, f"A{n}")
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.write(f"A{n}\n")
                racer.stdin.flush()
            outcomes = [told(racer) for racer in racers]
            assert sorted(outcomes) == ["lost", "won"], f"try {n}"
            winners.add(outcomes.index("won"))
            assert store.get(f"A{n}").used == 1
        assert winners == {0, 1}  # else it was no race


def test_of_two_processes_that_want_one_grant_one_wins(state: StateDirectory) -> None:
    race(state, 50)


@pytest.mark.soak
def test_of_two_processes_that_want_one_grant_one_wins_a_thousand_times(state: StateDirectory) -> None:
    race(state, 1000)


Read = Callable[[ApprovalStore], object]


def _state(id: str) -> Read:
    return lambda store: store.get(id).state


def _exists(store: ApprovalStore) -> bool:
    try:
        return store.get("A2").frozen == b"frozen"
    except NoApproval:
        return False


def _marked(store: ApprovalStore) -> int:
    return len(store.expired(clocks.now()))


TRANSITIONS: dict[str, tuple[Read, object, object]] = {
    "ask": (_exists, False, True),
    "answer": (_state("pending"), "pending", "granted"),
    "deny": (_state("pending"), "pending", "denied"),
    "revoke": (_state("granted"), "granted", "revoked"),
    "consume": (_state("granted"), "granted", "consumed"),
    "resume": (lambda store: store.get("granted").sealed, b"sealed", None),
    "suspend": (lambda store: store.get("pending").sealed, None, b"sealed"),
    "expire": (_marked, 1, 0),
    "forget": (_state("pending"), "pending", "withdrawn"),
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("transition", TRANSITIONS)
def test_a_process_that_is_killed_at_a_transition_leaves_what_was_or_what_is(
    state: StateDirectory, transition: str, when: str
) -> None:
    read, was, becomes = TRANSITIONS[transition]
    with ApprovalStore(state) as store:
        grant(store, "granted")
        store.ask(request("pending", asked=clocks.now()))
        store.ask(request("expiring", asked=clocks.now(), expires=1e-6))
        with child(_KILLED, state, transition, when) as process:
            assert told(process) == "here"
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert read(store) == (becomes if when == "after" else was)
    with ApprovalStore(state) as again:  # and whoever comes next goes on
        again.ask(request("A3", asked=clocks.now()))
        assert again.get("A3").state == "pending"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_is_killed_while_it_makes_the_file_leaves_none_or_a_whole_one(
    state: StateDirectory, when: str
) -> None:
    with child(_KILLED, state, "open", when) as process:
        assert told(process) == "here"
        process.send_signal(signal.SIGKILL)
        process.wait()
    with ApprovalStore(state) as store:
        store.ask(request(asked=clocks.now()))
        assert store.get("A1").state == "pending"


def _ended(found: tuple[StoredApproval, ...]) -> list[tuple[str, str | None]]:
    return [(one.request.id, one.ending) for one in found]


def test_a_use_of_a_process_that_died_is_unknown_and_one_caller_hears_of_it(
    state: StateDirectory,
) -> None:
    with ApprovalStore(state) as store, ApprovalStore(state) as other:
        grant(store, "granted")
        with child(_USER, state) as process:
            assert told(process) == "using"
            assert store.recover(clocks.now()) == ()  # it lives
            assert store.get("granted").frozen == b"frozen"
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert _ended(other.recover(clocks.now())) == [("granted", "unknown")]
        assert store.recover(clocks.now()) == ()
        over = store.get("granted")
        assert (over.state, over.ending, over.frozen, over.sealed) == (
            "consumed",
            "unknown",
            None,
            None,
        )
        with pytest.raises(ApprovalClosed):
            store.consume("granted", 8, clocks.now())
    assert list((state.path / FOLDER).iterdir()) == []


def test_a_process_that_is_stopped_is_alive(state: StateDirectory) -> None:
    with ApprovalStore(state) as store:
        grant(store, "granted")
        with child(_USER, state) as process:
            assert told(process) == "using"
            process.send_signal(signal.SIGSTOP)
            assert store.recover(clocks.now()) == ()
            process.send_signal(signal.SIGCONT)
            assert told(process, "end") == "ended"
        assert store.recover(clocks.now()) == ()
        assert store.get("granted").ending == "executed"
    assert list((state.path / FOLDER).iterdir()) == []


def test_a_use_is_that_of_the_store_that_began_it(state: StateDirectory) -> None:
    with ApprovalStore(state) as store:
        grant(store, "granted")
        store.consume("granted", 7, clocks.now())
        with ApprovalStore(state) as other:
            assert other.recover(clocks.now()) == ()
        assert os.listdir(state.path / FOLDER)
    with ApprovalStore(state) as store:  # closed before it said what came of it
        assert _ended(store.recover(clocks.now())) == [("granted", "unknown")]


def test_what_a_process_knows_of_its_own_use_wins_over_what_others_took_it_for(state: StateDirectory) -> None:
    with ApprovalStore(state) as store, ApprovalStore(state) as other:
        grant(store, "granted")
        store.consume("granted", 7, clocks.now())
        for path in (state.path / FOLDER).iterdir():
            path.unlink()  # somebody cleans up
        assert _ended(other.recover(clocks.now())) == [("granted", "unknown")]
        store.ended("granted", "executed", clocks.now())
        assert store.get("granted").ending == "executed"
        with pytest.raises(ApprovalClosed):
            other.ended("granted", "failed_to_start", clocks.now())
