"""How a jail is put up: what is mounted where and in which order, as data. Pure but for looking at paths.

Rules this module keeps:

- a path is mounted after all that lies above it, so that the innermost decides;
- where code may write, it writes to storage of the run: over a folder that may be read as well lies a layer
  of it, a folder that may not begins empty, and of a single file there is a copy;
- what does not exist yet is made in the nearest folder that does; what else is made there, no policy opens;
- a folder that may only be read inside one that may be written is a layer by itself: Landlock can't tell them
  apart, and a named pipe takes what is written to it even where it is mounted read-only. Those of a layer are
  its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from licet.supervise.jail.spec import Jail
from licet.supervise.notify.names import files

PRIVATE = ("/tmp", "/dev/shm")
"""Folders that every run has for itself."""

_APART = ("/dev", "/proc")
"""Never shown as the host has them."""

_NOT_WHOLE = frozenset({"dev", "proc", "sys"})


@dataclass(frozen=True, slots=True)
class Cover:
    """One thing that each run mounts: a `kind` of writable place, what was there before (`keep`), a folder of
    the host that was there before (`seal`), or a `folder` to be in.

    `counts` is False for what is dropped at the end.
    """

    kind: str
    path: str
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """`shown` from the host, `made` for the jail, `covers` for each run, outermost first."""

    shown: tuple[tuple[str, str], ...]
    made: tuple[tuple[str, str, str], ...]
    covers: tuple[Cover, ...]


def layout(jail: Jail) -> Layout:
    """Say how `jail` is put up, as the host is now."""
    shown = {
        path: path for path in (*jail.needs.shows, *jail.read) if Path(path).exists() and not _apart(path)
    }
    shown |= {target: source for source, target in jail.files}
    hidden = [path for path in (*jail.needs.hidden, *jail.hidden) if path not in shown]
    places = {cover.path: cover for cover in _places(jail)}
    for path in PRIVATE:
        if not any(_within(path, place) for place in places):
            places[path] = Cover("overlay" if _readable(jail, path) and path == "/tmp" else "bare", path)
    kept = {
        path
        for path in (*shown, *hidden, *jail.frozen)
        if path not in places and any(_within(path, place) for place in places) and Path(path).exists()
    }
    texts = _texts(jail)
    kept |= {path for path in (*shown, *texts) if path not in places and _covered(path, places)}
    made = [("link", path, goal) for path, goal in jail.needs.links]
    made += [("hide", path, "") for path in hidden]
    made += [("text", path, content) for path, content in texts.items()]
    made += [("folder", jail.workdir, "")]
    made += [("text" if place.kind in _FILES else "folder", place.path, "") for place in places.values()]
    of_host = {*shown, *jail.frozen}
    covers = [*places.values()]
    covers += [Cover("seal" if path in of_host and Path(path).is_dir() else "keep", path) for path in kept]
    if _covered(jail.workdir, places) and jail.workdir not in places:
        covers.append(Cover("folder", jail.workdir))
    return Layout(
        tuple((source, target) for target, source in sorted(shown.items(), key=lambda item: _depth(item[0]))),
        tuple(sorted(made, key=lambda item: _depth(item[1]))),
        tuple(sorted(covers, key=lambda cover: (_depth(cover.path), cover.path))),
    )


_FILES = ("file", "new_file")


def _texts(jail: Jail) -> dict[str, str]:
    """The small files that are made, by path: where the host's own is shown, in its place."""
    texts = dict(jail.texts)
    for path, content in files(jail.names).items() if jail.network else ():
        if not _readable(jail, path):
            texts[path] = content
        elif Path(path).exists():
            texts[os.path.realpath(path)] = content
    return texts


def _places(jail: Jail) -> Iterator[Cover]:
    """Where the code may write, and so that it counts."""
    found: dict[str, Cover] = {}
    for path in sorted(_each(jail.write), key=_depth):
        if any(_within(path, place) for place in found):
            continue
        kind = Path(path)
        if kind.is_file():
            found[path] = Cover("file" if _readable(jail, path) else "new_file", path, True)
        elif kind.is_dir():
            found[path] = Cover("overlay" if _readable(jail, path) else "bare", path, True)
        else:
            above = _nearest(path)
            found[above] = Cover("overlay" if _readable(jail, above) else "bare", above, True)
    return iter(found.values())


def _each(roots: tuple[str, ...]) -> Iterator[str]:
    """The roots; in the place of `/` all that is in it but what no run may have from the host."""
    for root in roots:
        if root != "/":
            yield root
            continue
        for entry in os.scandir("/"):
            if entry.name not in _NOT_WHOLE and entry.is_dir(follow_symlinks=False):
                yield entry.path


def _nearest(path: str) -> str:
    """The nearest folder above a path that exists."""
    above = path.rpartition("/")[0]
    while above and not Path(above).is_dir():
        above = above.rpartition("/")[0]
    return above or "/"


def _readable(jail: Jail, path: str) -> bool:
    reached = max((len(root) for root in jail.read if _within(path, root)), default=-1)
    return reached > max((len(root) for root in jail.hidden if _within(path, root)), default=-1)


def _covered(path: str, places: dict[str, Cover]) -> bool:
    return any(_within(path, place) for place in places)


def _apart(path: str) -> bool:
    return any(_within(path, apart) for apart in _APART)


def _within(path: str, root: str) -> bool:
    return path == root or root == "/" or path.startswith(f"{root}/")


def _depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")
