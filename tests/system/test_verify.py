"""`licet backends verify` on this host."""

from __future__ import annotations

import pytest
from cli import licet


def test_an_unknown_backend_is_named() -> None:
    ran = licet("backends", "verify", "nope")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no backend `nope`" in ran.err


def test_every_claim_of_monty_holds_here() -> None:
    ran = licet("backends", "verify", "monty", "--json", timeout=120)
    assert ran.code == 0
    assert ran.json["leaked"] == 0
    assert {"held", "leaked", "inconclusive", "unclaimed", "results"} <= set(ran.json)


def test_nothing_to_attack_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LICET_ENABLED", "audit,policies")
    ran = licet("backends", "verify")
    assert (ran.code, ran.out) == (2, "")
    assert "there is nothing to attack: no backend is enabled" in ran.err


@pytest.mark.usefixtures("boaster")
def test_a_refuted_claim_fails_the_command_loudly() -> None:
    ran = licet("backends", "verify", timeout=120)
    assert ran.code == 1
    assert "! `boaster` claims `network_deny`, and attack `tcp` got through here" in ran.err
    assert "network_deny            enforced      REFUTED" in ran.out
    assert "\x1b" not in ran.out + ran.err
    listed = licet("backends", "list", "--json").json["backends"][0]["evidence"]
    assert listed["refuted"]["network_deny"].startswith("refuted here by attack `tcp` on ")
