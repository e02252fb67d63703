"""Where this process's groups lie in the file system, out of what the kernel writes of them.

Rules this module keeps:

- it reads texts and no file;
- a group is found only through a mount that shows it: what lies outside is not guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TYPES = {"cgroup": 1, "cgroup2": 2}
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted hierarchy: `top` is the group that its `folder` shows, `controllers` are for version 1."""

    version: int
    top: str
    folder: str
    controllers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Memberships:
    """The paths of this process's group: by controller for version 1, and one, or none, for version 2."""

    first: dict[str, str]
    second: str | None = None


def memberships(text: str) -> Memberships:
    """Read `/proc/self/cgroup`."""
    first: dict[str, str] = {}
    second = None
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if not path.startswith("/"):
            continue
        if number == "0" and not names:
            second = path
        else:
            first |= dict.fromkeys(names.split(","), path)
    return Memberships(first, second)


def mounts(text: str) -> list[Mount]:
    """Read the mounted hierarchies out of `/proc/self/mountinfo`."""
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3 or kind[0] not in _TYPES:
            continue
        version = _TYPES[kind[0]]
        controllers = frozenset(kind[2].split(",")) if version == 1 else frozenset()
        found.append(Mount(version, _plain(fields[3]), _plain(fields[4]), controllers))
    return found


def folder(mount: Mount, path: str) -> str | None:
    """Where `mount` shows the group at `path`; None if it does not."""
    if ".." in path.split("/"):  # it lies outside of this process's namespace of groups
        return None
    top = mount.top.rstrip("/")
    if path != top and not path.startswith(f"{top}/"):
        return None
    return (mount.folder + path[len(top) :]).rstrip("/") or "/"


def _plain(path: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), path)
