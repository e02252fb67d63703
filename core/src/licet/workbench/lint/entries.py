"""Entries that can never matter: covered in their own document, or denied by the bounds around it.

Rules this module keeps:

- an `allow` or `ask` that a `deny` or `ask` of its document covers is no matter for a finding: it is refused
  when the policy is loaded;
- a narrower `ask` inside a wider one is no repetition, since it opens only where it is asked for by name;
- an entry that a starting text (`extends`) brought along is not held against who starts from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from licet.policy import Pattern, PolicyDocument, PolicyStack
from licet.policy.patterns import Effect
from licet.policy.rule import Rule
from licet.request import ACTIONS, Intent
from licet.rules import LANGUAGE, Rules
from licet.workbench.lint.findings import Finding
from licet.workbench.samples import entries_of, inside, samples
from licet.workbench.words import STAND_IN


def unconditional(document: PolicyDocument) -> tuple[Rule, ...]:
    """The rules of a document that always apply."""
    return tuple(rule for rule in document.rules if not rule.condition.leaves)


def dead(document: PolicyDocument) -> Iterator[Finding]:
    """Entries that a rule without any condition denies."""
    for rule in unconditional(document):
        for entry in (*document.ask, *document.allow):
            cover = next((denial for denial in rule.deny if denial.shadows(entry)), None)
            if cover is not None:
                yield Finding(
                    "error",
                    "dead-entry",
                    entry.where,
                    f"`{entry.effect}: {entry.text}` can never matter: the rule `{rule.id}` in {rule.where} "
                    f"denies `{cover.text}`, and always applies",
                    f"give `{rule.id}` an `if`, or take one of the two out",
                )


def redundant(document: PolicyDocument) -> Iterator[Finding]:
    """Entries that say nothing beside another one of the same effect."""
    effects: tuple[Effect, ...] = ("deny", "ask", "allow")
    for effect in effects:
        entries = sorted(document.of(effect), key=lambda entry: entry.where.file == document.file)
        for number, entry in enumerate(entries):
            cover = _cover(entry, number, entries)
            if cover is not None and entry.where.file == document.file:
                same = "says the same" if entry.shadows(cover) else "says all of it"
                yield Finding(
                    "warning",
                    "redundant-entry",
                    entry.where,
                    f"`{effect}: {entry.text}` adds nothing: `{cover.text}` in {cover.where} {same}",
                    "take it out, or narrow the other one by `except`",
                )


def _cover(entry: Pattern, number: int, entries: Sequence[Pattern]) -> Pattern | None:
    for place, other in enumerate(entries):
        if place == number or not other.shadows(entry):
            continue
        mutual = entry.shadows(other)
        if (mutual and place < number) or (not mutual and entry.effect != "ask"):
            return other
    return None


def closed(stack: PolicyStack) -> Iterator[Finding]:
    """Entries of the root that open nothing, whatever is asked for, since bounds or licet deny it all."""
    always = tuple(rule for bound in stack.bounds for rule in unconditional(bound))
    rules = Rules.of(stack.applying(always), STAND_IN)
    around: tuple[PolicyDocument | Rule, ...] = (*stack.documents, *always)
    known = {action: samples(around, action) for action in ACTIONS}
    by_run = {action for action in ACTIONS if any(one.names_workdir for one in entries_of(around, action))}
    for entry in (*stack.root.ask, *stack.root.allow):
        if entry.action in by_run:
            continue  # which directory that is, only a run can tell
        found = inside(entry, known[entry.action])
        votes = [rules.vote(Intent(entry.action, sample)) for sample in found]
        if all(vote.effect == "deny" for vote in votes):
            whole = next(v for v, sample in zip(votes, found, strict=True) if sample == entry.target)
            sealed = whole.by[0].document == LANGUAGE
            yield Finding(
                "warning",
                "sealed-entry" if sealed else "closed-by-bound",
                entry.where,
                f"`{entry.effect}: {entry.text}` opens nothing: {whole.reason}",
                "name a place that is not licet's own"
                if sealed
                else "take it out, or ask the owner of the bound",
                str(Intent(entry.action, entry.target)),
            )
