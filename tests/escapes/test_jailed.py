"""The whole corpus in full CPython, held by the kernel: no attack leaves its jail, all harmless code runs.

The stated goal of some attacks is what code does to itself: it changes its own interpreter, or prints a line.
Monty has no words for most of that. In a jail it happens, to nobody else: these are named here, one by one,
and any other that reaches its goal fails.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from licet import Runtime
from licet.supervise.jail import ground

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or ground().refusal is not None,
    reason="needs a Linux that lets this user make jails",
)

TO_ITSELF = {
    "in-process-tampering-12": "its own variable is printed",
    "resource-exhaustion-22": "a long sum is parsed, within the limits",
    "resource-exhaustion-24": "CPython's own error for a long number",
    "result-forging-09": "CPython's own error for half a character",
}
UNSCREENED = {
    "dunder-walk-13": "it changes `int` of its own interpreter",
    "exception-object-03": "it reads its own object",
    "in-process-tampering-05": "it changes its own `math`",
    "in-process-tampering-07": "it prints its own errors; what ended it is told over the private channel",
    "in-process-tampering-08": "it counts its own objects",
    "in-process-tampering-10": "its thread is waited for, within the deadline",
    "process-control-17": "it raises its own soft limit to the hard one",
    "resource-exhaustion-15": "it has some hundred descriptors of its own",
    "result-forging-02": "it writes to its own channel, which a gap of the contract says",
}
_POLICY = """\
licet: 1
extends: licet:data
sandbox: {only: [restricted_linux]}
"""


def _corpus() -> ModuleType:
    spec = importlib.util.spec_from_file_location("jailed_corpus", Path(__file__).parent / "corpus.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["jailed_corpus"] = module
    spec.loader.exec_module(module)
    return module


corpus = _corpus()


def runtime(folder: Path, more: str = "") -> Runtime:
    policy = folder / "jailed.yaml"
    policy.write_text(_POLICY + more)
    return Runtime.from_policy(policy)


@pytest.fixture
def screened(tmp_path: Path) -> Iterator[Runtime]:
    with runtime(tmp_path) as opened:
        yield opened


@pytest.fixture
def unscreened(tmp_path: Path) -> Iterator[Runtime]:
    with runtime(tmp_path, "screen: {mode: report}\n") as opened:
        yield opened


def reached(found: Runtime) -> set[str]:
    table = corpus.attacks(found)
    return {name.split()[0] for tally in table.values() for name in tally.named if "REACHED" in name}


def test_no_attack_leaves_its_jail(screened: Runtime) -> None:
    assert reached(screened) == set(TO_ITSELF)


def test_no_attack_leaves_its_jail_whatever_the_screen_says(unscreened: Runtime) -> None:
    assert reached(unscreened) == {*TO_ITSELF, *UNSCREENED}


def test_all_harmless_code_runs_right(unscreened: Runtime) -> None:
    table = corpus.harmless(unscreened)
    assert {
        name: (tally.items, tally.wrong) for name, tally in table.items() if tally.right != tally.items
    } == {}


@pytest.mark.skipif(
    not corpus.EXTERNAL.exists(), reason=f"needs the published sets in {corpus.EXTERNAL.name}/"
)
def test_all_published_code_passes_its_own_tests(unscreened: Runtime) -> None:
    table = corpus.published(unscreened)
    assert {name: (tally.right, tally.items) for name, tally in table.items()} == {
        "humaneval": (164, 164),
        "mbpp_sanitized": (427, 427),
    }
