"""What this host lets a jail be made of, for this user; and why each thing is missing.

Rules this module keeps:

- it is tried by a process that makes the namespaces and ends: a setting that says they can be made proves
  nothing where a security module objects;
- what is missing is told with what an administrator could change.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from licet.supervise.kernel import landlock_version
from licet.supervise.walls import seccomp
from licet.supervise.walls.calls import MACHINES
from licet.supervise.walls.image import Image
from licet.supervise.walls.memory import Unrunnable, executable, path_of
from licet.supervise.walls.profiles import interpreting
from licet.supervise.walls.standing import FILES_SINCE, Wall, look

_APART = 0x20000 | 0x20000000 | 0x40000000 | 0x8000000 | 0x4000000 | 0x2000000
_USERS = 0x10000000
_APPARMOR = "apparmor_restrict_unprivileged_userns"
OLDEST = (5, 12)
OUTSIDE = 0x70000000 - (1 << 22)
"""From here on, as many users of the host that no account has as there can be processes."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a jail stands on: who makes it, whether `users` can be mapped, the Landlock ABI, the filter.

    `root` makes it with privileges and gives them up; its runs are the user `outside`, whom no account has.
    `refusal` says why no jail can be made at all, `missing` why it lacks something.
    """

    root: bool = False
    users: bool = False
    outside: int = 0
    landlock: int = 0
    filters: bool = False
    refusal: str | None = None
    missing: tuple[str, ...] = field(default=())

    def filter(self, programs: bool, network: bool) -> tuple[int, bytes] | None:
        """The filter of system calls; None where the kernel has none."""
        if not self.filters:
            return None
        return seccomp.program(os.uname().machine, interpreting(programs=programs, network=network))

    def walls(self, *, filtered: bool) -> tuple[str, ...]:
        """What stands round a run, for its record."""
        walls = ["namespaces", "own root", "no capabilities", "no new privileges"]
        if self.landlock:
            walls.append(f"Landlock {self.landlock}")
        if filtered:
            walls.append("system calls listed")
        return tuple(walls)


@cache
def ground() -> Ground:
    """Look what can stand here."""
    refusal = _refusal()
    if refusal is not None:
        return Ground(refusal=refusal)
    outside = _spare_user() if os.geteuid() == 0 else None
    root, users = outside is not None, _can(_USERS | _APART)
    if not (users or (root and _can(_APART))):
        return Ground(refusal=_why_no_namespaces(os.geteuid() == 0))
    version, standing = landlock_version(), look()
    missing = [] if users else [_why_no_namespaces(root=False)]
    missing += standing.missing.values()
    return Ground(
        root=root,
        users=users,
        outside=outside or 0,
        landlock=version if version >= FILES_SINCE else 0,
        filters=Wall.calls in standing.standing,
        missing=tuple(missing),
    )


def _spare_user() -> int | None:
    """The highest user that is no account's, or the highest that there is here; None if root is alone."""
    highest = []
    for name in ("uid_map", "gid_map"):
        lines = [line.split() for line in Path("/proc/self", name).read_text().splitlines()]
        ends = [int(first) + int(count) - 1 for first, _, count in lines]
        if max(ends, default=0) < 1:
            return None
        highest.append(max(ends))
    return min(*highest, OUTSIDE + os.getpid())


def _refusal() -> str | None:
    if sys.platform != "linux":
        return "jails are made of what Linux has"
    if os.uname().machine not in MACHINES:
        return f"no jail is known for this machine, `{os.uname().machine}`"
    release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    if release < OLDEST:
        return f"this kernel is {os.uname().release}, and a jail needs Linux {OLDEST[0]}.{OLDEST[1]}"
    return None


def _can(flags: int) -> bool:
    """Whether a process may make these namespaces; it ends at once."""
    image = Image(os.uname().machine)
    image.call("unshare", flags)
    image.call("exit_group", 0)
    try:
        descriptor = executable(image.content())
    except Unrunnable:
        return False
    try:
        command = [path_of(descriptor)]
        return subprocess.run(command, pass_fds=(descriptor,), stdin=subprocess.DEVNULL).returncode == 0
    finally:
        os.close(descriptor)


def _why_no_namespaces(root: bool) -> str:
    if _setting("user/max_user_namespaces") == "0":
        return "user namespaces are switched off (`user.max_user_namespaces` is 0)"
    if not root and _setting(f"kernel/{_APPARMOR}") == "1":
        return f"AppArmor keeps ordinary users from user namespaces (`kernel.{_APPARMOR}` is 1)"
    if not root and _setting("kernel/unprivileged_userns_clone") == "0":
        return "ordinary users may make no user namespaces (`kernel.unprivileged_userns_clone` is 0)"
    return (
        "this process may make no namespaces: a container's profile, or a security module, keeps it from that"
    )


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None
