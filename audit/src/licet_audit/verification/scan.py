"""Accepting a part of a log as a whole: the many lines that are beyond doubt, as fast as that can be told.

Rules this module keeps:

- it accepts nothing that judging line by line would find anything in, and says nothing about the rest: what
  is in doubt is judged there, with all its words;
- a line is beyond doubt if its fields, number, log and link are what they should be, and its content spelled
  again is the line, without floats, with integers of 53 bits, ASCII keys and at most `MAX_DEPTH` levels;
- only lines that are to be those that were signed are not spelled again, and then the answer says so;
- it knows the part alone: that the first number and the first link fit, and that none of its whole runs was
  under way, is for whoever knows what was before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import msgspec
import orjson
from licet.plain import MAX_DEPTH, canonical
from licet.record import VERSION

from licet_audit.chain import MAX_LINE
from licet_audit.tiles import HASH, WIDTH
from licet_audit.verification import facts
from licet_audit.verification.facts import Fact
from licet_audit.verification.fields import Fields
from licet_audit.verification.kept import Kept, StateOf
from licet_audit.verification.moments import Moments
from licet_audit.verification.runs import condense

_SPELLING = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_NOT_BRACKETS = bytes(set(range(256)) - set(b"{}[]\n"))


@dataclass(slots=True)
class Accepted:
    """What matters of a part: records `first` to `first + count - 1`, all of them good.

    `prev` is the link of the first, `leaf` the leaf of the last, `roots` are the roots of those tiles of
    level 0 that are whole in it, by their number. `ended` is the event of the last record, if it is one of
    the log, `spelled` how many of them were spelled again.
    """

    first: int
    prev: str
    count: int = 0
    spelled: int = 0
    leaf: str = ""
    leaves: bytes = b""
    roots: dict[int, bytes] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)
    unknown: int = 0
    events: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    kept: Kept = field(default_factory=Kept)
    moments: Moments = field(default_factory=Moments)
    ended: str | None = None


class Doubt(Exception):
    """A line that has to be judged by itself."""


def accepted(data: bytes | None, log: str, state_of: StateOf, as_signed: int = 0) -> Accepted | None:
    """Accept the lines of a part of the log called `log`; None where one of them is in doubt.

    The first `as_signed` records are not spelled again: whoever calls this compares the root of them all.
    """
    if not data or not data.endswith(b"\n"):
        return None
    lines = data.split(b"\n")
    lines.pop()
    try:
        found = _scan(_fields(data), lines, log, state_of)
        if after := lines[max(0, as_signed - found.first) :]:
            _require_spelling(after)
        found.spelled = len(after)
    except (ValueError, TypeError, KeyError, RecursionError, Doubt):
        return None
    return found


def _scan(records: list[Fields], lines: list[bytes], log: str, state_of: StateOf) -> Accepted:
    """Accept all lines, if they are spelled as they should be, and `records` are what is in them.

    Raises:
        Doubt, ValueError, TypeError, KeyError: one of them is in doubt.
    """
    if len(records) != len(lines) or max(map(len, lines)) >= MAX_LINE:
        raise Doubt
    found = Accepted(records[0].seq, records[0].prev, len(lines))
    leaves = [sha256(b"\x00" + line).digest() for line in lines]
    found.leaf, found.leaves = leaves[-1].hex(), b"".join(leaves)
    _require_places(found, records, log)
    _require_links(found, [one.prev for one in records])
    found.facts, found.whole, found.unknown = condense(filter(None, map(facts.of, records)))
    found.facts = [
        one._replace(about=_content(lines[one.seq - found.first])) if one.what == facts.APPROVAL else one
        for one in found.facts
    ]
    found.moments.follow(found.first, [one.time for one in records])
    for one, line in zip(records, lines, strict=True):
        if one.kind == "log":
            found.events.append((one.seq, _content(line)["body"]))
        if one.kept:
            found.kept.follow(one.seq, one.kept, state_of)
    if records[-1].kind == "log":
        found.ended = found.events[-1][1].get("event")
    found.roots = _roots(found.first, found.leaves)
    return found


def _require_places(found: Accepted, records: list[Fields], log: str) -> None:
    """Make sure that each is a record of this log, with the number of its place.

    Raises:
        Doubt, ValueError: one is not.
    """
    moments = [one.mono_ns for one in records]
    digits = "".join(moments)
    if (
        [one.seq for one in records] != list(range(found.first, found.first + found.count))
        or {one.log for one in records} != {log}
        or {one.v for one in records} != {VERSION}
        or not (digits.isdigit() and digits.isascii() and min(moments) and max(map(len, moments)) < 20)
    ):
        raise Doubt


def _require_links(found: Accepted, links: list[str]) -> None:
    """Make sure that each link but the first is the leaf of the line before.

    Raises:
        Doubt: one is not.
    """
    if "".join(links[1:]) != found.leaves[:-HASH].hex() or {len(link) for link in links[1:]} - {2 * HASH}:
        raise Doubt


def _require_spelling(lines: list[bytes]) -> None:
    """Make sure that each line is the one spelling of its content.

    Raises:
        Doubt, ValueError, TypeError, RecursionError: one is not.
    """
    for line, closer in zip(lines, _doubtful(lines), strict=True):
        content = _content(line)
        if orjson.dumps(content, None, _SPELLING) != line:
            raise Doubt
        if closer:
            canonical(content)


def _refuse(text: str) -> float:
    raise ValueError(f"a record can't hold the float `{text}`")


_content: Callable[[bytes], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any], float_hook=_refuse).decode
_fields: Callable[[bytes], list[Fields]] = msgspec.json.Decoder(Fields).decode_lines


def _doubtful(lines: list[bytes]) -> list[bool]:
    """Which lines may have keys beyond ASCII or be nested too deeply.

    A line of at most `MAX_DEPTH` pairs of brackets is not, wherever they stand.
    """
    data = b"\n".join(lines)
    brackets = data.translate(None, _NOT_BRACKETS).split(b"\n")
    many = [len(one) > 2 * MAX_DEPTH for one in brackets]
    return many if data.isascii() else [m or not line.isascii() for m, line in zip(many, lines, strict=True)]


def _roots(first: int, leaves: bytes) -> dict[int, bytes]:
    """The roots of the tiles that are whole in leaves that begin with number `first`."""
    start = -first % WIDTH
    count = max(0, len(leaves) // HASH - start) // WIDTH
    hashes = leaves[start * HASH : (start + count * WIDTH) * HASH]
    while len(hashes) > count * HASH:
        pairs = range(0, len(hashes), 2 * HASH)
        hashes = b"".join([sha256(b"\x01" + hashes[at : at + 2 * HASH]).digest() for at in pairs])
    begin = (first + start) // WIDTH
    return {begin + number: hashes[number * HASH : (number + 1) * HASH] for number in range(count)}


assert sha256().digest_size == HASH
