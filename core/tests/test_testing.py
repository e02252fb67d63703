"""The pieces of the conformance kit that need no backend; the suite itself runs where backends are tested."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from licet.backend import Descriptor, Language, Target, ToolCall
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.probe.attacks import ATTACKS
from licet.probe.results import ProbeOutcome, ProbeResult
from licet.testing import BackendSuite, RecordingHost, gaps
from licet.testing.bench import lacks
from licet.testing.claims import on_claims, seen_from_outside
from licet.testing.machine import look
from licet.testing.verdict import refusal, two_faced

UDP = next(attack for attack in ATTACKS if str(attack) == "network_deny/udp")


def descriptor(level: Level, **fields: Any) -> Descriptor:
    contract = SandboxEnforcementContract(
        network_deny=Enforcement(level, "kernel", "a network of its own", ("a gap",))
    )
    return Descriptor("some", "1", contract, Language("CPython"), **fields)


def result(outcome: ProbeOutcome, observed: str) -> ProbeResult:
    return ProbeResult(
        backend="some",
        control=UDP.control,
        variant=UDP.variant,
        outcome=outcome,
        attempted=UDP.goal,
        observed=observed,
        twin="got through",
        reason="the attack got through" if outcome is ProbeOutcome.leaked else "no exact sign was seen",
        when=0.0,
        duration=0.0,
        fingerprint="here",
    )


def test_a_refuted_claim_is_told_as_a_colleague_would() -> None:
    told = refusal(descriptor(Level.enforced), UDP, result(ProbeOutcome.leaked, "done"))
    assert told == (
        "`some` claims `network_deny: enforced`, which is not so here\n"
        "  by        a network of its own (boundary: kernel)\n"
        "  attacked  network_deny/udp: send a datagram to the host\n"
        "  observed  done: the attack got through\n"
        "  twin      the same program without walls got through\n"
        "  so        licet would not use `some` for a run that demands `network_deny`\n"
        "  you can   enforce it, or claim `not_enforced`, or name the gap: "
        "known_gaps = {'network_deny/udp': 'why'}"
    )


@pytest.mark.parametrize(
    ("level", "outcome", "advice"),
    [
        (
            Level.enforced,
            ProbeOutcome.inconclusive,
            "have the code see one of `ConnectionRefusedError ECONNREFUSED`, ",
        ),
        (
            Level.not_applicable,
            ProbeOutcome.leaked,
            "claim `not_applicable` only for what the language can't ",
        ),
        (
            Level.not_applicable,
            ProbeOutcome.inconclusive,
            "have the code see `ModuleNotFoundError: No module named 'socket'`",
        ),
    ],
)
def test_the_advice_fits_the_claim(level: Level, outcome: ProbeOutcome, advice: str) -> None:
    told = refusal(descriptor(level), UDP, result(outcome, "exited 1"))
    assert told is not None
    assert told.splitlines()[-1].startswith(f"  you can   {advice}")


def test_a_claim_that_held_is_told_nothing() -> None:
    assert (
        refusal(descriptor(Level.enforced), UDP, result(ProbeOutcome.held, "PermissionError EPERM")) is None
    )


def test_a_wall_that_stands_only_when_probed_is_told() -> None:
    told = two_faced(descriptor(Level.enforced), UDP, "the target on the host was struck")
    assert (
        told.splitlines()[0]
        == "`some` claims `network_deny: enforced`, which does not hold in an ordinary run"
    )
    assert "  twin" not in told


def test_only_claims_are_attacked() -> None:
    assert {attack.control for attack in on_claims(descriptor(Level.enforced))} == {Control.network_deny}
    assert on_claims(descriptor(Level.planned)) == []
    beyond = {str(attack) for attack in on_claims(descriptor(Level.partial)) if attack.partial_may_leak}
    assert beyond == set()


def test_what_the_host_can_see_is_judged_by_the_host_alone() -> None:
    seen = {attack.control for attack in ATTACKS if seen_from_outside(attack)}
    assert seen >= {
        Control.network_deny,
        Control.unix_socket_deny,
        Control.filesystem_read_deny,
        Control.filesystem_write_deny,
        Control.shell_execution,
    }
    assert Control.cancellation not in seen


@pytest.mark.parametrize(
    ("test", "variant", "attacked", "why"),
    [
        ("test_one", None, False, "whole"),
        ("test_one", "late", False, "whole"),
        ("test_two", "late", False, "part"),
        ("test_two", "early", False, None),
        ("test_a_claim_withstands", "network_deny/udp", True, "attack"),
        ("test_a_claim_holds_in_an_ordinary_run", "network_deny/udp", False, None),
    ],
)
def test_a_gap_is_found_by_its_name(test: str, variant: str | None, attacked: bool, why: str | None) -> None:
    known = {"test_one": "whole", "test_two[late]": "part", "network_deny/udp": "attack"}
    assert gaps.reason(known, test, variant, attacked) == why


def test_gaps_that_are_none_are_told() -> None:
    known = {"test_one": "why", "test_two[x]": "why", "network_deny/smoke": "why", "network_deny/udp": " "}
    assert gaps.faults(known, ["test_one"]) == [
        "`test_two[x]` is no test and no CONTROL/VARIANT of an attack",
        "`network_deny/smoke` is no test and no CONTROL/VARIANT of an attack",
        "the gap `network_deny/udp` has no reason",
    ]


def test_a_suite_without_a_backend_says_what_is_missing() -> None:
    class Forgotten(BackendSuite):
        pass

    with pytest.raises(NotImplementedError, match=r"^`Forgotten` has no `make` that returns a backend$"):
        Forgotten().make()


@pytest.mark.parametrize(
    ("language", "lacking"),
    [
        (Language("CPython"), []),
        (Language("small", modules=frozenset({"sys"})), ["module `socket`"]),
        (Language("small", lacks_syntax=frozenset({"del_statement"})), ["syntax `del_statement`"]),
        (Language("small", builtins=frozenset({"len"})), ["built-in `print`"]),
    ],
)
def test_what_a_language_lacks_is_read_as_selection_reads_it(language: Language, lacking: list[str]) -> None:
    assert lacks(language, "import socket, sys\nx = 1\ndel x\nprint(len(''))") == lacking


def test_the_host_keeps_what_it_hears_and_counts_what_comes_late() -> None:
    heard: list[bytes] = []
    host = RecordingHost(output=4, on_write=heard.append)
    assert host.write("stdout", b"abc") is True
    assert host.write("stderr", b"de") is False
    host.over = True
    host.write("stdout", b"late")
    assert (host.stdout, host.stderr, host.total, host.late) == (b"abc", b"", 9, 4)
    assert heard == [b"abc", b"de", b"late"]


def test_the_host_grants_nothing_by_itself() -> None:
    async def ask() -> str | None:
        with pytest.raises(PermissionError, match=r"^`x.com:443` is not opened$"):
            await RecordingHost().connect(Target("x.com", 443))
        error = (await RecordingHost().call(ToolCall("find"))).error
        return error and error.type

    assert asyncio.run(ask()) == "NameError"


def test_what_is_left_behind_is_named(tmp_path: Path) -> None:
    before = look(tmp_path)
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="pool-1", daemon=True)
    thread.start()
    reader, writer = os.pipe()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (tmp_path / "left.txt").touch()
    try:
        told = look(tmp_path).beyond(before)
    finally:
        over.set()
        child.communicate(b"\n")
        os.close(reader)
        os.close(writer)
        thread.join()
        (tmp_path / "left.txt").unlink()
    assert told == [
        "descriptors: 3 more of pipe",
        "threads: 1 more of pool",
        f"processes: 1 more of {sys.executable}",
        f"files: 1 more of {tmp_path / 'left.txt'}",
    ]
    assert look(tmp_path, settled=before).beyond(before) == []
