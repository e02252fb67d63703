"""Asking the documents of a stack about one intent.

Rules this module keeps:

- within a document deny beats ask beats allow, and across documents the most severe answer counts;
- what the root does not allow is denied; a bound that mentions an action in `allow` or `ask` denies all
  that it omits of it, and abstains where it is silent;
- licet's own state is never grantable;
- a rule that applies denies or asks beside the documents, and mentions nothing: it can't allow;
- an excepted sub-path is left out like a denied one: it masks a larger intent instead of refusing it;
- an answer is found out once for each binding of the entries; what links on disk decide is looked at anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache

from licet import paths
from licet.hosts import with_meets
from licet.policy import Pattern, PolicyDocument, PolicyStack
from licet.policy.index import PathIndex
from licet.policy.layers import Entries, Numbered
from licet.policy.parts import Approval
from licet.policy.patterns import Effect, network
from licet.policy.rule import Rule
from licet.request import ACTIONS, TARGETLESS, Action, Intent

SEVERITY: dict[Effect, int] = {"allow": 0, "ask": 1, "deny": 2}
LANGUAGE = "licet"
"""The document that `by` names for what the language itself decides."""

_KEPT = 1024
"""How many answers are kept beside two for each entry."""

_VERB: dict[Effect, str] = {"deny": "denies", "ask": "asks about", "allow": "allows"}


@dataclass(frozen=True, slots=True)
class By:
    """What decided: the document, the line (0 where there is none), and the entry or rule."""

    document: str
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}" if self.line else self.document


@dataclass(frozen=True, slots=True)
class Vote:
    """An answer, what gave it, why, and for one that asks the approvals that it demands.

    `omitted` says that only the silence of the root denies it.
    """

    effect: Effect
    by: tuple[By, ...]
    reason: str
    demands: tuple[Approval, ...] = ()
    omitted: bool = False


class Rules:
    """A stack with the working directory of one run put in, and the rules that apply to that run."""

    def __init__(self, stack: PolicyStack, moved: tuple[Numbered, ...]) -> None:
        self.stack = stack
        parts = [
            _Root(stack.root, moved[0]),
            *map(_Bound, stack.bounds, moved[1:]),
            *map(_Rule, stack.hits, moved[1 + len(stack.bounds) :]),
        ]
        self._about = {action: tuple(part for part in parts if part.concerns(action)) for action in ACTIONS}
        self._seals = PathIndex(stack.sealed)
        self._points: dict[Action, frozenset[str]] = {}
        self._answer = lru_cache(_KEPT + 2 * sum(len(part.entries) for part in parts))(self._answered)

    @classmethod
    def of(cls, stack: PolicyStack, workdir: str) -> Rules:
        """Bind every entry of `stack` to `workdir`, whose links are looked at now.

        Raises:
            InvalidPolicy: in that directory, some entry names no path that can be used.
        """
        parts: tuple[PolicyDocument | Rule, ...] = (*stack.documents, *stack.hits)
        return _rules(stack, tuple(part.index.bind(workdir) for part in parts))

    def vote(self, intent: Intent) -> Vote:
        """The most severe answer of all documents and of the rules that apply."""
        return self._answer(intent.action, intent.target)

    def vote_on(self, action: Action, target: str | None) -> Vote:
        """As `vote`, for an act on a target, whoever wants it."""
        return self._answer(action, target)

    def objection(self, intent: Intent) -> Vote | None:
        """The most severe entry that denies or asks about any part of an intent; None if there is none.

        What nobody allows is no objection: this is asked of acts of the host's own code, such as a tool's.
        """
        if (seal := self._seal_over(intent.action, intent.target)) is not None:
            by = (By(LANGUAGE, 0, f"never grantable: {seal}"),)
            return Vote("deny", by, f"`{seal}` belongs to licet itself and is never opened")
        votes = [part.objection(intent.action, intent.target) for part in self._about[intent.action]]
        found = [vote for vote in votes if vote is not None]
        return _worst(found) if found else None

    def points(self, action: Action) -> frozenset[str]:
        """Every target at which an answer can change: what entries name or except, and what hosts share."""
        if action not in self._points:
            named = {point for part in self._about[action] for point in part.entries.points(action)}
            hosts = with_meets(map(network, named)) if action == "network" else ()
            self._points[action] = frozenset(map(str, hosts)) if hosts else frozenset(named)
        return self._points[action]

    def points_inside(self, action: Action, path: str) -> set[str]:
        """Those of `points` that lie inside a path, and are not it."""
        return {point for part in self._about[action] for point in part.entries.points_inside(action, path)}

    def _answered(self, action: Action, target: str | None) -> Vote:
        if target is None and action not in TARGETLESS:
            return self._vote_on_unknown(action)
        if (seal := self._seal_over(action, target)) is not None:
            by = (By(LANGUAGE, 0, f"never grantable: {seal}"),)
            return Vote("deny", by, f"`{seal}` belongs to licet itself and is never opened")
        votes = [part.answer(action, target) for part in self._about[action]]
        return _worst([vote for vote in votes if vote is not None])

    def _vote_on_unknown(self, action: Action) -> Vote:
        """Denied only if no target of `action` is allowed or asked about."""
        votes = (self._answered(action, point) for point in sorted(self.points(action)))
        obtainable = [vote for vote in votes if vote.effect != "deny"]
        if obtainable:
            by = tuple(dict.fromkeys(by for vote in obtainable for by in vote.by))
            return Vote("allow", by, "its target is not known yet: it is decided when it is accessed")
        nothing = (By(self.stack.root.file, 0, f"no `{action}`"),)
        closed = any(part.closes(action) for part in self._about[action])
        return Vote("deny", nothing, f"nothing allows `{action}`, whatever its target", omitted=not closed)

    def _seal_over(self, action: Action, target: str | None) -> str | None:
        if target is None or action not in ("read", "write") or not self.stack.sealed:
            return None
        first = min(self._seals.around(target), default=None)
        return None if first is None else self.stack.sealed[first]


def by_entry(entry: Pattern) -> By:
    """Name an entry as what decided."""
    return By(entry.where.file, entry.where.line, f"{entry.effect}: {entry.text}")


def includes(outer: Intent, inner: Intent) -> bool:
    """Whether `outer` is the same act on a target that contains the target of `inner`."""
    if outer.action != inner.action:
        return False
    if inner.target is None or outer.target is None:
        return True
    return contains(inner.action, outer.target, inner.target)


def answer_of_root(document: PolicyDocument, intent: Intent, workdir: str) -> Vote:
    """What the entries of a root say of an intent, for a run in `workdir`."""
    answer = _Root(document, document.index.bind(workdir)).answer(intent.action, intent.target)
    assert answer is not None
    return answer


def answer_of_rule(rule: Rule, intent: Intent, workdir: str) -> Vote | None:
    """What a rule that applies says of an intent, for a run in `workdir`; None if it is about others."""
    return _Rule(rule, rule.index.bind(workdir)).answer(intent.action, intent.target)


def contains(action: Action, outer: str, inner: str) -> bool:
    """Whether an act on the target `outer` is one on the target `inner` too."""
    if action == "network":
        return network(outer).covers(network(inner))
    if action in ("read", "write"):
        return paths.contains(outer, inner)
    return outer == inner


def _worst(answers: list[Vote]) -> Vote:
    if len(answers) == 1:
        return answers[0]
    worst = max(answers, key=lambda answer: SEVERITY[answer.effect]).effect
    hits = [answer for answer in answers if answer.effect == worst]
    if len(hits) == 1:
        return hits[0]
    demands = (demand for hit in hits for demand in hit.demands)
    deciding = tuple(by for hit in hits for by in hit.by)
    return Vote(worst, deciding, hits[0].reason, tuple(dict.fromkeys(demands)))


@lru_cache(maxsize=256)
def _rules(stack: PolicyStack, moved: tuple[Numbered, ...]) -> Rules:
    return Rules(stack, moved)


class _Part(ABC):
    """One document or rule: what it says of its own entries, and what follows where none of them covers."""

    def __init__(self, entries: Entries, moved: Numbered) -> None:
        self.entries = entries.bound(moved) if moved else entries
        self._votes: dict[tuple[int, ...], Vote] = {}  # by the ids of entries, which live as long

    def concerns(self, action: Action) -> bool:
        return self.entries.name(action)

    def answer(self, action: Action, target: str | None) -> Vote | None:
        found = self.entries.covering(action, target)
        if not found:
            return self.unstated(action, target)
        key = tuple(map(id, found))
        if key not in self._votes:
            effect = max((entry.effect for entry in found), key=SEVERITY.__getitem__)
            self._votes[key] = self.stated(effect, [entry for entry in found if entry.effect == effect])
        return self._votes[key]

    def objection(self, action: Action, target: str | None) -> Vote | None:
        """What an entry says against any part of this; one that excepts all of it says nothing."""
        entries = self.entries
        near = entries.covering(action, target) if target is None else entries.touching(action, target)
        found = [one for one in near if one.effect != "allow" and not (target and one.takes_out(target))]
        if not found:
            return None
        effect = max((entry.effect for entry in found), key=SEVERITY.__getitem__)
        return self.stated(effect, [entry for entry in found if entry.effect == effect])

    @abstractmethod
    def stated(self, effect: Effect, hits: list[Pattern]) -> Vote:
        """What its strongest entries say, all of one effect."""

    def unstated(self, action: Action, target: str | None) -> Vote | None:
        return None

    def closes(self, action: Action) -> bool:
        """Whether an entry denies whatever target there is."""
        return any(entry.effect == "deny" for entry in self.entries.covering(action, None))


class _Document(_Part):
    def __init__(self, document: PolicyDocument, moved: Numbered) -> None:
        super().__init__(document.index, moved)
        self.document = document

    def stated(self, effect: Effect, hits: list[Pattern]) -> Vote:
        by = tuple(map(by_entry, hits))
        demands = (self.document.demands,) if effect == "ask" else ()
        return Vote(effect, by, f"{by[0]} {_VERB[effect]} it", demands)

    def omitted(self, action: Action, target: str | None, reason: str) -> Vote:
        touching = self.entries.touching(action, target) if target else ()
        partly = [e for e in touching if e.effect == "allow" and not e.takes_out(target or "")]
        if partly:
            by = tuple(map(by_entry, partly))
            return Vote("deny", by, f"only a part of it is allowed: `{partly[0].text}` ({by[0]})")
        return Vote("deny", (By(self.document.file, 0, f"no `{action}`"),), reason)


class _Root(_Document):
    def concerns(self, action: Action) -> bool:
        return True

    def unstated(self, action: Action, target: str | None) -> Vote:
        if action == "run":
            return Vote("allow", (), "running is allowed unless something asks or denies")
        return replace(self.omitted(action, target, "nothing allows it"), omitted=True)


class _Bound(_Document):
    def concerns(self, action: Action) -> bool:
        return action == "tool" or super().concerns(action)

    def answer(self, action: Action, target: str | None) -> Vote | None:
        listed = self.document.tools
        if action == "tool" and listed is not None and target not in listed:
            by = (By(self.document.file, 0, "tools"),)
            return Vote("deny", by, f"the bound `{self._name}` does not list it in `tools`")
        return super().answer(action, target)

    def unstated(self, action: Action, target: str | None) -> Vote | None:
        if not self.entries.mentions(action):
            return None
        return self.omitted(action, target, f"the bound `{self._name}` leaves it out")

    @property
    def _name(self) -> str:
        return self.document.name or self.document.file


class _Rule(_Part):
    def __init__(self, rule: Rule, moved: Numbered) -> None:
        super().__init__(rule.index, moved)
        self._rule = rule

    def stated(self, effect: Effect, hits: list[Pattern]) -> Vote:
        rule = self._rule
        by = By(rule.where.file, rule.where.line, rule.id)
        demands = (rule.approval,) if effect == "ask" and rule.approval else ()
        return Vote(effect, (by,), f"the rule `{rule.id}` ({by}) {_VERB[effect]} it", demands)
