"""Where groups can be made in the one hierarchy of version 2, which allows it in few places.

A group hands a controller down only while no process is in it, the true root excepted. So a process can have
bounded groups beside its own, where the one above was handed to it, or below its own once it has moved down.

Rules this module keeps:

- a group lies below all that bounds this process, unless who handed over the group above it said otherwise
  by handing it over: an administrator's limit on what was handed over holds for every run;
- a group that was not handed to this process is never changed, root or not: others keep it in order;
- looking at a place changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from licet.supervise.cgroups.places import Missing, Place, Resource

_MARKS = ("user.delegate", "trusted.delegate")
DELEGATE = "start it in a group that is handed to it: `systemd-run --user --scope -p Delegate=yes COMMAND`"


def find(own: str, top: str | None, resource: Resource) -> Place | Missing:
    """Where `resource` can be bounded for a process in the group at `own`.

    `top` is where the first group of all lies, if it is shown: the true root, or the root of a namespace.
    """
    base = _base(Path(own), None if top is None else Path(top))
    if isinstance(base, Missing):
        return base
    folder, leave = base
    offered, enabled = _words(folder / "cgroup.controllers"), _words(folder / "cgroup.subtree_control")
    if not resource.needed <= offered:
        return _not_offered(folder, resource, is_root=not (folder / "cgroup.type").exists())
    enable = resource.needed - enabled
    if enable and not os.access(folder / "cgroup.subtree_control", os.W_OK):
        return Missing(
            f"`{folder}` does not hand `{resource}` down, and is not this user's to change", DELEGATE
        )
    return Place(2, str(folder), frozenset(enable), leave and bool(resource.needed))


def _base(own: Path, top: Path | None) -> tuple[Path, bool] | Missing:
    """The group to work below, and whether this process has to leave it first."""
    if not (own / "cgroup.type").exists():
        return own, False  # the true root
    if own != top and _is_handed_over(own.parent, top) and not _words(own.parent / "cgroup.procs"):
        return own.parent, False
    if not _is_handed_over(own, top):
        return Missing(f"the group `{own}` is not handed to this process (delegated)", DELEGATE)
    others = _words(own / "cgroup.procs") - {str(os.getpid())}
    if others:
        return Missing(
            f"`{own}` hands nothing down while other processes are in it ({len(others)})",
            "start it in a group where it is alone: `systemd-run --user --scope -p Delegate=yes COMMAND`",
        )
    return own, True


def _is_handed_over(folder: Path, top: Path | None) -> bool:
    """Whether a group is marked so, is the root of a namespace, or where the groups of this user begin."""
    if sys.platform != "linux" or not (folder / "cgroup.type").exists():
        return False
    if folder == top:
        return True
    for mark in _MARKS:
        with contextlib.suppress(OSError):
            if os.getxattr(folder, mark).strip() == b"1":
                return True
    try:
        user, above = folder.stat().st_uid, folder.parent.stat().st_uid
    except OSError:
        return False
    return user == os.geteuid() != above


def _not_offered(folder: Path, resource: Resource, *, is_root: bool) -> Missing:
    if is_root:
        return Missing(
            f"this kernel has no `{resource}` controller, or it is switched off",
            f"start the kernel without `cgroup_disable={resource}`",
        )
    return Missing(
        f"`{resource}` is not handed down to `{folder}`",
        f"hand it down as well (`Delegate=` of the unit, or `+{resource}` in the groups above)",
    )


def _words(file: Path) -> set[str]:
    try:
        return set(file.read_text("ascii").split())
    except OSError:
        return set()
