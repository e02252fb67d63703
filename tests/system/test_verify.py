"""`licet backends verify` on this host."""

from __future__ import annotations

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
