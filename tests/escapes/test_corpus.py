"""The whole corpus under `licet:compute`: no attack reaches its goal, no neutral code is refused."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from licet import Runtime


def _corpus() -> ModuleType:
    spec = importlib.util.spec_from_file_location("corpus", Path(__file__).parent / "corpus.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up by name
    import sys

    sys.modules["corpus"] = module
    spec.loader.exec_module(module)
    return module


corpus = _corpus()


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    with Runtime() as opened:
        yield opened


def test_no_attack_reaches_its_goal_and_the_screen_lets_few_through(runtime: Runtime) -> None:
    table = corpus.attacks(runtime)
    named = [name for tally in table.values() for name in tally.named]
    assert [name for name in named if "REACHED" in name] == []
    rejects = sum(
        item["expect_static"] == "reject" for item in corpus.load(corpus.HERE / "data" / "escapes.jsonl")
    )
    assert len(named) <= 0.03 * rejects, named


def test_no_neutral_code_is_refused(runtime: Runtime) -> None:
    table = corpus.harmless(runtime)
    named = [name for tally in table.values() for name in tally.named]
    assert [name for name in named if "NEUTRAL" in name] == []


@pytest.mark.skipif(
    not corpus.EXTERNAL.exists(), reason=f"needs the published sets in {corpus.EXTERNAL.name}/"
)
def test_published_code_is_refused_only_where_it_is_expected(runtime: Runtime) -> None:
    table = corpus.published(runtime)
    refused = {name.split()[0] for tally in table.values() for name in tally.named if " refused" in name}
    assert refused <= {"HumanEval/160", "MBPP/100", "MBPP/596"}
