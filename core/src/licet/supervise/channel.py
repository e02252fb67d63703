"""The private channel from guest to host: frames of JSON, read without trust.

Rules this module keeps:

- a frame is four bytes of length, big-endian, and that many bytes of JSON; nothing longer than the limit;
- the first frame is the bootstrap's, sent before any code of the guest; one more may follow;
- whatever else arrives is ignored: the guest can spoil or forge its own report, and nothing besides.
"""

from __future__ import annotations

from typing import Any

from licet import values
from licet.supervise.spec import Fault, Report

_LONGEST = 10_000


class Channel:
    """Collects what the guest sends; `closed` once nothing more is wanted."""

    def __init__(self, limit: int) -> None:
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

    def _refuse(self, why: str) -> None:
        self.closed = True
        self.fault = f"what the code reported is unusable: {why}"
        self._buffer.clear()

    def _take(self, frame: bytes) -> None:
        try:
            content = values.parse(frame)
            if not isinstance(content, dict):
                raise ValueError("a frame is no object")
            if not self.begun:
                if content.get("begun") is not True:
                    raise ValueError("the first frame is not the bootstrap's")
                self.begun = True
            else:
                self.report = _report(content)
                self.closed = True
        except ValueError as problem:
            self._refuse(str(problem)[:200])


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
