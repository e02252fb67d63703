"""Who writes: what each record says of the process that wrote it, and of the clocks it goes by."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from importlib.metadata import version
from typing import Literal

from licet.machine import boot
from licet.plain import Plain, plain_body

Clock = Literal["synchronized", "unsynchronized", "unknown"]

_UNSYNCHRONIZED = 5  # TIME_ERROR of adjtimex(2)
_TIMEX_BYTES = 208  # struct timex, with room to spare on every platform


def identity() -> Plain:
    """A new writer: host, process, account, boot and clock, as they are now."""
    return plain_body(
        {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "instance": secrets.token_hex(8),
            "version": version("licet-audit"),
            "user": account(),
            "boot": boot(),
            "clock": clock(),
        }
    )


def account() -> str:
    """The account that this process runs as."""
    if sys.platform == "win32":
        try:
            return os.getlogin()  # asks the system, not the environment
        except OSError:  # a service has none
            return "unknown"
    import pwd

    uid = os.geteuid()
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def clock() -> Clock:
    """What the system says of its wall clock; only Linux says anything."""
    if sys.platform != "linux":
        return "unknown"
    import ctypes

    buffer = ctypes.create_string_buffer(2 * _TIMEX_BYTES)  # all zero asks and sets nothing
    try:
        state = ctypes.CDLL(None).adjtimex(buffer)
    except (OSError, AttributeError):
        return "unknown"
    if state < 0:
        return "unknown"
    return "unsynchronized" if state == _UNSYNCHRONIZED else "synchronized"
