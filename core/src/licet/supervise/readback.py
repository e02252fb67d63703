"""What the system shows of a guest before its code begins: looked up by the host, not told by the guest.

Rules this module keeps:

- what can't be read is left out, and so is unknown;
- a limit that the system did not take is told: the code must not begin then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


class NotTaken(Exception):
    """The system shows another limit than the one that was set."""


def look(pid: int, limits: Mapping[int, tuple[int, int]]) -> dict[str, str]:
    """Facts about the process `pid` by the control that they bear on; `limits` are those that it was given.

    Raises:
        NotTaken: one of them is not in force.
    """
    if sys.platform != "linux":
        return {}
    try:
        status = _status(pid)
        return {
            "working_directory": f"in {Path(f'/proc/{pid}/cwd').readlink()}",
            "process_isolation": f"session {os.getsid(pid)}, no new privileges: {status['NoNewPrivs']}",
            "privilege_drop": f"uid {status['Uid'].split()[1]}, effective capabilities {status['CapEff']}",
            "syscall_filter": f"seccomp mode {status['Seccomp']}",
            **_limits(pid, limits),
        }
    except (OSError, KeyError):  # it is gone, or this system does not show it
        return {}


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _limits(pid: int, limits: Mapping[int, tuple[int, int]]) -> dict[str, str]:
    if not limits:
        return {}
    import resource

    names = {resource.RLIMIT_CPU: "cpu_time_limit", resource.RLIMIT_AS: "memory_limit"}
    seen = {kind: resource.prlimit(pid, kind) for kind in limits}
    for kind, given in limits.items():
        if seen[kind] != given:
            raise NotTaken(f"{names[kind]} was set to {given[0]}, and the system has {seen[kind][0]}")
    return {names[kind]: f"soft {soft}, hard {hard}" for kind, (soft, hard) in seen.items()}
