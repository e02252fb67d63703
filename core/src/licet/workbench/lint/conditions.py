"""Conditions that can't be met, and those whose time is over.

Rules this module keeps:

- a condition is called impossible only after every kind of request was tried: each named value and another
  one, each set of named groups, each stretch of time, each text as true and as false;
- more combinations than can be tried are no finding;
- "over" is said of an instant that comes in as an argument.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from licet.policy.conditions import Condition
from licet.policy.during import Window
from licet.policy.facts import Facts
from licet.policy.leaves import PROPERTY, DuringTest, KeyTest, MomentTest, Test, TextTest, Word, class_of
from licet.policy.rule import Rule
from licet.policy.truth import Truth, both, certain
from licet.request import Subject
from licet.workbench.lint.findings import Finding
from licet.workbench.words import condition as in_words

_MOST = 50_000
_MOST_GROUPS = 12
_OTHER = "\ufffdother"
_SPAN = timedelta(days=15)  # two of every weekday, whatever a change of the clock leaves out
_BEFORE = timedelta(minutes=1)
_SOME_DAY = datetime(2026, 1, 5, tzinfo=UTC)


def impossible(rule: Rule) -> Iterator[Finding]:
    """Conditions that no request with a known subject meets."""
    if _possible(rule.condition) is False:
        yield Finding(
            "error",
            "impossible-condition",
            rule.where,
            f"the rule `{rule.id}` can never be met: {in_words(rule)} contradicts itself, so it only bites "
            "where it is not known whether it applies",
            "take one of the clauses out, or make two rules of it",
        )


def over(rule: Rule, at: datetime) -> Iterator[Finding]:
    """Rules that apply no more, and exceptions that hold no more, at the instant `at`."""
    for leaf, test in zip(rule.condition.leaves, rule.condition.tests, strict=True):
        ended = _end(test)
        if ended is None or at < ended:
            continue
        when = ended.isoformat(timespec="minutes").replace("+00:00", "Z")
        if leaf.clause == "unless":
            message = f"the exception `{leaf.text}` of the rule `{rule.id}` ended at {when}"
            yield Finding("warning", "ended-exception", leaf.where, message, "take it out, or renew it")
        else:
            message = f"the rule `{rule.id}` applies no more: `{leaf.text}` ended at {when}"
            yield Finding("warning", "ended-rule", leaf.where, message, "take it out, or renew it")


def _end(test: Test) -> datetime | None:
    """Since when a leaf is never true any more; None if it can be true at any later time."""
    if isinstance(test, MomentTest) and test.key == "before":
        return test.moment.last
    if isinstance(test, DuringTest):
        ends = [window.ends for window in test.during.windows]
        return None if None in ends else max(end for end in ends if end is not None)
    return None


def _possible(condition: Condition) -> bool | None:
    """Whether some case meets the condition for certain; None if there are too many to try."""
    tests = condition.tests
    texts = sorted({leaf.text for leaf, test in _pairs(condition) if isinstance(test, TextTest)})
    words = {test.key: _words(test.key, tests) for test in tests if isinstance(test, KeyTest)}
    if len(words.get("group", ())) > _MOST_GROUPS:
        return None
    values = {key: _values(key, found) for key, found in words.items()}
    instants = _instants(tests)
    size = len(instants) * 2 ** len(texts)
    for found in values.values():
        size *= len(found)
    if size > _MOST:
        return None
    for chosen in itertools.product(*values.values()):
        subject = _subject(dict(zip(values, chosen, strict=True)))
        for at in instants:
            facts = Facts(subject=subject, at=at)
            for truths in itertools.product((True, False), repeat=len(texts)):
                if _met(condition, facts, dict(zip(texts, truths, strict=True))):
                    return True
    return False


def _pairs(condition: Condition) -> Iterable[tuple[Any, Test]]:
    return zip(condition.leaves, condition.tests, strict=True)


def _met(condition: Condition, facts: Facts, texts: Mapping[str, bool]) -> bool:
    """Whether a condition is met for certain, where its `texts` are true or false as stated."""
    positive: list[Truth] = []
    negative: list[Truth] = []
    for leaf, test in _pairs(condition):
        truth = certain(texts[leaf.text]) if isinstance(test, TextTest) else test.truth(facts)
        (negative if leaf.clause == "unless" else positive).append(truth)
    return both(positive) is Truth.true and not (negative and both(negative) is not Truth.false)


def _words(key: str, tests: Sequence[Test]) -> list[Word]:
    """The values that leaves name under a key."""
    words = [word for t in tests if isinstance(t, KeyTest) and t.key == key for word in t.words]
    return list({(class_of(word), word): word for word in words}.values())


def _values(key: str, words: Sequence[Word]) -> list[Any]:
    """Every named value and another one; for groups every set of them; the language is what it is."""
    if key == "language":
        return ["python"]
    if key == "group":
        return [c for n in range(len(words) + 1) for c in itertools.combinations(map(str, words), n)]
    return [*words, *(another for another in _others(words))]


def _others(words: Sequence[Word]) -> Iterator[Word]:
    numbers = [word for word in words if isinstance(word, (int, float)) and not isinstance(word, bool)]
    yield _OTHER
    if numbers:
        yield max(numbers) + 1
    if any(isinstance(word, bool) for word in words):
        yield from (True, False)


def _subject(chosen: dict[str, Any]) -> Subject:
    properties = {key.removeprefix(PROPERTY): v for key, v in chosen.items() if key.startswith(PROPERTY)}
    return Subject(
        id=chosen.get("subject", _OTHER),
        type=chosen.get("type", _OTHER),
        groups=chosen.get("group", ()),
        tenant=chosen.get("tenant", _OTHER),
        properties=properties,
    )


def _instants(tests: Sequence[Test]) -> list[datetime]:
    """An instant of every stretch of time in which no leaf about time changes its answer."""
    windows = [w for test in tests if isinstance(test, DuringTest) for w in test.during.windows]
    marks = {mark for window in windows for mark in (window.begins, window.ends) if mark is not None}
    marks |= {m for t in tests if isinstance(t, MomentTest) for m in (t.moment.first, t.moment.last)}
    anchors = sorted(marks) or [_SOME_DAY]
    found = {at for mark in anchors for at in (mark, *_earlier(mark))}
    recurring = [window for window in windows if window.zone and (window.days is not None or window.hours)]
    for anchor in (*anchors, *_earlier(anchors[0], _SPAN)):
        for window in recurring:
            found.update(_turns(window, anchor))
    return sorted(found)


def _earlier(mark: datetime, by: timedelta = _BEFORE) -> list[datetime]:
    try:
        return [mark - by]
    except OverflowError:
        return []


def _turns(window: Window, anchor: datetime) -> Iterator[datetime]:
    """In the days after `anchor`, the instants at which a day or the hours of a window begin or end."""
    minutes = {0, *(minute % 1440 for hours in window.hours for minute in hours)}
    try:
        day = anchor.astimezone(window.zone).replace(hour=0, minute=0, second=0, microsecond=0)
        for step in range(-1, _SPAN.days):
            for minute in minutes:
                at = (day + timedelta(days=step, minutes=minute)).astimezone(UTC)
                if at >= anchor:
                    yield at
    except OverflowError:
        return
