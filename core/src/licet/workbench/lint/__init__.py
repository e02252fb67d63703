"""All that is wrong with a policy that loads: what can never matter, and what is over.

Rules this module keeps:

- a finding is proved, not guessed: where something can't be shown, nothing is said;
- nothing here does IO: the instant, a request for what is allowed and the offers come in as arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from licet.policy import PolicyDocument, PolicyStack
from licet.prepare import Prepared
from licet.select import Offer
from licet.workbench.lint import biting, bounds, conditions, covering, entries, reach
from licet.workbench.lint.findings import Finding, in_order


def lint(
    stack: PolicyStack, at: datetime, plain: Prepared | None = None, offers: Sequence[Offer] = ()
) -> tuple[Finding, ...]:
    """What is wrong with the documents of `stack` at the instant `at` (aware).

    With `plain`, a request for all that is allowed, also what none of `offers` could ever open.
    """
    found: list[Finding] = []
    for document in (*stack.documents, *stack.rehearsed):
        found += _document(document, at)
    found += biting.idle(stack)
    found += entries.closed(stack)
    found += bounds.superfluous(stack)
    if plain is not None:
        found += reach.unreachable(stack, plain, offers)
    return in_order(_without_echoes(found))


def _document(document: PolicyDocument, at: datetime) -> Iterator[Finding]:
    yield from entries.dead(document)
    yield from entries.redundant(document)
    yield from covering.shadowed(document)
    for rule in document.rules:
        yield from conditions.impossible(rule)
        yield from conditions.over(rule, at)


def _without_echoes(found: list[Finding]) -> Iterator[Finding]:
    """What is shadowed need not be told to be idle too, nor what is closed to be opened by nobody."""
    shadowed = {one.where for one in found if one.code == "shadowed-rule"}
    closed = {one.where for one in found if one.code in ("closed-by-bound", "sealed-entry", "dead-entry")}
    for one in found:
        echo = one.code.startswith("idle") and one.where in shadowed
        if not echo and not (one.code == "nobody-opens" and one.where in closed):
            yield one
