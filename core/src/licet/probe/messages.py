"""Memory and messages that processes of a host share by number, in the way of System V.

Rules this module keeps: what is made is gone when its context ends, whoever still has it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_PRIVATE, _REMOVE = 0, 0
_SIZE = 4096
_NOWHERE = ctypes.c_void_p(-1).value


@contextmanager
def shared_memory(content: str) -> Iterator[int]:
    """Memory with this text, by its number; others may read it.

    Raises:
        OSError: the host gives none.
    """
    library = ctypes.CDLL(None, use_errno=True)
    number = _done(library.shmget(_PRIVATE, ctypes.c_size_t(_SIZE), 0o644))
    try:
        library.shmat.restype = ctypes.c_void_p
        place = library.shmat(number, None, 0)
        if place in (None, _NOWHERE):
            _done(-1)
        ctypes.memmove(place, content.encode() + b"\0", len(content.encode()) + 1)
        library.shmdt(ctypes.c_void_p(place))
        yield number
    finally:
        library.shmctl(number, _REMOVE, None)


@contextmanager
def queue(content: str) -> Iterator[int]:
    """A queue in which this text waits, by its number; others may take it.

    Raises:
        OSError: the host gives none.
    """
    library = ctypes.CDLL(None, use_errno=True)
    number = _done(library.msgget(_PRIVATE, 0o644))
    try:
        kind = (1).to_bytes(ctypes.sizeof(ctypes.c_long), "little")
        text = content.encode()
        _done(library.msgsnd(number, kind + text, ctypes.c_size_t(len(text)), 0))
        yield number
    finally:
        library.msgctl(number, _REMOVE, None)


def _done(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
