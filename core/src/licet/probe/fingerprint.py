"""All that a receipt is bound to: another kernel, user, container, backend or interpreter voids it.

Rules this module keeps:

- what can't be read is written down as such: it then differs from what could be read before;
- what can change while a process lives is looked at again (`situation`); the rest is read once;
- the binary of the interpreter is bound by its content.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from dataclasses import fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from licet.backend import Backend, Descriptor
from licet.probe.identity import identity
from licet.probe.situation import UNREADABLE, Situation, read, situation

if TYPE_CHECKING:
    from licet.probe.attack import Attack


def fingerprint(backend: Backend, descriptor: Descriptor, seen: Situation | None = None) -> str:
    """The digest of this host, this user, this licet, and the backend: its code and its description.

    `seen` is the situation of this thread, where the caller has looked already.
    """
    return _digest(facts(backend, descriptor, seen))


def facts(backend: Backend, descriptor: Descriptor, seen: Situation | None = None) -> dict[str, str]:
    """What `fingerprint` digests, by name."""
    return {**_machine(), **dict(seen or situation()), **identity(backend, descriptor)}


@cache
def _machine() -> dict[str, str]:
    """Facts that stay the same as long as a process lives."""
    return {
        "licet": version("licet"),
        "attacks": attacks_digest(),
        "interpreter": _interpreter(),
        "machine": f"{platform.machine()} {sys.platform}",
        "kernel": f"{platform.release()} {platform.version()}",
        "boot": read("/proc/sys/kernel/random/boot_id"),
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


def _interpreter() -> str:
    path = os.path.realpath(sys.executable)
    try:
        with Path(path).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        content = UNREADABLE
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
        return UNREADABLE
    return f"{name} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _digest(content: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
