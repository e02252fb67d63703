"""Contracts: what a claim is worth against what is asked."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.contract import (
    Blocker,
    Control,
    Enforcement,
    Evidence,
    Level,
    Requirement,
    SandboxEnforcementContract,
)
from licet.testing.strategies import contracts

ORDER = [Level.not_enforced, Level.planned, Level.partial, Level.enforced]


def test_a_new_contract_enforces_nothing() -> None:
    contract = SandboxEnforcementContract()
    assert {claim for _, claim in contract.items()} == {Enforcement()}
    assert Enforcement().level is Level.not_enforced
    assert contract.isolation == "none"
    for control in Control:
        asked = {control: Requirement(Level.planned, "a test")}
        assert contract.satisfies(asked) == (Blocker(control, "planned", "not_enforced", "a test"),)


def test_one_field_a_control_in_the_same_order() -> None:
    assert [control for control, _ in SandboxEnforcementContract().items()] == list(Control)
    assert [*SandboxEnforcementContract().as_json()] == [*Control, "digest"]


def test_what_is_claimed_has_one_digest_whatever_proves_it() -> None:
    claim = Enforcement(Level.enforced, "kernel", "seccomp", ("one gap",))
    contract = SandboxEnforcementContract(network_deny=claim)
    proved = SandboxEnforcementContract(network_deny=replace(claim, evidence=Evidence.probed))
    assert proved.claimed_digest == contract.claimed_digest
    assert proved.digest != contract.digest
    others = (
        replace(claim, level=Level.partial),
        replace(claim, boundary="language"),
        replace(claim, mechanism="a promise"),
        replace(claim, gaps=()),
    )
    found = {SandboxEnforcementContract(network_deny=other).claimed_digest for other in others}
    assert len(found | {contract.claimed_digest}) == 5


@pytest.mark.parametrize(("offered", "asked"), list(product(ORDER, ORDER)))
def test_levels_satisfy_what_is_not_above_them(offered: Level, asked: Level) -> None:
    contract = SandboxEnforcementContract(network_deny=Enforcement(offered))
    blockers = contract.satisfies({Control.network_deny: Requirement(asked, "why")})
    enough = ORDER.index(offered) >= ORDER.index(asked)
    assert blockers == (() if enough else (Blocker("network_deny", asked, offered, "why"),))


@pytest.mark.parametrize(("offered", "asked"), list(product(Evidence, Evidence)))
def test_a_claim_counts_only_as_far_as_its_evidence(offered: Evidence, asked: Evidence) -> None:
    contract = SandboxEnforcementContract(timeout=Enforcement(Level.enforced, "kernel", evidence=offered))
    blockers = contract.satisfies({Control.timeout: Requirement(Level.partial, "why", asked)})
    order = [Evidence.declared, Evidence.read_back, Evidence.probed]
    enough = order.index(offered) >= order.index(asked)
    blocker = Blocker("timeout", f"partial ({asked})", f"enforced ({offered})", "why")
    assert blockers == (() if enough else (blocker,))


@pytest.mark.parametrize(("level", "evidence"), list(product(ORDER, Evidence)))
def test_probed_not_applicable_satisfies_any_level(level: Level, evidence: Evidence) -> None:
    claim = Enforcement(Level.not_applicable, "language", evidence=Evidence.probed)
    contract = SandboxEnforcementContract(shell_execution=claim)
    assert contract.satisfies({Control.shell_execution: Requirement(level, "why", evidence)}) == ()


def test_unproved_not_applicable_does_not_satisfy_where_proof_is_asked() -> None:
    contract = SandboxEnforcementContract(shell_execution=Enforcement(Level.not_applicable, "language"))
    asked = Requirement(Level.enforced, "why", Evidence.probed)
    blocker = Blocker("shell_execution", "enforced (probed)", "not_applicable (declared)", "why")
    assert contract.satisfies({Control.shell_execution: asked}) == (blocker,)


def walls(**claims: Enforcement) -> SandboxEnforcementContract:
    wall = Enforcement(Level.enforced, "kernel")
    kernel = {"filesystem_read_deny": wall, "filesystem_write_deny": wall, "network_deny": wall}
    return SandboxEnforcementContract(**{**kernel, **claims})


@pytest.mark.parametrize(
    ("contract", "isolation"),
    [
        (walls(), "kernel"),
        (walls(network_deny=Enforcement(Level.enforced, "supervisor")), "supervisor"),
        (walls(network_deny=Enforcement(Level.not_applicable, "language")), "language"),
        (walls(network_deny=Enforcement(Level.partial, "kernel")), "none"),
        (walls(filesystem_read_deny=Enforcement()), "none"),
        (walls(separate_kernel=Enforcement(Level.enforced, "separate_kernel")), "separate_kernel"),
        (walls(separate_kernel=Enforcement(Level.partial, "separate_kernel")), "kernel"),
    ],
)
def test_isolation_is_the_weakest_wall(contract: SandboxEnforcementContract, isolation: str) -> None:
    assert contract.isolation == isolation


CONTRACTS = contracts(evidence=None)


@given(CONTRACTS, CONTRACTS)
def test_the_digest_is_the_contract(
    one: SandboxEnforcementContract, other: SandboxEnforcementContract
) -> None:
    assert (one.digest == other.digest) == (one == other)


@given(
    CONTRACTS,
    st.sampled_from(Control),
    st.sampled_from(ORDER),
    st.sampled_from(ORDER),
    st.sampled_from(Evidence),
)
def test_raising_a_requirement_never_loosens(
    contract: SandboxEnforcementContract, control: Control, one: Level, other: Level, evidence: Evidence
) -> None:
    weaker, stronger = sorted((one, other), key=ORDER.index)
    if contract.satisfies({control: Requirement(weaker, "", evidence)}):
        assert contract.satisfies({control: Requirement(stronger, "", evidence)})


def test_isolation_counts_claims_as_far_as_they_are_proved() -> None:
    proved = Enforcement(Level.enforced, "language", evidence=Evidence.probed)
    contract = SandboxEnforcementContract(
        filesystem_read_deny=proved,
        filesystem_write_deny=proved,
        network_deny=proved,
        separate_kernel=Enforcement(Level.enforced, "separate_kernel"),
    )
    assert contract.isolation == contract.isolation_by(Evidence.declared) == "separate_kernel"
    assert contract.isolation_by(Evidence.probed) == "language"
    half = replace(contract, network_deny=replace(proved, evidence=Evidence.declared))
    assert half.isolation_by(Evidence.probed) == "none"
