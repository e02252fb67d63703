"""Evidence, from the first run to a refuted claim: what selects a backend is what was attacked here."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from cli import licet
from licet import Runtime, Termination
from licet.backend import Descriptor, Host, Sandbox
from licet.contract import Control, Evidence
from licet.errors import AuditUnavailable
from licet.plan import ExecutionPlan
from licet.probe.results import ProbeResult
from licet.record import Entry, MemoryLog, Record
from licet_controlled_process.backend import ControlledProcess
from licet_monty.backend import MontyBackend


@pytest.fixture
def nothing_proved(own_directories: Path, tmp_path: Path) -> None:
    """A host on which nobody has attacked anything yet."""
    shutil.rmtree(tmp_path / "xdg-state" / "licet" / "probes")


class Boastful(ControlledProcess):
    """The controlled process, under the contract of Monty: it claims walls that it does not have."""

    def describe(self) -> Descriptor:
        return _BOASTFUL


_BOASTFUL = replace(
    ControlledProcess().describe(),
    name="boastful",
    opens=frozenset(),
    cost=0.1,
    sandbox_enforcement_contract=MontyBackend().describe().sandbox_enforcement_contract,
)


def kinds(records: Sequence[Record] | MemoryLog) -> list[str]:
    found = records.records() if isinstance(records, MemoryLog) else records
    return [" ".join(filter(None, (r.entry.kind, r.entry.phase))) for r in found]


def bodies(log: MemoryLog, kind: str) -> list[dict[str, object]]:
    return [dict(record.entry.body) for record in log.records() if record.entry.kind == kind]


@pytest.mark.usefixtures("nothing_proved")
def test_the_first_run_proves_what_it_relies_on_and_the_next_one_finds_it_proved() -> None:
    log, heard = MemoryLog(), list[ProbeResult]()
    with Runtime(log=log, progress=heard.append) as runtime:
        assert runtime.decide("6 * 7").selection.chosen is not None
        assert heard == []  # explaining attacks nothing
        first = runtime.run_sync("6 * 7")
        attacks = len(heard)
        second = runtime.run_sync("6 * 7")
    assert (first.value, second.value) == (42, 42)
    assert attacks > 10
    assert len(heard) == attacks
    assert {result.outcome for result in heard} == {"held"}
    ran = ["selection", "authorization", "execution before", "result after"]
    assert kinds(log) == [
        *("request", "decision", "probe before", "probe after"),
        *ran,
        *("request", "decision"),
        *ran,
    ]
    before, after = bodies(log, "probe")
    assert before["attacks"] == [f"{r.control}/{r.variant}" for r in sorted_as(before["attacks"], heard)]
    assert (after["held"], after["leaked"], after["inconclusive"]) == (attacks, 0, 0)
    proofs = [body["evidence"] for body in bodies(log, "selection")]
    assert proofs[0] == proofs[1]
    assert str(proofs[0]).startswith("sha256:")


def sorted_as(names: object, results: list[ProbeResult]) -> list[ProbeResult]:
    assert isinstance(names, list)
    return sorted(results, key=lambda result: names.index(f"{result.control}/{result.variant}"))


def test_what_is_proved_shows_in_the_contract_of_a_run_and_what_was_seen_stands_apart() -> None:
    with Runtime(log=(log := MemoryLog())) as runtime:
        result = runtime.run_sync("1")
    assert result.contract is not None
    assert result.contract.network_deny.evidence is Evidence.probed
    (execution,), (ended,) = bodies(log, "execution"), bodies(log, "result")
    assert execution["claimed"]["network_deny"] == result.contract.network_deny.level  # type: ignore[index]
    required = bodies(log, "selection")[0]["required"]
    assert isinstance(required, dict)
    assert ended["unknown"] == [name for name in required if name not in ended["observed"]]  # type: ignore[operator]
    shown = result.as_json()["protection"]
    assert {"configured", "observed", "unknown"} == set(shown)


@pytest.mark.usefixtures("nothing_proved")
def test_explain_treats_missing_evidence_as_held_and_marks_it() -> None:
    shown = licet("explain", "--json", "-c", "1")
    assert shown.code == 0
    by_name = {candidate["name"]: candidate for candidate in shown.json["selection"]["candidates"]}
    assert by_name["monty"]["evidence"] == "missing"
    assert "network_deny" in by_name["monty"]["missing"]
    assert "to be proved here by the first run" in licet("explain", "-c", "1").err
    assert licet("run", "-c", "1").code == 0
    shown = licet("explain", "--json", "-c", "1")
    by_name = {candidate["name"]: candidate for candidate in shown.json["selection"]["candidates"]}
    assert (by_name["monty"]["evidence"], by_name["monty"]["missing"]) == ("probed", [])


@pytest.mark.usefixtures("nothing_proved")
def test_a_claim_that_is_refuted_is_loud_and_never_selects(caplog: pytest.LogCaptureFixture) -> None:
    backends = [Boastful(), MontyBackend()]
    with (
        caplog.at_level(logging.ERROR, "licet"),
        Runtime(backends=backends, log=(log := MemoryLog())) as runtime,
    ):
        result = runtime.run_sync("6 * 7")
        again = runtime.run_sync("6 * 7")
    assert (result.value, again.value) == (42, 42)
    assert result.backend is not None
    assert result.backend.name == "monty"
    assert result.decision is not None
    boastful, monty = result.decision.selection.candidates
    assert (boastful.satisfies, monty.satisfies) == (False, True)
    refuted = {text.partition(":")[0] for text in boastful.refuted}
    assert {"network_deny", "filesystem_read_deny", "filesystem_write_deny", "shell_execution"} <= refuted
    (network,) = [b for b in boastful.blockers if b.what == "network_deny"]
    assert network.offered.startswith("not_enforced, refuted here by attack `tcp`")
    assert any("`boastful` claims `network_deny`" in message for message in caplog.messages)
    # it was attacked before Monty, since it ranks before it; and once
    assert [body["backend"] for body in bodies(log, "probe")] == ["boastful"] * 2 + ["monty"] * 2


@pytest.mark.usefixtures("nothing_proved")
def test_a_liar_alone_runs_nothing() -> None:
    with Runtime(backends=[Boastful()], log=(log := MemoryLog())) as runtime:
        result = runtime.run_sync("6 * 7")
    assert (result.termination, result.process_exit_code) == (Termination.no_backend, 5)
    assert kinds(log) == ["request", "decision", "probe before", "probe after", "selection", "result after"]


class Forgetful(MemoryLog):
    """A log that is full once it holds so many records."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        if len(self._records) + len(entries) > self._most:
            raise AuditUnavailable("the disk is full")
        return await super().append(entries)


class Watched(MontyBackend):
    """Monty, counting its sandboxes."""

    opened = 0

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        self.opened += 1
        return await super().open(plan, host)


@pytest.mark.usefixtures("nothing_proved")
def test_no_attack_begins_without_a_durable_record() -> None:
    with Runtime(backends=[watched := Watched()], log=Forgetful(2)) as runtime:
        result = runtime.run_sync("1")
    assert (result.termination, watched.opened) == (Termination.audit_unavailable, 0)


@pytest.mark.usefixtures("nothing_proved")
def test_a_receipt_counts_only_once_it_is_recorded() -> None:
    with Runtime(backends=[MontyBackend()], log=Forgetful(3)) as runtime:
        result = runtime.run_sync("1")
        assert result.termination is Termination.audit_unavailable
        (offer,) = runtime.offers()
        assert offer.proofs == {}
    with Runtime() as runtime:
        assert all(offer.proofs == {} for offer in runtime.offers())  # nor did any reach the disk


@pytest.mark.usefixtures("nothing_proved")
def test_what_is_denied_or_broken_attacks_nothing() -> None:
    with Runtime(log=(log := MemoryLog())) as runtime:
        runtime.run_sync("import os; os.system('id')")
        runtime.run_sync("1 +")
    assert [kind for kind in kinds(log) if "probe" in kind] == []


@pytest.mark.usefixtures("nothing_proved")
def test_a_run_that_is_cancelled_while_it_proves_leaves_no_receipt_and_the_next_one_proves_anew() -> None:
    async def play() -> tuple[int, object]:
        begun = asyncio.Event()
        async with Runtime(log=log, progress=lambda result: begun.set()) as runtime:
            first = asyncio.create_task(runtime.run("1"))
            await begun.wait()
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            proofs = sum(len(offer.proofs) for offer in runtime.offers())
            return proofs, (await runtime.run("2")).value

    log = MemoryLog()
    assert asyncio.run(play()) == (0, 2)
    assert kinds(log)[:4] == ["request", "decision", "probe before", "result after"]
    ended = bodies(log, "result")[0]
    assert (ended["termination"], ended["executed"]) == ("cancelled", False)


@pytest.mark.usefixtures("nothing_proved")
def test_many_first_runs_at_once_attack_once() -> None:
    async def play() -> list[object]:
        async with Runtime(log=log) as runtime:
            return [result.value for result in await asyncio.gather(*(runtime.run(f"{n}") for n in range(9)))]

    log = MemoryLog()
    assert asyncio.run(play()) == list(range(9))
    assert kinds(log).count("probe before") == kinds(log).count("probe after") == 1


def test_a_bound_that_asks_for_more_evidence_wins(own_directories: Path) -> None:
    (own_directories / "org.yaml").write_text("licet: 1\nsandbox: {evidence: probed}\n")
    policy = own_directories / "p.yaml"
    policy.write_text("licet: 1\nwithin: ./org.yaml\nsandbox: {evidence: declared}\n")
    with Runtime(policy, backends=[Boastful()], log=MemoryLog()) as runtime:
        assert runtime.run_sync("1").termination is Termination.no_backend


def test_a_policy_may_believe_declarations_and_the_card_says_so(own_directories: Path) -> None:
    policy = own_directories / "p.yaml"
    policy.write_text("licet: 1\nextends: licet:compute\nsandbox: {evidence: declared}\n")
    with Runtime(policy, backends=[Boastful()], log=(log := MemoryLog())) as runtime:
        result = runtime.run_sync("6 * 7")
    assert (result.value, [kind for kind in kinds(log) if "probe" in kind]) == (42, [])
    assert result.contract is not None
    assert result.contract.network_deny.evidence is Evidence.declared


def test_network_deny_with_the_controlled_process_alone_is_no_backend(
    own_directories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LICET_ENABLED", "audit,policies,controlled_process")
    policy = own_directories / "p.yaml"
    policy.write_text("licet: 1\nsandbox: {require: {network_deny: enforced}}\n")
    shown = licet("run", "--json", "--policy", "p.yaml", "-c", "1")
    assert (shown.code, shown.json["termination"]) == (5, "no_backend")
    (candidate,) = shown.json["decision"]["selection"]["candidates"]
    (blocker,) = [b for b in candidate["blockers"] if b["what"] == "network_deny"]
    assert (blocker["asked"], blocker["offered"]) == ("enforced", "not_enforced")
    card = licet("run", "--policy", "p.yaml", "-c", "1").err
    assert "network_deny" in card
    assert "asked enforced, offered not_enforced" in card
    assert "no fallback" in card


def test_the_list_of_backends_tells_contract_and_evidence() -> None:
    monty = next(b for b in licet("backends", "list", "--json").json["backends"] if b["name"] == "monty")
    assert monty["contract"]["network_deny"]["evidence"] == "probed"
    assert set(monty["evidence"]) == {"proved", "missing", "refuted", "inconclusive"}
    assert monty["evidence"]["proved"]["network_deny"]["digest"].startswith("sha256:")
    assert (monty["evidence"]["missing"], monty["evidence"]["refuted"]) == ([], {})


def test_verifying_is_recorded_and_keeps_its_receipts() -> None:
    async def play() -> tuple[int, int, tuple[int, ...]]:
        async with Runtime(log=log) as runtime:
            report = await runtime.verify({"monty"})
            return report.leaked, len(report.results), tuple(len(o.proofs) for o in runtime.offers())

    log = MemoryLog()
    leaked, attacks, proofs = asyncio.run(play())
    before, after = bodies(log, "probe")
    assert kinds(log) == ["probe before", "probe after"]
    assert (leaked, after["leaked"], len(before["attacks"])) == (0, 0, attacks)  # type: ignore[arg-type]
    assert after["held"] + after["unclaimed"] == attacks  # type: ignore[operator]
    assert len(after["results"]) == attacks  # type: ignore[arg-type]
    assert max(proofs) >= 18


def test_receipts_are_bound_to_the_same_facts_in_every_process() -> None:
    """Nothing in a fingerprint may depend on the seed of string hashes."""
    program = (
        "from licet.probe.fingerprint import fingerprint; from licet.runtime import Runtime;"
        "print([fingerprint(backend, backend.describe()) for backend in Runtime().backends])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1


def test_everything_that_compute_asks_of_monty_is_proved_here() -> None:
    """With no receipt missing, refuted or inconclusive on this machine."""
    with Runtime() as runtime:
        offers = {offer.descriptor.name: offer for offer in runtime.offers()}
    monty = offers["monty"]
    assert (monty.provable, monty.refuted, monty.unproved) == (frozenset(), {}, {})
    assert {Control.network_deny, Control.filesystem_read_deny, Control.timeout} <= set(monty.proofs)
