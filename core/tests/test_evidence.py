"""Receipts applied to claims: what rises, what falls, what is made, and how often."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.backend import Descriptor, Host, Language, Outcome, Sandbox, Termination
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.errors import AuditUnavailable
from licet.evidence import Attestor, Witness, missing, offer
from licet.plan import ExecutionPlan
from licet.probe import situation as situations
from licet.probe.attack import Attack, Proof
from licet.probe.attacks import here
from licet.probe.fingerprint import fingerprint
from licet.probe.results import (
    INCONCLUSIVE_LIFETIME_S,
    LIFETIME_S,
    NO_RECEIPTS,
    ProbeOutcome,
    ProbeResult,
    Receipts,
)
from licet.probe.situation import situation
from licet.probe.store import ReceiptStore
from licet.select import Offer

WHEN = 1_795_000_000.0


def describe(level: Level = Level.enforced, gaps: tuple[str, ...] = ("known",)) -> Descriptor:
    claim = Enforcement(level, "kernel", "walls", gaps)
    contract = SandboxEnforcementContract(**{control.value: claim for control in Control})
    return Descriptor("b", "1", contract, Language("CPython"))


def attack(variant: str, control: Control = Control.timeout, **fields: Any) -> Attack:
    return Attack(control, variant, "try", act="pass", held_by=("no",), **{"quick": True, **fields})


def receipt(on: Attack, outcome: str, **fields: Any) -> ProbeResult:
    return ProbeResult(
        **{
            "backend": "b",
            "control": on.control,
            "variant": on.variant,
            "outcome": ProbeOutcome(outcome),
            "attempted": on.goal,
            "observed": "no",
            "twin": "got through",
            "reason": "why not",
            "when": WHEN,
            "duration": 0.1,
            "fingerprint": "f",
            **fields,
        }
    )


QUICK, OTHER = attack("quick"), attack("other")
FULL = attack("full", quick=False)
BEYOND = attack("beyond", partial_may_leak=True)
KNOWN = (QUICK, OTHER, FULL, BEYOND)


def timeout_of(outcomes: dict[Attack, str], level: Level = Level.enforced) -> Enforcement:
    receipts = Receipts.of(receipt(on, outcome) for on, outcome in outcomes.items())
    return offer(describe(level), receipts, KNOWN).descriptor.sandbox_enforcement_contract.timeout


HELD = {QUICK: "held", OTHER: "held", BEYOND: "held"}


def test_a_claim_whose_quick_attacks_all_held_is_probed() -> None:
    for outcomes in (HELD, {**HELD, FULL: "held"}):
        claim = timeout_of(outcomes)
        assert (claim.level, claim.evidence, claim.gaps) == (Level.enforced, Evidence.probed, ("known",))


@pytest.mark.parametrize("left_out", [QUICK, OTHER, BEYOND], ids=str)
def test_one_that_was_never_tried_proves_nothing(left_out: Attack) -> None:
    claim = timeout_of({on: "held" for on in HELD if on is not left_out})
    assert (claim.level, claim.evidence, claim.gaps) == (Level.enforced, Evidence.declared, ("known",))


@pytest.mark.parametrize("broken", KNOWN, ids=str)
def test_a_leak_refutes_the_claim_and_names_itself(broken: Attack) -> None:
    claim = timeout_of({**HELD, broken: "leaked"})
    assert (claim.level, claim.evidence) == (Level.not_enforced, Evidence.declared)
    assert claim.gaps == ("known", f"refuted here by attack `{broken.variant}` on 2026-11-18T11:06:40Z")


@pytest.mark.parametrize("undecided", KNOWN, ids=str)
def test_what_was_inconclusive_is_not_proved_and_says_so(undecided: Attack) -> None:
    claim = timeout_of({**HELD, undecided: "inconclusive"})
    told = f"not proved here by attack `{undecided.variant}` on 2026-11-18T11:06:40Z: why not"
    assert (claim.level, claim.evidence, claim.gaps) == (
        Level.enforced,
        Evidence.declared,
        ("known", told),
    )


def test_a_claim_of_partial_may_leave_open_what_is_beyond_it() -> None:
    for beyond in ("held", "leaked", "inconclusive"):
        claim = timeout_of({QUICK: "held", OTHER: "held", BEYOND: beyond}, Level.partial)
        assert (claim.level, claim.evidence) == (Level.partial, Evidence.probed)
    assert timeout_of({QUICK: "held", OTHER: "leaked"}, Level.partial).level is Level.not_enforced


@pytest.mark.parametrize("level", [Level.not_enforced, Level.planned])
@pytest.mark.parametrize("outcome", ["held", "leaked", "inconclusive"])
def test_what_is_not_claimed_never_rises_and_is_never_refuted(level: Level, outcome: str) -> None:
    assert timeout_of(dict.fromkeys(KNOWN, outcome), level) == Enforcement(
        level, "kernel", "walls", ("known",)
    )


def test_controls_without_attacks_stay_declared() -> None:
    offered = offer(describe(), Receipts.of([receipt(QUICK, "held")]), KNOWN).descriptor
    contract = offered.sandbox_enforcement_contract
    assert contract.memory_limit == describe().sandbox_enforcement_contract.memory_limit


def test_receipts_of_another_backend_say_nothing() -> None:
    receipts = Receipts.of(receipt(on, "held", backend="c") for on in KNOWN)
    declared = describe()
    assert offer(declared, receipts, KNOWN).descriptor is declared


outcomes = st.dictionaries(st.sampled_from(KNOWN), st.sampled_from([o.value for o in ProbeOutcome]))
levels = st.sampled_from(Level)


@given(outcomes, levels)
def test_no_receipt_ever_raises_a_level(found: dict[Attack, str], level: Level) -> None:
    assert timeout_of(found, level).level in (level, Level.not_enforced)


@given(outcomes, st.sampled_from(KNOWN), levels)
def test_a_further_leak_never_strengthens(found: dict[Attack, str], on: Attack, level: Level) -> None:
    before, after = timeout_of(found, level), timeout_of({**found, on: "leaked"}, level)
    if not (level is Level.partial and on.partial_may_leak):
        assert after.level.rank <= before.level.rank
        assert after.evidence.rank <= before.evidence.rank


@given(outcomes, levels)
def test_probed_means_that_all_that_counts_has_held(found: dict[Attack, str], level: Level) -> None:
    claim = timeout_of(found, level)
    if claim.evidence is Evidence.probed:
        counts = {on for on in KNOWN if not (level is Level.partial and on.partial_may_leak)}
        assert all(found[on] == "held" for on in counts & set(found))
        assert {on for on in counts if on.quick} <= set(found)


def test_the_same_arguments_give_the_same_object() -> None:
    declared, receipts = describe(), Receipts.of([receipt(QUICK, "leaked")])
    assert offer(declared, receipts, KNOWN) is offer(declared, receipts, KNOWN)
    assert offer(declared, NO_RECEIPTS, KNOWN).descriptor is declared


@pytest.mark.parametrize("boast", [Evidence.read_back, Evidence.probed])
def test_no_backend_vouches_for_a_claim_of_its_own(boast: Evidence) -> None:
    vain = Enforcement(Level.enforced, "kernel", "walls", (), boast)
    declared = replace(describe(), sandbox_enforcement_contract=SandboxEnforcementContract(timeout=vain))
    for receipts in (NO_RECEIPTS, Receipts.of([receipt(QUICK, "inconclusive")])):
        claim = offer(declared, receipts, KNOWN).descriptor.sandbox_enforcement_contract.timeout
        assert (claim.level, claim.evidence) == (Level.enforced, Evidence.declared)


def test_an_offer_says_what_is_proved_provable_refuted_and_undecided() -> None:
    def of(outcomes: dict[Attack, str]) -> Offer:
        receipts = Receipts.of(receipt(on, outcome) for on, outcome in outcomes.items())
        return offer(describe(), receipts, KNOWN)

    proved = of(HELD)
    assert set(proved.proofs) == {Control.timeout}
    assert proved.proofs[Control.timeout].when == WHEN
    assert (proved.provable, proved.refuted, proved.unproved) == (frozenset(), {}, {})
    half = of({QUICK: "held"})
    assert (half.proofs, half.provable) == ({}, {Control.timeout})
    leaked = of({QUICK: "leaked"})
    told = "refuted here by attack `quick` on 2026-11-18T11:06:40Z"
    assert (leaked.provable, leaked.refuted) == (frozenset(), {Control.timeout: told})
    undecided = of({QUICK: "inconclusive"})
    told = "not proved here by attack `quick` on 2026-11-18T11:06:40Z: why not"
    assert (undecided.provable, undecided.unproved) == (frozenset(), {Control.timeout: told})


def test_missing_are_the_quick_attacks_on_what_is_asked_and_claimed() -> None:
    memory = attack("single", Control.memory_limit)
    known = (*KNOWN, memory)
    asked = [Control.timeout]
    assert missing(describe(), asked, NO_RECEIPTS, known) == (QUICK, OTHER, BEYOND)
    assert missing(describe(Level.partial), asked, NO_RECEIPTS, known) == (QUICK, OTHER)
    assert missing(describe(Level.not_enforced), asked, NO_RECEIPTS, known) == ()
    assert missing(describe(), Control, Receipts.of([receipt(QUICK, "held")]), known) == (
        OTHER,
        BEYOND,
        memory,
    )
    # a leak is known: it is not tried again until it is too old
    assert missing(describe(), asked, Receipts.of([receipt(QUICK, "leaked")]), known) == (OTHER, BEYOND)
    assert set(missing(describe(), Control, NO_RECEIPTS)) == {a for a in here() if a.quick}


READ = Attack(
    Control.filesystem_read_deny,
    "file",
    "read a file",
    act="print(open('{SECRET_FILE}').read(), flush=True)",
    held_by=("PermissionError EACCES",),
    proofs=(Proof.text,),
    quick=True,
)
WANTED = [Control.filesystem_read_deny]


class Counting:
    """A backend that refuses every file, and counts how often it was asked."""

    def __init__(self, said: str = "refused PermissionError [Errno 13] x") -> None:
        self.runs = 0
        self._said = said
        self._described = describe()

    def describe(self) -> Descriptor:
        return self._described

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return _Counting(self)

    async def close(self) -> None:
        return None

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        self.runs += 1
        found = re.search(r"print\('(probe-\w+) allowed', (\d+) \* (\d+)", plan.code)
        assert found
        mark, answer = found[1], int(found[2]) * int(found[3])
        host.write("stdout", f"{mark} allowed {answer}\n{mark} {self._said}\n".encode())
        return Outcome(Termination.exited, exit_code=0)


class _Counting:
    def __init__(self, backend: Counting) -> None:
        self._backend = backend

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        return await self._backend.run(plan, host)

    async def close(self) -> None:
        return None


Attests = Callable[..., Attestor]


@pytest.fixture
def attestor(tmp_path: Path) -> Attests:
    def make(**options: Any) -> Attestor:
        return Attestor(ReceiptStore(tmp_path / "probes"), **{"attacks": (READ,), **options})

    return make


def claim_of(attestor: Attestor, backend: Counting) -> Enforcement:
    (offered,) = attestor.offers((backend,))
    return offered.descriptor.sandbox_enforcement_contract.filesystem_read_deny


def evidence_of(attestor: Attestor, backend: Counting) -> Evidence:
    return claim_of(attestor, backend).evidence


def test_what_is_missing_is_made_once_and_kept(attestor: Attests) -> None:
    backend, one = Counting(), attestor()
    assert evidence_of(one, backend) is Evidence.declared
    asyncio.run(one.ensure(backend, WANTED))
    assert (backend.runs, evidence_of(one, backend)) == (1, Evidence.probed)
    asyncio.run(one.ensure(backend, WANTED))
    assert evidence_of(attestor(), backend) is Evidence.probed  # from the disk
    asyncio.run(attestor().ensure(backend, WANTED))
    assert backend.runs == 1


class Notes(Witness):
    """Notes what it is told; `full` refuses to."""

    def __init__(self, *, full: bool = False) -> None:
        self.told: list[str] = []
        self._full = full

    async def before(self, backend: Descriptor, attacks: Sequence[Attack]) -> None:
        self.told.append(f"before {backend.name} {', '.join(map(str, attacks))}")

    def result(self, result: ProbeResult) -> None:
        self.told.append(f"{result.variant} {result.outcome}")

    async def after(self, backend: Descriptor, results: Sequence[ProbeResult]) -> None:
        if self._full:
            raise AuditUnavailable("no space")
        self.told.append(f"after {len(results)}")


def test_a_witness_is_told_before_during_and_after(attestor: Attests) -> None:
    notes = Notes()
    asyncio.run(attestor().ensure(Counting(), WANTED, notes))
    assert notes.told == ["before b filesystem_read_deny/file", "file held", "after 1"]


def test_what_the_witness_could_not_keep_does_not_count(attestor: Attests) -> None:
    backend, one = Counting(), attestor()
    with pytest.raises(AuditUnavailable, match="no space"):
        asyncio.run(one.ensure(backend, WANTED, Notes(full=True)))
    assert evidence_of(one, backend) is evidence_of(attestor(), backend) is Evidence.declared
    asyncio.run(one.ensure(backend, WANTED))
    assert (backend.runs, evidence_of(one, backend)) == (2, Evidence.probed)


def test_looking_for_receipts_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    for one in (Attestor(), Attestor(ReceiptStore(tmp_path / "probes"))):
        assert len(one.receipts(Counting())) == 0
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_made_for_controls_or_backends_that_nobody_asks_for(attestor: Attests) -> None:
    backend = Counting()
    for needed in ([], [Control.network_deny]):
        asyncio.run(attestor().ensure(backend, needed))
    backend._described = replace(backend.describe(), unavailable="not here")
    asyncio.run(attestor().ensure(backend, WANTED))
    assert backend.runs == 0


def test_a_receipt_is_made_anew_when_it_is_too_old(attestor: Attests) -> None:
    now = [0.0]
    backend, one = Counting(), attestor(clock=lambda: now[0])
    now[0] = time.time()
    asyncio.run(one.ensure(backend, WANTED))
    now[0] += LIFETIME_S - 10
    asyncio.run(one.ensure(backend, WANTED))
    assert (backend.runs, evidence_of(one, backend)) == (1, Evidence.probed)
    now[0] += 20
    assert evidence_of(one, backend) is Evidence.declared
    now[0] = time.time() - 100  # the clock was set back before the receipt
    assert evidence_of(attestor(clock=lambda: now[0]), backend) is Evidence.declared


def test_what_was_inconclusive_is_soon_tried_again(attestor: Attests) -> None:
    now = [0.0]
    backend, one = Counting("refused ValueError x"), attestor(clock=lambda: now[0])
    now[0] = time.time()
    asyncio.run(one.ensure(backend, WANTED))
    assert backend.runs == 3  # a doubt is tried again
    now[0] += INCONCLUSIVE_LIFETIME_S - 10
    asyncio.run(one.ensure(backend, WANTED))
    assert backend.runs == 3  # a doubt is tried again
    backend._said = "refused PermissionError [Errno 13] x"
    now[0] += 20
    asyncio.run(one.ensure(backend, WANTED))
    assert backend.runs == 4


def test_a_backend_that_changes_has_no_receipts(attestor: Attests) -> None:
    backend = Counting()
    asyncio.run(attestor().ensure(backend, WANTED))
    changed = Counting()
    changed._described = replace(changed.describe(), version="2")
    assert evidence_of(attestor(), changed) is Evidence.declared
    assert fingerprint(changed, changed.describe()) != fingerprint(backend, backend.describe())


def test_what_a_backend_says_of_itself_later_changes_nothing(attestor: Attests) -> None:
    backend, one = Counting(), attestor()
    asyncio.run(one.ensure(backend, WANTED))
    proved = claim_of(one, backend)
    backend._described = replace(describe(gaps=("boasts",)), version="2")
    assert claim_of(one, backend) == proved


def test_an_attack_on_something_else_than_was_described_decides_nothing(attestor: Attests) -> None:
    backend, one = Counting(), attestor()
    claim_of(one, backend)
    backend._described = replace(describe(), version="2")
    asyncio.run(one.ensure(backend, WANTED))
    [result] = one.receipts(backend)
    assert result.outcome is ProbeOutcome.inconclusive
    assert result.reason == "the backend says something else of itself than before"
    assert evidence_of(one, backend) is Evidence.declared


def test_a_leak_of_one_that_describes_itself_anew_stays_a_leak(attestor: Attests) -> None:
    class Turning(Counting):
        async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
            self._described = replace(describe(), version="2")
            [file] = re.findall(r"open\('(.*?)'\)", plan.code)
            host.write("stdout", await asyncio.to_thread(Path(file).read_bytes))
            return await super().run(plan, host)

    backend, one = Turning(), attestor()
    claim_of(one, backend)
    asyncio.run(one.ensure(backend, WANTED))
    [result] = one.receipts(backend)
    assert (result.outcome, result.reason) == (ProbeOutcome.leaked, "the attack got through")
    assert claim_of(one, backend).level is Level.not_enforced


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, where a thread can give up rights")
def test_receipts_count_in_the_situation_that_they_were_made_in(attestor: Attests) -> None:
    import ctypes

    backend, one = Counting(), attestor()
    asyncio.run(one.ensure(backend, WANTED))

    def confined() -> Evidence:
        before = situation()
        assert situation() is before
        assert evidence_of(one, backend) is Evidence.probed
        assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS, for this thread
        situations._kept.until = 0.0
        assert situation() != before
        return evidence_of(one, backend)

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(confined).result() is Evidence.declared
    assert evidence_of(one, backend) is Evidence.probed


FORK = """
import asyncio, os, signal, threading
from pathlib import Path
from test_evidence import READ, WANTED, Attestor, Counting, ReceiptStore

class Slow(Counting):
    began, go = threading.Event(), threading.Event()

    async def open(self, plan, host):
        self.began.set()
        await asyncio.to_thread(self.go.wait)
        return await super().open(plan, host)

backend, one = Slow(), Attestor(ReceiptStore(Path("probes")), attacks=(READ,))
attacking = threading.Thread(target=lambda: asyncio.run(one.ensure(backend, WANTED)))
attacking.start()
backend.began.wait()
if (child := os.fork()) == 0:
    signal.alarm(30)  # a child that waits for its parent is ended
    backend.go.set()
    asyncio.run(one.ensure(backend, WANTED))
    os._exit(backend.runs)
ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
backend.go.set()
attacking.join()
print(ended, backend.runs)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_a_child_does_not_wait_for_what_its_parent_attacks(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORK],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("1 1\n", 0), ran.stderr


def test_many_at_once_attack_once(attestor: Attests) -> None:
    backend, one = Counting(), attestor()

    async def several() -> None:
        await asyncio.gather(*(one.ensure(backend, WANTED) for _ in range(5)))

    threads = [threading.Thread(target=lambda: asyncio.run(several())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (backend.runs, evidence_of(one, backend)) == (1, Evidence.probed)


def test_if_the_first_gives_up_the_next_takes_over(
    attestor: Attests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    backend, one = Counting(), attestor()

    async def play() -> None:
        first = asyncio.create_task(one.ensure(backend, WANTED))
        await asyncio.sleep(0)  # it has begun
        second = asyncio.create_task(one.ensure(backend, WANTED))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await second

    asyncio.run(play())
    assert evidence_of(one, backend) is Evidence.probed
    assert list(tmp_path.glob("licet-probe-*")) == []


def test_a_state_directory_that_can_not_be_written_costs_time_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    backend = Counting()
    one = Attestor(ReceiptStore(tmp_path / "file" / "probes"), attacks=(READ,))
    asyncio.run(one.ensure(backend, WANTED))
    asyncio.run(one.ensure(backend, WANTED))
    assert (backend.runs, evidence_of(one, backend)) == (1, Evidence.probed)


def test_a_refuted_claim_stays_refuted_until_it_is_verified_again(attestor: Attests) -> None:
    backend, one = Counting(), attestor()
    asyncio.run(one.ensure(backend, WANTED))
    [result] = one.receipts(backend)
    one.keep([replace(result, outcome=ProbeOutcome.leaked, when=result.when + 1)])
    for attests in (one, attestor()):
        assert claim_of(attests, backend).level is Level.not_enforced
        asyncio.run(attests.ensure(backend, WANTED))
    assert backend.runs == 1
    one.keep([replace(result, when=result.when + 2)])
    assert evidence_of(one, backend) is Evidence.probed


def test_a_leak_counts_however_old_it_is(attestor: Attests) -> None:
    backend, now = Counting(), time.time()
    thorough = replace(READ, variant="thorough", quick=False)
    one = attestor(attacks=(READ, thorough), clock=lambda: now)
    asyncio.run(one.ensure(backend, WANTED))
    [result] = one.receipts(backend)
    leak = replace(result, variant="thorough", outcome=ProbeOutcome.leaked)
    one.keep([leak])
    later = attestor(attacks=(READ, thorough), clock=lambda: now + 3 * LIFETIME_S)
    for attests in (one, later):
        assert claim_of(attests, backend).level is Level.not_enforced
    one.keep([replace(leak, outcome=ProbeOutcome.held)])
    assert evidence_of(one, backend) is Evidence.probed


def test_a_thorough_attack_that_decided_nothing_is_missing_once_that_is_old(attestor: Attests) -> None:
    backend, now = Counting(), [time.time()]
    attacks = (READ, replace(READ, variant="thorough", quick=False))
    one = attestor(attacks=attacks, clock=lambda: now[0])
    asyncio.run(one.ensure(backend, WANTED))
    [result] = one.receipts(backend)
    one.keep([replace(result, variant="thorough", outcome=ProbeOutcome.inconclusive)])
    assert evidence_of(one, backend) is Evidence.declared
    now[0] += INCONCLUSIVE_LIFETIME_S + 1
    for attests in (one, attestor(attacks=attacks, clock=lambda: now[0])):
        [offered] = attests.offers((backend,))
        assert (
            offered.descriptor.sandbox_enforcement_contract.filesystem_read_deny.evidence.value == "declared"
        )
        assert offered.provable == {Control.filesystem_read_deny}
    assert backend.runs == 1
    asyncio.run(one.ensure(backend, WANTED))
    assert (backend.runs, evidence_of(one, backend)) == (2, Evidence.probed)


def test_a_clock_that_was_ahead_does_not_outlast_a_leak(attestor: Attests) -> None:
    backend, day = Counting(), 86400.0
    now = [time.time()]
    one = attestor(clock=lambda: now[0])
    asyncio.run(one.ensure(backend, WANTED))
    [result] = one.receipts(backend)
    one.keep([replace(result, when=now[0] + day)])
    assert evidence_of(one, backend) is Evidence.declared  # from a future that this clock has not seen
    one.keep([replace(result, when=now[0], outcome=ProbeOutcome.leaked)])
    for _ in range(2):
        for attests in (one, attestor(clock=lambda: now[0])):
            assert claim_of(attests, backend).level is Level.not_enforced
        now[0] += day
