"""What the system shows of a guest in its room, looked up from outside before the code begins.

Rules this module keeps:

- what can't be read is left out, and so is unknown;
- a wall that the system shows not to stand is told: the code must not begin then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from licet.supervise.cgroups import Group
from licet.supervise.jail.layout import Layout
from licet.supervise.readback import NotTaken, read

_APART = ("cgroup", "ipc", "mnt", "net", "pid", "uts")
_MOST_SHOWN = 8000  # bytes of variables that a process is shown with for certain


def look(pid: int, how: Layout, environment: Mapping[str, str], *, users: bool) -> dict[str, str]:
    """Facts about the guest `pid` by the control that they bear on.

    Raises:
        NotTaken: it shares a namespace with this process, or its root, or has other variables.
    """
    try:
        apart = _namespaces(pid, (*_APART, "user") if users else _APART)
        own = sorted(os.listdir(f"/proc/{pid}/root"))  # noqa: PTH208
        written = _written(read(f"/proc/{pid}/mountinfo"))
        devices = _devices(read(f"/proc/{pid}/net/dev"))
        variables = read(f"/proc/{pid}/environ").rstrip(b"\0")
        rooted = os.stat(f"/proc/{pid}/root")  # noqa: PTH116
    except (OSError, IndexError):  # it is gone, or this system does not show it
        return {}
    here = os.stat("/")  # noqa: PTH116
    shown_whole = any(target == "/" for _, target in how.shown)
    if (rooted.st_dev, rooted.st_ino) == (here.st_dev, here.st_ino) and not shown_whole:
        raise NotTaken("the system shows it in the root of the host")
    wanted = b"\0".join(os.fsencode(f"{name}={value}") for name, value in environment.items())
    if variables[:_MOST_SHOWN] != wanted[:_MOST_SHOWN].rstrip(b"\0"):
        raise NotTaken("the system shows it with other variables than those of the policy")
    return {
        "process_isolation": f"namespaces of its own: {', '.join(apart)}",
        "filesystem_read_deny": f"a root of its own, with {', '.join(own)}",
        "filesystem_write_deny": f"written can be {', '.join(written)}",
        "network_deny": f"a network of its own, with {', '.join(devices) or 'no device'}",
        "environment_allowlist": f"{len(environment)} variables, and no other",
    }


def grouped(pid: int, group: Group) -> dict[str, str]:
    """Facts about the control group of the guest `pid`.

    Raises:
        NotTaken: it is not in it.
    """
    if pid not in group.members():
        raise NotTaken("the system does not show it in its control group")
    bounds = {"memory_limit": group.limits.memory, "process_count_limit": group.limits.pids}
    return {name: f"control group: at most {value}" for name, value in bounds.items() if value is not None}


def _namespaces(pid: int, kinds: tuple[str, ...]) -> list[str]:
    for kind in kinds:
        if os.readlink(f"/proc/{pid}/ns/{kind}") == os.readlink(f"/proc/self/ns/{kind}"):  # noqa: PTH115
            raise NotTaken(f"the system shows it in this process's namespace `{kind}`")
    return sorted(kinds)


def _written(mounts: bytes) -> list[str]:
    """Where something is mounted that can be written, but for what only the system makes up."""
    found = []
    for line in mounts.splitlines():
        fields, _, kind = line.partition(b" - ")
        place, options = fields.split()[4:6]
        if b"rw" in options.split(b",") and not kind.startswith(b"proc "):
            found.append(os.fsdecode(place))
    return sorted(set(found))


def _devices(text: bytes) -> list[str]:
    return sorted(line.partition(b":")[0].strip().decode() for line in text.splitlines()[2:])
