"""Control groups of the Linux kernel: memory, tasks and CPU of a whole tree, by version 1, 2 or both.

A limit of a process is no limit of a tree: each of its children has it anew. A group's is one for all that
are in it, and what the dead have used stays counted.

- `look`: what can be bounded for this user here, and why another thing can't; looking leaves nothing;
- `Home`: the folder of this process in each hierarchy, below its own group, so that what bounds the host
  bounds its runs; `sweep` ends and removes what hosts that were killed have left;
- `Group`: one run's group, made by `Home.group` with its `Limits`, told by its `Usage`.

A guest can't get out of its group: it has no view of these files (nothing mounts them where it is) and no
descriptor of them. It can read the name of its group. What puts it there has to close what
`Group.descriptors` gave it before any code of the guest runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licet.lazy import attribute_importer

if TYPE_CHECKING:
    from licet.supervise.cgroups.group import Group, Limits, Usage
    from licet.supervise.cgroups.home import Home, sweep
    from licet.supervise.cgroups.looking import look
    from licet.supervise.cgroups.places import Groups, Missing, Place, Resource, Ungrouped

__all__ = [
    "Group",
    "Groups",
    "Home",
    "Limits",
    "Missing",
    "Place",
    "Resource",
    "Ungrouped",
    "Usage",
    "look",
    "sweep",
]

_HOMES = {
    "Group": "group",
    "Groups": "places",
    "Home": "home",
    "Limits": "group",
    "Missing": "places",
    "Place": "places",
    "Resource": "places",
    "Ungrouped": "places",
    "Usage": "group",
    "look": "looking",
    "sweep": "home",
}

__getattr__ = attribute_importer(__name__, _HOMES)
