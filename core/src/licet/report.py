"""A decision and its selection as people and programs read them, with what would make it pass.

Rules this module keeps:

- it says again what the stages found and decides nothing;
- advice comes from the verdicts: take the line out, ask for less, or have somebody allow it. It is quick, and
  nothing has tried it: `repair` searches for what does pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from licet.account import Account, verdict_json
from licet.contract import Evidence
from licet.decide import Decision, Verdict
from licet.policy import PolicyStack
from licet.policy.parts import DEFAULT_APPROVAL
from licet.policy.patterns import Effect
from licet.policy.references import PACK_PREFIX
from licet.request import Violation
from licet.screen import VERSION as SCREEN_VERSION
from licet.select import Candidate, Selection

if TYPE_CHECKING:
    from licet.edits import Edit


@dataclass(frozen=True, slots=True)
class Repair:
    """One change that would help: `kind` is stable, `text` is the sentence for people.

    `edits` are changes of the request that together suffice. `leads_to` is what the engine then decides;
    None where nobody has tried it, since it is not the caller's to change.
    """

    kind: str
    text: str
    line: int | None = None
    edits: tuple[Edit, ...] = ()
    leads_to: Effect | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `licet explain` answers: permission, beside it the selection, and what both rest on.

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
    account: Account | None = None

    @property
    def exit_code(self) -> int:
        """That of `licet explain`."""
        return exit_code(self.effect, self.selection.backend)

    def as_json(self) -> dict[str, Any]:
        """The form of `licet explain --json`."""
        return {
            "effect": self.effect,
            "verdicts": [verdict_json(verdict) for verdict in self.verdicts],
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
            **(self.account.as_json() if self.account else {}),
        }

    def _candidate(self, candidate: Candidate) -> dict[str, Any]:
        evidence = "missing" if candidate.missing else self.evidence.value
        return asdict(candidate) | {"evidence": evidence}


def exit_code(effect: str | None, backend: str | None) -> int:
    """0 allow · 3 deny · 4 ask · 5 no backend, also where it would ask; what is no effect counts as deny."""
    if effect not in ("allow", "ask"):
        return 3
    if backend is None:
        return 5
    return 4 if effect == "ask" else 0


@cache
def versions() -> Mapping[str, str]:
    """The versions of what decides: of licet, and of what the screen knows."""
    return MappingProxyType({"licet": version("licet"), "screen": SCREEN_VERSION})


def explain(
    decision: Decision,
    selection: Selection,
    stack: PolicyStack,
    syntax_error: Violation | None = None,
    *,
    at: datetime,
) -> Explanation:
    """Put a decision under `stack`, made at the instant `at`, and its selection together."""
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
        account=Account(stack, decision, at),
    )


def _repairs(decision: Decision, selection: Selection) -> Iterable[Repair]:
    yield from repairs_of_code(decision, selection)
    for verdict in decision.verdicts:
        if verdict.effect == "deny":
            yield from _without(verdict)
            yield from repairs_by_the_owner(verdict)
    if decision.effect == "ask":
        yield from approvals(decision)
    if decision.effect != "deny" and selection.chosen is None:
        yield ENABLE_BACKEND


def repairs_of_code(decision: Decision, selection: Selection) -> Iterable[Repair]:
    """What the code itself could do without, as the screen and the selection advise."""
    advice = {violation.advice: violation.line for violation in reversed(decision.refusals)}
    for text, line in reversed(advice.items()):
        yield Repair("change_code", text, line)
    if decision.effect == "deny" or selection.chosen is not None:
        return
    lacking = sorted(
        {
            (blocker.what, blocker.asked, blocker.because)
            for candidate in selection.candidates
            for blocker in candidate.blockers
            if blocker.what in ("syntax", "module", "builtin", "member", "stdin")
        }
    )
    for what, asked, because in lacking:
        yield Repair("change_code", f"do without the {what} `{asked}` ({because})")


def repairs_by_the_owner(verdict: Verdict) -> Iterable[Repair]:
    """What whoever owns a policy would have to change before a denied intent could pass."""
    intent = verdict.intent
    if verdict.reason.startswith("nothing allows"):
        entry = str(intent) if intent.target is not None or intent.action == "shell" else f"{intent.action} …"
        root = verdict.by[0].document
        pack = root.startswith(PACK_PREFIX)  # which nobody here can change
        who = (
            f"start a policy from {root} (`licet policy init`) and"
            if pack
            else "have the owner of the policy"
        )
        yield Repair("allow", f"{who} add `allow: [{entry}]`", intent.line)


def approvals(decision: Decision) -> Iterable[Repair]:
    """Who could approve what is asked about."""
    for verdict in decision.verdicts:
        if verdict.effect == "ask":
            others = [str(one) for one in verdict.demands if one != DEFAULT_APPROVAL]
            whom = f" by {' and by '.join(others)}" if others else ""
            yield Repair("get_approval", f"have `{verdict.intent}` approved{whom}", verdict.intent.line)
    known = {demand for verdict in decision.verdicts for demand in verdict.demands}
    for demand in decision.demands:
        if demand not in known and demand != DEFAULT_APPROVAL:
            yield Repair("get_approval", f"have the run approved by {demand}")
    for ballot in decision.ballots:
        if ballot.effect == "ask":
            yield Repair("get_approval", f"have it approved, which `{ballot.decider}` asks for")


ENABLE_BACKEND = Repair(
    "enable_backend",
    "enable or install a backend that holds all of this: `licet doctor` tells what this host can hold",
)


def _without(verdict: Verdict) -> Iterable[Repair]:
    intent = verdict.intent
    if intent.line is not None:
        yield Repair("remove_line", f"remove line {intent.line}", intent.line)
    elif intent.action != "run":
        yield Repair("drop_intent", f"do without `{intent}`")
