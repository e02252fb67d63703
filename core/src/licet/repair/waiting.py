"""When a rule that applies now no longer will, by its clock alone.

Rules this module keeps:

- an instant is only proposed: whoever proposes it decides again at that instant;
- the past is not proposed, and of what comes again every week, the next time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

from licet.policy.during import Window
from licet.policy.facts import Facts
from licet.policy.leaves import DuringTest, MomentTest
from licet.policy.rule import Rule
from licet.policy.truth import Truth

_DAYS = 8  # one more than a week, since a window may pass midnight
_MOST = 500


def releases(rules: Sequence[Rule], facts: Facts) -> tuple[datetime, ...]:
    """The first instants (in UTC) at which one of `rules`, or all of them, certainly don't apply any more."""
    changing = [rule for rule in rules if any(True for _ in _instants(rule, facts.at))]
    groups = [[rule] for rule in changing] + ([changing] if len(changing) > 1 else [])
    found = (_first(group, facts) for group in groups)
    return tuple(dict.fromkeys(at for at in found if at is not None))


def shown(at: datetime, rules: Sequence[Rule]) -> str:
    """An instant as people read it: on the clock of the rules if they name one, else in UTC."""
    zones = [window.zone for rule in rules for window in _windows(rule) if window.zone is not None]
    if zones:
        return f"{at.astimezone(zones[0]):%a %Y-%m-%d %H:%M} in {zones[0].key}"
    return f"{at:%a %Y-%m-%d %H:%M} UTC"


def _first(rules: Sequence[Rule], facts: Facts) -> datetime | None:
    instants = sorted({at for rule in rules for at in _instants(rule, facts.at)})
    for at in instants[:_MOST]:
        then = replace(facts, at=at)
        if all(rule.condition.truth(then) is Truth.false for rule in rules):
            return at
    return None


def _windows(rule: Rule) -> Iterator[Window]:
    for test in rule.condition.tests:
        if isinstance(test, DuringTest):
            yield from test.during.windows


def _instants(rule: Rule, after: datetime) -> Iterator[datetime]:
    """Where the clock can change what the rule says: starts and ends of days, hours and spans."""
    found: list[datetime] = []
    for test in rule.condition.tests:
        if isinstance(test, MomentTest):
            found += (test.moment.first, test.moment.last)
    for window in _windows(rule):
        found += (at for at in (window.begins, window.ends) if at is not None)
        found += _of_the_week(window, after)
    return (at.astimezone(UTC) for at in found if at > after)


def _of_the_week(window: Window, after: datetime) -> Iterable[datetime]:
    if window.zone is None or (window.days is None and not window.hours):
        return
    today = after.astimezone(window.zone).date()
    minutes = {0, *(minute for hours in window.hours for minute in hours)}
    for day in range(_DAYS + 1):
        for minute in minutes:
            date = today + timedelta(days=day + minute // 1440)
            clock = time(minute % 1440 // 60, minute % 60)
            yield datetime.combine(date, clock, window.zone)
