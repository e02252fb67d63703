"""Decision cases as files: a policy stack and a request, and what has to come out.

One folder a rule of the semantics. A case is read with a plain YAML library, so that licet's own reader is
used for the policies in it and for nothing else. Relative paths of policies start at `/p`, those of requests
at `workdir`, which is `/w` unless the case says otherwise; neither directory exists.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from licet.decide import Decision, decide
from licet.normalize import normalize
from licet.policy import PolicyStack
from licet.policy.document import build
from licet.policy.yaml import load
from licet.request import ExecutionRequest, Intent, ScreenReport, Violation

FOLDER = Path(__file__).parent
CASES = sorted(FOLDER.glob("*/*.yaml"))
KEYS = {"says", "root", "bounds", "sealed", "workdir", "intents", "inferred", "tools", "screen", "expect"}


def intent(text: str, source: str = "declared") -> Intent:
    """`ACTION [TARGET] [line N]`; a target of `?` is unknown."""
    words, _, line = text.partition(" line ")
    action, _, target = words.partition(" ")
    known = None if target in ("", "?") else target
    return Intent(action, known, source, int(line) if line else None)  # type: ignore[arg-type]


def decided(case: dict[str, Any]) -> Decision:
    texts = [case["root"], *case.get("bounds", ())]
    names = ["root", *(f"bound{number}" for number in range(1, len(texts)))]
    documents = [
        build(load(text.encode(), name), file=name, base=Path("/p"))
        for name, text in zip(names, texts, strict=True)
    ]
    stack = PolicyStack(documents[0], tuple(documents[1:]), tuple(case.get("sealed", ())))
    listed = case.get("intents")
    request = ExecutionRequest(
        code="1",
        workdir=case.get("workdir", "/w"),
        intents=None if listed is None else tuple(map(intent, listed)),
        tools=dict.fromkeys(case.get("tools", ()), len),
    )
    ready = normalize(
        request,
        stack,
        directory="/",
        host_environment={},
        digest=lambda name, content: f"{name}:{len(content)}",
        is_directory=lambda path: True,
    )
    report = ScreenReport(
        violations=tuple(Violation(code, 1, code, "leave it out") for code in case.get("screen", ())),
        intents=tuple(intent(text, "inferred") for text in case.get("inferred", ())),
    )
    return decide(ready, stack, report)


def told(decision: Decision) -> dict[str, Any]:
    """A decision in the form of the files: what is empty is left out."""
    verdicts = []
    for verdict in decision.verdicts:
        at = "" if verdict.intent.when == "start" else f", at {verdict.intent.when}"
        by = ", ".join(map(str, verdict.by))
        verdicts.append(
            f"{verdict.effect}: {verdict.intent} ({verdict.intent.source}{at})" + (f" by {by}" if by else "")
        )
    opened = {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(decision.opened).items() if v}
    return {"effect": decision.effect, "verdicts": verdicts, "opened": opened}


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_golden(path: Path) -> None:
    case = yaml.safe_load(path.read_text())
    assert case.keys() <= KEYS, "a case with a key that nothing reads"
    assert told(decided(case)) == case["expect"], case["says"]


def test_there_are_cases_for_every_rule_that_decides() -> None:
    folders = {path.parent.name for path in CASES}
    assert folders == {
        "rule_01_only_the_root_grants",
        "rule_03_bounds",
        "rule_06_paths",
        "rule_07_tools_and_hosts",
        "rule_08_lists_of_intents",
        "rule_09_unknown_targets",
        "rule_10_inside_and_containing",
        "rule_11_never_grantable",
        "rule_12_effect",
    }
