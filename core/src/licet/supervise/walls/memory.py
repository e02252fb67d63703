"""A program in memory: a file without a name or folder, which can be executed and no longer be changed.

Rules this module keeps: it is not handed on to a child that becomes another program.
"""

from __future__ import annotations

import contextlib
import os
import sys

_EXECUTABLE = 0x10  # MFD_EXEC, which kernels before Linux 6.3 neither know nor need
_ADD_SEALS, _ALL_SEALS = 1033, 0xF


class Unrunnable(Exception):
    """No file in memory can be executed here, and why."""


def path_of(descriptor: int) -> str:
    """A path by which this process, and a child that is about to become it, finds the file."""
    return f"/proc/self/fd/{descriptor}"


def executable(content: bytes) -> int:
    """Make an executable file of `content`, and return its descriptor.

    Raises:
        Unrunnable: this system makes none, or would not execute it.
    """
    if sys.platform != "linux":
        raise Unrunnable("this system has no files in memory")
    try:
        writable = _make()
    except OSError as problem:
        raise Unrunnable(f"this system makes no executable file in memory: {problem.strerror}") from None
    try:
        os.fchmod(writable, 0o500)
        with open(writable, "wb", closefd=False) as file:
            file.write(content)
        _seal(writable)
        # whoever could still write to it would keep it from being executed
        descriptor = os.open(path_of(writable), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        raise Unrunnable(f"files in memory can't be opened here: {problem.strerror}") from None
    finally:
        os.close(writable)
    if os.access(path_of(descriptor), os.X_OK):
        return descriptor
    os.close(descriptor)
    raise Unrunnable("this system does not execute files in memory")


def _make() -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create("licet", flags | _EXECUTABLE)
    except OSError:
        return os.memfd_create("licet", flags)


def _seal(descriptor: int) -> None:
    import fcntl

    with contextlib.suppress(OSError):  # then the open descriptor alone keeps it from being changed
        fcntl.fcntl(descriptor, _ADD_SEALS, _ALL_SEALS)
