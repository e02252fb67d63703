"""The `*.test.yaml` of packs and worked policies: all pass, and leave no outcome without a case."""

from __future__ import annotations

from pathlib import Path

import pytest
from licet.policy import PolicySource, load_stack
from licet.workbench.trials import suites, tested
from licet_policies.plugin import licet_policy_packs

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "policies" / "tests", ROOT / "docs" / "examples" / "policies")
FILES = sorted(path for folder in FOLDERS for path in folder.glob("*.test.yaml"))
SOURCE = PolicySource(
    licet_policy_packs(),
    Path("/no-such-directory/policy.d"),
    frozenset(("LANG", "TZ", "ARTIFACT_TOKEN")).__contains__,
)


def test_every_pack_and_every_worked_policy_has_cases() -> None:
    packs, worked = ({path.name for path in FILES if path.parent == folder} for folder in FOLDERS)
    assert packs == {f"{pack}.test.yaml" for pack in licet_policy_packs()}
    policies = [path for path in FOLDERS[1].glob("*.yaml") if not path.name.endswith(".test.yaml")]
    assert worked == {f"{path.stem}.test.yaml" for path in policies}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_cases(path: Path) -> None:
    (suite,) = suites.suites_of([str(path)])
    found = tested.try_suite(suite, load_stack(suite.policy, SOURCE))
    assert [(trial.label, trial.shortfalls) for trial in found.failures] == []
    assert found.trials != ()
    assert [str(shown) for shown in found.coverage.missing] == []
    assert found.warnings == ()
