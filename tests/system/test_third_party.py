"""A backend from outside: installed by wheel, it passes the kit; its dishonest twins fail by their lies."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from elsewhere import ROOT, Elsewhere, Verdicts
from licet.contract import Control
from licet.probe.attacks import here

ECHO = ROOT / "docs" / "examples" / "licet-echo"
STRANGERS = Path(__file__).parent / "strangers"
OPEN = """\
licet: 1
allow: [read /, write /, network any, shell]
sandbox: {only: [echo]}
"""

WORDS = (
    "test_a_claim",
    "formed",
    "of_its_own_is_another",
    "test_it_says",
    "every_instance",
    "plain_one",
)

DECLINES = {
    "nothing is claimed that this could show",
    "`echo` does not suspend runs",
    "`echo` opens no tools",
    "`echo` gives code its own interpreter alone",
    *(f"`echo` does not govern the {what}" for what in ("clock", "random", "randomness")),
}
"""Why tests of the kit leave it out."""

BY_CLOCK = ("timeout", "cancellation", "process_tree_cleanup")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, where licet-echo runs")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    return Elsewhere.make(tmp_path_factory.mktemp("elsewhere"), ECHO)


def test_a_strangers_backend_passes_the_kit(elsewhere: Elsewhere) -> None:
    shutil.copytree(ECHO / "tests", elsewhere.folder / "tests", dirs_exist_ok=True)
    verdicts = elsewhere.pytest("tests", "-k", " and ".join(f"not {control}/" for control in BY_CLOCK))
    assert verdicts.failed == {}
    assert verdicts.passed > 120
    assert set(verdicts.skipped) == DECLINES


@pytest.mark.soak
def test_it_withstands_the_attacks_that_are_judged_by_the_clock(elsewhere: Elsewhere) -> None:
    shutil.copytree(ECHO / "tests", elsewhere.folder / "tests", dirs_exist_ok=True)
    verdicts = elsewhere.pytest("tests", "-k", " or ".join(f"{control}/" for control in BY_CLOCK))
    assert verdicts.failed == {}
    assert verdicts.passed >= 16


def test_it_is_listed_where_it_is_enabled_and_imported_nowhere_else(elsewhere: Elsewhere) -> None:
    listing = ("-X", "importtime", "-m", "licet", "backends", "list", "--json")
    with_it = elsewhere.run(*listing, LICET_ENABLED="audit,policies,monty,echo")
    without = elsewhere.run(*listing, LICET_ENABLED="audit,policies,monty")
    names = [
        [backend["name"] for backend in json.loads(done.stdout)["backends"]] for done in (with_it, without)
    ]
    assert names == [["monty", "echo"], ["monty"]]
    assert "licet_echo" in with_it.stderr
    assert "licet_echo" not in without.stderr


def test_it_runs_code_where_policy_opens_what_it_does_not_close(elsewhere: Elsewhere) -> None:
    (elsewhere.folder / "open.yaml").write_text(OPEN)
    run = ("-m", "licet", "run", "--policy", "open.yaml", "-c", "6 * 7", "--json")
    enabled = {"LICET_ENABLED": "audit,policies,echo", "LICET_HOME": str(elsewhere.folder / "home")}
    done = elsewhere.run(*run, **enabled)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["value"], result["backend"]["name"], result["backend"]["isolation"]) == (
        42,
        "echo",
        "none",
    )


def test_a_known_gap_is_a_strict_expected_failure(elsewhere: Elsewhere) -> None:
    shutil.copy(STRANGERS / "dishonest.py", elsewhere.folder / "test_dishonest.py")
    shutil.copy(STRANGERS / "gaps.py", elsewhere.folder / "test_gaps.py")
    told = elsewhere.pytest("test_gaps.py", "-k", "gaps_are or plain_one or withstands and internals").failed
    assert set(told) == {
        "TestClosed.test_the_descriptor_is_a_plain_one",
        "TestMisspelt.test_a_claim_withstands[network_deny/internals]",
        "TestMisspelt.test_known_gaps_are_gaps",
    }
    assert told["TestClosed.test_the_descriptor_is_a_plain_one"] == "[XPASS(strict)] long gone"
    assert "`network_deny/smoke` is no test" in told["TestMisspelt.test_known_gaps_are_gaps"]


@pytest.fixture(scope="module")
def dishonest(elsewhere: Elsewhere) -> Verdicts:
    """What each twin says of itself, and what that is worth; what else it does is the same as Echo."""
    shutil.copy(STRANGERS / "dishonest.py", elsewhere.folder / "test_dishonest.py")
    return elsewhere.pytest("test_dishonest.py", "-k", " or ".join(WORDS))


NETWORK = [attack.variant for attack in here() if attack.control is Control.network_deny]


@pytest.mark.parametrize(
    ("twin", "tests", "said"),
    [
        (
            "Boaster",
            {f"test_a_claim_withstands[network_deny/{variant}]" for variant in NETWORK},
            "`twin` claims `network_deny: enforced`, which is not so here",
        ),
        (
            "Denier",
            {f"test_a_claim_withstands[network_deny/{variant}]" for variant in NETWORK},
            "claim `not_applicable` only for what the language can't express; this it can",
        ),
        (
            "Machine",
            {"test_a_claim_withstands[separate_kernel/boot_id]", "test_a_kernel_of_its_own_is_another_one"},
            "(boundary: separate_kernel)",
        ),
        (
            "Boundary",
            {"test_a_kernel_of_its_own_is_another_one"},
            "claimed   working_directory (separate_kernel)",
        ),
        ("Isolated", {"test_the_contract_is_a_plain_one"}, "SandboxEnforcementContract"),
        (
            "Witness",
            {"test_claims_are_well_formed"},
            "only licet's own attacks make evidence",
        ),
        (
            "Fickle",
            {f"test_it_says_the_same_{when}" for when in ("each_time", "from_any_thread", "after_runs")},
            "make the descriptor once",
        ),
        ("Various", {"test_every_instance_says_the_same"}, "version"),
        (
            "Actor",
            {f"test_a_claim_holds_in_an_ordinary_run[network_deny/{variant}]" for variant in NETWORK},
            "`twin` claims `network_deny: enforced`, which does not hold in an ordinary run",
        ),
        (
            "Inside",
            {
                "test_a_process_of_its_own_is_another_one",
                "test_a_claim_withstands[working_directory/start]",
            },
            "the code runs in the process of its host",
        ),
    ],
)
def test_a_dishonest_twin_fails_by_its_lie(
    dishonest: Verdicts, twin: str, tests: set[str], said: str
) -> None:
    failed = {
        name.partition(".")[2]: message
        for name, message in dishonest.failed.items()
        if name.startswith(f"Test{twin}.")
    }
    assert set(failed) == tests
    assert said in "\n".join(failed.values())


CARELESS = {
    "Deaf": {"test_cancelled_while_it_computes"},
    "Littering": {"test_a_closed_backend_leaves_nothing", "test_a_backend_in_use_does_not_grow"},
    "Lagging": {"test_nothing_comes_after_the_end"},
    "Blurred": {"test_runs_at_once_stay_apart", "test_loops_of_several_threads_share_a_backend"},
    "Reopened": {"test_a_closed_sandbox_runs_nothing"},
    "Hoarding": {"test_names_of_a_run_are_gone_in_the_next"},
    "Unbounded": {"test_the_limit_of_output_ends_a_run"},
    "Swallowing": {"test_a_fault_of_the_host_is_raised"},
    "Textual": {"test_bytes_that_are_no_text_arrive_as_they_are"},
    "Vague": {
        "test_system_exit_says_the_exit_code[raise SystemExit(7)-7-]",
        "test_data_comes_back_as_it_went_in",
    },
}
"""What each careless twin does wrong, and which test says so."""


@pytest.fixture(scope="module")
def careless(elsewhere: Elsewhere) -> Verdicts:
    """Those tests, against the twin that has to fail them."""
    shutil.copy(STRANGERS / "careless.py", elsewhere.folder / "test_careless.py")
    return elsewhere.pytest(
        *(f"test_careless.py::Test{t}::{n}" for t, names in CARELESS.items() for n in names)
    )


@pytest.mark.parametrize("twin", CARELESS)
def test_a_careless_twin_fails_by_its_fault(careless: Verdicts, twin: str) -> None:
    assert {name for name in careless.failed if name.startswith(f"Test{twin}.")} == {
        f"Test{twin}.{name}" for name in CARELESS[twin]
    }


def test_what_a_littering_twin_leaves_is_named(careless: Verdicts) -> None:
    told = careless.failed["TestLittering.test_a_closed_backend_leaves_nothing"]
    for left in ("descriptors: ", "threads: ", "processes: ", "files: "):
        assert left in told
