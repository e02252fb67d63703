"""All that a receipt is bound to: another kernel, user, container, backend or interpreter voids it.

Rules this module keeps:

- what can't be read is written down as such: it then differs from what could be read before;
- the binary of the interpreter is bound by its content; it is read again only if the file has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from dataclasses import fields
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from licet.backend import Descriptor

if TYPE_CHECKING:
    from licet.probe.attack import Attack

_UNREADABLE = "unreadable"
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_MARKERS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
_STATUS = ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Seccomp_filters")


def fingerprint(descriptor: Descriptor) -> str:
    """The digest of this host, this user, this licet, and the backend as it describes itself."""
    return _digest(facts(descriptor))


def facts(descriptor: Descriptor) -> dict[str, str]:
    """What `fingerprint` digests, by name."""
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    return {**_host(os.getpid(), user), **_backend(descriptor)}


def _backend(descriptor: Descriptor) -> dict[str, str]:
    return {
        "backend": f"{descriptor.name} {descriptor.version}",
        "contract": descriptor.sandbox_enforcement_contract.digest,
        "language": descriptor.language.name,
        "opens": " ".join(sorted(descriptor.opens)),
    }


@lru_cache(maxsize=1)
def _host(pid: int, user: int) -> dict[str, str]:
    """Facts that stay the same as long as a process lives as one user."""
    status = _read("/proc/self/status")
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return {
        "licet": version("licet"),
        "attacks": attacks_digest(),
        "interpreter": _interpreter(),
        "machine": f"{platform.machine()} {sys.platform}",
        "kernel": f"{platform.release()} {platform.version()}",
        "boot": _read("/proc/sys/kernel/random/boot_id"),
        "user": _user(),
        "cgroup": _read("/proc/self/cgroup"),
        "container": " ".join(marker for marker in _MARKERS if Path(marker).exists()),
        "namespaces": " ".join(_namespace(name) for name in _NAMESPACES),
        "privileges": " ".join(f"{name}={lines.get(name, '').strip()}" for name in _STATUS),
    }


@cache
def attacks_digest() -> str:
    """The digest of all attacks: another program proves something else."""
    from licet.probe.attacks import ATTACKS

    return hashlib.sha256("\n".join(map(_spelled, ATTACKS)).encode()).hexdigest()


def _spelled(attack: Attack) -> str:
    """All that an attack is, the same in every process: the order of a set is not."""
    content = {field.name: getattr(attack, field.name) for field in fields(attack)}
    return repr({name: sorted(v) if isinstance(v, frozenset) else v for name, v in content.items()})


def _user() -> str:
    if sys.platform == "win32":
        import getpass

        return getpass.getuser()
    return f"{os.getuid()} {os.geteuid()} {os.getegid()} {sorted(os.getgroups())}"


def _interpreter() -> str:
    path = os.path.realpath(sys.executable)
    try:
        with Path(path).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        content = _UNREADABLE
    return f"{path} {content} {platform.python_version()} {_library()}"


def _library() -> str:
    """The shared library that holds the interpreter where its binary is but a start of it."""
    import sysconfig

    folder, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    if not folder or not name or not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return ""
    try:
        found = Path(folder, name).stat()
    except OSError:
        return _UNREADABLE
    return f"{name} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _namespace(name: str) -> str:
    try:
        return str(Path(f"/proc/self/ns/{name}").readlink())
    except OSError:
        return f"{name}:{_UNREADABLE}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return _UNREADABLE


def _digest(content: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
