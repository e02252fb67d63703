"""What the system shows of a guest before its code begins: looked up by the host, not told by the guest.

Rules this module keeps:

- what can't be read is left out, and so is unknown;
- a limit that the system did not take is told: the code must not begin then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

_SHOWN = {
    "RLIMIT_CPU": (b"Max cpu time", "cpu_time_limit"),
    "RLIMIT_AS": (b"Max address space", "memory_limit"),
    "RLIMIT_NPROC": (b"Max processes", "process_count_limit"),
}
"""How the system calls a limit, and the control that it bears on."""


class NotTaken(Exception):
    """The system shows something else than what was set up."""


def look(pid: int, limits: Mapping[int, tuple[int, int]]) -> dict[str, str]:
    """Facts about the process `pid` by the control that they bear on; `limits` are those that it was given.

    Raises:
        NotTaken: one of them is not in force.
    """
    if sys.platform != "linux":
        return {}
    try:
        status = _fields(read(f"/proc/{pid}/status"))
        return {
            "working_directory": f"in {os.readlink(f'/proc/{pid}/cwd')}",  # noqa: PTH115
            "process_isolation": f"session {os.getsid(pid)}, no new privileges: {status['NoNewPrivs']}",
            "privilege_drop": f"uid {status['Uid'].split()[1]}, effective capabilities {status['CapEff']}",
            "syscall_filter": f"seccomp mode {status['Seccomp']}",
            **_limits(read(f"/proc/{pid}/limits") if limits else b"", limits),
        }
    except (OSError, KeyError):  # it is gone, or this system does not show it
        return {}


def read(path: str) -> bytes:
    """All of a file that the system makes up; names, not paths, since this is done before every run.

    Raises:
        OSError: it can't be read.
    """
    data, fd = b"", os.open(path, os.O_RDONLY)
    try:
        while more := os.read(fd, 1 << 16):
            data += more
    finally:
        os.close(fd)
    return data


def _fields(text: bytes) -> dict[str, str]:
    lines = text.decode("utf-8", "replace").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _limits(text: bytes, limits: Mapping[int, tuple[int, int]]) -> dict[str, str]:
    import resource

    found = {}
    for name, (shown, control) in _SHOWN.items():
        given = limits.get(getattr(resource, name))
        if given is None:
            continue
        soft, hard = _limit(text.splitlines(), shown)
        if (soft, hard) != tuple(str(value) for value in given):
            raise NotTaken(f"{control} was set to {given[0]}, and the system has {soft}")
        found[control] = f"soft {soft}, hard {hard}"
    return found


def _limit(lines: Iterable[bytes], shown: bytes) -> tuple[str, str]:
    """Raises KeyError where the system does not show it."""
    for line in lines:
        if line.startswith(shown):
            soft, hard = line[len(shown) :].split()[:2]
            return soft.decode(), hard.decode()
    raise KeyError(shown)
