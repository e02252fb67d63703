"""What of a thread's place on its host can change while its process lives: user, rights, namespaces, group.

Rules this module keeps:

- asked often, it answers from memory for a second at most, and anew at once in another process or as another
  user; for as long as nothing has changed the answer is the same object;
- what can't be read is written down as such: it then differs from what could be read before.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

UNREADABLE = "unreadable"
Situation = tuple[tuple[str, str], ...]
"""Names and values."""

_KEPT_S = 1.0
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
CONTAINER_MARKERS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
"""Files that containers have."""

_STATUS = ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Seccomp_filters")


class _Kept(threading.local):
    until = 0.0
    of: tuple[int, int] = 0, 0
    situation: Situation = ()


_kept = _Kept()


def situation() -> Situation:
    """That of the calling thread; what it starts takes it over."""
    now, of = time.monotonic(), (os.getpid(), os.geteuid() if hasattr(os, "geteuid") else 0)
    if now >= _kept.until or of != _kept.of:
        if (found := _look()) != _kept.situation:
            _kept.situation = found
        _kept.until, _kept.of = now + _KEPT_S, of
    return _kept.situation


def _look() -> Situation:
    status = read("/proc/thread-self/status")
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return (
        ("user", _user()),
        ("cgroup", read("/proc/thread-self/cgroup")),
        ("container", " ".join(marker for marker in CONTAINER_MARKERS if Path(marker).exists())),
        ("namespaces", " ".join(map(_namespace, _NAMESPACES))),
        ("privileges", " ".join(f"{name}={lines.get(name, '').strip()}" for name in _STATUS)),
    )


def _user() -> str:
    if sys.platform == "win32":
        import getpass

        return getpass.getuser()
    return f"{os.getuid()} {os.geteuid()} {os.getegid()} {sorted(os.getgroups())}"


def _namespace(name: str) -> str:
    try:
        return str(Path(f"/proc/thread-self/ns/{name}").readlink())
    except OSError:
        return f"{name}:{UNREADABLE}"


def read(path: str) -> str:
    """The text of a file of the system, bare."""
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return UNREADABLE
