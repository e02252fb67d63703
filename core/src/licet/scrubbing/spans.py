"""What scrubbers find in a text, and the text without it.

Rules this module keeps:

- secrets that overlap are one, and count once;
- what stands in for a secret names its kind alone, so equal secrets can't be told from others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Channel = Literal["stdout", "stderr", "value", "error", "detail"]
"""Which way a text leaves a run: `value` is the value and its repr, `error` what the code raised."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in a text: its kind, a word such as `github_token`, and where it is, `start` to `end`.

    `failure` says why a text is withheld that nobody could look through; a scrubber leaves it None.
    """

    kind: str
    start: int
    end: int
    failure: str | None = None


Find = Callable[[str, Channel], Sequence[Secret]]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """How many secrets of one kind were taken out of one channel; `reason` where it was withheld."""

    channel: Channel
    kind: str
    count: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A text without its secrets, and what they were."""

    text: str
    findings: tuple[Finding, ...] = ()


def scrub(text: str, channel: Channel, find: Find) -> Scrubbed:
    """`text` without what `find` finds in it."""
    secrets = united(find(text, channel))
    return Scrubbed(without(text, secrets), findings(channel, secrets)) if secrets else Scrubbed(text)


def withheld(text: str, failure: str) -> Secret:
    """All of `text`, for want of somebody who could say what of it is secret."""
    return Secret("withheld", 0, len(text), failure)


def united(secrets: Iterable[Secret]) -> tuple[Secret, ...]:
    """In order, and overlapping ones as one, of the kind of that which begins first and is longest."""
    result: list[Secret] = []
    for secret in sorted(secrets, key=lambda one: (one.start, -one.end)):
        if secret.end <= secret.start:
            continue
        last = result[-1] if result else None
        if last is None or secret.start >= last.end:
            result.append(secret)
        elif secret.end > last.end:
            result[-1] = Secret(last.kind, last.start, secret.end, last.failure or secret.failure)
    return tuple(result)


def within(secrets: Iterable[Secret], start: int, end: int) -> Iterator[Secret]:
    """Those that reach into `start` to `end`, cut to it and counted from `start`."""
    for one in secrets:
        if one.start < end and one.end > start:
            yield Secret(one.kind, max(one.start, start) - start, min(one.end, end) - start, one.failure)


def without(text: str, secrets: Iterable[Secret]) -> str:
    """`text` with a mark in the place of each secret; they are in order and don't overlap."""
    pieces: list[str] = []
    done = 0
    for secret in secrets:
        mark = f"redacted: {secret.kind}" if secret.failure is None else f"withheld: {secret.failure}"
        pieces += (text[done : secret.start], f"[{mark}]")
        done = secret.end
    return "".join((*pieces, text[done:]))


def findings(channel: Channel, secrets: Iterable[Secret]) -> tuple[Finding, ...]:
    """Secrets of one channel, counted by kind."""
    counts = Counter((one.kind, one.failure) for one in secrets)
    return tuple(Finding(channel, kind, count, failure) for (kind, failure), count in counts.items())
