"""Test cases of policies: what is asked, in which circumstances, and what has to come of it.

Rules this module keeps:

- one form, whether a case stands in a rule or in a `*.test.yaml`;
- what a case does not state has one value everywhere: nobody is the subject, and it is `DEFAULT_AT`;
- a case that asks nothing or expects nothing is an error, and so is an unknown key;
- reading a case does no IO: its paths are made canonical when it is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from licet.errors import InvalidPolicy, Position
from licet.output import bounded
from licet.policy.during import parse_moment
from licet.policy.expectations import NO_LIMITS, Expectation, Wish, parse_expectation, wish, wishes
from licet.policy.keys import Keys
from licet.policy.signatures import Signature, parse_tools
from licet.policy.yaml import Fields, Items
from licet.request import Action, Limits, Subject

DEFAULT_AT = datetime(2026, 1, 7, 12, tzinfo=UTC)
"""When a case happens that does not say it: noon in UTC, on a Wednesday."""

NOBODY = Subject()

ASKS = ("tool", "args", "run", "read", "write", "network", "shell", "intents", "code")
CIRCUMSTANCES = ("subject", "at", "workdir", "inputs", "tools", "metadata", "limits")
KEYS = ("name", "rule", *ASKS, *CIRCUMSTANCES, "expect")
_INSIDE_RULES = tuple(key for key in KEYS if key != "rule")
_TARGETED: tuple[Action, ...] = ("read", "write", "network")


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call of a tool, its arguments by name as they are written in `where`."""

    tool: str
    args: Mapping[str, Any]
    where: Position


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One test case, as it stands in `where`.

    It asks either for a `call`, or for a run of `code` with `intents` (None: all that is allowed). `rule` is
    the id of the rule that it is about, and where that is said; None if it is about the whole policy.
    `tools` are those that the host passes, each with its signature where the policy declares none. `title` is
    the name that its author gave it, `written` all that stands there.
    """

    where: Position
    title: str | None
    rule: tuple[str, Position] | None
    call: MadeCall | None
    intents: tuple[Wish, ...] | None
    code: str
    expect: Expectation
    subject: Subject = NOBODY
    at: datetime = DEFAULT_AT
    workdir: str | None = None
    inputs: Mapping[str, Any] | None = None
    tools: Mapping[str, Signature | None] | None = None
    metadata: Mapping[str, str] | None = None
    limits: Limits = NO_LIMITS
    written: Fields = field(default_factory=Fields, repr=False)

    @property
    def name(self) -> str:
        """Its name, or else what it asks and under which circumstances, in the words of its author."""
        return self.title or _described(self.written)

    @property
    def label(self) -> str:
        """What to call it: the rule that it is about, and its name."""
        return self.name if self.rule is None else f"{self.rule[0]}: {self.name}"


def parse_cases(
    items: object, where: Position, *, rule: str | None = None, given: Fields | None = None
) -> tuple[Case, ...]:
    """Read a list of cases in `where`; all are about `rule` if that is named.

    `given` are circumstances that hold for each case which does not state them itself.

    Raises:
        InvalidPolicy: with the place of the first problem and what to write instead.
    """
    if not isinstance(items, Items):
        raise InvalidPolicy(
            f"`tests` is a list of cases, found `{items}`",
            where=where,
            advice="such as `[{run: true, expect: allow}]`",
        )
    places = (Position(where.file, *place) for place in items.places)
    return tuple(_case(item, place, rule, given) for item, place in zip(items, places, strict=True))


def _case(item: object, where: Position, rule: str | None, given: Fields | None) -> Case:
    if not isinstance(item, Fields):
        raise InvalidPolicy(f"expected a case, a mapping with `expect`, found `{item}`", where=where)
    keys = Keys(item, where)
    if rule is not None and "rule" in item:
        message = "this case names its rule, and is about the one it stands in"
        raise InvalidPolicy(message, where=keys.place("rule"), advice="take `rule` out")
    keys.only(KEYS if rule is None else _INSIDE_RULES, "a test case")
    if "expect" not in item:
        raise InvalidPolicy(
            "a test case needs `expect`",
            where=where,
            advice="such as `expect: deny`: without it nothing fails",
        )
    reader = _Reader(_with(item, given), where)
    about = (rule, where) if rule is not None else reader.rule()
    call, intents, code = reader.asked()
    return Case(
        where=where,
        title=reader.text("name"),
        rule=about,
        call=call,
        intents=intents,
        code=code,
        expect=parse_expectation(item["expect"], reader.place("expect"), of_rule=bool(about)),
        written=item,
        **reader.circumstances(),
    )


def check_circumstances(given: object, where: Position) -> Fields:
    """Read the key `given` of a file of tests, which stands in `where`.

    Raises:
        InvalidPolicy: it holds anything but circumstances.
    """
    if not isinstance(given, Fields):
        raise InvalidPolicy(f"`given` is a mapping, found `{given}`", where=where)
    reader = _Reader(given, where)
    reader.only(CIRCUMSTANCES, "`given`")
    reader.circumstances()
    return given


def _with(item: Fields, given: Fields | None) -> Fields:
    if not given:
        return item
    both = Fields()
    for part in (given, item):
        both.update(part)
        both.places.update(part.places)
    return both


def _described(item: Fields) -> str:
    shown = (f"{key} {_shown(value)}" for key, value in item.items() if key not in ("rule", "expect"))
    return bounded(", ".join(shown), 120)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if value is None or isinstance(value, bool):
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


class _Reader(Keys):
    def text(self, key: str) -> str | None:
        value = self.fields.get(key)
        if key in self.fields and (not isinstance(value, str) or not value.strip()):
            raise InvalidPolicy(f"`{key}` is a text, found `{value}`", where=self.place(key))
        return value

    def rule(self) -> tuple[str, Position] | None:
        name = self.text("rule")
        return None if name is None else (name, self.place("rule"))

    def asked(self) -> tuple[MadeCall | None, tuple[Wish, ...] | None, str]:
        """The call, or the intents and the code."""
        stated = [key for key in ASKS if key in self.fields]
        if not stated:
            raise InvalidPolicy(
                "this case asks nothing",
                where=self.where,
                advice="such as `run: true`, `read: ./data`, `tool: NAME` with `args`, or `code`",
            )
        others = [key for key in stated if key not in ("tool", "args")]
        if len(others) < len(stated):
            return self._call(others), None, ""
        for key in ("run", "shell"):
            if key in self.fields and self.fields[key] is not True:
                raise InvalidPolicy(f"`{key}` can only be `true` in a case", where=self.place(key))
        intents = tuple(self._wishes())
        listed = any(key in self.fields for key in (*_TARGETED, "shell", "intents"))
        if listed and "run" in self.fields:
            raise InvalidPolicy(
                "`run` adds nothing to listed intents, since every request runs", where=self.place("run")
            )
        return None, intents if listed else None, self.text("code") or ""

    def _call(self, others: list[str]) -> MadeCall:
        if others or "tool" not in self.fields:
            key = others[0] if others else "args"
            why = "a call is a case of its own" if others else "`args` are those of a `tool`"
            raise InvalidPolicy(
                why, where=self.place(key), advice="make two cases of it" if others else "name the `tool`"
            )
        tool, args = self.text("tool") or "", self.fields.get("args", Fields())
        if not tool.isidentifier():
            raise InvalidPolicy(f"`{tool}` is no name of a tool", where=self.place("tool"))
        if not isinstance(args, Fields):
            raise InvalidPolicy(
                f"`args` are a mapping of names to values, found `{args}`", where=self.place("args")
            )
        return MadeCall(tool, plain(args), self.place("args" if "args" in self.fields else "tool"))

    def _wishes(self) -> Iterator[Wish]:
        for action in _TARGETED:
            value = self.fields.get(action, ())
            targets = value if isinstance(value, list) else [value] if action in self.fields else []
            for target in targets:
                if not isinstance(target, str):
                    raise InvalidPolicy(
                        f"`{action}` needs a target or a list of them, found `{target}`",
                        where=self.place(action),
                    )
                yield wish(action, target.strip(), self.place(action))
        if "shell" in self.fields:
            yield wish("shell", "", self.place("shell"))
        yield from wishes(self.fields.get("intents"), self.place("intents"))

    def circumstances(self) -> dict[str, Any]:
        """The fields of a case that are stated of its circumstances."""
        read: dict[str, Callable[[], Any]] = {
            "subject": self._subject,
            "at": self._at,
            "workdir": lambda: self.text("workdir"),
            "inputs": lambda: plain(self._mapping("inputs")),
            "tools": self._tools,
            "metadata": self._metadata,
            "limits": lambda: self.model("limits", Limits),
        }
        return {key: reading() for key, reading in read.items() if key in self.fields}

    def _subject(self) -> Subject:
        subject = self.model("subject", Subject)
        if "id" not in self.fields["subject"]:
            for key in ("groups", "type"):
                if key in self.fields["subject"]:
                    raise InvalidPolicy(
                        f"`{key}` of a subject without an `id` would not count: nobody has said who it is",
                        where=self.place("subject"),
                        advice=f"write `{{id: alice, {key}: …}}`",
                    )
        return subject

    def _at(self) -> datetime:
        moment = parse_moment(self.fields["at"], self.place("at"))
        if moment.first != moment.last:
            raise InvalidPolicy(
                f"`at` is an instant, and `{self.fields['at']}` is a day",
                where=self.place("at"),
                advice=f"write `{self.fields['at']}T12:00:00Z`",
            )
        return moment.first

    def _mapping(self, key: str) -> Fields:
        value = self.fields[key]
        if not isinstance(value, Fields):
            raise InvalidPolicy(f"`{key}` is a mapping, found `{value}`", where=self.place(key))
        return value

    def _metadata(self) -> dict[str, str]:
        value = self._mapping("metadata")
        for name, text in value.items():
            if not isinstance(text, str):
                place = Position(self.where.file, *value.places[name])
                raise InvalidPolicy(f"`metadata` holds texts, found `{text}`", where=place)
        return dict(value)

    def _tools(self) -> Mapping[str, Signature | None]:
        value = self.fields["tools"]
        if not isinstance(value, Items):
            return dict(parse_tools(value, self.where.file, self.place("tools")))
        for name, place in zip(value, value.places, strict=True):
            if not isinstance(name, str) or not name.isidentifier():
                raise InvalidPolicy(f"`{name}` is no name of a tool", where=Position(self.where.file, *place))
        return dict.fromkeys(value)


def plain(value: Any) -> Any:
    """What the YAML reader built, as values without places."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value
