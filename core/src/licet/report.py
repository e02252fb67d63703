"""A decision and its selection as people and programs read them, with what would make it pass.

Rules this module keeps:

- it says again what the stages found and decides nothing;
- advice comes from the verdicts: take the line out, ask for less, or have somebody allow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

from licet.contract import Evidence
from licet.decide import Decision, Verdict
from licet.policy import PolicyStack
from licet.policy.patterns import Effect
from licet.request import Violation
from licet.screen import VERSION as SCREEN_VERSION
from licet.select import Candidate, Selection


@dataclass(frozen=True, slots=True)
class Repair:
    """One change that would help: `kind` is stable, `text` is the sentence for people."""

    kind: str
    text: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `licet explain` answers: permission, and beside it the selection.

    `policy` is the name of the policy that decided, `policy_stale` why newer text of it is not in force.
    """

    effect: Effect
    verdicts: tuple[Verdict, ...]
    violations: tuple[Violation, ...]
    refusals: tuple[Violation, ...]
    selection: Selection
    evidence: Evidence
    repair: tuple[Repair, ...]
    policy: str
    policy_digest: str
    plan_digest: str | None
    policy_stale: str | None = None
    syntax_error: Violation | None = None

    @property
    def exit_code(self) -> int:
        """0 allow · 3 deny · 4 ask · 5 no backend, also where it would ask."""
        if self.effect == "deny":
            return 3
        if self.selection.chosen is None:
            return 5
        return 4 if self.effect == "ask" else 0

    def as_json(self) -> dict[str, Any]:
        """The form of `licet explain --json`."""
        return {
            "effect": self.effect,
            "verdicts": [_verdict(verdict) for verdict in self.verdicts],
            "violations": [asdict(violation) for violation in self.violations],
            "selection": {
                "backend": self.selection.backend,
                "candidates": [self._candidate(one) for one in self.selection.candidates],
            },
            "repair": [asdict(repair) for repair in self.repair],
            "policy": self.policy,
            "policy_digest": self.policy_digest,
            "policy_stale": self.policy_stale,
            **versions(),
            "plan_digest": self.plan_digest,
            "syntax_error": asdict(self.syntax_error) if self.syntax_error else None,
        }

    def _candidate(self, candidate: Candidate) -> dict[str, Any]:
        evidence = "missing" if candidate.missing else self.evidence.value
        return asdict(candidate) | {"evidence": evidence}


@cache
def versions() -> Mapping[str, str]:
    """The versions of what decides: of licet, and of what the screen knows."""
    return MappingProxyType({"licet": version("licet"), "screen": SCREEN_VERSION})


def explain(
    decision: Decision, selection: Selection, stack: PolicyStack, syntax_error: Violation | None = None
) -> Explanation:
    """Put a decision under `stack` and its selection together."""
    chosen = selection.chosen
    return Explanation(
        effect=decision.effect,
        verdicts=decision.verdicts,
        violations=decision.violations,
        refusals=decision.refusals,
        selection=selection,
        evidence=decision.evidence,
        repair=tuple(dict.fromkeys(_repairs(decision, selection))),
        policy=stack.name,
        policy_digest=decision.policy_digest,
        policy_stale=stack.stale,
        plan_digest=chosen.plan_digest if chosen else None,
        syntax_error=syntax_error,
    )


def _repairs(decision: Decision, selection: Selection) -> Iterable[Repair]:
    for violation in decision.refusals:
        yield Repair("change_code", violation.advice, violation.line)
    for verdict in decision.verdicts:
        if verdict.effect == "deny":
            yield from _repair_verdict(verdict)
        elif verdict.effect == "ask":
            yield Repair("get_approval", f"have `{verdict.intent}` approved", verdict.intent.line)
    if decision.effect != "deny" and selection.chosen is None:
        yield from _repair_selection(selection)


def _repair_verdict(verdict: Verdict) -> Iterable[Repair]:
    intent = verdict.intent
    if intent.line is not None:
        yield Repair("remove_line", f"remove line {intent.line}", intent.line)
    elif intent.action != "run":
        yield Repair("drop_intent", f"do without `{intent}`")
    if verdict.reason.startswith("nothing allows"):
        entry = str(intent) if intent.target is not None or intent.action == "shell" else f"{intent.action} …"
        yield Repair("allow", f"have the owner of the policy add `allow: [{entry}]`", intent.line)


def _repair_selection(selection: Selection) -> Iterable[Repair]:
    lacking = sorted(
        {
            (blocker.what, blocker.asked, blocker.because)
            for candidate in selection.candidates
            for blocker in candidate.blockers
            if blocker.what in ("syntax", "module", "builtin", "stdin")
        }
    )
    for what, asked, because in lacking:
        yield Repair("change_code", f"do without the {what} `{asked}` ({because})")
    advice = (
        "enable or install a backend that holds all of this: `licet doctor` tells what this host can hold"
    )
    yield Repair("enable_backend", advice)


def _verdict(verdict: Verdict) -> dict[str, Any]:
    intent = verdict.intent
    return {
        "intent": {
            "action": intent.action,
            "target": intent.target,
            "source": intent.source,
            "line": intent.line,
            "when": intent.when,
            "excerpt": intent.excerpt,
        },
        "effect": verdict.effect,
        "by": [asdict(by) for by in verdict.by],
        "reason": verdict.reason,
    }
