"""The descriptors that a run is served through: what comes is handed on, what is due is sent.

Rules this module keeps:

- nothing here blocks but `serve`; a reader that is gone is not an error;
- messages to one descriptor are sent one after the other, each whole.
"""

from __future__ import annotations

import contextlib
import os
import selectors
from collections import deque
from collections.abc import Callable

from licet.supervise.descriptors import Descriptors

CHUNK = 1 << 16


class Wires:
    """The host's ends of one run."""

    def __init__(self, fds: Descriptors) -> None:
        self._fds = fds
        self._selector = fds.selector()
        self._handlers: dict[int, Callable[[], object]] = {}
        self._held: set[int] = set()
        self._unsent: dict[int, deque[tuple[memoryview, Callable[[], object]]]] = {}
        self._streams: dict[int, Callable[[], bool]] = {}

    def listen(self, fd: int, handler: Callable[[], object]) -> None:
        """Call `handler` whenever there is something to read from `fd`."""
        os.set_blocking(fd, False)
        self._handlers[fd] = handler
        self._watch(fd)

    def drain_to(self, fd: int, handler: Callable[[], bool]) -> None:
        """Like `listen`, for what has to be read to its end; `handler` says whether it read anything."""
        self._streams[fd] = handler
        self.listen(fd, handler)

    def hold(self, fd: int, held: bool) -> None:
        """Read nothing from `fd` for now, or go on; who writes there has to wait meanwhile."""
        if fd in self._handlers and held != (fd in self._held):
            (self._held.add if held else self._held.discard)(fd)
            self._watch(fd)

    def send(self, fd: int, message: bytes, then: Callable[[], object] = lambda: None) -> None:
        """Write `message` to `fd`, which is listened to, as it is taken; `then` is called once it is."""
        if fd not in self._handlers:
            return
        self._unsent.setdefault(fd, deque()).append((memoryview(message), then))
        self._send(fd)
        self._watch(fd)

    def feed(self, fd: int, data: bytes) -> None:
        """Write `data` to `fd` as it is taken, and close it then."""
        os.set_blocking(fd, False)
        self._unsent[fd] = deque([(memoryview(data), lambda: self.drop(fd))])
        self._watch(fd)

    def unsend(self, fd: int) -> None:
        """Send nothing more of what waits."""
        self._unsent.pop(fd, None)
        self._watch(fd)

    def drop(self, fd: int) -> None:
        """Serve `fd` no more, and close it if it is of this run alone."""
        self._handlers.pop(fd, None)
        self._unsent.pop(fd, None)
        self._streams.pop(fd, None)
        self._held.discard(fd)
        self._watch(fd)
        self._fds.close(fd)

    def close(self) -> None:
        """Serve nothing any more, and keep no handler, which may keep this."""
        for known in tuple(self._handlers):
            self.drop(known)
        self._unsent.clear()

    def serve(self, patience: float | None) -> None:
        """Wait for something to happen, `patience` seconds at most, and have it handled."""
        for key, events in self._selector.select(patience):
            if events & selectors.EVENT_WRITE and key.fd in self._unsent:
                self._send(key.fd)
                self._watch(key.fd)
            if events & selectors.EVENT_READ and key.fd in self._handlers and key.fd not in self._held:
                self._handlers[key.fd]()

    def drain(self, is_time: Callable[[], bool]) -> None:
        """Read what is still there; nobody who holds a stream open can prolong that."""
        for handler in tuple(self._streams.values()):
            while handler() and is_time():
                pass

    def _watch(self, fd: int) -> None:
        """Wait for what is wanted of `fd` now."""
        reads = selectors.EVENT_READ if fd in self._handlers and fd not in self._held else 0
        wanted = reads | (selectors.EVENT_WRITE if self._unsent.get(fd) else 0)
        known = self._selector.get_map().get(fd)
        if known is None:
            if wanted:
                self._selector.register(fd, wanted)
        elif not wanted:
            self._selector.unregister(fd)
        elif known.events != wanted:
            self._selector.modify(fd, wanted)

    def _send(self, fd: int) -> None:
        """Write what `fd` takes now; what nobody is there to read is as good as taken."""
        waiting = self._unsent[fd]
        while waiting:
            message, then = waiting[0]
            with contextlib.suppress(OSError):
                try:
                    while message:
                        message = message[os.write(fd, message[:CHUNK]) :]
                except BlockingIOError:
                    waiting[0] = message, then
                    return
            waiting.popleft()
            then()


def read(fd: int) -> bytes | None:
    """Read what is there: b"" at the end of the stream, None if there is nothing now."""
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""
