"""Receipts: what an attack found on this host, and when.

Rules this module keeps: a receipt says what was attempted and what was observed, never what was hoped; of
several for one attack the latest counts; what was inconclusive is soon looked at again.
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
"""How long a receipt counts."""

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
        """Seconds for which it counts."""
        return min(most, INCONCLUSIVE_LIFETIME_S) if self.outcome is ProbeOutcome.inconclusive else most

    def counts_at(self, now: float, lifetime: float = LIFETIME_S) -> bool:
        """Whether it is still to be believed at `now`."""
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
    """The latest result of each attack on each backend; one object for as long as nothing changes."""

    results: Mapping[tuple[str, str, str], ProbeResult] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[ProbeResult]) -> Receipts:
        """The latest of each."""
        latest: dict[tuple[str, str, str], ProbeResult] = {}
        for result in results:
            known = latest.get(result.key)
            if known is None or known.when <= result.when:
                latest[result.key] = result
        return cls(latest)

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
        return Receipts.of(result for result in self if result.counts_at(now, lifetime))

    def span(self, lifetime: float = LIFETIME_S) -> tuple[float, float]:
        """From when until when all of them count."""
        if not self.results:
            return 0.0, math.inf
        first = max(result.when for result in self) - _FUTURE_S
        return first, min(result.when + result.lifetime(lifetime) for result in self)

    def __iter__(self) -> Iterator[ProbeResult]:
        return iter(self.results.values())

    def __len__(self) -> int:
        return len(self.results)


NO_RECEIPTS = Receipts()


def digest(results: Iterable[ProbeResult]) -> str:
    """One digest of several receipts, whatever their order, for the record of a run that relied on them."""
    text = "\n".join(sorted(result.digest for result in results))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
