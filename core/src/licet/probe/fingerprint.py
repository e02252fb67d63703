"""All that a receipt is bound to: another kernel, user, container, backend or interpreter voids it.

Rules this module keeps:

- what can't be read is written down as such: it then differs from what could be read before;
- the binary of the interpreter is bound by its content; the code of licet and of the backend by size and time
  of change of each of its files, so that an edit voids what was proved before it.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from licet.backend import Backend, Descriptor

if TYPE_CHECKING:
    from licet.probe.attack import Attack

_UNREADABLE = "unreadable"
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_MARKERS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
_STATUS = ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Seccomp_filters")


def fingerprint(backend: Backend, descriptor: Descriptor) -> str:
    """The digest of this host, this user, this licet, and the backend: its code and its description."""
    return _digest(facts(backend, descriptor))


def facts(backend: Backend, descriptor: Descriptor) -> dict[str, str]:
    """What `fingerprint` digests, by name."""
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    code = {"code": f"{_code('licet')} {_code(type(backend).__module__.partition('.')[0])}"}
    return {**_host(os.getpid(), user), **_backend(descriptor), **code}


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


@cache
def _code(package: str) -> str:
    """The digest of names, sizes and times of change of all files of a package that hold code."""
    origin = getattr(sys.modules.get(package), "__file__", None)
    if origin is None:
        return _UNREADABLE
    whole = Path(origin).name == "__init__.py"
    found = sorted(_files(os.path.dirname(origin)) if whole else _stat(origin))  # noqa: PTH120 - many files
    return hashlib.sha256("\n".join(found).encode("utf-8", "surrogateescape")).hexdigest()


def _files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from () if entry.name == "__pycache__" else _files(entry.path)
            elif entry.name.endswith((".py", ".so", ".pyd")):
                yield from _stat(entry.path)


def _stat(path: str) -> Iterator[str]:
    found = os.stat(path)  # noqa: PTH116 - as above
    yield f"{path} {found.st_size} {found.st_mtime_ns}"


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
