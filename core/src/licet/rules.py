"""Asking the documents of a stack about one intent.

Rules this module keeps:

- within a document deny beats ask beats allow, and across documents the most severe answer counts;
- what the root does not allow is denied; a bound that mentions an action in `allow` or `ask` denies all
  that it omits of it, and abstains where it is silent;
- licet's own state is never grantable;
- a rule that applies denies or asks beside the documents, and mentions nothing: it can't allow;
- an excepted sub-path is left out like a denied one: it masks a larger intent instead of refusing it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from licet import paths
from licet.hosts import with_meets
from licet.policy import Pattern, PolicyDocument, PolicyStack
from licet.policy.parts import Approval
from licet.policy.patterns import Effect, network
from licet.policy.rule import Rule
from licet.request import TARGETLESS, Action, Intent

SEVERITY: dict[Effect, int] = {"allow": 0, "ask": 1, "deny": 2}
LANGUAGE = "licet"
"""The document that `by` names for what the language itself decides."""

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


@dataclass(frozen=True)
class Rules:
    """A stack with the working directory of one run put in; `hits` are the rules that apply to it."""

    root: PolicyDocument
    bounds: tuple[PolicyDocument, ...]
    sealed: tuple[str, ...]
    hits: tuple[Rule, ...] = ()

    @classmethod
    def of(cls, stack: PolicyStack, workdir: str) -> Rules:
        """Bind every entry of `stack` to `workdir`."""
        root, *bounds = (document.bind(workdir) for document in stack.documents)
        return cls(root, tuple(bounds), stack.sealed, tuple(rule.bind(workdir) for rule in stack.hits))

    @property
    def documents(self) -> tuple[PolicyDocument, ...]:
        """All documents that decide, root first."""
        return (self.root, *self.bounds)

    def vote(self, intent: Intent) -> Vote:
        """The most severe answer of all documents and of the rules that apply."""
        if intent.target is None and intent.action not in TARGETLESS:
            return self._vote_on_unknown(intent.action)
        if (seal := self._seal_over(intent)) is not None:
            by = (By(LANGUAGE, 0, f"never grantable: {seal}"),)
            return Vote("deny", by, f"`{seal}` belongs to licet itself and is never opened")
        answers = [answer_of_root(self.root, intent)]
        answers += [answer for bound in self.bounds if (answer := _answer_of_bound(bound, intent))]
        answers += [answer for rule in self.hits if (answer := answer_of_rule(rule, intent))]
        worst = max((answer.effect for answer in answers), key=SEVERITY.__getitem__)
        hits = [answer for answer in answers if answer.effect == worst]
        demands = (demand for hit in hits for demand in hit.demands)
        deciding = tuple(by for hit in hits for by in hit.by)
        silent = len(hits) == 1 and hits[0].omitted
        return Vote(worst, deciding, hits[0].reason, tuple(dict.fromkeys(demands)), silent)

    def points(self, action: Action) -> set[str]:
        """Every target at which an answer can change: what entries name or except, and what hosts share."""
        parts: tuple[PolicyDocument | Rule, ...] = (*self.documents, *self.hits)
        entries = [entry for part in parts for entry in part.entries if entry.action == action]
        named = {
            target for entry in entries for target in (entry.target, *entry.excepts) if target is not None
        }
        return {str(host) for host in with_meets(map(network, named))} if action == "network" else named

    def _vote_on_unknown(self, action: Action) -> Vote:
        """Denied only if no target of `action` is allowed or asked about."""
        votes = (self.vote(Intent(action, point)) for point in sorted(self.points(action)))
        obtainable = [vote for vote in votes if vote.effect != "deny"]
        if obtainable:
            by = tuple(dict.fromkeys(by for vote in obtainable for by in vote.by))
            return Vote("allow", by, "its target is not known yet: it is decided when it is accessed")
        nothing = (By(self.root.file, 0, f"no `{action}`"),)
        parts: tuple[PolicyDocument | Rule, ...] = (*self.documents, *self.hits)
        closed = any(e.action == action and e.covers(None) for part in parts for e in part.deny)
        return Vote("deny", nothing, f"nothing allows `{action}`, whatever its target", omitted=not closed)

    def _seal_over(self, intent: Intent) -> str | None:
        if intent.action not in ("read", "write") or intent.target is None:
            return None
        return next((seal for seal in self.sealed if paths.contains(seal, intent.target)), None)


def by_entry(entry: Pattern) -> By:
    """Name an entry as what decided."""
    return By(entry.where.file, entry.where.line, f"{entry.effect}: {entry.text}")


def includes(outer: Intent, inner: Intent) -> bool:
    """Whether `outer` is the same act on a target that contains the target of `inner`."""
    if outer.action != inner.action:
        return False
    if inner.target is None or outer.target is None:
        return True
    if inner.action == "network":
        return network(outer.target).covers(network(inner.target))
    if inner.action in ("read", "write"):
        return paths.contains(outer.target, inner.target)
    return outer.target == inner.target


def answer_of_root(document: PolicyDocument, intent: Intent) -> Vote:
    """What the entries of a root, bound to a working directory, say of an intent."""
    if (answer := _stated(document, intent)) is not None:
        return answer
    if intent.action == "run":
        return Vote("allow", (), "running is allowed unless something asks or denies")
    return replace(_omitted(document, intent, "nothing allows it"), omitted=True)


def answer_of_rule(rule: Rule, intent: Intent) -> Vote | None:
    """What a rule that applies says of an intent; None if it is about others."""
    groups: tuple[tuple[Effect, tuple[Pattern, ...]], ...] = (("deny", rule.deny), ("ask", rule.ask))
    for effect, entries in groups:
        if any(entry.action == intent.action and entry.covers(intent.target) for entry in entries):
            by = By(rule.where.file, rule.where.line, rule.id)
            demands = (rule.approval,) if effect == "ask" and rule.approval else ()
            return Vote(effect, (by,), f"the rule `{rule.id}` ({by}) {_VERB[effect]} it", demands)
    return None


def _answer_of_bound(document: PolicyDocument, intent: Intent) -> Vote | None:
    if intent.action == "tool" and document.tools is not None and intent.target not in document.tools:
        by = (By(document.file, 0, "tools"),)
        return Vote("deny", by, f"the bound `{document.name or document.file}` does not list it in `tools`")
    if (answer := _stated(document, intent)) is not None:
        return answer
    if not document.mentions(intent.action):
        return None
    return _omitted(document, intent, f"the bound `{document.name or document.file}` leaves it out")


def _stated(document: PolicyDocument, intent: Intent) -> Vote | None:
    effects: tuple[Effect, ...] = ("deny", "ask", "allow")
    for effect in effects:
        hits = tuple(
            map(by_entry, (e for e in _of(document, intent.action, effect) if e.covers(intent.target)))
        )
        if hits:
            demands = (document.demands,) if effect == "ask" else ()
            return Vote(effect, hits, f"{hits[0]} {_VERB[effect]} it", demands)
    return None


def _omitted(document: PolicyDocument, intent: Intent, reason: str) -> Vote:
    target = intent.target
    allowed = _of(document, intent.action, "allow")
    partly = tuple(e for e in allowed if target and e.touches(target) and not e.takes_out(target))
    if partly:
        by = tuple(map(by_entry, partly))
        return Vote("deny", by, f"only a part of it is allowed: `{partly[0].text}` ({by[0]})")
    return Vote("deny", (By(document.file, 0, f"no `{intent.action}`"),), reason)


def _of(document: PolicyDocument, action: Action, effect: Effect) -> tuple[Pattern, ...]:
    return tuple(entry for entry in document.of(effect) if entry.action == action)
