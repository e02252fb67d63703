"""What makes an interpreter a launcher, and what it is told of each run: messages from host to child alone.

Rules this module keeps: whatever can be known before a run begins is said once, when its launcher starts.
"""

from __future__ import annotations

import marshal
import os
import struct
from collections.abc import Mapping
from typing import Any

from licet.supervise import bootstrap
from licet.supervise.jail.layout import Cover, Layout
from licet.supervise.jail.spec import Jail
from licet.supervise.jail.standing import Ground
from licet.supervise.notify.standing import listening
from licet.supervise.walls import landlock
from licet.supervise.walls.calls import number

NOBODY = 65534
"""The user that code sees itself as."""

AHEAD = (
    *("abc", "collections", "contextlib", "copy", "dataclasses", "datetime", "enum", "functools", "inspect"),
    *("io", "itertools", "json", "math", "operator", "os", "random", "re", "string", "textwrap", "types"),
    *("typing", "threading", "resource", "select", "_socket", "_struct"),
)
"""Modules of the library that a launcher imports while it waits."""

_MODULES = (
    ("system", "licet.supervise.jail", "_system.py"),
    ("used", "licet.supervise", "_used.py"),
    ("orders", "licet.supervise.jail", "_orders.py"),
    ("root", "licet.supervise.jail", "_root.py"),
    ("room", "licet.supervise.jail", "_room.py"),
    ("main", "licet.supervise.jail", "_launcher.py"),
    ("next", "licet.supervise", "_guest.py"),
)


def launcher_message(jail: Jail, how: Layout, ground: Ground, interpreter: str, *, warm: bool) -> bytes:
    """Return what makes a new interpreter the launcher of a jail."""
    machine = os.uname().machine
    version = min(ground.landlock, landlock.KNOWN)
    filters = ground.filter(jail.programs, jail.network)
    settings: dict[str, Any] = {
        "root": ground.root,
        "users": ground.users,
        "user": NOBODY if ground.users else ground.outside,
        "outside": ground.outside,
        "clone": number("clone", machine),
        "seccomp": number("seccomp", machine),
        "pivot_root": number("pivot_root", machine),
        "shown": [(os.fsencode(source), os.fsencode(target)) for source, target in how.shown],
        "made": [(os.fsencode(path), (kind, os.fsencode(content))) for kind, path, content in how.made],
        "covers": [(cover.kind, os.fsencode(cover.path), cover.counts) for cover in how.covers],
        "lowers": [os.fsencode(cover.path) for cover in how.covers if cover.kind in ("overlay", "seal")],
        "storage": _storage(jail.storage),
        "workdir": os.fsencode(jail.workdir),
        "listening": listening() if jail.network else 0,
        "filter": filters,
        "ruleset": landlock.ruleset(version) if version else None,
        "scopes": struct.pack("<QQQ", 0, 3, 3) if version >= landlock.SCOPES_SINCE else None,
        "rules": _rules(jail, how, version) if version else (),
        "of_files": landlock.OF_FILES,
        "walls": ground.walls(filtered=filters is not None),
        "ahead": AHEAD,
        "warm": warm,
    }
    return bootstrap.pack(_MODULES, interpreter, settings)


def order(limits: Mapping[int, tuple[int, int]], environment: Mapping[str, str]) -> bytes:
    """Return what a launcher has to know of one run."""
    variables = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
    return marshal.dumps({"limits": dict(limits), "environment": variables})


def _storage(size: int | None) -> bytes:
    bound = b"size=50%" if size is None else b"size=%d" % max(size, 1 << 12)
    return b"mode=711,nr_inodes=200k," + bound


def _rules(jail: Jail, how: Layout, version: int) -> list[tuple[int, bytes]]:
    """What Landlock lets through, by path; on files, only what means something there."""
    known = landlock.known(version)
    read = landlock.FOLDERS | (landlock.EXECUTE if jail.programs else 0)
    write = read | landlock.CHANGES
    rules = [(read, target) for _, target in how.shown]
    rules += [(write, cover.path) for cover in how.covers if cover.kind not in ("keep", "seal")]
    rules += [(read, path) for _, path, _ in how.made]
    rules += [(read, "/proc"), (landlock.FOLDERS | landlock.USES, "/dev")]
    return [(rights & known, os.fsencode(path)) for rights, path in rules]


def counted(how: Layout) -> tuple[Cover, ...]:
    """The places whose descriptors a room sends, in their order."""
    return tuple(cover for cover in how.covers if cover.counts)
