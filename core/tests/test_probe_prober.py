"""The prober's own judgement, on backends that do exactly what a test says, with real twins beside them."""

from __future__ import annotations

import asyncio
import mmap
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from licet.backend import Backend, Descriptor, Host, Language, Outcome, Sandbox, Termination
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.errors import LaunchFailed
from licet.plan import ExecutionPlan
from licet.probe import direct, verify
from licet.probe import prober as probers
from licet.probe.attack import Attack, Proof, Scenario
from licet.probe.pace import Pace
from licet.probe.prober import Prober
from licet.probe.results import ProbeOutcome, ProbeResult
from licet.probe.scene import Scene
from licet.request import Action

Act = Callable[["Script"], Awaitable[Outcome | None]]


class Script:
    """One run, as the fake backend sees it; `say` and `answer` speak as the program would."""

    def __init__(self, plan: ExecutionPlan, host: Host) -> None:
        self.plan = plan
        self.host = host
        found = re.search(r"print\('(probe-\w+) allowed', (\d+) \* (\d+)", plan.code)
        assert found
        self.mark, self.factors = found[1], (int(found[2]), int(found[3]))
        self.product = self.factors[0] * self.factors[1]

    def answer(self) -> None:
        self.host.write("stdout", f"{self.mark} allowed {self.product}\n".encode())

    def say(self, text: str) -> None:
        self.host.write("stdout", f"\n{self.mark} {text}\n".encode())


class Puppet:
    """A backend of one function."""

    def __init__(
        self, act: Act, *, level: Level = Level.enforced, opens: frozenset[Action] = frozenset()
    ) -> None:
        claim = Enforcement(level, "kernel", "says so")
        self.descriptor = Descriptor(
            "puppet",
            "1",
            SandboxEnforcementContract(**{control.value: claim for control in Control}),
            Language("CPython"),
            opens=opens,
        )
        self.runs = 0
        self.plans: list[ExecutionPlan] = []
        self._act = act

    def describe(self) -> Descriptor:
        return self.descriptor

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return _Run(self)

    async def close(self) -> None:
        return None

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        self.runs += 1
        self.plans.append(plan)
        return await self._act(Script(plan, host)) or Outcome(Termination.exited, exit_code=0)


class _Run:
    def __init__(self, puppet: Puppet) -> None:
        self._puppet = puppet

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        return await self._puppet.run(plan, host)

    async def close(self) -> None:
        return None


READ = Attack(
    Control.filesystem_read_deny,
    "read",
    "read a file",
    act="print(open('{SECRET_FILE}').read(), flush=True)",
    held_by=("PermissionError EACCES",),
    proofs=(Proof.text,),
)
REFUSED = "refused PermissionError [Errno 13] Permission denied: 'x'"


def probe(backend: Backend, attack: Attack = READ) -> ProbeResult:
    async def work() -> ProbeResult:
        async with Scene() as scene:
            return await Prober(scene).probe(backend, attack)

    return asyncio.run(work())


def seen(result: ProbeResult) -> tuple[str, str, str]:
    return result.outcome.value, result.observed, result.reason


async def hold(script: Script) -> None:
    script.answer()
    script.say(REFUSED)


def test_an_exact_refusal_with_a_twin_that_succeeds_is_held() -> None:
    backend = Puppet(hold)
    result = probe(backend)
    assert seen(result) == (
        "held",
        "PermissionError EACCES",
        "an exact sign of a wall was seen, and what is allowed worked",
    )
    assert (result.twin, result.attempted, backend.runs) == ("got through", "read a file", 1)
    assert len(result.fingerprint) == 64


def test_a_plan_of_the_prober_opens_what_the_backend_can_and_the_attack_asks() -> None:
    attack = replace(
        READ, opens=replace(READ.opens, read=("{WORK}",), shell=True), limits={"memory": 1 << 20}
    )
    backend = Puppet(hold, opens=frozenset({"read"}))
    probe(backend, attack)
    [plan] = backend.plans
    assert plan.opened.read == (plan.workdir,)
    assert (plan.opened.shell, plan.limits.memory, plan.limits.wall_time) == (False, 1 << 20, 5.0)
    assert set(plan.environment) == {"LICET_PROBE"}
    assert plan.backend == "puppet"


@pytest.mark.parametrize(
    ("said", "observed"),
    [
        ("refused PermissionError [Errno 1] Operation not permitted", "PermissionError EPERM"),
        ("refused FileNotFoundError [Errno 2] No such file or directory: 'x'", "FileNotFoundError ENOENT"),
        ("refused ValueError broken", "ValueError: broken"),
        ("refused PermissionError", "PermissionError"),
        ("refused PermissionErrorX [Errno 13] x", "PermissionErrorX EACCES"),
        ("done", "done"),
        ("nonsense", "exited 0"),
    ],
)
def test_another_error_than_the_expected_is_no_refusal(said: str, observed: str) -> None:
    async def act(script: Script) -> None:
        script.answer()
        script.say(said)

    backend = Puppet(act)
    assert seen(probe(backend)) == (
        "inconclusive",
        observed,
        "none of the exact signs of a wall was seen",
    )
    assert backend.runs == 3  # again, since the first decided nothing


def test_a_crash_is_no_refusal() -> None:
    async def act(script: Script) -> Outcome:
        script.answer()
        return Outcome(Termination.exited, exit_code=139)

    assert seen(probe(Puppet(act)))[:2] == ("inconclusive", "exited 139")


def test_a_broken_allowed_act_is_no_protection() -> None:
    async def act(script: Script) -> None:
        script.say("allowed 1")  # not what only code that ran can know
        script.say(REFUSED)

    assert seen(probe(Puppet(act))) == (
        "inconclusive",
        "PermissionError EACCES",
        "what is allowed did not work either",
    )


def test_an_attack_that_fails_without_walls_proves_nothing() -> None:
    broken = replace(READ, act="open('{SECRET_FILE}x')")
    result = probe(Puppet(hold), broken)
    assert seen(result) == ("inconclusive", "PermissionError EACCES", "the attack fails without walls too")
    assert result.twin == "failed: FileNotFoundError ENOENT"


def test_what_the_host_sees_beats_what_the_program_says() -> None:
    async def act(script: Script) -> None:
        await hold(script)
        path = re.search(r"open\('([^']+)', 'w'\)", script.plan.code)
        assert path
        await asyncio.to_thread(Path(path[1]).write_text, "struck")

    attack = replace(
        READ,
        act="file = open('{CANARY_FILE}', 'w')\nfile.write('x')\nfile.close()",
        proofs=(Proof.struck,),
    )
    backend = Puppet(act)
    assert seen(probe(backend, attack)) == ("leaked", "PermissionError EACCES", "the attack got through")
    assert backend.runs == 1


def test_a_blow_that_was_seen_stays_seen_whatever_becomes_of_the_twin() -> None:
    async def act(script: Script) -> None:
        await hold(script)
        path = re.search(r"open\('([^']+)', 'w'\)", script.plan.code)
        assert path
        if backend.runs == 1:  # a second run would find a wall
            await asyncio.to_thread(Path(path[1]).write_text, "struck")

    attack = replace(
        READ,
        act="raise LookupError('as if the twin had failed')\nfile = open('{CANARY_FILE}', 'w')",
        proofs=(Proof.struck,),
    )
    backend = Puppet(act)
    result = probe(backend, attack)
    assert seen(result) == ("leaked", "PermissionError EACCES", "the attack got through")
    assert result.twin == "failed: LookupError: as if the twin had failed"
    assert backend.runs == 1


def test_a_backend_that_fails_is_inconclusive() -> None:
    async def act(script: Script) -> None:
        raise LaunchFailed("no room")

    assert seen(probe(Puppet(act))) == (
        "inconclusive",
        "raised LaunchFailed: no room",
        "it could not be run: raised LaunchFailed: no room",
    )


def test_a_backend_with_a_fault_of_its_own_is_inconclusive() -> None:
    async def act(script: Script) -> None:
        raise KeyError("oops")

    assert seen(probe(Puppet(act)))[:2] == ("inconclusive", "raised KeyError: 'oops'")


LATE = Attack(
    Control.timeout,
    "late",
    "stay",
    act="import time\ntime.sleep(6)",
    held_by=("timeout",),
    proofs=(Proof.overstayed,),
    limits={"wall_time": 0.1},
    patience=0.1,
)


def test_a_run_that_ends_at_its_deadline_is_held() -> None:
    async def act(script: Script) -> Outcome:
        script.answer()
        await asyncio.sleep(0.1)
        return Outcome(Termination.timeout)

    assert seen(probe(Puppet(act), LATE))[:2] == ("held", "timeout")


def test_waiting_for_a_worker_is_not_the_programs_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probers, "SLACK", 0.05)

    async def act(script: Script) -> Outcome:
        await asyncio.sleep(0.4)  # as in a queue
        script.answer()
        return Outcome(Termination.timeout)

    assert seen(probe(Puppet(act), LATE))[:2] == ("held", "timeout")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probers, "SLACK", 0.05)
    monkeypatch.setattr(direct, "LEAVE_AFTER_S", 0.2)
    monkeypatch.setattr(direct, "_LEAVE_S", 0.05)


def keeps_pace(monkeypatch: pytest.MonkeyPatch, keeps: bool) -> None:
    monkeypatch.setattr(Pace, "lost_since", lambda self, when: not keeps)


async def deaf(script: Script) -> None:
    script.answer()
    for _ in range(20):  # deaf to cancellation, for a while
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            continue


@pytest.mark.usefixtures("impatient")
def test_a_run_that_goes_on_is_left_behind_and_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    keeps_pace(monkeypatch, True)
    backend = Puppet(deaf)
    assert seen(probe(backend, LATE)) == ("leaked", "left behind", "the attack got through")
    assert backend.runs == 2  # what time alone shows is looked at again, alone


BUSY = "late, on a machine too busy to tell why"


@pytest.mark.usefixtures("impatient")
def test_late_is_no_leak_where_the_machine_does_not_keep_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    keeps_pace(monkeypatch, False)
    backend = Puppet(deaf)
    assert seen(probe(backend, LATE)) == ("inconclusive", "left behind", BUSY)
    assert backend.runs == 3


@pytest.mark.usefixtures("impatient")
def test_a_wall_that_was_seen_late_is_no_wall_either(monkeypatch: pytest.MonkeyPatch) -> None:
    keeps_pace(monkeypatch, False)

    async def act(script: Script) -> Outcome:
        script.answer()
        await asyncio.sleep(0.25)
        return Outcome(Termination.timeout)

    assert seen(probe(Puppet(act), LATE)) == ("inconclusive", "timeout", BUSY)


def test_what_says_that_it_stayed_leaks_on_any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    keeps_pace(monkeypatch, False)
    stays = replace(LATE, proofs=(Proof.text, Proof.overstayed), text="stayed-{SUM}")

    async def act(script: Script) -> Outcome:
        script.answer()
        script.say(f"stayed-{sum(script.factors)}")
        return Outcome(Termination.timeout)

    assert seen(probe(Puppet(act), stays)) == ("leaked", "timeout", "the attack got through")


def test_one_late_end_is_not_believed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    keeps_pace(monkeypatch, True)
    monkeypatch.setattr(probers, "SLACK", 0.05)

    async def act(script: Script) -> Outcome:
        script.answer()
        await asyncio.sleep(0.3 if backend.runs == 1 else 0)
        return Outcome(Termination.timeout)

    backend = Puppet(act)
    assert seen(probe(backend, LATE))[:2] == ("held", "timeout")
    assert backend.runs == 2


def test_what_is_tried_again_is_tried_alone() -> None:
    under_way = 0
    company: list[int] = []

    async def act(script: Script) -> None:
        nonlocal under_way
        under_way += 1
        await asyncio.sleep(0.05)
        if "doubtful" in script.plan.code and backend.again(script):
            company.append(under_way)
        under_way -= 1
        script.answer()
        script.say("refused ValueError x" if "doubtful" in script.plan.code else REFUSED)

    class Counting(Puppet):
        doubts = 0

        def again(self, script: Script) -> bool:
            self.doubts += 1
            return self.doubts == 2

    backend = Counting(act)
    doubtful = replace(READ, variant="doubtful", act=f"doubtful = 1\n{READ.act}")
    others = [replace(READ, variant=str(number)) for number in range(12)]
    asyncio.run(verify([backend], attacks=[doubtful, *others]))
    assert company == [1]


def test_a_cancelled_run_that_stops_is_held_and_one_that_does_not_leaks() -> None:
    attack = replace(
        LATE,
        control=Control.cancellation,
        act="import time\nprint('\\n{SAY} ready', flush=True)\ntime.sleep(6)",
        held_by=("cancelled",),
        limits={},
        patience=0.0,
        scenario=Scenario.cancelled,
    )

    async def act(script: Script) -> None:
        script.answer()
        script.say("ready")
        await asyncio.Event().wait()

    assert seen(probe(Puppet(act), attack))[:2] == ("held", "cancelled")

    async def early(script: Script) -> None:
        script.answer()

    assert seen(probe(Puppet(early), attack))[:2] == ("inconclusive", "exited 0")


def test_a_flood_past_the_limit_leaks_whatever_the_termination_says(monkeypatch: pytest.MonkeyPatch) -> None:
    attack = replace(
        READ,
        act="import sys\nfor _ in range(100):\n    print('x' * 65536)",
        held_by=("output_limit",),
        proofs=(Proof.flooded,),
        limits={"output": 1000},
    )

    async def act(script: Script) -> Outcome:
        script.answer()
        for _ in range(80):
            script.host.write("stdout", b"x" * 65536)
        return Outcome(Termination.output_limit)

    keeps_pace(monkeypatch, False)
    assert seen(probe(Puppet(act), attack))[:2] == ("inconclusive", "output_limit")
    keeps_pace(monkeypatch, True)
    assert seen(probe(Puppet(act), attack))[:2] == ("leaked", "output_limit")

    async def stop(script: Script) -> Outcome:
        script.answer()
        assert script.host.write("stderr", b"x" * 500)
        assert not script.host.write("stdout", b"x" * 501)
        return Outcome(Termination.output_limit)

    assert seen(probe(Puppet(stop), attack))[:2] == ("held", "output_limit")


def test_a_host_that_keeps_a_flood_in_memory_leaks() -> None:
    attack = replace(
        READ,
        act="for _ in range(100):\n    print('x' * 65536)",
        held_by=("output_limit",),
        proofs=(Proof.flooded,),
        limits={"output": 1000},
        alone=True,
    )

    async def act(script: Script) -> Outcome:
        script.answer()
        with mmap.mmap(-1, 100 << 20) as kept:  # what an allocator has at hand would not grow the process
            for page in range(0, len(kept), mmap.PAGESIZE):
                kept[page] = 1
            await asyncio.sleep(0.05)
        script.host.write("stdout", b"x" * 1001)
        return Outcome(Termination.output_limit)

    assert seen(probe(Puppet(act), attack))[:2] == ("leaked", "output_limit")


def test_processes_that_the_host_can_not_see_prove_nothing() -> None:
    attack = replace(
        READ,
        act="import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.close(1), os.close(2)\n"
        "    time.sleep(4)\n    os._exit(0)\nprint('\\n{SAY} ready', flush=True)\ntime.sleep(0.2)",
        held_by=("done",),
        proofs=(Proof.alive,),
    )

    async def act(script: Script) -> None:
        script.answer()
        script.say("ready")
        script.say("done")

    assert seen(probe(Puppet(act), attack)) == (
        "inconclusive",
        "done",
        "this host can't see the processes of the run",
    )


def test_a_host_that_is_short_of_something_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise OSError(24, "too many open files")

    monkeypatch.setattr("licet.probe.prober.bare.run", fail)
    result = probe(Puppet(hold))
    assert seen(result)[::2] == ("inconclusive", "the attack fails without walls too")
    assert result.twin == "failed: [Errno 24] too many open files"
    monkeypatch.setattr("licet.probe.prober.apart.run", fail)
    assert seen(probe(Puppet(hold), replace(READ, host_apart=True))) == (
        "inconclusive",
        "not tried: [Errno 24] too many open files",
        "it could not be run: not tried: [Errno 24] too many open files",
    )


class Particular(Puppet):
    """A backend that can't be made without arguments, as a process of its own would have to."""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX, where hosts of their own are made")
def test_a_host_of_its_own_that_can_not_make_the_backend_says_so() -> None:
    outcome, observed, reason = seen(probe(Particular(hold), replace(READ, host_apart=True)))
    assert outcome == "inconclusive"
    told = "`Particular` takes arguments, and `configuration` does not tell which"
    assert observed == f"raised BackendError: {told}"
    assert reason == f"it could not be run: {observed}"


def test_a_prior_run_comes_first_and_the_twin_does_both() -> None:
    attack = replace(READ, prior="left = '{SECRET}'", act="print(left)", scenario=Scenario.after_prior)
    runs: list[str] = []

    class Remembering(Puppet):
        async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
            runs.append(plan.code)
            if len(runs) == 1:
                return Outcome(Termination.exited, exit_code=0)
            return await super().run(plan, host)

    assert seen(probe(Remembering(hold), attack))[0] == "held"
    assert runs[0].startswith("left = 'secret-")
    assert "secret-" not in runs[1]


def test_one_twin_serves_all_backends(tmp_path: Path) -> None:
    marks = tmp_path / "twins"
    attack = replace(READ, act=f"open('{marks}', 'a').write('x')\n{READ.act}")
    report = asyncio.run(verify([Puppet(hold), Puppet(hold), Puppet(hold)], attacks=[attack]))
    assert (report.held, report.leaked, report.inconclusive, report.unclaimed) == (3, 0, 0, 0)
    assert marks.read_text() == "x"


def test_a_leak_counts_only_against_a_claim() -> None:
    async def leak(script: Script) -> None:
        script.answer()
        path = re.search(r"open\('([^']+)'", script.plan.code)
        assert path
        script.say(await asyncio.to_thread(Path(path[1]).read_text))

    claimed = asyncio.run(verify([Puppet(leak)], attacks=[READ]))
    assert (claimed.leaked, claimed.unclaimed) == (1, 0)
    unclaimed = asyncio.run(verify([Puppet(leak, level=Level.not_enforced)], attacks=[READ]))
    assert (unclaimed.leaked, unclaimed.unclaimed) == (0, 1)
    [item] = unclaimed.as_json()["results"]
    assert (item["outcome"], item["measured"], item["claimed"]) == ("unclaimed", "leaked", "not_enforced")
    beyond = replace(READ, partial_may_leak=True)
    partial = asyncio.run(
        verify([Puppet(leak, level=Level.partial)], attacks=[READ, replace(beyond, variant="b")])
    )
    assert (partial.leaked, partial.unclaimed) == (1, 1)


class Layers(Puppet):
    """A puppet with another behind its language."""

    def __init__(self, act: Act, inner: Puppet, **fields: Any) -> None:
        super().__init__(act, **fields)
        self.inner = inner

    def behind(self) -> Backend:
        return self.inner


async def _leak(script: Script) -> None:
    script.answer()
    path = re.search(r"open\('([^']+)'", script.plan.code)
    assert path
    script.say(await asyncio.to_thread(Path(path[1]).read_text))


def test_a_wall_of_the_kernel_has_to_hold_behind_the_language_too() -> None:
    inner = Puppet(hold)
    result = probe(Layers(hold, inner))
    twice = "PermissionError EACCES; behind the language PermissionError EACCES"
    assert seen(result)[:2] == ("held", twice)
    assert inner.runs == 1
    leaking = probe(Layers(hold, Puppet(_leak)))
    assert (leaking.outcome, leaking.reason) == (
        ProbeOutcome.leaked,
        "behind the language: the attack got through",
    )
    mute = probe(Layers(hold, Puppet(lambda script: asyncio.sleep(0))))
    assert (mute.outcome, mute.reason) == (
        ProbeOutcome.inconclusive,
        "behind the language: what is allowed did not work either",
    )


def test_nothing_is_asked_behind_a_language_that_leaks_or_claims_no_kernel() -> None:
    for act, level, outcome in (
        (_leak, Level.enforced, ProbeOutcome.leaked),
        (hold, Level.not_enforced, ProbeOutcome.held),
    ):
        inner = Puppet(hold)
        assert probe(Layers(act, inner, level=level)).outcome is outcome
        assert inner.runs == 0
    inner = Puppet(_leak)
    language = Layers(hold, inner)
    claim = Enforcement(Level.enforced, "language", "says so")
    contract = SandboxEnforcementContract(filesystem_read_deny=claim)
    language.descriptor = replace(language.descriptor, sandbox_enforcement_contract=contract)
    assert (probe(language).outcome, inner.runs) == (ProbeOutcome.held, 0)


def test_the_word_of_a_language_proves_no_wall_of_the_kernel() -> None:
    async def lack(script: Script) -> None:
        script.answer()
        script.say("refused AttributeError no such function")

    attack = replace(READ, inexpressible=("AttributeError: no such function",))
    backend = Puppet(lack)
    backend.descriptor = replace(backend.descriptor, language=Language("small", modules=frozenset()))
    assert seen(probe(backend, attack)) == (
        "inconclusive",
        "AttributeError: no such function",
        "the language refused it; the kernel was never asked",
    )
    layered = Layers(lack, Puppet(hold))
    layered.descriptor = backend.descriptor
    assert probe(layered, attack).outcome is ProbeOutcome.held


def test_a_backend_that_can_not_run_here_is_skipped() -> None:
    backend = Puppet(hold)
    backend.descriptor = replace(backend.descriptor, unavailable="not here")
    report = asyncio.run(verify([backend], attacks=[READ]))
    assert (report.findings, report.skipped, backend.runs) == ((), ("puppet",), 0)


def test_progress_hears_of_every_result() -> None:
    heard: list[Any] = []
    report = asyncio.run(verify([Puppet(hold)], heard.append, attacks=[READ, replace(READ, variant="b")]))
    assert sorted(r.variant for r in heard) == ["b", "read"]
    assert {r.key for r in heard} == {r.key for r in report.results}
    assert all(r.outcome is ProbeOutcome.held for r in heard)
