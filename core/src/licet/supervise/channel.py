"""The private channel from guest to host: frames of JSON, read without trust.

Rules this module keeps:

- a frame is four bytes of length, big-endian, and that many bytes; nothing longer than the limit;
- the first frame is the bootstrap's, sent before any code of the guest; one more of its kind may follow, the
  report. Both are JSON. Of a run with tools, any other frame is a call, which begins with `CALL`;
- whatever else arrives is ignored: the guest can spoil or forge its own report and its own calls, and nothing
  besides.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from licet import values
from licet.supervise.spec import Fault, Report

_LONGEST = 10_000

CALL = b"C"
_CALL = struct.Struct(">cIIH")  # its sign, number, line and length of its name; name and arguments follow


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a tool as the guest wrote it: `arguments` are text that it says is their wire form."""

    number: int
    name: str
    line: int | None
    arguments: str


class Channel:
    """Collects what the guest sends; `closed` once nothing more is wanted.

    `on_call` gets each call; without it, the report is the last that is wanted.
    """

    def __init__(self, limit: int, on_call: Callable[[Called], object] | None = None) -> None:
        self._on_call = on_call
        self._reported = False
        self.closed = False
        self.begun = False
        self.report = Report()
        self.fault: str | None = None
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._buffer += data
        while not self.closed and len(self._buffer) >= 4:
            size = int.from_bytes(self._buffer[:4], "big")
            if size > self._limit:
                self._refuse(f"a frame of {size} bytes is more than the limit of {self._limit}")
            elif len(self._buffer) < size + 4:
                return
            else:
                frame = bytes(self._buffer[4 : size + 4])
                del self._buffer[: size + 4]
                self._take(frame)

    def end(self) -> None:
        """The guest has closed the channel."""
        if self._buffer and not self.closed:
            self._refuse("the last frame is cut off")
        self.closed = True

    def close(self) -> None:
        """Take nothing more, and keep nobody to tell."""
        self.closed = True
        self._on_call = None

    def _refuse(self, why: str) -> None:
        self.closed = True
        self.fault = f"what the code reported is unusable: {why}"
        self._buffer.clear()

    def _take(self, frame: bytes) -> None:
        try:
            if self.begun and self._on_call is not None and frame[:1] == CALL:
                self._on_call(_called(frame))
                return
            if self._reported:
                return
            content = values.parse(frame)
            if not isinstance(content, dict):
                raise ValueError("a frame is no object")
            if not self.begun:
                if content.get("begun") is not True:
                    raise ValueError("the first frame is not the bootstrap's")
                self.begun = True
            else:
                self.report = _report(content)
                self._reported = True
                self.closed = self._on_call is None  # what runs on after the code may still call
        except ValueError as problem:
            self._refuse(str(problem)[:200])


def _called(frame: bytes) -> Called:
    head = frame[: _CALL.size].ljust(_CALL.size, b"\0")
    _, number, line, length = _CALL.unpack(head)
    if len(frame) < _CALL.size + length:
        raise ValueError("a call is cut off")
    name, arguments = frame[_CALL.size : _CALL.size + length], frame[_CALL.size + length :]
    return Called(number, name.decode("utf-8", "replace"), line or None, arguments.decode("utf-8", "replace"))


def _report(content: dict[str, Any]) -> Report:
    error = content.get("error")
    if isinstance(error, dict):
        line = error.get("line")
        return Report(
            error=Fault(
                type=_short(error.get("type"), 200),
                message=_short(error.get("message"), _LONGEST),
                line=line if type(line) is int and 0 < line < 2**31 else None,
            )
        )
    value = values.decode(content.get("value"))
    if value is None:
        return Report()
    return Report(value=value, value_repr=_short(content.get("repr"), _LONGEST))


def _short(text: object, limit: int) -> str:
    if not isinstance(text, str):
        raise ValueError("expected text")
    return text[:limit].encode("utf-8", "backslashreplace").decode("utf-8")
