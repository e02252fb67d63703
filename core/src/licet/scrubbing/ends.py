"""All that a run leaves, cleaned in one go.

Rules this module keeps:

- a secret that a cut goes through is seen whole, from the margin beyond the cut, and leaves no half;
- where a text was cut before it came here, the word at the cut may be half a secret, and goes;
- what is found in one channel goes from all of them, even where nothing beside it tells what it is;
- what holds no secret is the very object that came in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from licet.backend import GuestError, Outcome
from licet.output import Kept, joined, text_of, whole_at_end, whole_at_start
from licet.result import Output, output_of
from licet.scrubbing.contents import Contents, contents, replaced
from licet.scrubbing.known import Needles, echoes, occurrences, secrets_of
from licet.scrubbing.spans import Channel, Find, Finding, Scrubbed, Secret, findings, united, within, without
from licet.scrubbing.suspicion import plain

_CUT = "…"
_LEAST_CUT = 200  # characters; what is shorter was not cut by anybody
_QUICK = 4096  # characters
_AROUND_WORDS = "'\"`,;()[]{}<>"
_WITHOUT_TEXT = (type(None), int, float, bool)
_NO_CONTENTS = Contents("", (), False)


@dataclass(frozen=True, slots=True)
class Leavings:
    """What a run leaves: its outcome, and what is kept of its output."""

    outcome: Outcome
    stdout: Kept
    stderr: Kept

    @property
    def is_quick(self) -> bool:
        """Whether there is so little, and all of it so plain, that cleaning it holds nobody up."""
        outcome, error = self.outcome, self.outcome.error
        small = self.stdout.total + self.stderr.total <= _QUICK
        if not small or type(outcome.value) not in (str, *_WITHOUT_TEXT):
            return False
        texts = (
            text_of(self.stdout), text_of(self.stderr), outcome.value_repr, outcome.detail,
            error and error.message, outcome.value if type(outcome.value) is str else None,
        )  # fmt: skip
        return all(not text or (len(text) <= _QUICK and plain(text)) for text in texts)


@dataclass(frozen=True, slots=True)
class Clean:
    """What of it may be shown, recorded and kept, and what was taken out."""

    outcome: Outcome
    output: Output
    findings: tuple[Finding, ...] = ()


@dataclass(slots=True)
class _Part:
    """One text: all that is to be looked at, of which `start` to `end` is delivered.

    `is_cut` says that it is not what it was, whatever is found.
    """

    channel: Channel
    text: str
    start: int = 0
    end: int = -1
    secrets: tuple[Secret, ...] = ()
    is_cut: bool = False

    def delivered(self) -> tuple[str, tuple[Secret, ...]]:
        end = len(self.text) if self.end < 0 else self.end
        secrets = tuple(within(self.secrets, self.start, end))
        return without(self.text[self.start : end], secrets), secrets


_NO_PART = _Part("value", "")


async def cleaned(left: Leavings, find: Find | None, environment: Mapping[str, str]) -> Clean:
    """`clean`, given the environment of the run; away from the event loop where it may take its time."""
    known = secrets_of(environment)
    if left.is_quick or (find is None and not known):
        return clean(left, find, known)
    return await asyncio.to_thread(clean, left, find, known)


async def message(text: str, find: Find | None, environment: Mapping[str, str]) -> Scrubbed:
    """What may be told of an error that is about to reach the code of a run with this environment.

    Away from the event loop where it may take its time.
    """
    known = secrets_of(environment)
    if plain(text) or (find is None and not known):
        return _message(text, find, known)
    return await asyncio.to_thread(_message, text, find, known)


def _message(text: str, find: Find | None, known: Needles) -> Scrubbed:
    secrets = united((*(find(text, "error") if find else ()), *occurrences(text, known)))
    return Scrubbed(without(text, secrets), findings("error", secrets)) if secrets else Scrubbed(text)


def clean(left: Leavings, find: Find | None, known: Needles = ()) -> Clean:
    """What may be shown of `left`: without what `find` finds, and without the texts `known`."""
    outcome, output = left.outcome, output_of(left.stdout, left.stderr)
    if find is None and not known:
        return Clean(outcome, output)
    written = {"stdout": _stream("stdout", left.stdout), "stderr": _stream("stderr", left.stderr)}
    page = contents(outcome.value) if type(outcome.value) not in _WITHOUT_TEXT else _NO_CONTENTS
    said = _said(outcome, page)
    parts = [part for part in (*written["stdout"], *written["stderr"], *said.values()) if part.text]
    _look(parts, find, known)
    if not page.beyond and not any(part.secrets or part.is_cut for part in parts):
        return Clean(outcome, output)
    found: list[Finding] = []
    changes: dict[str, Any] = {}
    for name in ("stdout", "stderr"):
        changes |= _written(name, written[name], getattr(left, name), found)
    return Clean(
        _outcome(outcome, said, page, found), replace(output, **changes) if changes else output, tuple(found)
    )


def _said(outcome: Outcome, page: Contents) -> dict[str, _Part]:
    """By name, the texts of an outcome that are not empty."""
    texts: list[tuple[str, Channel, str | None]] = [
        ("detail", "detail", outcome.detail),
        ("repr", "value", outcome.value_repr),
    ]
    if outcome.error is not None:
        texts.append(("message", "error", outcome.error.message))
    said = {name: _shortened(channel, text) for name, channel, text in texts if text}
    if outcome.error is not None:
        said["type"] = _Part("error", outcome.error.type)
    if page.page:
        said["page"] = _Part("value", page.page)
    return said


def _look(parts: Sequence[_Part], find: Find | None, known: Needles) -> None:
    """Find the secrets of every part; then again those that stand in another."""
    if find is not None:
        for part in parts:
            part.secrets = tuple(find(part.text, part.channel))
    if not known and not any(part.secrets for part in parts):
        return
    again = echoes(
        (part.text[one.start : one.end], one.kind)
        for part in parts
        for one in part.secrets
        if one.failure is None
    )
    needles = known + again
    for part in parts:
        part.secrets = united((*part.secrets, *occurrences(part.text, needles)))


def _stream(channel: Channel, kept: Kept) -> tuple[_Part, ...]:
    """One text, or two where the middle of it was left out."""
    if not kept.truncated:
        return (_Part(channel, text_of(kept)),)
    head, tail = whole_at_end(kept.head), whole_at_start(kept.tail)
    first, last = _decoded(head), _decoded(tail)
    after = _decoded(kept.head[len(head) :] + kept.after)
    before = _decoded(kept.before + kept.tail[: len(kept.tail) - len(tail)])
    return (
        _Part(channel, first + after, 0, len(first)),
        _Part(channel, before + last, len(before), len(before) + len(last)),
    )


def _written(name: str, parts: tuple[_Part, ...], kept: Kept, found: list[Finding]) -> dict[str, Any]:
    """The fields of `Output` that are different from what was kept."""
    texts, secrets = zip(*(part.delivered() for part in parts), strict=True)
    taken = [one for each in secrets for one in each]
    if not taken:
        return {}
    found.extend(findings(parts[0].channel, taken))
    if len(parts) == 1:
        return {name: texts[0], f"{name}_kept": (texts[0].encode(), b"")}
    head, tail = texts
    left_out = kept.total - len(whole_at_end(kept.head)) - len(whole_at_start(kept.tail))
    return {name: joined(head, tail, left_out), f"{name}_kept": (head.encode(), tail.encode())}


def _outcome(outcome: Outcome, said: dict[str, _Part], page: Contents, found: list[Finding]) -> Outcome:
    """The outcome with what was said replaced; what came out of value and repr counts once."""
    changes: dict[str, Any] = {}
    texts, inside = page.redacted(said.get("page", _NO_PART).secrets)
    if inside or page.beyond:
        changes["value"] = replaced(outcome.value, texts)
    shown, beside = said.get("repr", _NO_PART).delivered()
    if outcome.value_repr is not None and shown != outcome.value_repr:
        changes["value_repr"] = shown
    counts: dict[tuple[str, str | None], int] = {}
    for one in (*findings("value", inside), *findings("value", beside)):
        counts[one.kind, one.reason] = max(counts.get((one.kind, one.reason), 0), one.count)
    found.extend(Finding("value", kind, count, reason) for (kind, reason), count in counts.items())
    if (error := outcome.error) is not None:
        name, in_name = said.get("type", _NO_PART).delivered()
        message, in_message = said.get("message", _NO_PART).delivered()
        found.extend(findings("error", (*in_name, *in_message)))
        if (name, message) != (error.type, error.message):
            changes["error"] = GuestError(name, message, error.line)
    detail, in_detail = said.get("detail", _NO_PART).delivered()
    found.extend(findings("detail", in_detail))
    if outcome.detail is not None and detail != outcome.detail:
        changes["detail"] = detail
    return replace(outcome, **changes) if changes else outcome


def _shortened(channel: Channel, text: str) -> _Part:
    whole = _whole(text)
    return _Part(channel, whole, is_cut=whole is not text)


def _whole(text: str) -> str:
    """`text` without the last word, if that was cut: it may be the first half of a secret."""
    if not text.endswith(_CUT) or len(text) < _LEAST_CUT:
        return text
    end = len(text) - len(_CUT)
    while end and not (text[end - 1].isspace() or text[end - 1] in _AROUND_WORDS):
        end -= 1
    return text[:end] + _CUT


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
