"""Which backend a receipt is of: its class and code, its configuration, and all that it says of itself.

Rules this module keeps:

- the code of licet and of each class that a backend is made of is bound by each file's place and state; an
  edit voids what was proved before it;
- where that tells nothing to another process, a receipt counts in this process alone: no file is to be read,
  or one has changed since the process began and may not be what runs;
- an instance that may differ from others of its class says how (`configuration`), or stands for itself alone.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import os
import secrets
import sys
import time
import weakref
from collections.abc import Iterator
from functools import cache

from licet.backend import Backend, Descriptor

_THIS_PROCESS = f"this process alone: {secrets.token_hex(16)}"
_CODE = (".py", ".pyc", ".so", ".pyd")
_COARSE_S = 0.1  # how far the clocks of files and processes may lag behind


def identity(backend: Backend, descriptor: Descriptor) -> dict[str, str]:
    """What binds a receipt to `backend`, by name."""
    kind = type(backend)
    return {
        "backend": f"{descriptor.name} {descriptor.version}",
        "kind": f"{kind.__module__}.{kind.__qualname__}",
        "description": description(descriptor),
        "instance": "any" if replaceable(kind, descriptor) else _instance(backend),
        "code": " ".join(_code(package) for package in sorted({"licet", *_packages(kind)})),
    }


def description(descriptor: Descriptor) -> str:
    """The digest of all that a backend says of itself, but for what a run costs and whether it can."""
    language = descriptor.language
    content = {
        "name": descriptor.name,
        "version": descriptor.version,
        "configuration": descriptor.configuration,
        "contract": descriptor.sandbox_enforcement_contract.digest,
        "opens": sorted(descriptor.opens),
        "language": [
            language.name,
            language.stdin,
            *(
                None if names is None else sorted(names)
                for names in (language.lacks_syntax, language.modules, language.builtins)
            ),
        ],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def replaceable(kind: type, descriptor: Descriptor) -> bool:
    """Whether another instance of `kind` that describes itself the same is the same.

    One that is made with arguments has to say so by its `configuration`.
    """
    if descriptor.configuration:
        return True
    try:
        return not inspect.signature(kind).parameters
    except (TypeError, ValueError):  # a class that does not tell
        return False


_single: dict[int, tuple[object, str]] = {}
_numbers = itertools.count()


def _instance(backend: Backend) -> str:
    """A name of this very instance, which no other gets when it is gone."""
    number = id(backend)
    if (known := _single.get(number)) is None:
        try:
            held: object = weakref.ref(backend, lambda _: _single.pop(number, None))
        except TypeError:  # then it is kept
            held = backend
        known = _single.setdefault(number, (held, f"{_THIS_PROCESS} {next(_numbers)}"))
    return known[1]


def _packages(kind: type) -> Iterator[str]:
    """The packages of all classes that `kind` is made of; the interpreter's own are bound with it."""
    for base in kind.__mro__:
        package = base.__module__.partition(".")[0]
        if package not in sys.stdlib_module_names:
            yield package


@cache
def _code(package: str) -> str:
    """The digest of the state of all files of a package, or module, that hold code."""
    module = sys.modules.get(package)
    folders = getattr(module, "__path__", None)
    file = getattr(module, "__file__", None)
    found: list[str] = []
    newest = 0
    paths = [file] if folders is None else [path for folder in folders for path in _files(folder, set())]
    for path in sorted(filter(None, paths)):
        told, changed = _state(path)
        found.append(told)
        newest = max(newest, changed)
    if not found or newest > (_BEGAN - _COARSE_S) * 1e9:
        found.append(_THIS_PROCESS)
    return hashlib.sha256("\n".join(found).encode("utf-8", "surrogateescape")).hexdigest()


def _files(folder: str, seen: set[str]) -> Iterator[str]:
    """The files with code below `folder`; what can't be listed can't be imported either."""
    if (real := os.path.realpath(folder)) in seen:
        return  # a link to a folder around it
    seen.add(real)
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    yield from () if entry.name == "__pycache__" else _files(entry.path, seen)
                elif entry.name.endswith(_CODE):
                    yield entry.path
    except OSError:
        yield folder


def _state(path: str) -> tuple[str, int]:
    """A line on a file, and when it was last written, in nanoseconds since the epoch.

    The time of change is left out: an installer that links the same file elsewhere changes that as well.
    """
    try:
        found = os.stat(path)  # noqa: PTH116 - many files
    except OSError:
        return f"{path} unreadable", 0
    return f"{path} {found.st_ino} {found.st_size} {found.st_mtime_ns}", found.st_mtime_ns


def _began() -> float:
    """Since when code can have been loaded: since this process began, or the one that it was forked from."""
    now = time.time()
    if sys.platform != "linux":
        return now
    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 - as above
            ticks = int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return now
    return min(now, now - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK"))


_BEGAN = _began()
