"""When rules apply and what settings come to, slowly: written from `docs/reference/policy.md` alone.

A truth is True, False, or None where nobody knows. The hours of a small week stand for time: hour 0 is
Monday, 2 March 2026, at midnight in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reference_evaluator import Entry

Fact = bool | None
Word = str | int | float | bool
Demand = tuple[int, tuple[str, ...], str, float, str]
"""An approval with nothing left open: count, groups, reviewer, seconds, what holds where nobody is."""

LEVELS = ("partial", "enforced")
EVIDENCE = ("declared", "read_back", "probed")
DEFAULT_LIMITS: Mapping[str, int] = {
    "wall_time": 60,
    "code": 1 << 20,
    "stdin": 1 << 20,
    "stdout": 1 << 20,
    "stderr": 1 << 20,
    "output": 16 << 20,
    "recursion": 1000,
    "tool_calls": 1000,
}
DEFAULT_APPROVAL: Mapping[str, object] = {
    "count": 1,
    "from": (),
    "reviewer": "any",
    "expires": 1800,
    "unattended": "deny",
}
WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def all_of(truths: Iterable[Fact]) -> Fact:
    """The table of `and`: any false makes it false, else any unknown makes it unknown."""
    found = list(truths)
    return False if False in found else None if None in found else True


def any_of(truths: Iterable[Fact]) -> Fact:
    """The table of `or`."""
    found = list(truths)
    return True if True in found else None if None in found else False


def not_(truth: Fact) -> Fact:
    """The table of `not`."""
    return None if truth is None else not truth


@dataclass(frozen=True)
class Person:
    """Who asks, as far as they say."""

    id: str = "unknown"
    type: str = "user"
    groups: tuple[str, ...] = ()
    tenant: str | None = None
    properties: tuple[tuple[str, Word], ...] = ()

    @property
    def named(self) -> bool:
        return self.id not in ("", "unknown")


NOBODY = Person()


@dataclass(frozen=True)
class Situation:
    """All that conditions can read; `tool` None means that no tool is called yet.

    `complete` says that `actions` are all that is wanted: who lists none wants what is opened to every run.
    """

    person: Person = NOBODY
    hour: int = 0
    narrows: bool = False
    actions: frozenset[str] = frozenset()
    complete: bool = True
    tool: str | None = None
    args: tuple[tuple[str, Word], ...] = ()


@dataclass(frozen=True)
class Key:
    """`KEY: WORD` or `KEY: [WORD, …]`."""

    key: str
    words: tuple[Word, ...]

    def truth(self, now: Situation) -> Fact:
        person = now.person
        if self.key == "language":
            return "python" in self.words
        if self.key == "tenant":
            return None if person.tenant is None else person.tenant in self.words
        if self.key.startswith("property."):
            said = dict(person.properties).get(self.key.removeprefix("property."))
            return any_of(_same(said, word) for word in self.words)
        if not person.named:
            return None
        mine = {"group": person.groups, "subject": (person.id,), "type": (person.type,)}[self.key]
        return any(word in mine for word in self.words)


def _same(said: Word | None, word: Word) -> Fact:
    kinds = [
        "text" if isinstance(one, str) else "truth" if isinstance(one, bool) else "number"
        for one in (said, word)
    ]
    return None if said is None or kinds[0] != kinds[1] else said == word


@dataclass(frozen=True)
class Moment:
    """`after: TIME` or `before: TIME`; `hour` is that of an instant, or of the midnight of a day in UTC."""

    key: str
    text: str
    hour: int
    day: bool

    def truth(self, now: Situation) -> Fact:
        begins, begun = (self.hour - 14, self.hour + 12) if self.day else (self.hour, self.hour)
        after = False if now.hour < begins else True if now.hour >= begun else None
        return after if self.key == "after" else not_(after)


@dataclass(frozen=True)
class Text:
    """A text in CEL, one of `TEXTS`."""

    text: str

    def truth(self, now: Situation) -> Fact:
        return None if _of_a_call(self) and now.tool is None else TEXTS[self.text](now)


def _tenant(now: Situation, name: str) -> Fact:
    return None if now.person.tenant is None else now.person.tenant == name


def _above(pairs: tuple[tuple[str, Word], ...], name: str, least: int) -> Fact:
    value = dict(pairs).get(name)
    return None if value is None else float(value) > least


def _said(pairs: tuple[tuple[str, Word], ...], name: str, text: str) -> Fact:
    value = dict(pairs).get(name)
    return None if value is None else value == text


TEXTS: Mapping[str, Callable[[Situation], Fact]] = {
    "subject.tenant == 'acme'": lambda now: _tenant(now, "acme"),
    "subject.tenant != 'acme'": lambda now: not_(_tenant(now, "acme")),
    "'oncall' in subject.groups": lambda now: "oncall" in now.person.groups if now.person.named else None,
    "subject.id == 'ann' && subject.tenant == 'acme'": lambda now: all_of(
        [now.person.id == "ann" if now.person.named else None, _tenant(now, "acme")]
    ),
    "!(subject.tenant == 'acme' || subject.type == 'service')": lambda now: not_(
        any_of([_tenant(now, "acme"), now.person.type == "service" if now.person.named else None])
    ),
    "subject.properties.seats > 1": lambda now: _above(now.person.properties, "seats", 1),
    "now < timestamp('2026-03-05T00:00:00Z')": lambda now: now.hour < 72,
    "request.narrows": lambda now: now.narrows,
    "request.intents.exists(i, i.action == 'network')": lambda now: (
        "network" in now.actions if now.complete else None
    ),
    "tool == 'pay'": lambda now: now.tool == "pay",
    "args.amount > 100": lambda now: _above(now.args, "amount", 100),
    "args.note == 'x' || args.amount > 100": lambda now: any_of(
        [_said(now.args, "note", "x"), _above(now.args, "amount", 100)]
    ),
}
"""What each text means, by hand."""

ASKS_WHAT_IS_THERE = "has(subject.tenant)"
"""Certain whatever is said: the one kind of text by which who says less may get more."""
TEXTS |= {ASKS_WHAT_IS_THERE: lambda now: now.person.tenant is not None}  # type: ignore[operator]

CALL_TEXTS = tuple(text for text in TEXTS if "args" in text or "tool" in text)
REQUEST_TEXTS = tuple(text for text in TEXTS if text not in CALL_TEXTS and text != ASKS_WHAT_IS_THERE)

Leaf = Key | Moment | Text


def _of_a_call(leaf: Leaf) -> bool:
    return isinstance(leaf, Text) and leaf.text in CALL_TEXTS


@dataclass(frozen=True)
class Window:
    """`{days: …, hours: FROM-UNTIL, zone: …}`; `ahead` are the hours by which its clock is ahead of UTC."""

    days: tuple[str, ...]
    hours: tuple[int, int] | None
    ahead: int = 0

    @property
    def tree(self) -> dict[str, object]:
        zone = "UTC" if not self.ahead else f"Etc/GMT-{self.ahead}"
        hours = {"hours": f"{self.hours[0]:02}:00-{self.hours[1]:02}:00"} if self.hours else {}
        return {"days": list(self.days), **hours, "zone": zone}

    def holds(self, now: Situation) -> bool:
        """Whether it is one of the hours that begin on one of the days of this or the week before."""
        start, end = self.hours or (0, 24)
        length = end - start if end > start else end + 24 - start
        return any(
            begin <= now.hour + self.ahead < begin + length
            for day in range(-7, 15)
            if WEEK[day % 7] in self.days
            for begin in (day * 24 + start,)
        )


@dataclass(frozen=True)
class Settings:
    """`limits`, `sandbox` and `audit` of a document or a rule."""

    limits: tuple[tuple[str, int], ...] = ()
    require: tuple[tuple[str, str], ...] = ()
    evidence: str | None = None
    only: tuple[str, ...] | None = None
    mode: str | None = None
    content: str | None = None

    @property
    def tree(self) -> dict[str, object]:
        sandbox = {"require": dict(self.require), "evidence": self.evidence, "only": self.only}
        parts = {
            "limits": dict(self.limits),
            "sandbox": {key: value for key, value in sandbox.items() if value not in (None, {})},
            "audit": {k: v for k, v in (("mode", self.mode), ("content", self.content)) if v is not None},
        }
        return {key: part for key, part in parts.items() if part}


NO_SETTINGS = Settings()


@dataclass(frozen=True)
class Rule:
    """A rule; every item of `when` and of `unless` has to hold. `joined` writes keys as one mapping."""

    id: str
    deny: tuple[Entry, ...] = ()
    ask: tuple[Entry, ...] = ()
    when: tuple[Leaf, ...] = ()
    during: tuple[Window, ...] = ()
    unless: tuple[Leaf, ...] = ()
    settings: Settings = NO_SETTINGS
    approval: tuple[tuple[str, object], ...] | None = None
    joined: bool = False

    @property
    def reads_call(self) -> bool:
        return any(map(_of_a_call, (*self.when, *self.unless)))

    def truth(self, now: Situation) -> Fact:
        during = any(window.holds(now) for window in self.during) if self.during else True
        unless = all_of(leaf.truth(now) for leaf in self.unless) if self.unless else False
        return all_of([*(leaf.truth(now) for leaf in self.when), during, not_(unless)])

    def pending(self, now: Situation) -> bool:
        """Rule 33: it waits for a call, and is not certainly missed whatever that will be."""
        return self.reads_call and now.tool is None and self.truth(now) is not False

    def applies(self, now: Situation) -> bool:
        return not self.pending(now) and self.truth(now) is not False

    @property
    def tree(self) -> dict[str, object]:
        parts = {
            "deny": [str(entry) for entry in self.deny],
            "ask": [str(entry) for entry in self.ask],
            "if": _clause(self.when, self.joined),
            "during": [window.tree for window in self.during],
            "unless": _clause(self.unless, self.joined),
            **self.settings.tree,
        }
        demand = {} if self.approval is None else {"approval": dict(self.approval)}
        return {"id": self.id, **{key: part for key, part in parts.items() if part}, **demand}


def _clause(leaves: tuple[Leaf, ...], joined: bool) -> object:
    keys = {leaf.key for leaf in leaves if not isinstance(leaf, Text)}
    if joined and len(keys) == len(leaves):
        return {leaf.key: _written(leaf) for leaf in leaves if not isinstance(leaf, Text)}
    if joined and len(leaves) == 1 and isinstance(leaves[0], Text):
        return leaves[0].text
    return [leaf.text if isinstance(leaf, Text) else {leaf.key: _written(leaf)} for leaf in leaves]


def _written(leaf: Key | Moment) -> object:
    if isinstance(leaf, Moment):
        return leaf.text
    return leaf.words[0] if len(leaf.words) == 1 else list(leaf.words)


def demanded(*stated: tuple[tuple[str, object], ...] | None) -> Demand:
    """What is not stated is taken from the next, then from the default."""
    whole = dict(DEFAULT_APPROVAL)
    for one in reversed(stated):
        whole |= dict(one or ())
    return tuple(whole[key] for key in DEFAULT_APPROVAL)  # type: ignore[return-value]


@dataclass(frozen=True)
class InForce:
    """What the settings of the root and of all that tightens come to."""

    limits: Mapping[str, int] = field(default_factory=dict)
    require: Mapping[str, str] = field(default_factory=dict)
    evidence: str = "probed"
    only: frozenset[str] | None = None
    mode: str = "required"
    content: str = "digest"


def in_force(root: Settings, others: Iterable[Settings]) -> InForce:
    """Lowest limit, highest level, strongest evidence, common backends; the strict word wins."""
    parts = [Settings(tuple(({**DEFAULT_LIMITS, **dict(root.limits)}).items())), *others]
    names = {name for part in parts for name, _ in part.limits}
    limits = {name: min(dict(p.limits)[name] for p in parts if name in dict(p.limits)) for name in names}
    parts = [root, *parts[1:]]
    controls = {control for part in parts for control, _ in part.require}
    require = {
        control: max(
            (dict(p.require)[control] for p in parts if control in dict(p.require)), key=LEVELS.index
        )
        for control in controls
    }
    evidence = [root.evidence or "probed", *(p.evidence for p in parts[1:] if p.evidence)]
    lists = [set(part.only) for part in parts if part.only is not None]
    only = frozenset(set.intersection(*lists)) if lists else None
    lax = root.mode == "best_effort" and all(part.mode != "required" for part in parts)
    kept = root.content == "kept" and all(part.content != "digest" for part in parts)
    return InForce(
        limits,
        require,
        max(evidence, key=EVIDENCE.index),
        only,
        "best_effort" if lax else "required",
        "kept" if kept else "digest",
    )
