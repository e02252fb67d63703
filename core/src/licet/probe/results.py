"""Receipts: what an attack found on this host, and when.

Rules this module keeps: a receipt says what was attempted and what was observed, never what was hoped; of
several for one attack the latest counts; what leaked counts until the same attack is run again; what was
inconclusive is soon looked at again, and is not forgotten before.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from licet import units
from licet.contract import Control

LIFETIME_S = 7 * 86400.0
"""How long a receipt counts that says `held`."""

INCONCLUSIVE_LIFETIME_S = 600.0
"""How long one counts that decided nothing."""

_FUTURE_S = 60.0


class ProbeOutcome(StrEnum):
    """What an attack showed; only `held` proves anything."""

    held = "held"
    leaked = "leaked"
    inconclusive = "inconclusive"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One receipt.

    `attempted` is what the attack tried, `observed` what stopped it (or `done`, or how the run ended), `twin`
    what became of it without walls, `reason` why the outcome is what it is. `when` is in seconds since the
    epoch, `duration` in seconds, `fingerprint` the digest of all that the receipt is bound to.
    """

    backend: str
    control: Control
    variant: str
    outcome: ProbeOutcome
    attempted: str
    observed: str
    twin: str
    reason: str
    when: float
    duration: float
    fingerprint: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Which attack on which backend this is of."""
        return self.backend, self.control.value, self.variant

    @property
    def date(self) -> str:
        """When, as RFC 3339 in UTC."""
        return units.show_moment(self.when)

    def lifetime(self, most: float = LIFETIME_S) -> float:
        """Seconds for which it counts: a leak for ever, since time closes no hole."""
        if self.outcome is ProbeOutcome.leaked:
            return math.inf
        return min(most, INCONCLUSIVE_LIFETIME_S) if self.outcome is ProbeOutcome.inconclusive else most

    def counts_at(self, now: float, lifetime: float = LIFETIME_S) -> bool:
        """Whether it is still to be believed at `now`; a leak is, even if a clock that was ahead dated it."""
        if self.outcome is ProbeOutcome.leaked:
            return True
        return -_FUTURE_S <= now - self.when < self.lifetime(lifetime)

    def as_json(self) -> dict[str, Any]:
        """By name."""
        return {name: getattr(self, name) for name in self.__slots__} | {
            "control": self.control.value,
            "outcome": self.outcome.value,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ProbeResult:
        """Read one back.

        Raises:
            ValueError: it is not what `as_json` writes.
        """
        try:
            texts = {name: content[name] for name in cls.__slots__ if name not in {"when", "duration"}}
            numbers = {name: float(content[name]) for name in ("when", "duration")}
            if set(content) != set(cls.__slots__) or not all(isinstance(t, str) for t in texts.values()):
                raise ValueError("the fields of a receipt are texts and two numbers")
            control, outcome = Control(texts["control"]), ProbeOutcome(texts["outcome"])
        except (KeyError, TypeError) as problem:
            raise ValueError(f"no receipt: {problem}") from None
        return cls(**{**texts, **numbers, "control": control, "outcome": outcome})

    @property
    def digest(self) -> str:
        """What a record names it by."""
        text = json.dumps(self.as_json(), sort_keys=True, separators=(",", ":"))
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


Progress = Callable[[ProbeResult], None]
"""Whoever wants to hear of results as they come."""


@dataclass(frozen=True, slots=True, eq=False)
class Receipts:
    """The latest result of each attack on each backend; one object for as long as nothing changes.

    `overdue` are inconclusive results that count no more: their attacks are to be run again.
    """

    results: Mapping[tuple[str, str, str], ProbeResult] = field(default_factory=dict)
    overdue: Mapping[tuple[str, str, str], ProbeResult] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[ProbeResult]) -> Receipts:
        """The latest of each."""
        return cls(_latest({}, results, math.inf))

    def updated(self, new: Iterable[ProbeResult], now: float, lifetime: float = LIFETIME_S) -> Receipts:
        """These and `new`, as far as they count at `now`.

        What is dated after `now`, by a clock that was ahead, yields to a new result on the same attack.
        """
        known = _latest({**self.overdue, **self.results}, new, now)
        return Receipts(known).at(now, lifetime)

    def get(self, backend: str, control: Control, variant: str) -> ProbeResult | None:
        """The result of one attack, None if there is none."""
        return self.results.get((backend, control.value, variant))

    def about(self, backend: str, controls: Iterable[Control] | None = None) -> tuple[ProbeResult, ...]:
        """All results on one backend, or those on some controls."""
        wanted = None if controls is None else set(controls)
        return tuple(
            result
            for result in self
            if result.backend == backend and (wanted is None or result.control in wanted)
        )

    def at(self, now: float, lifetime: float = LIFETIME_S) -> Receipts:
        """Those that still count at `now`; this very object if all do."""
        if all(result.counts_at(now, lifetime) for result in self):
            return self
        counting = {key: one for key, one in self.results.items() if one.counts_at(now, lifetime)}
        overdue = {
            key: one
            for key, one in self.results.items()
            if key not in counting and one.outcome is ProbeOutcome.inconclusive
        }
        return Receipts(counting, {**self.overdue, **overdue})

    def span(self, lifetime: float = LIFETIME_S) -> tuple[float, float]:
        """From when until when all of them count."""
        mortal = [result for result in self if result.outcome is not ProbeOutcome.leaked]
        if not mortal:
            return -math.inf, math.inf
        first = max(result.when for result in mortal) - _FUTURE_S
        return first, min(result.when + result.lifetime(lifetime) for result in mortal)

    def is_overdue(self, backend: str, control: Control, variant: str) -> bool:
        """Whether one attack decided nothing, long enough ago to be run again."""
        return (backend, control.value, variant) in self.overdue

    def __iter__(self) -> Iterator[ProbeResult]:
        return iter(self.results.values())

    def __len__(self) -> int:
        return len(self.results)


def _latest(
    known: Mapping[tuple[str, str, str], ProbeResult], new: Iterable[ProbeResult], now: float
) -> dict[tuple[str, str, str], ProbeResult]:
    """Both, the latest for each attack; one that is `known` from after `now` is not the latest."""
    latest = dict(known)
    for result in new:
        before = latest.get(result.key)
        if before is None or not result.when < before.when <= now:
            latest[result.key] = result
    return latest


NO_RECEIPTS = Receipts()


def digest(results: Iterable[ProbeResult]) -> str:
    """One digest of several receipts, whatever their order, for the record of a run that relied on them."""
    text = "\n".join(sorted(result.digest for result in results))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
