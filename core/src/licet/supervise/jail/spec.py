"""What a jail shows to the code in it: values, and nothing of how they are put up.

Rules this module keeps:

- a jail shows nothing that is not named here; of the paths around a path, the innermost decides;
- two jails that are equal can be served by one launcher, as long as what they name stands where it stood.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from licet.supervise.jail.interpreter import Needs
from licet.supervise.moments import Moment

Identity = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Jail:
    """A root of its own, and what else a run has in it.

    All paths are absolute and without a link on the way. `needs` is what the interpreter is made of. `read`
    and `write` are opened, what is `hidden` (from any use) or `frozen` (from being written) inside them is
    not. `files` are pairs of a file of the host and the path at which it is seen. `storage` is how many bytes
    can be written in all, None for half of the memory. `programs` lets the code start what it can read,
    `network` lets it ask for connections, by any name; it knows those in `names` beforehand. `texts` are
    small files that are made for it, by path.
    """

    needs: Needs
    workdir: str
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    storage: int | None = None
    programs: bool = False
    network: bool = False
    names: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()

    def standing(self) -> tuple[Identity, ...]:
        """What stands at each path now; a launcher shows what stood there when it was started."""
        files = (source for source, _ in self.files)
        named = (*self.needs.shows, *self.read, *self.write, *self.hidden, *self.frozen, *files)
        return tuple(identity(path) for path in named)


@dataclass(frozen=True, slots=True)
class Written:
    """One place where code could write: `descriptor` is open on what it changed below `path`.

    It is a folder on storage that the run had to itself, which lasts as long as the descriptor is open.
    `bare` says that the place began empty, else what the code left alone is not in it. `lower` is the
    folder of the host that stood there, and `began` a moment before the code began.
    """

    path: str
    descriptor: int
    bare: bool
    lower: Identity
    began: Moment


def identity(path: str) -> Identity:
    """Which object stands at a path, None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
