"""Decision cases as files: a policy stack and a request, and what has to come out.

One folder a rule of the semantics. A case is read with a plain YAML library, so that licet's own reader is
used for the policies in it and for nothing else. Relative paths of policies start at `/p`, those of requests
at `workdir`, which is `/w` unless the case says otherwise; neither directory exists.

`subject` says who asks, `at` when (a Wednesday noon unless the case says otherwise). With `call` (`tool`,
`args`), one call of a tool is decided, whose signature the policy declares. A bound with `mode: dry_run` is
rehearsed. What rules and approvals bring stands in what is expected only where there is any of it.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from licet.applying import Hit, applied_to, facts_of
from licet.decide import Decision, decide, decide_call
from licet.normalize import lowered, normalize
from licet.policy import PolicyStack
from licet.policy.document import build, settled
from licet.policy.facts import CallFacts
from licet.policy.signatures import bind
from licet.policy.yaml import load
from licet.prepare import prepare
from licet.request import ExecutionRequest, Intent, NormalizedRequest, ScreenReport, Subject, Violation

FOLDER = Path(__file__).parent
CASES = sorted(FOLDER.glob("*/*.yaml"))
KEYS = {
    "says",
    "root",
    "bounds",
    "sealed",
    "workdir",
    "intents",
    "inferred",
    "tools",
    "screen",
    "subject",
    "at",
    "call",
    "expect",
}


def intent(text: str, source: str = "declared") -> Intent:
    """`ACTION [TARGET] [line N]`; a target of `?` is unknown."""
    words, _, line = text.partition(" line ")
    action, _, target = words.partition(" ")
    known = None if target in ("", "?") else target
    return Intent(action, known, source, int(line) if line else None)  # type: ignore[arg-type]


def stack_of(case: dict[str, Any]) -> PolicyStack:
    texts = [case["root"], *case.get("bounds", ())]
    names = ["root", *(f"bound{number}" for number in range(1, len(texts)))]
    root, *bounds = [
        settled(build(load(text.encode(), name), file=name, base=Path("/p")))
        for name, text in zip(names, texts, strict=True)
    ]
    return PolicyStack(
        root,
        tuple(bound for bound in bounds if bound.mode == "enforce"),
        tuple(case.get("sealed", ())),
        rehearsed=tuple(bound for bound in bounds if bound.mode == "dry_run"),
    )


def digest(name: str, content: bytes) -> str:
    return f"{name}:{len(content)}"


def decided(case: dict[str, Any]) -> tuple[Decision, NormalizedRequest]:
    stack = stack_of(case)
    listed = case.get("intents")
    request = ExecutionRequest(
        code="1",
        workdir=case.get("workdir", "/w"),
        intents=None if listed is None else tuple(map(intent, listed)),
        tools=dict.fromkeys(case.get("tools", ()), len),
        subject=Subject(**case.get("subject", {})),
    )
    at = datetime.fromisoformat(case.get("at", "2026-03-04T12:00:00+00:00")).astimezone(UTC)
    if stack.rehearsed:
        whole = request.model_copy(update={"workdir": None})  # the real one has to exist
        prepared = prepare(whole, stack, (), at=at, directory="/", host_environment={}, digest=digest)
        return prepared.decision, prepared.request
    ready = normalize(
        request, stack, directory="/", host_environment={}, digest=digest, is_directory=lambda path: True
    )
    report = ScreenReport(
        violations=tuple(Violation(code, 1, code, "leave it out") for code in case.get("screen", ())),
        intents=tuple(intent(text, "inferred") for text in case.get("inferred", ())),
    )
    facts = facts_of(ready, report, at, stack)
    if "call" in case:
        signature = stack.tools[case["call"]["tool"]]
        args = bind(signature, (), case["call"].get("args", {}))
        made = CallFacts(case["call"]["tool"], args, signature)
        return decide_call(replace(facts, call=made), stack), ready
    applied = applied_to(stack, facts)
    stack = stack.applying(applied.rules)
    ready = lowered(ready, stack.limits, digest)
    return decide(ready, stack, report, applied), ready


def told(decision: Decision, request: NormalizedRequest) -> dict[str, Any]:
    """A decision in the form of the files: what is empty is left out."""
    verdicts = []
    for verdict in decision.verdicts:
        at = "" if verdict.intent.when == "start" else f", at {verdict.intent.when}"
        by = ", ".join(map(str, verdict.by))
        verdicts.append(
            f"{verdict.effect}: {verdict.intent} ({verdict.intent.source}{at})" + (f" by {by}" if by else "")
        )
    opened = {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(decision.opened).items() if v}
    besides = {
        "rules": [hit(one) for one in decision.hits],
        "pending": [rule.id for rule in decision.pending],
        "demands": [str(demand) for demand in decision.demands],
        "required": {str(control): str(level) for control, level in decision.required.items()},
        "lowered": {c.field: c.effective for c in request.changes if c.field.startswith("limits.")},
        "rehearsals": [
            {
                "document": one.document,
                "effect": one.effect,
                "verdicts": [f"{v.effect}: {v.intent} by {', '.join(map(str, v.by))}" for v in one.verdicts],
                "rules": [hit(each) for each in one.hits],
            }
            for one in decision.rehearsals
        ],
    }
    stated = {key: value for key, value in besides.items() if value}
    return {"effect": decision.effect, "verdicts": verdicts, "opened": opened, **stated}


def hit(one: Hit) -> str:
    """`ID: TRUTH`, and of each leaf what it says."""
    leaves = "; ".join(f"{a.leaf.clause} {a.leaf.text} is {a.truth}" for a in one.answers)
    return f"{one.rule.id}: {one.truth}" + (f" ({leaves})" if leaves else "")


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_golden(path: Path) -> None:
    case = yaml.safe_load(path.read_text())
    assert case.keys() <= KEYS, "a case with a key that nothing reads"
    assert told(*decided(case)) == case["expect"], case["says"]


def test_there_are_cases_for_every_rule_that_decides() -> None:
    folders = {path.parent.name for path in CASES}
    assert folders == {
        "rule_01_only_the_root_grants",
        "rule_03_bounds",
        "rule_04_rehearsal",
        "rule_06_paths",
        "rule_07_tools_and_hosts",
        "rule_08_lists_of_intents",
        "rule_09_unknown_targets",
        "rule_10_inside_and_containing",
        "rule_11_never_grantable",
        "rule_12_effect",
        "rule_13_rules",
        "rule_14_rules_about_calls",
        "rule_16_demands",
    }
