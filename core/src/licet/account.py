"""What a decision rests on, for those who ask why: documents, rules and their leaves, approvals, votes.

Rules this module keeps:

- it says again what was found and decides nothing; nothing is worked out before somebody reads it, so that a
  run pays for none of it;
- a rule that counts only because something is not known is told apart from one that is met.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from licet.applying import traced
from licet.decide import Decision, Rehearsal, Verdict
from licet.enforcers import Enforcer
from licet.policy import PolicyDocument, PolicyStack
from licet.policy.facts import Facts
from licet.policy.parts import Approval
from licet.policy.rule import Rule
from licet.policy.truth import Truth

if TYPE_CHECKING:
    from licet.policy.conditions import LeafAnswer

Role = Literal["root", "bound", "managed", "dry_run"]
Outcome = Literal["hit", "unknown", "missed", "pending"]
"""`unknown` counts as a hit; `pending` waits for the arguments of a call."""

_OUTCOMES: Mapping[Truth, Outcome] = {Truth.true: "hit", Truth.false: "missed", Truth.unknown: "unknown"}


@dataclass(frozen=True, slots=True)
class DocumentUsed:
    """One document that took part. `managed` bounds are the administrator's, `dry_run` decide nothing.

    `sha256` is that of the bytes of its file, as `within` can pin it; None if it was not read from one.
    """

    file: str
    name: str | None
    role: Role
    sha256: str | None


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """One rule, what it came to, and what each leaf of its condition said."""

    rule: Rule
    outcome: Outcome
    leaves: tuple[LeafAnswer, ...]

    def as_json(self) -> dict[str, Any]:
        """With the place of the rule, its leaves spelled as in records."""
        return {
            "rule": self.rule.id,
            "where": str(self.rule.where),
            "outcome": self.outcome,
            "leaves": [
                {"clause": one.leaf.clause, "text": one.leaf.text, "truth": one.truth.value, "why": one.why}
                for one in self.leaves
            ],
        }


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """What a decision at the instant `at` rests on.

    `facts` is what conditions could read; without it `rules` are those alone that apply or are pending.
    `enforced` says who would hold each setting, in the sandbox that would be chosen.
    """

    stack: PolicyStack
    decision: Decision
    at: datetime
    facts: Facts | None = None
    enforced: tuple[Enforcer, ...] = ()

    @property
    def documents(self) -> tuple[DocumentUsed, ...]:
        """Every document, the root first, those that are only rehearsed last."""
        return tuple(_documents(self.stack.loaded or self.stack))

    @property
    def rules(self) -> tuple[RuleAnswer, ...]:
        """The rules of the documents that decide, in the order of the files."""
        if self.facts is not None:
            return tuple(_answer(*one) for one in traced(self.stack.loaded or self.stack, self.facts))
        hits = (_answer(hit.rule, hit.truth, hit.answers) for hit in self.decision.hits)
        return (*hits, *(_answer(rule, None, ()) for rule in self.decision.pending))

    def as_json(self) -> dict[str, Any]:
        """The fields that `licet explain --json` has of it."""
        decision = self.decision
        return {
            "at": self.at.isoformat(),
            "documents": [asdict(one) for one in self.documents],
            "rules": [one.as_json() for one in self.rules],
            "demands": [demand_json(one) for one in decision.demands],
            "rehearsals": [_rehearsal(one) for one in decision.rehearsals],
            "ballots": [asdict(one) for one in decision.ballots],
            "enforced": [one.as_json() for one in self.enforced],
        }


def _documents(stack: PolicyStack) -> Iterable[DocumentUsed]:
    roles: list[tuple[PolicyDocument, Role]] = [(stack.root, "root")]
    roles += [(bound, "managed" if bound.file in stack.managed else "bound") for bound in stack.bounds]
    roles += [(bound, "dry_run") for bound in stack.rehearsed]
    for document, role in roles:
        yield DocumentUsed(document.file, document.name, role, stack.sources.get(document.file))


def _answer(rule: Rule, truth: Truth | None, leaves: tuple[LeafAnswer, ...]) -> RuleAnswer:
    return RuleAnswer(rule, "pending" if truth is None else _OUTCOMES[truth], leaves)


def demand_json(demand: Approval) -> dict[str, Any]:
    """One approval that is needed; `expires` in seconds."""
    return {
        "count": demand.count,
        "from": list(demand.sources or ()),
        "reviewer": demand.reviewer,
        "expires": demand.expires,
        "unattended": demand.unattended,
    }


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """The answer for one intent."""
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
        "demands": [demand_json(one) for one in verdict.demands],
    }


def _rehearsal(rehearsal: Rehearsal) -> dict[str, Any]:
    return {
        "document": rehearsal.document,
        "effect": rehearsal.effect,
        "verdicts": [verdict_json(one) for one in rehearsal.verdicts],
        "rules": [_answer(hit.rule, hit.truth, hit.answers).as_json() for hit in rehearsal.hits],
    }
