"""What offers and acts come to: who holds what, what is not in use, and the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from licet.backend import Descriptor, Language, Termination
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.controls import MEANINGS
from licet.diagnosis import Diagnosis, Verdict
from licet.diagnosis.coverage import Coverage, Hold, coverage
from licet.diagnosis.machine import Machine
from licet.diagnosis.ordeal import Act, Ordeal
from licet.diagnosis.unused import Unused, unused
from licet.errors import AuditUnavailable
from licet.plan import Opened
from licet.report import Explanation
from licet.result import ExecutionResult
from licet.select import Chosen, Offer, Proof, Selection

WALL = Enforcement(Level.enforced, "kernel", "a wall", evidence=Evidence.probed)
WHERE = "`enabled` of config.toml, or LICET_ENABLED"


def offer(name: str, *controls: Control, unavailable: str | None = None, **fields: Any) -> Offer:
    contract = SandboxEnforcementContract(**{control.value: WALL for control in controls})
    return Offer(Descriptor(name, "1", contract, Language("CPython"), unavailable=unavailable), **fields)


def of(control: Control, *offers: Offer) -> Coverage:
    (found,) = [one for one in coverage(offers) if one.control is control]
    return found


def test_every_control_is_explained_with_what_it_leaves_open() -> None:
    assert set(MEANINGS) == set(Control)
    for meaning in MEANINGS.values():
        assert meaning.leaves
        for text in (meaning.means, *meaning.leaves):
            assert text == text.strip().rstrip(".") and text[0].islower()


def test_each_control_lists_all_who_hold_it() -> None:
    one = offer("one", Control.timeout, proofs={Control.timeout: Proof("sha256:x", 5.0)})
    two = offer("two", Control.timeout, unproved={Control.timeout: "not proved here by attack `busy`"})
    assert of(Control.timeout, one, two).holds == (
        Hold("one", WALL, proved=5.0),
        Hold("two", WALL, unproved="not proved here by attack `busy`"),
    )
    assert of(Control.memory_limit, one, two).holds == ()
    assert [found.control for found in coverage(())] == list(Control)


def test_what_was_refuted_holds_nothing_and_is_told() -> None:
    liar = offer("liar", refuted={Control.network_deny: "refuted here by attack `tcp`"})
    assert of(Control.network_deny, liar) == Coverage(
        Control.network_deny, (), (("liar", "refuted here by attack `tcp`"),)
    )


def test_a_backend_that_cannot_run_here_holds_nothing() -> None:
    assert of(Control.timeout, offer("far", Control.timeout, unavailable="needs KVM")).holds == ()


def test_what_is_not_in_use_says_what_would_help() -> None:
    far = offer("far", unavailable="needs KVM").descriptor
    problems = [
        "plugin `monty` is enabled, but it is not installed",
        "plugin `torn` can't be used: ImportError: x",
    ]
    assert unused(("audit", "monty", "torn", "mine"), {"audit", "torn", "other"}, problems, [far]) == (
        Unused(
            "plugin `monty` is not installed",
            f"install with `pip install 'licet[standard]'`, or take it out of {WHERE}",
        ),
        Unused(
            "plugin `mine` is not installed",
            f"install the package that brings it, or take it out of {WHERE}",
        ),
        Unused(
            "plugin `torn` can't be used: ImportError: x",
            f"repair or upgrade that package, or take it out of {WHERE}",
        ),
        Unused("plugin `other` is installed and not enabled", f"add it to {WHERE}"),
        Unused("backend `far` can't run here: needs KVM", f"change that, or take its plugin out of {WHERE}"),
    )


STOPPED = Act("read a file", False, "sandbox", "PermissionError EACCES", True, "monty", "R")
RAN = ExecutionResult("R", Termination.exited, True)


def diagnosis(*, holds: bool = True, refuted: bool = False, **fields: Any) -> Diagnosis:
    chosen = Chosen(offer("one").descriptor, Opened(), {}, "sha256:p") if holds else None
    explanation = Explanation(
        "allow", (), (), (), Selection((), chosen), Evidence.probed, (), "p@d", "sha256:d", None
    )
    liar = offer("liar", refuted={Control.network_deny: "refuted here"} if refuted else {})
    known: dict[str, Any] = {"ordeal": Ordeal(RAN, True, (STOPPED,)), "problem": None}
    return Diagnosis(Machine(), (), (liar,), coverage([liar]), (), explanation, **{**known, **fields})


def acts(*found: Act) -> dict[str, Any]:
    return {"ordeal": Ordeal(RAN, True, found)}


@pytest.mark.parametrize(
    ("fields", "verdict", "code"),
    [
        ({}, Verdict.holds, 0),
        (acts(STOPPED, replace(STOPPED, stopped_by="policy")), Verdict.holds, 0),
        (acts(STOPPED, replace(STOPPED, got_through=True, stopped_by=None)), Verdict.got_through, 1),
        ({"refuted": True}, Verdict.refuted, 1),
        ({"refuted": True, "holds": False}, Verdict.refuted, 1),
        ({"holds": False}, Verdict.nothing_holds, 5),
        (acts(), Verdict.undecided, 1),
        (acts(STOPPED, replace(STOPPED, twin=False)), Verdict.undecided, 1),
        (acts(replace(STOPPED, stopped_by=None)), Verdict.undecided, 1),
        ({"ordeal": Ordeal(RAN, False, (STOPPED,))}, Verdict.undecided, 1),
        ({"ordeal": None, "problem": AuditUnavailable("no")}, Verdict.trail_unavailable, 7),
    ],
)
def test_the_verdict_is_the_gravest_finding(fields: dict[str, Any], verdict: Verdict, code: int) -> None:
    found = diagnosis(**fields).verdict
    assert (found, found.exit_code) == (verdict, code)


def test_nothing_is_well_because_nothing_was_tried() -> None:
    for fields in (acts(), {"ordeal": Ordeal(RAN, False)}, {"holds": False, **acts()}):
        assert diagnosis(**fields).verdict.exit_code != 0
