"""Who made a call that waits: what it points to, and the socket that it names.

Rules this module keeps:

- a thread is looked at by its number, and the answer counts only if its call still waits afterwards: until
  then the number can't be another's;
- what is read from its memory may change while it is read; it is read once, and only the copy is judged;
- what socket it is serves the code itself and decides nothing: code that shows another one than it connects
  gets a connection that policy opens in the place of its own descriptor.
"""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass
from pathlib import Path

LONGEST = 128
"""Bytes of the longest address of a socket."""

_GET_DESCRIPTOR = 438  # the same on every machine
_NOT_WAITING, _CLOSED_ON_EXECUTION = 0o4000, 0o2000000
_OF_THREAD = os.O_EXCL
_KEPT = (
    *((socket.SOL_SOCKET, getattr(socket, name)) for name in ("SO_KEEPALIVE", "SO_OOBINLINE", "SO_LINGER")),
    *((socket.SOL_SOCKET, getattr(socket, name)) for name in ("SO_RCVTIMEO", "SO_SNDTIMEO")),
    *((socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}", None)) for name in ("NODELAY", "USER_TIMEOUT")),
    *((socket.IPPROTO_TCP, getattr(socket, f"TCP_KEEP{name}", None)) for name in ("IDLE", "INTVL", "CNT")),
)


@dataclass(frozen=True, slots=True)
class Socket:
    """What a caller wants to connect: the `family`, whether it is connected, and what was set on it."""

    family: int
    connected: bool
    waits: bool
    closes: bool
    options: tuple[tuple[int, int, bytes], ...]

    def dress(self, connection: socket.socket) -> None:
        """Set on a connection what the caller had set; what it does not take is left out."""
        connection.setblocking(self.waits)
        for level, name, value in self.options:
            try:
                if connection.getsockopt(level, name, len(value)) != value:
                    connection.setsockopt(level, name, value)
            except OSError:
                continue


def memory(thread: int, place: int, length: int) -> bytes:
    """Copy `length` bytes from an address of the thread.

    Raises:
        OSError: the length is none of an address, there is nothing at that place, or it can't be seen.
    """
    if not 2 <= length <= LONGEST:
        raise OSError(errno.EINVAL, "this is no length of an address")
    with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as file:
        try:
            data = os.pread(file.fileno(), length, place)
        except (OSError, OverflowError):
            data = b""
    if len(data) != length:
        raise OSError(errno.EFAULT, "there is no memory")
    return data


def look(thread: int, number: int) -> Socket:
    """What the thread has at the descriptor `number`.

    Raises:
        OSError: it is no socket, or can't be seen.
    """
    flags = _flags(thread, number)
    try:
        owner = _open(thread)
        try:
            copy = _copy(owner, number)
        finally:
            os.close(owner)
    except OSError:
        raise OSError(errno.EACCES, "the socket can't be seen from here") from None
    try:
        found = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
    with found:
        return Socket(
            found.family,
            _is_connected(found),
            not flags & _NOT_WAITING,
            bool(flags & _CLOSED_ON_EXECUTION),
            tuple(_options(found)),
        )


def _flags(thread: int, number: int) -> int:
    try:
        lines = Path(f"/proc/{thread}/fdinfo/{number}").read_text("ascii").splitlines()
    except FileNotFoundError:
        raise OSError(errno.EBADF, "nothing is open there") from None
    return next((int(line.split()[1], 8) for line in lines if line.startswith("flags:")), 0)


def _open(thread: int) -> int:
    """A descriptor of the thread, or before Linux 6.9 of its process."""
    try:
        return os.pidfd_open(thread, _OF_THREAD)
    except OSError:
        status = Path(f"/proc/{thread}/status").read_text("utf-8", "replace")
        return os.pidfd_open(int(status.partition("\nTgid:")[2].split(maxsplit=1)[0]))


def _copy(owner: int, number: int) -> int:
    from licet.supervise._walls import libc

    call = libc()
    copy = -1 if call is None else call("syscall", _GET_DESCRIPTOR, owner, number, 0)
    if copy < 0:
        raise OSError(errno.EACCES, "the descriptor can't be had")
    return copy


def _is_connected(found: socket.socket) -> bool:
    try:
        found.getpeername()
    except OSError:
        return False
    return True


def _options(found: socket.socket) -> list[tuple[int, int, bytes]]:
    """What is set on a socket, of all that a connection can have set as well."""
    kept = []
    for level, name in _KEPT:
        try:
            if name is not None:
                kept.append((level, name, found.getsockopt(level, name, 16)))
        except OSError:
            continue
    return kept
