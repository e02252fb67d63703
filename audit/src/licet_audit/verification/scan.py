"""Accepting a part of a log as a whole: the many lines that are beyond doubt, as fast as that can be told.

Rules this module keeps:

- it accepts nothing that judging line by line would find anything in, and says nothing about the rest: what
  is in doubt is judged there, with all its words;
- a line is beyond doubt if its content spelled again is the line, without floats, with integers of 53 bits,
  ASCII keys and at most `MAX_DEPTH` levels, and its fields, number, log and link are what they should be;
- it knows the part alone: that the first number and the first link fit is for whoever knows what was before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

import msgspec
import orjson
from licet.files import open_plain
from licet.plain import MAX_DEPTH, canonical
from licet.record import VERSION

from licet_audit import tree
from licet_audit.chain import MAX_LINE
from licet_audit.tiles import HASH, WIDTH
from licet_audit.verification import facts as facts_of
from licet_audit.verification.facts import Fact
from licet_audit.verification.kept import Kept, StateOf
from licet_audit.verification.moments import Moments
from licet_audit.verification.runs import condense

_SPELLING = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_NOT_BRACKETS = bytes(set(range(256)) - set(b"{}[]\n"))


class Part(NamedTuple):
    """Bytes `start` to `stop` of a file: whole lines, save that the last of the file may have no end."""

    path: str
    start: int
    stop: int


@dataclass(slots=True)
class Accepted:
    """What matters of a part: records `first` to `first + count - 1`, all of them good.

    `prev` is the link of the first, `leaf` the leaf of the last, `roots` are the roots of those tiles of
    level 0 that are whole in it, by their number. `ended` is the event of the last record, if it is one of
    the log.
    """

    first: int
    prev: str
    count: int = 0
    leaf: str = ""
    leaves: bytes = b""
    roots: dict[int, bytes] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    unknown: int = 0
    events: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    kept: Kept = field(default_factory=Kept)
    moments: Moments = field(default_factory=Moments)
    ended: str | None = None


class Doubt(Exception):
    """A line that has to be judged by itself."""


def read(part: Part) -> bytes | None:
    """The bytes of a part; None if it holds a line longer than a record may be.

    Raises:
        OSError: it can't be read.
    """
    size = part.stop - part.start
    if size > MAX_PART:
        return None
    with os.fdopen(open_plain(Path(part.path), os.O_RDONLY), "rb") as file:
        file.seek(part.start)
        return file.read(size)


PART = 2 * 2**20
"""How many bytes a part should have; it is as much longer as its last line needs."""
MAX_PART = PART + 2 * MAX_LINE


def accepted(data: bytes | None, log: str, state_of: StateOf) -> Accepted | None:
    """Accept the lines of a part of the log called `log`; None where one of them is in doubt."""
    if not data or not data.endswith(b"\n"):
        return None
    lines = data.split(b"\n")
    lines.pop()
    try:
        return _scan(lines, _doubtful(data, lines), log, state_of)
    except (ValueError, TypeError, KeyError, RecursionError, Doubt):
        return None


def _scan(lines: list[bytes], doubtful: list[bool], log: str, state_of: StateOf) -> Accepted:
    """Accept all lines; those that are `doubtful` only after a closer look.

    Raises:
        Doubt, ValueError, TypeError, KeyError, RecursionError: one of them is in doubt.
    """
    decode, spell, told = _decode, orjson.dumps, facts_of.of  # this loop is where verifying takes its time
    content = decode(lines[0])
    found = Accepted(content["seq"], content["prev"])
    leaves, links, times, facts = list[bytes](), list[str](), list[str](), list[Fact]()
    for seq, (line, closer) in enumerate(zip(lines, doubtful, strict=True), found.first):
        content = decode(line)
        if spell(content, None, _SPELLING) != line or len(line) >= MAX_LINE:
            raise Doubt
        if closer:
            canonical(content)
        leaves.append(sha256(b"\x00" + line).digest())
        links.append(content["prev"])
        times.append(content["time"])
        number = content["mono_ns"]
        if (
            content["seq"] != seq
            or content["log"] != log
            or content["v"] != VERSION
            or not (number.isdigit() and number.isascii() and len(number) < 20)
        ):
            raise Doubt
        if content["kind"] == "log":
            found.events.append((seq, content["body"]))
        elif (fact := told(content)) is not None:
            facts.append(fact)
        if "kept" in content:
            found.kept.follow(seq, content["kept"], state_of)
    found.count, found.leaf, found.leaves = len(leaves), leaves[-1].hex(), b"".join(leaves)
    _require_links(found, links)
    found.facts, found.unknown = condense(facts)
    found.moments.follow(found.first, times)
    found.ended = content["body"].get("event") if content["kind"] == "log" else None
    found.roots = _roots(found.first, leaves)
    return found


def _require_links(found: Accepted, links: list[str]) -> None:
    """Make sure that each link but the first is the leaf of the line before.

    Raises:
        Doubt: one is not.
    """
    if "".join(links[1:]) != found.leaves[:-HASH].hex() or {len(link) for link in links[1:]} - {2 * HASH}:
        raise Doubt


class _Line(TypedDict):
    """The fields of a record, as `licet.record.from_json` has them; another one is in doubt."""

    v: int
    log: str
    seq: int
    prev: str
    writer: dict[str, Any]
    kind: str
    run_id: str
    time: str
    mono_ns: str
    body: dict[str, Any]
    phase: NotRequired[str]
    trace_id: NotRequired[str]
    span_id: NotRequired[str]
    kept: NotRequired[dict[str, Any]]


def _refuse(text: str) -> float:
    raise ValueError(f"a record can't hold the float `{text}`")


_decode: Callable[[bytes], Mapping[str, Any]] = msgspec.json.Decoder(_Line, float_hook=_refuse).decode


def _doubtful(data: bytes, lines: list[bytes]) -> list[bool]:
    """Which lines may have keys beyond ASCII or be nested too deeply.

    A line of at most `MAX_DEPTH` pairs of brackets is not, wherever they stand.
    """
    brackets = data.translate(None, _NOT_BRACKETS).split(b"\n")
    many = [len(one) > 2 * MAX_DEPTH for one in brackets[:-1]]
    return many if data.isascii() else [m or not line.isascii() for m, line in zip(many, lines, strict=True)]


def _roots(first: int, leaves: list[bytes]) -> dict[int, bytes]:
    """The roots of the tiles that are whole in leaves that begin with number `first`."""
    start, roots = -first % WIDTH, {}
    for at in range(start, len(leaves) - WIDTH + 1, WIDTH):
        hashes = leaves[at : at + WIDTH]
        while len(hashes) > 1:
            hashes = [tree.node(left, right) for left, right in zip(hashes[::2], hashes[1::2], strict=True)]
        roots[(first + at) // WIDTH] = hashes[0]
    return roots


assert sha256().digest_size == HASH
