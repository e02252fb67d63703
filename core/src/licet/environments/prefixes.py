"""An interpreter that somebody else installed, and the packages beside it.

Rules this module keeps:

- where it lies is read from names and from `pyvenv.cfg`; nothing of it runs before that was looked at, and
  then only to say its version, supervised;
- what anybody on this host may write to is refused;
- nothing of a prefix is proved: its digest covers the interpreter and the names and versions of what is
  installed, not their content.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from licet.environments.python import Python, digest_of, this_identity, this_interpreter
from licet.errors import EnvironmentUnavailable, Position, reason_of
from licet.files import read_plain
from licet.supervise import InterpreterStatus, probe_interpreter

_PROGRAMS = ("bin/python3", "bin/python", "python.exe", "Scripts/python.exe")
_SITES = ("site-packages", "dist-packages")
_LIBRARY = re.compile(r"(python3(\.\d+t?)?|pypy3(\.\d+)?)")
_SETTING = re.compile(r"\s*([\w-]+)\s*=\s*(.*?)\s*")
_CONFIGURATION = 64 << 10

_WHY = {
    InterpreterStatus.not_executable: "can't be executed",
    InterpreterStatus.permission_denied: "may not be executed by this user",
    InterpreterStatus.startup_timeout: "did not answer in time",
    InterpreterStatus.invalid_python: "does not answer as a Python does",
    InterpreterStatus.unsupported_version: "is older than Python 3.11",
}


def site_directories(prefix: str) -> tuple[str, ...]:
    """Every directory of packages in a prefix, for whichever version, by its real path."""
    return tuple(dict.fromkeys(_sites(prefix, _LIBRARY)))


def find_prefix(prefix: str, where: Position | None = None) -> Python:
    """The interpreter of the virtual environment or installation at `prefix`, which was named at `where`.

    Raises:
        EnvironmentUnavailable: there is none that can be used.
    """
    try:
        return _found(os.path.realpath(prefix))
    except _Unfit as problem:
        message, advice = problem.args
    except OSError as problem:
        message, advice = f"`{problem.filename or prefix}` can't be looked at: {reason_of(problem)}", None
    raise EnvironmentUnavailable(
        message,
        where=where,
        advice=advice or "name a virtual environment or an installation of CPython 3.11 or newer",
    ) from None


class _Unfit(Exception):
    """Why a prefix can't be used, and what to do."""


def _found(prefix: str) -> Python:
    configuration = _configuration(prefix)
    interpreter = _interpreter(prefix, configuration)
    base = os.path.dirname(interpreter)  # noqa: PTH120
    if sys.platform != "win32":
        base = os.path.dirname(base)  # noqa: PTH120
    version = _version(interpreter)
    library = re.compile(rf"python3(\.{version.split('.')[1]}t?)?")
    packages = list(_sites(prefix, library))
    if configuration is not None and configuration.get("include-system-site-packages", "").lower() == "true":
        packages += _sites(base, library)
    packages = list(dict.fromkeys(packages))
    for place in (prefix, base, interpreter, *packages):
        _refuse_open(place)
    looked = os.stat(interpreter)  # noqa: PTH116
    content = {
        "interpreter": [interpreter, version, looked.st_size, looked.st_mtime_ns],
        "packages": [[place, sorted(_installed(place))] for place in packages],
    }
    return Python(interpreter, base, tuple(packages), digest_of(content), version)


def _configuration(prefix: str) -> Mapping[str, str] | None:
    """What `pyvenv.cfg` says; None where there is none, which is an installation."""
    if not os.path.isdir(prefix):  # noqa: PTH112
        raise _Unfit(f"there is no directory `{prefix}`", None)
    try:
        data = read_plain(Path(prefix, "pyvenv.cfg"), _CONFIGURATION, follow=True)
    except FileNotFoundError:
        return None
    lines = map(_SETTING.fullmatch, data.decode("utf-8", "replace").splitlines())
    return {found[1].lower(): found[2] for found in lines if found is not None}


def _interpreter(prefix: str, configuration: Mapping[str, str] | None) -> str:
    """The real path of the interpreter; for a virtual environment, of the one that it was made from."""
    paths = [os.path.join(prefix, *name.split("/")) for name in _PROGRAMS]  # noqa: PTH118
    program = next(filter(os.path.isfile, paths), None)
    if program is None:
        raise _Unfit(f"there is no Python in `{prefix}`", None)
    real = os.path.realpath(program)
    if configuration is None or os.path.commonpath((real, prefix)) != prefix:
        return real
    # a copy, not a link: the library is where the original lies
    home = configuration.get("home", "")
    names = (*(os.path.basename(name) for name in _PROGRAMS),)  # noqa: PTH119
    originals = (os.path.join(home, name) for name in names)  # noqa: PTH118
    original = next(filter(os.path.isfile, originals), None) if os.path.isabs(home) else None  # noqa: PTH117
    if original is None:
        raise _Unfit(f"`{prefix}` was made from a Python in `{home}`, and there is none", "make it anew")
    return os.path.realpath(original)


def _sites(prefix: str, library: re.Pattern[str]) -> Iterator[str]:
    """The directories of packages of the libraries of a prefix; in Debian's, also those of its packages."""
    for above in ("lib", "lib64", "local/lib"):
        folder = os.path.join(prefix, *above.split("/"))  # noqa: PTH118
        for name in sorted(filter(library.fullmatch, _names(folder)), key=len, reverse=True):
            for site in _SITES:
                place = os.path.join(folder, name, site)  # noqa: PTH118
                if os.path.isdir(place):  # noqa: PTH112
                    yield os.path.realpath(place)
    place = os.path.join(prefix, "Lib", "site-packages")  # noqa: PTH118
    if sys.platform == "win32" and os.path.isdir(place):  # noqa: PTH112
        yield os.path.realpath(place)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []


def _installed(place: str) -> Iterator[str]:
    return (name for name in _names(place) if name.endswith((".dist-info", ".egg-info")))


def _refuse_open(place: str) -> None:
    if sys.platform != "win32" and os.stat(place).st_mode & 0o002:  # noqa: PTH116
        raise _Unfit(f"anybody on this host may write to `{place}`", f"run `chmod o-w {place}`")


def _version(interpreter: str) -> str:
    if interpreter == this_interpreter()[0]:
        return this_identity().version
    _refuse_open(interpreter)
    looked = os.stat(interpreter)  # noqa: PTH116
    return _probed(interpreter, looked.st_ino, looked.st_size, looked.st_mtime_ns, looked.st_ctime_ns)


@lru_cache(maxsize=64)
def _probed(interpreter: str, *looked: int) -> str:
    """The version of an interpreter that looks so; what failed is tried again the next time."""
    found = probe_interpreter(interpreter)
    if found.status is InterpreterStatus.ok and found.implementation != "cpython":
        raise _Unfit(f"`{interpreter}` is `{found.implementation}` and not CPython", None)
    if found.status is not InterpreterStatus.ok or found.version is None:
        raise _Unfit(f"`{interpreter}` {_WHY.get(found.status, 'can not be started')}", None)
    return ".".join(map(str, found.version))
