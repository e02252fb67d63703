"""A name server that knows one thing of every name: the address that stands for it. Pure.

Rules this module keeps:

- one question an answer; names as host names are written, whatever else may stand in a query is ignored;
- what is no query at all ends the conversation; nothing is ever followed, so nothing can loop;
- of all that can be asked of a name, only its IPv4 address is there.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Callable

LONGEST = 1232
"""Bytes of the longest query that is read."""

Address = Callable[[str], str | None]

_HEADER = struct.Struct("!6H")
_QUESTION = struct.Struct("!HH")
_ANSWER = struct.Struct("!HHHIH")
_LABEL = re.compile(rb"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_LONGEST_NAME = 253
_IS_ANSWER, _OPERATIONS, _WANTS_RECURSION, _HAS_RECURSION = 0x8000, 0x7800, 0x100, 0x80
_GOOD, _BROKEN, _SHORT_OF, _UNKNOWN, _NOT_MADE, _REFUSED = 0, 1, 2, 3, 4, 5
_IPV4, _INTERNET, _LASTS = 1, 1, 3600


class NoQuery(Exception):
    """What came is no query."""


class Conversation:
    """What comes over one connection: queries, each after its length in two bytes."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._unread = b""

    def feed(self, data: bytes) -> bytes:
        """Take what came, and return what is to be answered now.

        Raises:
            NoQuery: this is no conversation about names.
        """
        self._unread += data
        answers = []
        while len(self._unread) >= 2:
            length = int.from_bytes(self._unread[:2], "big")
            if length > LONGEST:
                raise NoQuery
            if len(self._unread) < 2 + length:
                break
            found = answer(self._unread[2 : 2 + length], self._address)
            self._unread = self._unread[2 + length :]
            answers.append(len(found).to_bytes(2, "big") + found)
        return b"".join(answers)


def answer(query: bytes, address: Address) -> bytes:
    """The answer to one query; `address` says what stands for a name, None if it can't.

    Raises:
        NoQuery: this is none.
    """
    if len(query) < _HEADER.size:
        raise NoQuery
    number, flags, questions, *_ = _HEADER.unpack_from(query)
    if flags & _IS_ANSWER:
        raise NoQuery
    if flags & _OPERATIONS:
        return _told(number, flags, _NOT_MADE)
    if questions != 1:
        return _told(number, flags, _BROKEN)
    name, end = _name(query)
    kind, group = _QUESTION.unpack_from(query, end - _QUESTION.size)
    question = query[_HEADER.size : end]
    if name is None:
        return _told(number, flags, _UNKNOWN, question)
    if group != _INTERNET:
        return _told(number, flags, _REFUSED, question)
    if kind != _IPV4:
        return _told(number, flags, _GOOD, question)
    found = address(name)
    if found is None:
        return _told(number, flags, _SHORT_OF, question)
    return _told(number, flags, _GOOD, question, ipaddress.IPv4Address(found).packed)


def _name(query: bytes) -> tuple[str | None, int]:
    """The name that is asked about, None if it is no host name; and where the question ends."""
    labels, place = [], _HEADER.size
    while True:
        length = query[place] if place < len(query) else 64
        if length > 63 or place + 1 + length > len(query):
            raise NoQuery
        place += 1 + length
        if length == 0:
            break
        labels.append(query[place - length : place].lower())
    end = place + _QUESTION.size
    if end > len(query):
        raise NoQuery
    name = b".".join(labels)
    if not labels or len(name) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        return None, end
    return name.decode("ascii"), end


def _told(number: int, flags: int, code: int, question: bytes = b"", found: bytes = b"") -> bytes:
    told = _IS_ANSWER | _HAS_RECURSION | (flags & (_OPERATIONS | _WANTS_RECURSION)) | code
    header = _HEADER.pack(number, told, 1 if question else 0, 1 if found else 0, 0, 0)
    if not found:
        return header + question
    at_name = 0xC000 | _HEADER.size
    return header + question + _ANSWER.pack(at_name, _IPV4, _INTERNET, _LASTS, len(found)) + found
