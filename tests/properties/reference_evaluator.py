"""A slow evaluator of policies, written from `docs/reference/policy.md` alone.

It knows nothing of canonical spellings, roots, masks or meets. A target is the finite set of all points of a
small world that it stands for, and every question is asked point by point. For each thing that a policy can
name, the world has points that no policy names (`zz`), so that "all of it" and "some of it" stay apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Literal

from reference_rules import NO_SETTINGS, Demand, InForce, Rule, Settings, Situation, demanded, in_force

Point = str
Points = frozenset[Point]
Answer = Literal["allow", "ask", "deny"]
SEVERITY = {"allow": 0, "ask": 1, "deny": 2}

DIRECTORIES = ("/t", "/t/a", "/t/a/b", "/t/a/b/c", "/t/a/d", "/t/ab", "/t/e")
FILES: Points = frozenset(DIRECTORIES) | {f"{directory}/zz" for directory in DIRECTORIES}
HOST_NAMES = (
    "x.com",
    "a.x.com",
    "b.x.com",
    "c.b.x.com",
    "y.net",
    "zz.x.com",
    "zz.b.x.com",
    "zz.c.b.x.com",
    "zz.zz",
)
HOSTS: Points = frozenset(f"{name}:{port}" for name, port in product(HOST_NAMES, (80, 443, 9)))
TOOLS: Points = frozenset({"find", "find_all", "pay", "zz", "find_zz", "zz_all"})
ONLY: Points = frozenset({"it"})
"""`run` and `shell` have no target: there is one point."""


@cache
def points(action: str, target: str | None) -> Points:
    """All that `target` stands for."""
    if target is None:
        return ONLY
    if action == "network":
        return frozenset(point for point in HOSTS if _host_matches(target, point))
    if action == "tool":
        return frozenset(point for point in TOOLS if _name_matches(target, point))
    return frozenset(p for p in FILES if f"{p}/".startswith(f"{target.rstrip('/')}/"))


def world(action: str) -> Points:
    """Every point that an action can have."""
    return {"network": HOSTS, "tool": TOOLS, "run": ONLY, "shell": ONLY}.get(action, FILES)


def _host_matches(pattern: str, point: Point) -> bool:
    if pattern == "any":
        return True
    (host, _, port), (name, _, number) = pattern.partition(":"), point.partition(":")
    if port not in ("", number):
        return False
    if not host.startswith("*."):
        return name == host
    return name.endswith(host[1:]) and name != host[2:]


def _name_matches(pattern: str, name: str) -> bool:
    head, star, tail = pattern.partition("*")
    if not star:
        return name == pattern
    return len(name) >= len(head) + len(tail) and name.startswith(head) and name.endswith(tail)


@dataclass(frozen=True)
class Entry:
    """`ACTION TARGET [except TARGET]...`."""

    action: str
    target: str | None = None
    excepts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " except ".join([f"{self.action} {self.target or ''}".strip(), *self.excepts])

    def covers(self, wanted: Points) -> bool:
        """All of `wanted` lies inside, and no `except` takes all of it out again."""
        if not wanted <= points(self.action, self.target):
            return False
        return not any(wanted <= points(self.action, gap) for gap in self.excepts)


@dataclass(frozen=True)
class Document:
    """One file. `tools` are the tools that it states, `approval` what it states of approvals."""

    allow: tuple[Entry, ...] = ()
    ask: tuple[Entry, ...] = ()
    deny: tuple[Entry, ...] = ()
    rules: tuple[Rule, ...] = ()
    settings: Settings = NO_SETTINGS
    approval: tuple[tuple[str, object], ...] = ()
    tools: tuple[str, ...] | None = None
    learn: bool | None = None


@dataclass(frozen=True)
class Want:
    """An intent; an inferred one may not know its target."""

    action: str
    target: str | None = None

    @property
    def unknown(self) -> bool:
        return self.target is None and self.action not in ("run", "shell")


@dataclass(frozen=True)
class Reference:
    """One root, its bounds, what licet never grants, and bounds that only rehearse.

    `hits` are the rules that apply, each with the number of its document.
    """

    root: Document
    bounds: tuple[Document, ...] = ()
    sealed: tuple[str, ...] = ()
    rehearsed: tuple[Document, ...] = ()
    hits: tuple[tuple[int, Rule], ...] = ()

    @property
    def documents(self) -> tuple[Document, ...]:
        return (self.root, *self.bounds)

    def given(self, now: Situation) -> Reference:
        """The same with the rules that apply."""
        now = self.seen(now)
        numbered = [(n, rule) for n, document in enumerate(self.documents) for rule in document.rules]
        return replace(self, hits=tuple((n, rule) for n, rule in numbered if rule.applies(now)))

    def pending(self, now: Situation) -> list[str]:
        """The rules that wait for a call."""
        now = self.seen(now)
        return [rule.id for document in self.documents for rule in document.rules if rule.pending(now)]

    def seen(self, now: Situation) -> Situation:
        """The situation under this policy: what it opens to every run, a request that lists nothing wants."""
        opens = any(entry.action not in ("run", "tool") for entry in self.root.allow)
        return replace(now, complete=now.narrows or not opens)

    @property
    def in_force(self) -> InForce:
        tightening = [bound.settings for bound in self.bounds] + [rule.settings for _, rule in self.hits]
        return in_force(self.root.settings, tightening)

    @property
    def may_learn(self) -> bool:
        return self.root.learn is True and all(bound.learn is not False for bound in self.bounds)

    def demands(self, action: str, wanted: Points) -> set[Demand]:
        """Rules 41 and 42: what all that asks here demands."""
        documents = [d for d in self.documents for e in d.ask if e.action == action and e.covers(wanted)]
        found = {demanded(document.approval) for document in documents}
        for number, rule in self.hits:
            if any(entry.action == action and entry.covers(wanted) for entry in rule.ask):
                found.add(demanded(rule.approval, self.documents[number].approval))
        return found

    @property
    def besides(self) -> set[Demand]:
        """Rule 41: what rules that apply and ask about nothing demand, if anything is asked."""
        return {
            demanded(rule.approval, self.documents[number].approval)
            for number, rule in self.hits
            if rule.approval is not None and not rule.ask
        }

    def answer(self, action: str, wanted: Points) -> Answer:
        """Rules 12 to 18: the most severe answer of all documents for all of `wanted` at once."""
        if action in ("read", "write") and any(wanted <= points(action, seal) for seal in self.sealed):
            return "deny"
        answers = [self._of_root(action, wanted)]
        answers += [found for bound in self.bounds if (found := self._of_bound(bound, action, wanted))]
        answers += [found for _, rule in self.hits if (found := self._of_rule(rule, action, wanted))]
        return max(answers, key=SEVERITY.__getitem__)

    def verdict(self, want: Want) -> Answer:
        """The answer for an intent; rule 19 for one whose target is unknown."""
        if not want.unknown:
            return self.answer(want.action, points(want.action, want.target))
        singles = (frozenset({point}) for point in world(want.action))
        nothing = all(self.answer(want.action, single) == "deny" for single in singles)
        return "deny" if nothing else "allow"

    def opened(self, action: str, named: list[Want], *, everything: bool) -> Points:
        """Rules 25 to 27: the points that are open, given the intents that are permitted."""
        mine = [w for w in named if w.action == action and not w.unknown]
        return frozenset(point for point in world(action) if self._opens(action, point, mine, everything))

    def _opens(self, action: str, point: Point, named: list[Want], everything: bool) -> bool:
        single = frozenset({point})
        around = [points(w.action, w.target) for w in named if point in points(w.action, w.target)]
        answer = self.answer(action, single)
        if answer == "allow":
            return everything or bool(around)
        if answer == "deny":
            return False
        return any(self._asking(action, single) <= self._asking(action, wanted) for wanted in around)

    def _asking(self, action: str, wanted: Points) -> set[tuple[int, Entry | Rule]]:
        """Every entry and every rule that asks: a rule counts as one, however many entries it has."""
        sources: list[tuple[int, Entry | Rule, tuple[Entry, ...]]] = [
            *((n, entry, (entry,)) for n, document in enumerate(self.documents) for entry in document.ask),
            *((n, rule, rule.ask) for n, rule in self.hits),
        ]
        return {
            (n, one) for n, one, es in sources if any(e.action == action and e.covers(wanted) for e in es)
        }

    def _of_root(self, action: str, wanted: Points) -> Answer:
        return self._stated(self.root, action, wanted) or ("allow" if action == "run" else "deny")

    @staticmethod
    def _of_rule(rule: Rule, action: str, wanted: Points) -> Answer | None:
        for effect, entries in (("deny", rule.deny), ("ask", rule.ask)):
            if any(entry.action == action and entry.covers(wanted) for entry in entries):
                return effect  # type: ignore[return-value]
        return None

    def _of_bound(self, bound: Document, action: str, wanted: Points) -> Answer | None:
        if action == "tool" and bound.tools is not None and not wanted <= frozenset(bound.tools):
            return "deny"
        mentions = any(entry.action == action for entry in (*bound.allow, *bound.ask))
        return self._stated(bound, action, wanted) or ("deny" if mentions else None)

    @staticmethod
    def _stated(document: Document, action: str, wanted: Points) -> Answer | None:
        effects: tuple[Answer, ...] = ("deny", "ask", "allow")
        for effect in effects:
            entries: tuple[Entry, ...] = getattr(document, effect)
            if any(entry.action == action and entry.covers(wanted) for entry in entries):
                return effect
        return None


@dataclass(frozen=True)
class Judged:
    """What the reference says of one request."""

    effect: Answer
    verdicts: list[tuple[Want, Answer]]
    opened: dict[str, Points]
    demands: set[Demand]


def judge(reference: Reference, declared: list[Want] | None, inferred: list[Want]) -> Judged:
    """Rules 19 to 27 and 41 for one request without findings of the screen; `reference` has its hits."""
    verdicts = [(want, reference.verdict(want)) for want in (Want("run"), *(declared or ()))]
    for want in inferred:
        listed = declared is None or any(_includes(outer, want) for outer in declared)
        verdicts.append((want, reference.verdict(want) if listed else "deny"))
    at_start = [answer for want, answer in verdicts if want.action != "tool"]
    permitted = [want for want, answer in verdicts if answer != "deny"]
    opened = {
        action: reference.opened(action, permitted, everything=declared is None)
        for action in ("read", "write", "network", "shell")
    }
    asked = [want for want, answer in verdicts if answer == "ask" and want.action != "tool"]
    demands = {d for w in asked for d in reference.demands(w.action, points(w.action, w.target))}
    if asked:
        demands |= reference.besides
    return Judged(max(at_start, key=SEVERITY.__getitem__), verdicts, opened, demands)


def _includes(outer: Want, inner: Want) -> bool:
    if outer.action != inner.action:
        return False
    return inner.unknown or points(inner.action, inner.target) <= points(outer.action, outer.target)
