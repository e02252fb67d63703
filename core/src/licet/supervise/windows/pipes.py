"""Pipes that the host reads and writes without waiting: overlapped, each with an event that says "done".

Rules this module keeps:

- the host's end is never inherited; the child's end is opened once, by the host, and nobody else can connect;
- one operation at a time is under way at an end, and its memory is kept until Windows has let go of it;
- a stranger who holds the other end delays nobody: what is under way can be called off at any moment.
"""

from __future__ import annotations

import ctypes
import os
import secrets
from ctypes import byref, c_uint32

from licet.supervise.windows import layouts, winapi
from licet.supervise.windows.handles import Handles

CHUNK = 1 << 16


def create(handles: Handles, *, read: bool = False, write: bool = False) -> tuple[int, int]:
    """Return a pipe: the host's overlapped end, to `read` or `write` or both, and the child's end."""
    call = winapi.kernel32()
    name = winapi.wide(rf"\\.\pipe\licet-{os.getpid()}-{secrets.token_hex(16)}")
    access = (layouts.PIPE_ACCESS_INBOUND if read else 0) | (layouts.PIPE_ACCESS_OUTBOUND if write else 0)
    flags = layouts.FILE_FLAG_OVERLAPPED | layouts.FILE_FLAG_FIRST_PIPE_INSTANCE
    mode = layouts.PIPE_REJECT_REMOTE_CLIENTS
    ours = winapi.must(call.CreateNamedPipeW(name, access | flags, mode, 1, CHUNK, CHUNK, 0, None))
    handles.own(ours)
    inherit = layouts.SECURITY_ATTRIBUTES(ctypes.sizeof(layouts.SECURITY_ATTRIBUTES), None, True)
    rights = (layouts.GENERIC_WRITE if read else 0) | (layouts.GENERIC_READ if write else 0)
    theirs = call.CreateFileW(name, rights, 0, byref(inherit), layouts.OPEN_EXISTING, 0, None)
    return ours, handles.own(winapi.must(theirs))


class _End:
    """One direction of one end; `event` is set when there is something to `take` or more to write."""

    def __init__(self, pipe: int, handles: Handles) -> None:
        self.event = handles.event()
        self.closed = False
        self._pipe = pipe
        self._overlapped = layouts.OVERLAPPED(hEvent=self.event)
        self._buffer = ctypes.create_string_buffer(CHUNK)
        self._busy = False

    def _begin(self, function: str, size: int) -> None:
        """Start an operation; if the pipe is broken, the end is closed, and says so by its event."""
        call = getattr(winapi.kernel32(), function)
        self._busy = bool(call(self._pipe, self._buffer, size, None, byref(self._overlapped)))
        self._busy = self._busy or winapi.last_error() == layouts.ERROR_IO_PENDING
        if not self._busy:
            self.closed = True
            winapi.set_event(self.event)

    def _finish(self, *, wait: bool = False) -> int | None:
        """How many bytes went over; None if the operation is still under way, or came to nothing."""
        count = c_uint32()
        if not self._busy:
            return None
        if winapi.kernel32().GetOverlappedResult(self._pipe, byref(self._overlapped), byref(count), wait):
            self._busy = False
            return count.value
        if winapi.last_error() != layouts.ERROR_IO_INCOMPLETE:
            self._busy = False
            self.closed = True
        return None

    def call_off(self) -> None:
        """Stop what is under way; after this Windows does not touch the memory any more."""
        if self._busy:
            winapi.kernel32().CancelIoEx(self._pipe, byref(self._overlapped))
            self._finish(wait=True)
        self.closed = True


class Reader(_End):
    """Reads what comes, piece by piece."""

    def __init__(self, pipe: int, handles: Handles) -> None:
        super().__init__(pipe, handles)
        self._begin("ReadFile", CHUNK)

    def take(self) -> bytes:
        """The next piece, empty if there is none now; `closed` is set once there will be none any more."""
        count = self._finish()
        data = b"" if not count else ctypes.string_at(self._buffer, count)
        if count is not None:  # an empty piece is no end: the other side may write nothing
            self._begin("ReadFile", CHUNK)
        return data


class Writer(_End):
    """Writes `data` piece by piece; `closed` when all of it went over or nobody reads it any more."""

    def __init__(self, pipe: int, handles: Handles, data: bytes) -> None:
        super().__init__(pipe, handles)
        self._rest = memoryview(data)
        self._next()

    def go_on(self) -> None:
        """Note that a piece went over, and send the next one."""
        count = self._finish()
        if count is not None:
            self._rest = self._rest[count:]
            self._next()

    def _next(self) -> None:
        if not self._rest:
            self.closed = True
            return
        size = min(len(self._rest), CHUNK)
        ctypes.memmove(self._buffer, bytes(self._rest[:size]), size)
        self._begin("WriteFile", size)
