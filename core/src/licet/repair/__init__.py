"""The smallest change of a request that would let it pass, searched for and tried.

Rules this module keeps:

- nothing is proposed that the engine has not decided about: `leads_to` is its answer to the edited request;
- fewest edits first, then what leads to a run without an approval, then what gives up least;
- the search is bounded by the number of decisions; past that, one irreducible set of edits is proposed;
- whoever else could let it pass is named after that: approvers, other people, the owners of documents.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Protocol

from licet.account import Account
from licet.digests import no_digest
from licet.edits import Asked, Edit, applied, told
from licet.enforcers import enforcers
from licet.errors import AuditUnavailable, LicetError
from licet.normalize import Digest
from licet.policy import PolicyStack
from licet.policy.patterns import Effect
from licet.prepare import Prepared
from licet.repair.blockers import Blocker, blockers
from licet.repair.others import others
from licet.report import Explanation, Repair, repairs_of_code
from licet.request import ExecutionRequest

Attempt = Callable[[Asked], Prepared]
"""Decides a request at an instant, without recording anything."""

MOST_DECISIONS = 1024
FEW_DECISIONS = 64
"""For where each decision asks further deciders, which may be far away."""

_MOST_BYTES = 150_000  # of code that is screened again in one search: a second or two
_BYTES_OF_INTENT = 20  # of code that take as long as an intent that is decided again
_FEWEST = 2
_MANY = 8  # edits without a choice that are tried one by one

MOST_PROPOSED = 5


class Prepare(Protocol):
    """`prepare` on behalf of a runtime: now, or at another instant under a policy that was current."""

    def __call__(
        self,
        asked: ExecutionRequest,
        digest: Digest,
        at: datetime | None = None,
        stack: PolicyStack | None = None,
    ) -> Prepared:
        """Decide `asked`."""


def decided(request: ExecutionRequest, prepare: Prepare, digest: Digest, *, few: bool) -> Explanation:
    """Decide `request` now, and explain it whole; `few` says that decisions are dear.

    Raises:
        InvalidRequest: the request can't be understood.
    """
    try:
        prepared = prepare(request, digest)
    except AuditUnavailable:  # without a key, all can be said but the digest of the plan
        prepared = prepare(request, no_digest)
        prepared = replace(prepared, explanation=replace(prepared.explanation, plan_digest=None))
    stack = prepared.stack.loaded or prepared.stack

    def attempt(asked: Asked) -> Prepared:
        return prepare(asked.request, no_digest, asked.at, stack)

    return explained(request, prepared, attempt, FEW_DECISIONS if few else MOST_DECISIONS)


def explained(
    request: ExecutionRequest, prepared: Prepared, attempt: Attempt, most: int = MOST_DECISIONS
) -> Explanation:
    """The whole explanation of `request`, which was decided as `prepared`.

    `attempt` decides again, under the same policy and with the same offers; at most `most` times.
    """
    found = prepared.explanation
    stack, decision = prepared.stack, prepared.decision
    held = enforcers(stack, decision, prepared.request.limits, prepared.selection.chosen)
    account = Account(stack, decision, prepared.facts.at, prepared.facts, held)
    found = replace(found, account=account)
    if found.exit_code == 0:
        return found
    asked = _canonical(request, prepared)
    proposed = repairs(asked, prepared, attempt, most=most)
    beside = (*repairs_of_code(prepared.decision, prepared.selection), *others(asked, prepared, attempt))
    return replace(found, repair=tuple(dict.fromkeys((*proposed, *beside))))


def repairs(
    asked: Asked, prepared: Prepared, attempt: Attempt, *, most: int = MOST_DECISIONS
) -> tuple[Repair, ...]:
    """Up to `MOST_PROPOSED` smallest changes of `asked` that pass, the best one first.

    The intents of `asked` have to be canonical. What now is denied, or has no sandbox, may pass by being
    asked about; then what passes without an approval is searched for too.
    """
    search = _Search(asked, prepared, attempt, most)
    decision = prepared.decision
    asks_only = decision.effect == "ask" and prepared.selection.chosen is not None
    found = [] if asks_only else search.smallest("ask")
    if asks_only or (found and not any(one.leads_to == "allow" for one in found)):
        found += search.smallest("allow")
    ranked = sorted(dict.fromkeys(found), key=_order)
    best = [one for one in ranked if one.leads_to == "allow"][:1]
    if best and best[0] not in ranked[:MOST_PROPOSED]:
        return (*ranked[: MOST_PROPOSED - 1], *best)
    return tuple(ranked[:MOST_PROPOSED])


def passes(prepared: Prepared) -> Effect:
    """`allow` or `ask` if there is a sandbox for it, else `deny`."""
    runs = prepared.selection.chosen is not None and prepared.syntax_error is None
    return prepared.decision.effect if runs else "deny"


def _order(repair: Repair) -> tuple[int, bool, int, str]:
    return (
        len(repair.edits),
        repair.leads_to != "allow",
        sum(edit.loss for edit in repair.edits),
        repair.text,
    )


def _canonical(request: ExecutionRequest, prepared: Prepared) -> Asked:
    """The request as the stages saw it, so that lines and intents are named alike."""
    seen = prepared.request
    update: dict[str, object] = {"intents": seen.intents}
    if seen.code:
        update["code"] = seen.code
    return Asked(request.model_copy(update=update), prepared.facts.at)


@dataclass(frozen=True, slots=True)
class _State:
    """A set of edits that was tried, with what is still in the way."""

    edits: frozenset[Edit]
    effect: Effect
    blockers: tuple[Blocker, ...]


@dataclass
class _Search:
    """Best-first over sets of edits: the next edit is always one for some blocker that is left.

    Where many blockers leave no choice, their edits are tried together.
    """

    asked: Asked
    prepared: Prepared
    attempt: Attempt
    most: int
    _seen: dict[frozenset[Edit], Prepared | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        request = self.prepared.request
        size = 100 + request.code_bytes + _BYTES_OF_INTENT * len(request.intents or ())
        self.most = min(self.most, max(_FEWEST, _MOST_BYTES // size))
        self._seen[frozenset()] = self.prepared

    def smallest(self, tolerated: Effect) -> list[Repair]:
        """All smallest sets of edits after which the answer is no worse than `tolerated`."""
        found: list[Repair] = []
        ticket = count()
        start = self._without_a_choice(tolerated)
        queue: list[tuple[int, int, int, frozenset[Edit]]] = [(len(start), 0, next(ticket), start)]
        queued = {start}
        while queue:
            least, loss, _, edits = heapq.heappop(queue)
            if found and (least > len(found[0].edits) or len(found) >= MOST_PROPOSED):
                return found
            state = self._state(edits, tolerated)
            if state is None:
                return found or self._greedy(tolerated)
            if edits and state.effect != "deny" and not state.blockers:
                found.append(_repair(edits, state.effect))
                continue
            for edit in _next(state):
                more = edits | {edit}
                if more not in queued:
                    queued.add(more)
                    bound = max(least, len(more) + _still_needed(state, edit))
                    heapq.heappush(queue, (bound, loss + edit.loss, next(ticket), more))
        return found

    def _greedy(self, tolerated: Effect) -> list[Repair]:
        """The least edit for the first blocker, again and again; then all that was not needed goes."""
        self.most += max(self.most, _FEWEST)
        edits = self._without_a_choice(tolerated)
        while (state := self._state(edits, tolerated)) is not None:
            if not state.blockers:
                break
            choices = _next(state)
            if not choices:
                return []
            edits |= {min(choices, key=lambda edit: (edit.loss, edit.said))}
        if state is None or state.effect == "deny":
            return []
        for edit in sorted(edits, key=lambda edit: (-edit.loss, edit.said)):
            fewer = self._state(edits - {edit}, tolerated)
            if fewer is not None and fewer.effect != "deny" and not fewer.blockers:
                edits, state = edits - {edit}, fewer
        return [_repair(edits, state.effect)] if edits else []

    def _without_a_choice(self, tolerated: Effect) -> frozenset[Edit]:
        """The edits that stand alone for their blocker, if they are many; all of them are needed."""
        found = blockers(self.asked, self.prepared, tolerated)
        alone = frozenset(one.edits[0] for one in found if len(one.edits) == 1)
        return alone if len(alone) > _MANY else frozenset()

    def _state(self, edits: frozenset[Edit], tolerated: Effect) -> _State | None:
        """What `edits` come to; None if no more may be tried."""
        if edits not in self._seen and len(self._seen) > self.most:
            return None
        asked = applied(self.asked, _in_order(edits))
        if edits not in self._seen:
            try:
                self._seen[edits] = self.attempt(asked)
            except LicetError:  # no request any more, or none that this policy can be asked about
                self._seen[edits] = None
        prepared = self._seen[edits]
        if prepared is None:
            return _State(edits, "deny", ())
        return _State(edits, passes(prepared), blockers(asked, prepared, tolerated))


def _next(state: _State) -> list[Edit]:
    """The edits for the blocker that leaves least choice; none if some blocker has no edit."""
    taken = {edit.slot for edit in state.edits}
    choices = [[edit for edit in one.edits if edit.slot not in taken] for one in state.blockers]
    return min(choices, key=len, default=[])


def _still_needed(state: _State, edit: Edit) -> int:
    """How many edits are needed after `edit` at least: one for each blocker that stands alone."""
    return sum(1 for one in state.blockers if one.alone and edit not in one.edits)


def _in_order(edits: frozenset[Edit]) -> Sequence[Edit]:
    """The list of intents is made before others change it."""
    return sorted(edits, key=lambda edit: (edit.kind != "declare_intents", edit.kind, edit.what))


def _repair(edits: frozenset[Edit], leads_to: Effect) -> Repair:
    ordered = sorted(edits, key=lambda edit: (min(edit.lines, default=0), edit.kind, edit.what))
    first = ordered[0]
    line = first.lines[0] if first.lines else None
    kind = first.kind if len(ordered) == 1 else "several"
    return Repair(kind, told(ordered), line, tuple(ordered), leads_to)
