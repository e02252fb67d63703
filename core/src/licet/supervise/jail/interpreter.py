"""What an interpreter is made of: the files without which it does not start, or lacks its library.

Rules this module keeps:

- nothing is run and nothing is imported to find out; what is not there is left out;
- the packages that are installed beside the library are no part of it: whoever wants them names them;
- of an interpreter that is not this one, the library is where its installation has it by custom.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

_PACKAGES = ("site-packages", "dist-packages")
_LIBRARIES = ("lib", "lib64")
_DATA = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo")
"""Where libraries are looked up, and what the library knows of time zones."""
_AUTHORITIES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
"""Where systems keep the certificates of authorities, as one file."""


@dataclass(frozen=True, slots=True)
class Needs:
    """An interpreter and its files: `program`, what it `shows`, what is `hidden` inside, and `links`."""

    program: str
    shows: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Installation:
    """Where an interpreter is: its `program` and the `prefix` of its library, absolute and real; `version`
    as in 3.11.7.
    """

    program: str
    prefix: str
    version: str


@lru_cache(maxsize=64)
def needs(packages: tuple[str, ...] = (), installation: Installation | None = None) -> Needs:
    """What an interpreter needs, and `packages` beside its library; without `installation`, this very one."""
    own = os.path.realpath(sys.executable)
    if installation is None or installation.program == own:
        program, libraries, shared = own, _own_libraries(), _shared()
    else:
        program, libraries = installation.program, [*_libraries_of(installation)]
        shared = [*_beside(installation)]
    shown = [program, *libraries, *shared, *_loaders(), *_system_libraries(), *_DATA]
    links = _links(shown)
    real = sorted({os.path.realpath(path) for path in (*shown, *packages) if Path(path).exists()})
    hidden = [f"{library}/{name}" for library in libraries for name in _PACKAGES]
    return Needs(
        program,
        tuple(path for path in real if not _inside(path, real) or path in packages),
        tuple(sorted({os.path.realpath(path) for path in hidden if Path(path).is_dir()})),
        links,
    )


def _own_libraries() -> list[str]:
    paths = sysconfig.get_paths(vars={"base": sys.base_prefix, "platbase": sys.base_exec_prefix})
    return list(dict.fromkeys((paths["stdlib"], paths["platstdlib"])))


def _libraries_of(installation: Installation) -> Iterator[str]:
    """The library of an interpreter, in each folder where it may lie."""
    name = "python" + ".".join(installation.version.split(".")[:2])
    for above in _LIBRARIES:
        for ending in ("", "t"):
            yield f"{installation.prefix}/{above}/{name}{ending}"


def _beside(installation: Installation) -> Iterator[str]:
    """What an interpreter may be linked with: the shared libraries that its installation names after it."""
    for above in _LIBRARIES:
        yield from map(str, Path(installation.prefix, above).glob("libpython*.so*"))


@cache
def trusted() -> tuple[tuple[str, str], ...]:
    """The authorities that this interpreter trusts: a file of certificates, and each place to look for it."""
    try:
        from _ssl import get_default_verify_paths
    except ImportError:
        return ()
    expected = get_default_verify_paths()[1]
    for path in (expected, *_AUTHORITIES):
        if Path(path).is_file():
            real = os.path.realpath(path)
            return tuple((real, place) for place in dict.fromkeys((expected, path, real)))
    return ()


def _inside(path: str, others: list[str]) -> bool:
    return any(path.startswith(f"{other}/") for other in others if other != path)


def _shared() -> list[str]:
    """The library that an interpreter is, where it is no program by itself."""
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return []
    return [f"{sysconfig.get_config_var('LIBDIR')}/{sysconfig.get_config_var('INSTSONAME')}"]


def _loaders() -> list[str]:
    """What the system starts dynamic programs with."""
    machine = os.uname().machine
    short = "x86-64.so.2" if machine == "x86_64" else f"{machine}.so.1"
    return [f"/lib64/ld-linux-{short}", f"/lib/ld-linux-{short}", f"/lib/ld-musl-{machine}.so.1"]


def _system_libraries() -> list[str]:
    """The folders of the system's libraries."""
    own = [f"{root}/{os.uname().machine}-linux-gnu" for root in ("/lib", "/usr/lib")]
    if any(Path(folder).is_dir() for folder in own):
        return own
    return ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/nix/store", "/gnu/store"]


def _links(paths: list[str]) -> tuple[tuple[str, str], ...]:
    """The links on the way to `paths`, each as its own path and where it leads."""
    found: dict[str, str] = {}
    for path in paths:
        if not Path(path).exists():
            continue
        here = path
        while (link := _first_link(here)) is not None:
            found[link] = os.path.realpath(link)
            here = found[link] + here[len(link) :]
    return tuple(sorted(found.items()))


def _first_link(path: str) -> str | None:
    parts = path.split("/")[1:]
    for count in range(1, len(parts) + 1):
        step = "/" + "/".join(parts[:count])
        if Path(step).is_symlink():
            return step
    return None
