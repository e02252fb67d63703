"""Paths in one canonical spelling, and containment by components.

Rules this module keeps:

- a canonical path is absolute, has no `.`, `..`, doubled or trailing slashes, and no symbolic link in any
  part that exists; for a part that does not exist yet, its deepest existing ancestor decides;
- links are followed here one by one, so that no link hides another that must not be followed;
- containment compares whole components, so `/work` never contains `/workspace`;
- what depends on who resolves it (`/proc/self`, descriptor aliases), what loops, and what the operating
  system would cut or refuse, is refused here with a reason;
- on Windows the spelling and its comparison are those of `licet.drives`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import lru_cache

from licet import drives
from licet.errors import InvalidRequest

NAME_MAX = 255
PATH_MAX = 4095
LINKS_MAX = 40
"""What Linux follows before it calls a path a loop."""

Resolve = Callable[[str], str]

_WINDOWS = os.name == "nt"

_MAGIC = re.compile(r"/proc/(?:self|thread-self|\d+)(?:/|$)|/dev/(?:fd|stdin|stdout|stderr)(?:/|$)")


def current_directory() -> str:
    """The current directory of this process, its links resolved.

    Raises:
        InvalidRequest: it is gone.
    """
    try:
        here = os.getcwd()  # noqa: PTH109  # a text, as all paths here
        return drives.spell(os.path.realpath(here)) if _WINDOWS else here  # else the kernel follows links
    except FileNotFoundError:
        raise InvalidRequest("the current directory is gone", advice="change into one that exists") from None


def resolve_links(path: str) -> str:
    """Resolve every link of an absolute path on this host.

    Raises:
        ValueError: the links form a loop, or lead through one that is different for every process.
    """
    return os.path.realpath(path) if _WINDOWS else _walk(path)[0]


def links(path: str) -> tuple[str, ...]:
    """Every symbolic link on the way of an absolute path; whoever replaces one redirects the path.

    Raises:
        ValueError: as for `resolve_links`.
    """
    return drives.links(path) if _WINDOWS else _walk(path)[1]


def _walk(path: str) -> tuple[str, tuple[str, ...]]:
    """Follow an absolute path name by name: where it ends, and the links on the way."""
    pending = path.split("/")[::-1]
    done: list[str] = []  # the way so far, one path a name
    followed: list[str] = []
    missing = PATH_MAX  # how many names down nothing is there; what would be below it is no link
    while pending:
        name = pending.pop()
        if name in ("", "."):
            continue
        if name == "..":
            del done[-1:]
            continue
        here = f"{done[-1]}/{name}" if done else f"/{name}"
        _refuse_magic(here)
        target = None
        if len(done) < missing:
            target, found = _link_target(here)
            missing = PATH_MAX if found else len(done) + 1
        if target is None:
            done.append(here)
            continue
        followed.append(here)
        if len(followed) > LINKS_MAX:
            raise ValueError("its symbolic links form a loop")
        if target.startswith("/"):
            done.clear()
        pending += target.split("/")[::-1]
    return done[-1] if done else "/", tuple(followed)


def _link_target(path: str) -> tuple[str | None, bool]:
    """Where a link leads, or None, and whether anything may be there."""
    try:
        return os.readlink(path), True  # noqa: PTH115 (a Path would drop what makes the difference)
    except (FileNotFoundError, NotADirectoryError):
        return None, False
    except OSError:  # no link, or nothing that this user can see or open
        return None, True


def _refuse_magic(path: str) -> None:
    if path.startswith(("/proc/", "/dev/")) and _MAGIC.match(path):
        raise ValueError("it goes through a link that is different for every process")


def canonical(path: str, *, base: str, resolve: Resolve = resolve_links) -> str:
    """Return the canonical form of `path`, taken relative to the absolute `base`.

    Raises:
        ValueError: the path is empty or can't be one path for everybody; the text says why.
    """
    _check_text(path)
    if not (drives.is_absolute(base) if _WINDOWS else base.startswith("/")):
        raise ValueError(f"the base `{base}` is not absolute")
    if _WINDOWS:
        drives.check(path)
        return path if path == "/" else drives.spell(resolve(os.path.join(base, path)))  # noqa: PTH118
    resolved = resolve(path if path.startswith("/") else f"{base.rstrip('/')}/{path}")
    _check_lengths(resolved)
    _refuse_magic(resolved)
    return resolved if resolved == "/" else resolved.rstrip("/")


def way(path: str) -> tuple[str, tuple[str, ...]]:
    """Where an absolute path ends, in canonical form, and every symbolic link on the way.

    Raises:
        ValueError: as for `canonical`.
    """
    return canonical(path, base="/"), links(path)


@lru_cache(maxsize=64)
def spelled(path: str) -> str:
    """The canonical form of an absolute path whose links are resolved; looks at no disk.

    Raises:
        ValueError: as for `canonical`.
    """
    return canonical(path, base=path, resolve=str)


def contains(root: str, path: str) -> bool:
    """Whether canonical `path` is canonical `root` or lies inside it."""
    if _WINDOWS:
        return drives.contains(root, path)
    return root == "/" or path == root or path.startswith(root + "/")


def place(path: str) -> str:
    """A key for look-ups: `root` contains `path` if its key is the same, or begins it up to a `/`."""
    if _WINDOWS:
        path = path.lower()
    return path.rstrip("/")


def _check_text(path: str) -> None:
    if not path:
        raise ValueError("it is empty")
    if "\0" in path:
        raise ValueError("it holds a NUL byte")
    if path.isascii() and len(path) <= NAME_MAX:
        return
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ValueError("it holds a character that no file name can hold") from None
    _check_lengths(path)


def _check_lengths(path: str) -> None:
    if path.isascii() and len(path) <= NAME_MAX:
        return
    encoded = os.fsencode(path)
    if len(encoded) > PATH_MAX:
        raise ValueError(f"it is longer than {PATH_MAX} bytes")
    if any(len(name) > NAME_MAX for name in encoded.split(b"/")):
        raise ValueError(f"one of its names is longer than {NAME_MAX} bytes")
