"""The descriptors that a run is served through: what comes is handed on, what is due is sent.

Rules this module keeps: nothing here blocks but `serve`; a reader that is gone is not an error.
"""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable

from licet.supervise.descriptors import Descriptors

CHUNK = 1 << 16


class Wires:
    """The host's ends of one run."""

    def __init__(self, fds: Descriptors) -> None:
        self._fds = fds
        self._selector = fds.selector()
        self._unsent: dict[int, memoryview] = {}
        self._streams: dict[int, Callable[[], bool]] = {}

    def listen(self, fd: int, handler: Callable[[], object]) -> None:
        """Call `handler` whenever there is something to read from `fd`."""
        os.set_blocking(fd, False)
        self._selector.register(fd, selectors.EVENT_READ, handler)

    def drain_to(self, fd: int, handler: Callable[[], bool]) -> None:
        """Like `listen`, for what has to be read to its end; `handler` says whether it read anything."""
        self._streams[fd] = handler
        self.listen(fd, handler)

    def send(self, fd: int, message: bytes) -> None:
        """Write `message` to `fd`, which is listened to, as it is taken."""
        if fd not in self._selector.get_map():
            return
        self._unsent[fd] = memoryview(message)
        if not self._send(fd):
            handler = self._selector.get_key(fd).data
            both = selectors.EVENT_READ | selectors.EVENT_WRITE
            self._selector.modify(fd, both, lambda: self._send_and_handle(fd, handler))

    def feed(self, fd: int, data: bytes) -> None:
        """Write `data` to `fd` as it is taken, and close it then."""
        os.set_blocking(fd, False)
        self._unsent[fd] = memoryview(data)
        self._selector.register(fd, selectors.EVENT_WRITE, lambda: self._send_and_drop(fd))

    def unsend(self, fd: int) -> None:
        """Send nothing more."""
        self._unsent[fd] = memoryview(b"")

    def drop(self, fd: int) -> None:
        """Serve `fd` no more, and close it if it is of this run alone."""
        self._selector.unregister(fd)
        self._streams.pop(fd, None)
        self._fds.close(fd)

    def serve(self, patience: float | None) -> None:
        """Wait for something to happen, `patience` seconds at most, and have it handled."""
        for key, _ in self._selector.select(patience):
            if key.fd in self._selector.get_map():
                key.data()

    def drain(self, is_time: Callable[[], bool]) -> None:
        """Read what is still there; nobody who holds a stream open can prolong that."""
        for handler in tuple(self._streams.values()):
            while handler() and is_time():
                pass

    def _send(self, fd: int) -> bool:
        """Write what `fd` takes now; True once nothing is left to write, or nobody to read it."""
        try:
            while self._unsent[fd]:
                self._unsent[fd] = self._unsent[fd][os.write(fd, self._unsent[fd][:CHUNK]) :]
        except BlockingIOError:
            return False
        except OSError:
            self.unsend(fd)
        return True

    def _send_and_handle(self, fd: int, handler: Callable[[], object]) -> None:
        if self._send(fd):
            self._selector.modify(fd, selectors.EVENT_READ, handler)
        handler()

    def _send_and_drop(self, fd: int) -> None:
        if self._send(fd):
            self.drop(fd)


def read(fd: int) -> bytes | None:
    """Read what is there: b"" at the end of the stream, None if there is nothing now."""
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""
