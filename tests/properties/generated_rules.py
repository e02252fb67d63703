"""Generators of rules, settings and situations over the small world, and situations as licet reads them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from licet.request import Subject
from reference_evaluator import Entry
from reference_rules import (
    CALL_TEXTS,
    REQUEST_TEXTS,
    Key,
    Leaf,
    Moment,
    Person,
    Rule,
    Settings,
    Situation,
    Text,
    Window,
)

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
WORDS = {
    "tenant": ("acme", "globex"),
    "group": ("oncall", "finance"),
    "subject": ("ann", "bob"),
    "type": ("user", "service"),
    "language": ("python", "rust"),
    "property.plan": ("pro", "free", 3),
    "property.seats": (1, 1.0, 2, True, "2"),
}
MOMENTS = (
    ("2026-03-04", 48, True),
    ("2026-03-06", 96, True),
    ("2026-03-04T12:00:00Z", 60, False),
    ("2026-03-04T12:00:00+03:00", 57, False),
)
DAYS = (("sat", "sun"), ("mon",), ("mon", "tue", "wed", "thu", "fri"), ("wed", "sun"))
HOURS = (None, (9, 17), (22, 6), (0, 12))

KEYS = st.sampled_from(sorted(WORDS)).flatmap(
    lambda key: st.lists(
        st.sampled_from(WORDS[key]), min_size=1, max_size=2, unique_by=lambda w: (type(w), w)
    ).map(lambda words: Key(key, tuple(words)))
)
INSTANTS = st.builds(
    lambda key, moment: Moment(key, *moment), st.sampled_from(["before", "after"]), st.sampled_from(MOMENTS)
)
LEAVES: st.SearchStrategy[Leaf] = st.one_of(
    KEYS, KEYS, KEYS, INSTANTS, st.sampled_from(REQUEST_TEXTS).map(Text)
)
CALL_LEAVES: st.SearchStrategy[Leaf] = st.one_of(st.sampled_from(CALL_TEXTS).map(Text), KEYS)
WINDOWS = st.builds(Window, st.sampled_from(DAYS), st.sampled_from(HOURS), st.sampled_from([0, 3]))

NUMBERS = st.integers(1, 3)
LIMITS = st.dictionaries(st.sampled_from(["wall_time", "memory", "tool_calls"]), NUMBERS, max_size=2)
REQUIRE = st.dictionaries(
    st.sampled_from(["timeout", "network_deny"]), st.sampled_from(["partial", "enforced"]), max_size=2
)
ONLY = st.sets(st.sampled_from(["one", "two", "three"]), min_size=1).map(lambda names: tuple(sorted(names)))


def settings(strict: bool) -> st.SearchStrategy[Settings]:
    """Settings, all of them unset half of the time; `strict` ones only such as a rule may have."""
    either = st.sampled_from
    some = st.builds(
        Settings,
        LIMITS.map(lambda named: tuple(sorted(named.items()))),
        REQUIRE.map(lambda named: tuple(sorted(named.items()))),
        either([None, "read_back", "probed"] if strict else [None, "declared", "read_back"]),
        st.one_of(st.none(), ONLY),
        either([None, "required"] if strict else [None, "required", "best_effort", "best_effort"]),
        either([None, "digest"] if strict else [None, "digest", "kept", "kept"]),
    )
    return st.one_of(st.just(Settings()), some)


APPROVALS = st.fixed_dictionaries(
    {},
    optional={
        "count": st.sampled_from([1, 2]),
        "from": st.sampled_from([("finance",), ("security",)]),
        "reviewer": st.just("human"),
        "expires": st.just(60),
        "unattended": st.just("queue"),
    },
).map(lambda stated: tuple(sorted(stated.items())))


@st.composite
def rules(
    draw: st.DrawFn, entries: Callable[[bool], st.SearchStrategy[Entry]], name: str, *, calls: bool = True
) -> Rule:
    """One rule that does something; `entries` makes entries, with an optional port if it is given True."""
    conditions = {
        "during": tuple(draw(st.lists(WINDOWS, max_size=draw(st.sampled_from([0, 0, 2]))))),
        "joined": draw(st.booleans()),
    }
    about_calls = calls and draw(st.integers(0, 3)) == 0
    leaves = CALL_LEAVES if about_calls else LEAVES
    conditions |= {part: tuple(draw(st.lists(leaves, max_size=2))) for part in ("when", "unless")}
    if about_calls:
        tools = st.sampled_from(["*", "find*", "*_all", "find", "pay"]).map(lambda name: Entry("tool", name))
        effect = draw(st.sampled_from(["deny", "ask"]))
        rule = Rule(name, **{effect: tuple(draw(st.lists(tools, min_size=1, max_size=2)))}, **conditions)
    else:
        rule = Rule(
            name,
            tuple(draw(st.lists(entries(True), max_size=1))),
            tuple(draw(st.lists(entries(False), max_size=2))),
            settings=draw(settings(strict=True)),
            **conditions,
        )
    approval = draw(st.one_of(st.none(), APPROVALS)) if rule.ask or not rule.reads_call else None
    rule = Rule(**{**vars(rule), "approval": approval})
    nothing = not (rule.deny or rule.ask or rule.settings.tree or approval is not None)
    return Rule(**{**vars(rule), "settings": Settings((("memory", 2),))}) if nothing else rule


PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "plan": st.sampled_from(["pro", "free"]),
        "seats": st.sampled_from([1, 2, 1.0]),
    },
).map(lambda said: tuple(sorted(said.items())))
PEOPLE = st.builds(
    Person,
    st.sampled_from(["ann", "bob", "ann", "unknown", ""]),
    st.sampled_from(["user", "service"]),
    st.lists(st.sampled_from(["oncall", "finance"]), max_size=2, unique=True).map(tuple),
    st.sampled_from([None, "acme", "globex"]),
    PROPERTIES,
)
SITUATIONS = st.builds(Situation, PEOPLE, st.integers(0, 7 * 24 - 1))
CALLS = st.builds(
    Situation,
    PEOPLE,
    st.integers(0, 7 * 24 - 1),
    tool=st.sampled_from(["find", "find_all", "pay"]),
    args=st.fixed_dictionaries(
        {}, optional={"amount": st.sampled_from([50, 100, 250]), "note": st.sampled_from(["x", "y"])}
    ).map(lambda given: tuple(sorted(given.items()))),
)


def subject_of(person: Person) -> Subject:
    """The same person for licet."""
    return Subject(
        id=person.id,
        type=person.type,
        groups=person.groups,
        tenant=person.tenant,
        properties=dict(person.properties),
    )


def instant_of(now: Situation) -> datetime:
    """The same time for licet."""
    return MONDAY + timedelta(hours=now.hour)
