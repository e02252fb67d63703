"""What a run wrote into layers of the kernel, as edits that can be committed.

A backend gives code, for each root that it may write to, an overlay over what the host has there, or an empty
directory where it may not read. What the code writes lies in a layer of its own, on storage that is kept by
a descriptor alone when the run is over.

Rules this module keeps:

- a layer is walked when nothing of the run lives any more, by descriptors, never by a path;
- all of it becomes edits, or none: what can't be brought to the host refuses the whole, and says why;
- no list is made of the host when a run begins: at its end a stamp that lies after the beginning says that
  others changed a target meanwhile (`layer_walk`), and a clock that was set back makes every stamp worthless.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from licet.errors import reason_of
from licet.plan import Opened
from licet.supervise.moments import Moment
from licet.writes import walking
from licet.writes.journal import Identity
from licet.writes.layer_marks import open_in
from licet.writes.layer_walk import Collection
from licet.writes.settling import identity_of
from licet.writes.staged import NotCommitted, Staged

_SET_BACK = (
    "the clock of this host was set back while the code ran, so nobody can tell what others changed, "
    "and nothing was written; run it again"
)


@dataclass(frozen=True, slots=True)
class Layer:
    """What code wrote at `path`, a root that it may write to, canonical.

    `upper` is a descriptor of the directory that holds it. `lower` is the directory of the host that stood at
    `path` when the run began, None if nothing did. `bare` if the code saw nothing of it.
    """

    path: str
    upper: int
    lower: Identity | None
    bare: bool = False

    @classmethod
    def over(cls, path: str, lower: int | None, upper: int, *, bare: bool = False) -> Layer:
        """A layer over an opened directory of the host, or over nothing."""
        return cls(
            path, upper, None if lower is None else identity_of(os.fstat(lower)), bare or lower is None
        )


def staged(layers: Sequence[Layer], opened: Opened, began: Moment, most_bytes: int) -> Staged:
    """All that a run wrote; it may come to `most_bytes`, holes counted.

    Nothing of the run may be alive, and it must have begun after `began` was settled. From now on the
    descriptors of the layers belong to what is returned.
    """
    held = _Held(layer.upper for layer in layers)
    collection = Collection(opened, began, most_bytes)
    refused = None
    try:
        for layer in layers:
            _collect(layer, collection)
    except NotCommitted as problem:
        refused = str(problem)
    except OSError as problem:
        refused = f"what the code wrote can't be collected, so nothing was written: {reason_of(problem)}"
    edits = collection.edits
    if (edits or refused) and not began.is_sound():
        refused = _SET_BACK
    return Staged((), held.close, refused) if refused else Staged(edits, held.close)


def usage(upper: int) -> int:
    """How many bytes the storage under a layer holds, of all layers that share it."""
    found = os.fstatvfs(upper)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def is_full(upper: int) -> bool:
    """Whether the storage under a layer has no room left, be it for bytes or for names."""
    found = os.fstatvfs(upper)
    return (found.f_blocks > 0 and found.f_bfree == 0) or (found.f_files > 0 and found.f_ffree == 0)


def _collect(layer: Layer, collection: Collection) -> None:
    os.close(open_in(layer.upper, ".", directory=True))  # the code may have closed it to its owner
    if layer.lower is None:
        collection.take_new(layer.path, layer.upper)
        return
    try:
        host = walking.open_directory(layer.path)
    except (FileNotFoundError, NotADirectoryError):
        collection.take_lost(layer.path, layer.upper)
        return
    try:
        same = identity_of(os.fstat(host)) == layer.lower
        collection.take(layer.path, layer.upper, host, same=same, bare=layer.bare)
    finally:
        os.close(host)


class _Held:
    """Descriptors, closed at the latest when nobody has this any more."""

    def __init__(self, descriptors: Iterable[int]) -> None:
        self._closing = weakref.finalize(self, _close, tuple(descriptors))

    def close(self) -> None:
        self._closing()


def _close(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
