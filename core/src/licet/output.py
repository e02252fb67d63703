"""Output of untrusted code: kept within a bound, decoded without fail, shown without harm.

Rules this module keeps:

- memory is bounded by the limit and two margins, however much is written; what was left out is counted
  and said;
- what lies beside a cut is kept for those who look for secrets, since half of one may be shown; nobody else
  sees it;
- decoding never raises, and a character cut at the seam never garbles its neighbours;
- text that came from outside reaches a terminal or a card only through `escape`.
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_CONTROL = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_INVISIBLE = (
    r"\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    r"\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
_HARMFUL = re.compile(f"[{_CONTROL}{_INVISIBLE}\ud800-\udfff]")
_HARMFUL_OR_BREAK = re.compile(f"[{_CONTROL}{_INVISIBLE}\ud800-\udfff\t\n]")
_SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def escape(text: str, *, newlines: bool = True) -> str:
    r"""Show every control, bidi, invisible or surrogate character as an escape such as `\x1b`.

    Newline and tab stay as they are, unless `newlines` is False: then the result is one line. The
    escapes are for reading; a backslash that was in the text stays single, so there is no way back.
    """
    pattern = _HARMFUL if newlines else _HARMFUL_OR_BREAK
    return pattern.sub(_spell, text)


def _spell(match: re.Match[str]) -> str:
    character = match[0]
    short = _SHORT.get(character)
    if short is not None:
        return short
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_UNSEEN = re.compile(f"[{_INVISIBLE}‹]")


def reveal(text: str) -> str:
    """Show text exactly, in one line, to somebody who decides by it.

    Every character that `escape` would spell, every other that nobody sees or knows, every space but the
    plain one appear as `‹U+202E›`, and so does `‹` itself: different texts are shown differently.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_revealed, text))


def _revealed(character: str) -> str:
    seen = character.isprintable() and _UNSEEN.match(character) is None
    return character if seen else f"‹U+{ord(character):04X}›"


def bounded(text: str, limit: int) -> str:
    """Shorten `text` to at most `limit` characters (at least 1), the last of which is then `…`."""
    if len(text) <= limit:
        return text
    return text[: max(limit - 1, 0)] + "…"


MARGIN = 8 << 10
"""Bytes on the far side of each cut that are kept, so that what a cut goes through is still seen whole."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a stream: its first and its last bytes, and `total` as the number of all.

    Where `truncated`, `after` follows on `head` and `before` comes before `tail`, both for looking only; else
    nothing is missing between `head` and `tail`, and both are empty.
    """

    head: bytes = b""
    tail: bytes = b""
    total: int = 0
    truncated: bool = False
    after: bytes = b""
    before: bytes = b""


class BoundedSink:
    """Keeps the first and the last bytes of a stream within `limit`, and counts them all; thread-safe.

    `past` is the `state` of another one with the same limit, whose stream this one goes on with.
    """

    def __init__(self, limit: int, past: Mapping[str, Any] | None = None) -> None:
        if limit < 0:
            raise ValueError(f"expected a limit of 0 bytes or more, found `{limit}`")
        self._head_size = limit - limit // 2
        self._tail_size = limit // 2
        self._head = bytearray(base64.b64decode(past["head"]) if past else b"")
        self._tail = bytearray(base64.b64decode(past["tail"]) if past else b"")
        self._tail_start = 0
        self._total: int = past["total"] if past else 0
        self._guard = threading.Lock()

    def state(self) -> dict[str, Any]:
        """All that it holds, as plain data."""
        with self._guard:
            tail = self._tail[self._tail_start :] + self._tail[: self._tail_start]
            kept = {"head": self._head, "tail": tail}
            return {name: base64.b64encode(data).decode() for name, data in kept.items()} | {
                "total": self._total
            }

    def write(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        with self._guard:
            self._total += len(data)
            room = self._head_size + MARGIN - len(self._head)
            if room > 0:
                self._head += data[:room]
                data = data[room:]
            if data:
                self._push(data)

    def _push(self, data: bytes) -> None:
        """Write into the ring that holds the tail: it grows to its size, then overwrites its oldest."""
        size = self._tail_size + MARGIN
        data = data[-size:]
        room = size - len(self._tail)
        self._tail += data[:room]
        data = data[room:]
        while data:
            piece = data[: size - self._tail_start]
            self._tail[self._tail_start : self._tail_start + len(piece)] = piece
            self._tail_start = (self._tail_start + len(piece)) % size
            data = data[len(piece) :]

    @property
    def total(self) -> int:
        """How many bytes were written, kept or not."""
        return self._total

    @property
    def truncated(self) -> bool:
        """Whether bytes were left out."""
        return self._total > self._head_size + self._tail_size

    def pieces(self) -> Kept:
        """All that is kept, and what lies beside the cuts."""
        with self._guard:
            head, tail, total = bytes(self._head), bytes(self._tail), self._total
            tail = tail[self._tail_start :] + tail[: self._tail_start]
        first, last = self._head_size, self._tail_size
        if total <= first + last:
            whole = head + tail
            return Kept(whole[:first], whole[first:], total)
        if total == len(head) + len(tail):
            head = tail = head + tail
        cut = len(tail) - last
        return Kept(
            head=head[:first],
            tail=tail[cut:],
            total=total,
            truncated=True,
            after=head[first : first + MARGIN],
            before=tail[max(cut - MARGIN, 0) : cut],
        )

    def kept(self) -> tuple[bytes, bytes]:
        """The bytes kept, as head and tail; nothing is missing between them unless `truncated`."""
        kept = self.pieces()
        return kept.head, kept.tail

    def text(self) -> str:
        """Decode as UTF-8, invalid bytes as U+FFFD, with one line at the seam if bytes were left out."""
        return text_of(self.pieces())


def text_of(kept: Kept) -> str:
    """Decode what is kept as UTF-8, invalid bytes as U+FFFD, with one line at the seam if `truncated`."""
    if not kept.truncated:
        return (kept.head + kept.tail).decode("utf-8", "replace")
    head, tail = whole_at_end(kept.head), whole_at_start(kept.tail)
    left_out = kept.total - len(head) - len(tail)
    return joined(head.decode("utf-8", "replace"), tail.decode("utf-8", "replace"), left_out)


def joined(head: str, tail: str, left_out: int) -> str:
    """The text of a stream of which `left_out` bytes are missing between `head` and `tail`."""
    gap = "" if head.endswith("\n") or not head else "\n"
    return f"{head}{gap}… {left_out} bytes left out …\n{tail}"


def whole_at_end(data: bytes) -> bytes:
    """Drop a character whose last bytes are missing."""
    for back in range(1, min(4, len(data)) + 1):
        lead = data[-back]
        if lead & 0xC0 == 0x80:
            continue
        length = 2 if lead >> 5 == 6 else 3 if lead >> 4 == 14 else 4 if lead >> 3 == 30 else 1
        return data[:-back] if length > back else data
    return data


def whole_at_start(data: bytes) -> bytes:
    """Drop the last bytes of a character whose first are missing."""
    skip = 0
    while skip < min(3, len(data)) and data[skip] & 0xC0 == 0x80:
        skip += 1
    return data[skip:]
