"""Paths in one canonical spelling, and containment by components.

Rules this module keeps:

- a canonical path is absolute, has no `.`, `..`, doubled or trailing slashes, and no symbolic link in any
  part that exists; for a part that does not exist yet, its deepest existing ancestor decides;
- containment compares whole components, so `/work` never contains `/workspace`;
- what depends on who resolves it (`/proc/self`, descriptor aliases), what loops, and what the operating
  system would cut or refuse, is refused here with a reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

NAME_MAX = 255
PATH_MAX = 4096

Resolve = Callable[[str], str]

_MAGIC = re.compile(r"/proc/(?:self|thread-self|\d+)(?:/|$)|/dev/(?:fd|stdin|stdout|stderr)(?:/|$)")


def resolve_links(path: str) -> str:
    """Resolve every link of an absolute path on this host.

    Raises:
        ValueError: the links form a loop.
    """
    resolved = os.path.realpath(path)
    # realpath leaves a looping link in place instead of failing
    if os.path.islink(resolved):  # noqa: PTH114
        raise ValueError("its symbolic links form a loop")
    return resolved


def canonical(path: str, *, base: str, resolve: Resolve = resolve_links) -> str:
    """Return the canonical form of `path`, taken relative to the absolute `base`.

    Raises:
        ValueError: the path is empty or can't be one path for everybody; the text says why.
    """
    _check_text(path)
    if not base.startswith("/"):
        raise ValueError(f"the base `{base}` is not absolute")
    joined = os.path.join(base, path)  # noqa: PTH118
    if _MAGIC.match(os.path.normpath(joined)):
        raise ValueError("it goes through a link that is different for every process")
    resolved = resolve(joined)
    _check_lengths(resolved)
    if _MAGIC.match(resolved):
        raise ValueError("it goes through a link that is different for every process")
    return resolved if resolved == "/" else resolved.rstrip("/")


def contains(root: str, path: str) -> bool:
    """Whether canonical `path` is canonical `root` or lies inside it."""
    return root == "/" or path == root or path.startswith(root + "/")


def meet(left: Iterable[str], right: Iterable[str]) -> tuple[str, ...]:
    """The roots of what both sets of roots contain, in the order of `left`."""
    others = tuple(right)
    inner = (a if contains(b, a) else b for a in left for b in others if contains(a, b) or contains(b, a))
    return outermost(inner)


def outermost(roots: Iterable[str]) -> tuple[str, ...]:
    """Drop every root that another one contains, and duplicates."""
    unique = tuple(dict.fromkeys(roots))
    return tuple(root for root in unique if not any(o != root and contains(o, root) for o in unique))


def _check_text(path: str) -> None:
    if not path:
        raise ValueError("it is empty")
    if "\0" in path:
        raise ValueError("it holds a NUL byte")
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise ValueError("it holds a character that no file name can hold") from None
    if size > PATH_MAX:
        raise ValueError(f"it is longer than {PATH_MAX} bytes")
    _check_lengths(path)


def _check_lengths(path: str) -> None:
    if any(len(os.fsencode(name)) > NAME_MAX for name in path.split("/")):
        raise ValueError(f"one of its names is longer than {NAME_MAX} bytes")
