"""The story of the README, as a new user types it."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from pathlib import Path

import pytest
from cli import Ran, licet
from licet.contract import Control
from licet.controls import MEANINGS

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def test_honest_work_runs_and_its_value_follows_its_output() -> None:
    ran = licet("run", str(EXAMPLES / "orders.py"), "--input", f"orders=@{EXAMPLES / 'orders.json'}")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "customer                        total"
    assert ran.out.splitlines()[1] == "Café Médoc                   2,577.92"
    assert ran.out.splitlines()[-1] == (
        "{'orders': 7, 'paid': '4,987.38', 'open': '2,314.92', 'best_seller': 'BULB-60', 'customers': 5}"
    )
    assert ran.err.startswith("✓ ran")


def test_the_value_of_the_last_expression_is_printed_as_in_a_repl() -> None:
    ran = licet("run", "-c", "a = 2\nb = 3\na * b")
    assert (ran.code, ran.out) == (0, "6\n")


def test_a_value_of_none_prints_nothing() -> None:
    ran = licet("run", "-c", "print('x')")
    assert (ran.code, ran.out) == (0, "x\n")


def test_a_denial_names_line_reason_and_what_to_do() -> None:
    ran = licet("run", "-c", 'import os; os.system("id")')
    assert (ran.code, ran.out) == (3, "")
    assert "denied, nothing ran" in ran.err
    assert 'line 1      os.system("id")   needs shell' in ran.err
    assert "because     nothing allows it" in ran.err
    assert "you can     remove line 1" in ran.err


def test_a_loop_ends_at_its_time_limit() -> None:
    began = time.monotonic()
    ran = licet("run", "-c", "while True: pass", "--timeout", "1s")
    assert ran.code == 6
    assert "stopped at its time limit" in ran.err
    assert time.monotonic() - began < 10


def test_an_error_of_the_code_names_its_line() -> None:
    ran = licet("run", "-c", "x = 1\n1/0")
    assert ran.code == 1
    assert "line 2: ZeroDivisionError: division by zero" in ran.err


WITHOUT_JAILS = "licet: 1\nextends: licet:compute\nsandbox: {only: [monty, controlled_process]}\n"


def test_what_no_sandbox_can_run_says_why() -> None:
    Path("licet.yaml").write_text(WITHOUT_JAILS)
    ran = licet("run", "--policy", "licet.yaml", "-c", "class A(Exception): pass")
    assert ran.code == 5
    assert "no sandbox can run this, nothing ran" in ran.err
    assert "syntax: asked class_inheritance, offered" in ran.err
    assert "filesystem_read_deny, filesystem_write_deny" in ran.err


def test_explain_denies_reading_a_file() -> None:
    ran = licet("explain", "--json", "-c", 'open("/etc/passwd").read()')
    assert ran.code == 3
    assert ran.json["effect"] == "deny"
    verdict = next(v for v in ran.json["verdicts"] if v["intent"]["action"] == "read")
    assert verdict["intent"]["target"] == "/etc/passwd"
    assert (verdict["intent"]["source"], verdict["intent"]["line"]) == ("inferred", 1)
    assert verdict["effect"] == "deny"


def test_explain_runs_and_records_nothing(own_directories: Path) -> None:
    assert licet("explain", "-c", "1+1").code == 0
    assert list(own_directories.iterdir()) == []


def test_the_trail_lists_what_ran_and_verifies() -> None:
    licet("run", "-c", "1+1")
    licet("run", "-c", 'import os; os.system("id")')
    listed = licet("audit", "list", "--json").json
    assert [run["termination"] for run in listed] == ["exited", "policy_denied"]
    assert licet("audit", "verify").code == 0
    shown = licet("audit", "show", listed[0]["run_id"], "--json").json
    assert [record["kind"] for record in shown] == [
        "request", "decision", "selection", "authorization", "execution", "result",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["controlled_process", "monty"])
def test_backends_are_listed_with_their_contract(name: str) -> None:
    listed = {b["name"]: b for b in licet("backends", "list", "--json").json["backends"]}
    assert listed[name]["contract"]["digest"].startswith("sha256:")
    shown = licet("backends", "show", name)
    assert shown.code == 0
    blocks = [block.splitlines() for block in re.split(r"\n(?! )", shown.out.removesuffix("\n"))]
    claims = {name: claim for name, claim in listed[name]["contract"].items() if name != "digest"}
    assert [block[0].split()[:2] for block in blocks] == [[c, claims[c]["level"]] for c in claims]
    for block, (control, claim) in zip(blocks, claims.items(), strict=True):
        means = [f"    means: {MEANINGS[Control(control)].means}"]
        mechanism = [f"    by: {claim['mechanism']}"] if claim["mechanism"] else []
        assert block[1:] == means + mechanism + [f"    gap: {gap}" for gap in claim["gaps"]]


def test_trusted_code_runs_in_a_real_interpreter() -> None:
    policy = "licet: 1\nextends: licet:trusted\nsandbox: {only: [controlled_process]}\n"
    Path("licet.yaml").write_text(policy)
    ran = licet("run", "--policy", "licet.yaml", "-c", "class A(Exception): pass\nA.__mro__[1].__name__")
    assert (ran.code, ran.out) == (0, "'Exception'\n")
    assert "no walls" in ran.err


def test_json_is_the_whole_result() -> None:
    result = licet("run", "--json", "-c", "print('hi'); (1, 2)").json
    contract = """
        run_id termination success value value_repr stdout stderr stdout_truncated stderr_truncated
        stdout_bytes stderr_bytes exit_code error decision backend contract approval usage changes
        tool_calls artifacts audit
    """
    assert set(contract.split()) <= set(result)
    assert result["value"] == {"$type": "tuple", "items": [1, 2]}
    assert (result["stdout"], result["exit_code"], result["success"]) == ("hi\n", 0, True)


def test_a_clamped_limit_is_reported_with_what_was_asked() -> None:
    result = licet("run", "--json", "-c", "1", "--timeout", "1h").json
    assert result["changes"] == [
        {
            "field": "limits.wall_time",
            "requested": 3600.0,
            "effective": 30.0,
            "reason": "policy allows no more",
        }
    ]
    assert "changed     limits.wall_time: 9 min → 30 s, policy allows no more" in (
        licet("run", "-c", "1", "--timeout", "9m").err
    )


def _advised(ran: Ran) -> tuple[str, ...]:
    """The command that a card says shows more, as a shell would split it."""
    (line,) = (line for line in ran.err.splitlines() if line.startswith("  more "))
    program, *arguments = shlex.split(line.removeprefix("  more "))
    assert program == "licet"
    return tuple(arguments)


@pytest.mark.parametrize("how", ["beside a policy", "LICET_HOME", "config.toml"])
def test_a_card_names_a_command_that_works(
    how: str, own_directories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = own_directories / "a project"
    folder.mkdir()
    (folder / "licet.yaml").write_text("licet: 1\nextends: licet:compute\n")
    run = ("run", "--policy", "a project/licet.yaml", "-c", "open('x')")
    if how == "LICET_HOME":
        monkeypatch.setenv("LICET_HOME", "../log")
    elif how == "config.toml":
        licet(*run)
        (folder / ".licet" / "config.toml").write_text('home = "../../log"')
    ran = licet(*run)
    assert ran.code == 3
    show = _advised(ran)
    assert ("--state" in show) == (how != "LICET_HOME")
    assert "policy_denied" in licet(*show).err
    assert (own_directories.parent / "log" / "log").is_dir() == (how == "LICET_HOME")
    for place in ((), ("--policy", "a project/licet.yaml")):
        found = licet("audit", "list", "--json", *place)
        if place or how == "LICET_HOME":
            assert [run["termination"] for run in found.json] == ["policy_denied"]
        else:
            assert (found.code, "`--policy`" in found.err) == (7, True)
    assert not (own_directories / ".licet").exists()


def test_a_log_is_named_once(own_directories: Path) -> None:
    ran = licet("audit", "list", "--state", ".licet", "--policy", "licet.yaml")
    assert (ran.code, "both name a log" in ran.err) == (2, True)


def test_a_moved_project_keeps_its_log(own_directories: Path) -> None:
    (own_directories / "old").mkdir()
    (own_directories / "old" / "licet.yaml").write_text("licet: 1\nextends: licet:compute\n")
    assert licet("run", "--policy", "old/licet.yaml", "-c", "1").code == 0
    (own_directories / "old").rename(own_directories / "new")
    assert licet("run", "--policy", "new/licet.yaml", "-c", "1").code == 0
    assert len(licet("audit", "list", "--policy", "new/licet.yaml", "--json").json) == 2
    shutil.copytree(own_directories / "new", own_directories / "copy")
    ran = licet("run", "--policy", "copy/licet.yaml", "-c", "1")
    assert ran.code == 7
    assert f"its log is registered for `{own_directories}/new/.licet`, and this may be a copy" in ran.err
    assert len(licet("audit", "list", "--policy", "copy/licet.yaml", "--json").json) == 2


def test_the_backend_of_a_run_is_the_one_that_ran_it() -> None:
    licet("run", "-c", "1")
    licet("run", "-c", "open('x')")
    Path("p.yaml").write_text(WITHOUT_JAILS)
    licet("run", "--policy", "p.yaml", "-c", "class A(Exception): pass")
    runs = licet("audit", "list", "--json").json
    assert [(run["backend"], run["executed"]) for run in runs] == [
        ("monty", True), (None, False), (None, False),
    ]  # fmt: skip
    assert [line.split()[6:] for line in licet("audit", "list").out.splitlines()[1:]] == [
        ["monty", "exited"], ["-", "policy_denied"], ["-", "no_backend"],
    ]  # fmt: skip


def test_a_run_that_best_effort_let_go_unrecorded_says_so(own_directories: Path) -> None:
    Path("licet.yaml").write_text("licet: 1\nextends: licet:compute\naudit: {mode: best_effort}\n")
    assert "  trail " not in licet("run", "--policy", "licet.yaml", "-c", "1").err
    shutil.rmtree(own_directories / ".licet")
    (own_directories / ".licet").write_text("a file")
    for code, exit_code in (("1", 0), ("1/0", 1), ("open('x')", 3)):
        ran = licet("run", "--policy", "licet.yaml", "-c", code)
        assert ran.code == exit_code
        assert "  trail       not recorded: " in ran.err
        assert "licet explain" not in ran.err
    assert licet("run", "--policy", "licet.yaml", "-c", "1", "--json").json["audit"] is None


def test_a_policy_is_started_checked_and_shown() -> None:
    assert licet("policy", "init").code == 0
    assert licet("policy", "init").code == 2
    assert licet("policy", "check").code == 0
    shown = licet("policy", "show", "--json").json
    assert {one["key"]: one["value"] for one in shown["settings"]}["limits.memory"] == 256 << 20
    assert licet("run", "--policy", "licet.yaml", "-c", "1+1").out == "2\n"


def test_the_digest_that_show_prints_is_the_one_that_a_pin_needs(own_directories: Path) -> None:
    (own_directories / "org.yaml").write_text("licet: 1\nlimits: {wall_time: 5s}\n")
    policy = own_directories / "licet.yaml"
    policy.write_text("licet: 1\nwithin: [./org.yaml]\n")
    bound = licet("policy", "show", "--json").json["documents"][1]
    assert f"sha256 {bound['sha256']}" in licet("policy", "show").out
    policy.write_text(f"licet: 1\nwithin: [{{file: ./org.yaml, sha256: '{bound['sha256']}'}}]\n")
    assert licet("policy", "check").code == 0
    (own_directories / "org.yaml").write_text("licet: 1\nlimits: {wall_time: 50s}\n")
    refused = licet("policy", "check")
    assert refused.code == 2
    assert f"is pinned to sha256 {bound['sha256']}, but its content has" in refused.err
