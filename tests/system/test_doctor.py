"""`licet doctor`: a forbidden act that is seen to fail, or the plain word that nothing here makes it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from cli import licet
from liars_for_doctor import Turncoat
from licet import Runtime
from licet.contract import Control
from licet.diagnosis import Verdict, diagnose
from licet.supervise.walls import Wall, look

BOUNDARY = "kernel" if look().standing == set(Wall) else "language"
"""What stands between code in Monty and the files of this host."""


def test_it_ends_in_a_forbidden_act_that_failed(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "xdg-state" / "licet" / "probes")
    ran = licet("doctor", "--json", timeout=120)
    assert ran.code == 0, ran.err
    assert (ran.json["verdict"], ran.json["exit_code"]) == ("holds", 0)
    acts = ran.json["ordeal"]["acts"]
    assert [(act["stopped_by"], act["backend"], act["observed"]) for act in acts[1:]] == [
        ("sandbox", "monty", "PermissionError EACCES"),
        ("sandbox", "monty", "ModuleNotFoundError: No module named 'importlib'"),
    ]
    assert acts[0]["stopped_by"] == "policy"
    assert all(act["failed"] and act["twin"] and not act["got_through"] for act in acts)
    assert ran.json["ordeal"]["allowed"]["answered"] is True
    _has_the_documented_form(ran.json)

    again = licet("doctor", timeout=60)  # the evidence counts on, and the act is made anew
    assert again.code == 0
    lines = [" ".join(line.split()) for line in again.out.splitlines()]
    assert any(line.startswith("separate_kernel nobody") for line in lines)
    assert any(
        line.startswith(f"filesystem_read_deny monty enforced {BOUNDARY} proved here") for line in lines
    )
    assert "✓ a sandbox holds here, and every forbidden act failed" in again.err
    assert "stopped by the sandbox monty: PermissionError EACCES" in again.err
    assert again.err.count("without walls the same program got through") == 3
    recorded = licet("audit", "list", "--json").json
    attacks = [run["run_id"] for run in recorded if run["subject"] is None]
    assert (len(recorded), len(attacks)) == (9, 1)  # an allowed run and three acts each; evidence made once


def _has_the_documented_form(found: dict[str, object]) -> None:
    assert set(found) == {
        "verdict",
        "exit_code",
        "controls",
        "backends",
        "host",
        "facts",
        "unused",
        "trail",
        "selection",
        "ordeal",
    }
    controls = found["controls"]
    assert isinstance(controls, dict)
    assert list(controls) == [control.value for control in Control]
    read = controls["filesystem_read_deny"]
    assert set(read) == {"means", "held_by", "refuted"}
    (hold,) = (one for one in read["held_by"] if one["backend"] == "monty")
    assert (hold["backend"], hold["level"], hold["boundary"], hold["evidence"]) == (
        "monty",
        "enforced",
        BOUNDARY,
        "probed",
    )
    assert found["trail"] == {"written": True, "problem": None, "advice": None}
    assert found["selection"]["backend"] == "monty"  # type: ignore[index]


def test_where_nothing_holds_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LICET_ENABLED", "audit,policies,controlled_process")
    ran = licet("doctor", timeout=120)
    assert ran.code == 5
    assert "✗ nothing here can hold `licet:compute`" in ran.err
    assert "network_deny, unix_socket_deny" in ran.err
    assert ": asked enforced, offered not_enforced" in ran.err
    assert "plugin `monty` is installed and not enabled" in ran.err
    assert "tried" not in ran.err


def test_without_any_backend_it_does_not_say_that_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LICET_ENABLED", "audit,policies")
    ran = licet("doctor")
    assert ran.code == 5
    assert "no backend is installed and enabled" in ran.err
    assert ran.out.count("nobody") == len(Control) + 1


def test_a_trail_that_cannot_be_written_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LICET_HOME", str(tmp_path / "file" / "state"))
    ran = licet("doctor")
    assert ran.code == 7
    assert "✗ the trail can't be written, so nothing runs and nothing was attacked" in ran.err
    assert f"a part of `{tmp_path / 'file' / 'state'}` is not a directory" in ran.err
    assert "says `audit: required`" in ran.err
    assert licet("doctor", "--json").json["trail"]["written"] is False


def test_a_host_key_that_others_read_ends_it_too(tmp_path: Path) -> None:
    key = tmp_path / "xdg-state" / "licet" / "host.key"
    key.write_bytes(bytes(32))
    key.chmod(0o644)
    ran = licet("doctor")
    assert ran.code == 7
    assert f"other users may read or own `{key}`" in ran.err


@pytest.mark.usefixtures("boaster")
def test_a_refuted_claim_is_loud_and_shown_without_harm() -> None:
    ran = licet("doctor", timeout=120)
    assert ran.code == 1
    assert "✗ A CLAIM WAS REFUTED HERE" in ran.err
    assert "boaster, network_deny: refuted here by attack `tcp` on" in ran.err
    assert "! `boaster` claims `network_deny`, and attack `tcp` got through here" in ran.err
    assert "network_deny            boaster  REFUTED  none" in ran.out
    assert "\x1b" not in ran.out + ran.err
    assert licet("doctor", "--json").json["controls"]["network_deny"]["held_by"] == []


def test_a_backend_that_holds_only_while_it_is_attacked_is_found_out() -> None:
    async def examine() -> Verdict:
        async with Runtime(backends=[Turncoat()]) as runtime:
            found = await diagnose(runtime)
        assert found.refuted == ()
        assert found.ordeal is not None
        assert [act.got_through for act in found.ordeal.acts] == [False, True, True]
        return found.verdict

    assert asyncio.run(examine()) is Verdict.got_through
