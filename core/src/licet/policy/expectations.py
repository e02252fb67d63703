"""What a test case expects: one word, or a mapping that says more.

Rules this module keeps:

- an unknown key or word is an error with its place and the nearest known one;
- what could never be told apart from its absence is an error: an expectation is there to fail;
- whatever is said of a rule is said only where a case is about one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError

from licet.errors import InvalidPolicy, Position
from licet.policy.advice import nearest
from licet.policy.parts import Approval
from licet.policy.patterns import Effect
from licet.policy.problems import explain, unknown
from licet.policy.yaml import Fields, Items
from licet.request import Action, Limits

NO_LIMITS = Limits()

State = Literal["hit", "miss", "pending"]

EFFECTS: tuple[Effect, ...] = ("allow", "ask", "deny")
STATES: tuple[State, ...] = ("hit", "miss", "pending")
KEYS = ("effect", "rule", "by", "limits", "demands", "opened", "closed")
OF_THE_WHOLE = ("by", "opened", "closed")
_ACTIONS: tuple[Action, ...] = ("read", "write", "network", "shell")


@dataclass(frozen=True, slots=True)
class Wish:
    """An intent as an author wrote it in `where`; its target is made canonical when it is tried."""

    action: Action
    target: str
    where: Position

    def __str__(self) -> str:
        return f"{self.action} {self.target}".rstrip()


@dataclass(frozen=True, slots=True)
class Expectation:
    """What has to come of a case; what is None or empty is not looked at.

    `state` is that of the rule which the case is about, `by` the id of the rule that has to decide. `limits`
    are those in force, `demands` the approvals that are needed, each with what it states, or None.
    `opened` and `closed` are what a sandbox may and may not open.
    """

    effect: Effect | None = None
    state: State | None = None
    by: tuple[str, Position] | None = None
    limits: Limits = NO_LIMITS
    demands: tuple[Approval, ...] | None = None
    opened: tuple[Wish, ...] = ()
    closed: tuple[Wish, ...] = ()


def parse_expectation(value: object, file: str, where: Position, *, of_rule: bool) -> Expectation:
    """Read the key `expect`; `of_rule` says that the case is about one rule.

    Raises:
        InvalidPolicy: with the place of the first problem and what to write instead.
    """
    if isinstance(value, str):
        return _word(value, where, of_rule)
    if not isinstance(value, Fields) or not value:
        known = ", ".join(f"`{word}`" for word in (*EFFECTS, *STATES))
        raise InvalidPolicy(
            f"`expect` needs one of {known}, or a mapping, found `{value}`",
            where=where,
            advice=f"the keys of a mapping are {', '.join(KEYS)}",
        )
    reader = _Reader(value, file)
    for key in value:
        if key not in KEYS:
            raise unknown(f"unknown key `{key}` in `expect`", key, KEYS, reader.place(key))
        if of_rule and key in OF_THE_WHOLE:
            raise InvalidPolicy(
                f"`{key}` is about the whole policy, and this case is about one rule",
                where=reader.place(key),
                advice="expect it in a `*.test.yaml`, in a case without `rule`",
            )
    return Expectation(
        effect=cast("Effect | None", reader.one_of("effect", EFFECTS)),
        state=reader.state(of_rule),
        by=reader.by(),
        limits=reader.limits(),
        demands=reader.demands(),
        opened=wishes(value.get("opened"), file, reader.place("opened")),
        closed=wishes(value.get("closed"), file, reader.place("closed")),
    )


def _word(word: str, where: Position, of_rule: bool) -> Expectation:
    for effect in EFFECTS:
        if word == effect:
            return Expectation(effect)
    for state in STATES:
        if word == state:
            _refuse_without_rule(where, of_rule)
            return Expectation(state=state)
    raise InvalidPolicy(
        f"nothing can be expected to be `{word}`", where=where, advice=nearest(word, (*EFFECTS, *STATES))
    )


def _refuse_without_rule(where: Position, of_rule: bool) -> None:
    if not of_rule:
        raise InvalidPolicy(
            "this expects something of a rule and names none",
            where=where,
            advice="add `rule: ID`, or expect `allow`, `ask` or `deny`",
        )


def wishes(value: object, file: str, where: Position) -> tuple[Wish, ...]:
    """Read a list of intents, each `ACTION TARGET`; None is an empty one.

    Raises:
        InvalidPolicy: one of them is no intent that a request could hold.
    """
    if value is None:
        return ()
    if not isinstance(value, Items):
        raise InvalidPolicy(
            f"expected a list of intents, found `{value}`", where=where, advice="such as `[read ./data]`"
        )
    places = (Position(file, *place) for place in value.places)
    return tuple(_wish(item, place) for item, place in zip(value, places, strict=True))


def _wish(item: object, where: Position) -> Wish:
    action, _, target = str(item).strip().partition(" ")
    if action == "tool":
        raise InvalidPolicy(
            "a tool is decided when it is called",
            where=where,
            advice=f"make it a case of its own: `tool: {target.strip() or 'NAME'}`, with `args`",
        )
    for known in _ACTIONS:
        if isinstance(item, str) and action == known:
            return wish(known, target.strip(), where)
    raise InvalidPolicy(
        f"expected an intent such as `read ./data`, found `{item}`",
        where=where,
        advice=nearest(action, _ACTIONS),
    )


def wish(action: Action, target: str, where: Position) -> Wish:
    """An intent, once it is clear that it has a target where it needs one.

    Raises:
        InvalidPolicy: a target is missing, or is one too many.
    """
    if (action == "shell") == bool(target):
        needs = "takes no target" if target else "needs a target"
        raise InvalidPolicy(f"`{action}` {needs}", where=where)
    return Wish(action, target, where)


@dataclass(frozen=True, slots=True)
class _Reader:
    """The keys of one mapping, each with its place."""

    fields: Fields
    file: str

    def place(self, key: str) -> Position:
        """Where a key stands, if it does."""
        return Position(self.file, *self.fields.places.get(key, (0, 0)))

    def one_of(self, key: str, known: tuple[str, ...]) -> str | None:
        if key not in self.fields:
            return None
        word = self.fields[key]
        if word not in known:
            advice = nearest(str(word), known)
            raise InvalidPolicy(f"`{key}` can't be `{word}`", where=self.place(key), advice=advice)
        return str(word)

    def state(self, of_rule: bool) -> State | None:
        word = self.one_of("rule", STATES)
        if word is not None:
            _refuse_without_rule(self.place("rule"), of_rule)
        return cast("State | None", word)

    def by(self) -> tuple[str, Position] | None:
        if "by" not in self.fields:
            return None
        if not isinstance(self.fields["by"], str):
            raise InvalidPolicy("`by` is the id of a rule", where=self.place("by"))
        return self.fields["by"], self.place("by")

    def demands(self) -> tuple[Approval, ...] | None:
        if "demands" not in self.fields:
            return None
        value = self.fields["demands"]
        if not isinstance(value, Items):
            raise InvalidPolicy(
                f"`demands` is a list of approvals, found `{value}`",
                where=self.place("demands"),
                advice="such as `[{count: 2, from: [finance]}]`; `[]` demands none",
            )
        found = []
        for item, place in zip(value, value.places, strict=True):
            found.append(model(item, Approval, self.file, "expect.demands", Position(self.file, *place)))
        return tuple(found)

    def limits(self) -> Limits:
        if "limits" not in self.fields:
            return NO_LIMITS
        return model(self.fields["limits"], Limits, self.file, "expect.limits", self.place("limits"))


M = TypeVar("M", bound=BaseModel)


def model(tree: object, kind: type[M], file: str, key: str, where: Position) -> M:
    """Read `tree`, which stands under `key` in `where`, as a value of `kind`.

    Raises:
        InvalidPolicy: with the place of the first problem and what to write instead.
    """
    if not isinstance(tree, Fields):
        raise InvalidPolicy(f"`{key}` is a mapping, found `{tree}`", where=where)
    try:
        return kind.model_validate(dict(tree))
    except ValidationError as problem:
        raise explain(problem, tree, file, kind, path=(key,)) from None
