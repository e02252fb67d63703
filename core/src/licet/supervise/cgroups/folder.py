"""A folder of ours between other groups: made by a process that lives, and known by that.

Rules this module keeps:

- who made it holds a lock on it for as long as it lives, however it ends. So whoever gets the lock knows that
  the owner is dead: no number of a process that may mean another by now, or in another namespace, is asked;
- nobody else may enter it, so nobody else can hold its lock;
- a fork of the owner does not hold it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import weakref

from licet.locks import try_lock
from licet.supervise.cgroups.ending import groups_below, remove
from licet.supervise.cgroups.files import open_folder

PREFIX = "licet-"
_TRIES = 16
_PATIENCE = 1.0  # seconds for what lives in it to be gone

_held: weakref.WeakSet[OwnFolder] = weakref.WeakSet()


class OwnFolder:
    """A new folder of this process's below the open group `at`; it is removed at the end of the context.

    `descriptor` is open on it. All that is in it is killed and removed with it.

    Raises:
        OSError: it can't be made.
    """

    def __init__(self, at: int) -> None:
        self._at = os.dup(at)
        try:
            self.name, self.descriptor = _make(at)
        except BaseException:
            os.close(self._at)
            raise
        _held.add(self)

    def __enter__(self) -> OwnFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove it, with all that is in it; what can't be removed is left to a sweep."""
        if self in _held:
            remove(self.name, self._at, _PATIENCE)
            self.let_go()

    def let_go(self) -> None:
        """Close what is open of it; the folder stays."""
        if self in _held:
            _held.discard(self)
            os.close(self.descriptor)
            os.close(self._at)


def _make(at: int) -> tuple[str, int]:
    for _ in range(_TRIES):
        name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(6)}"
        os.mkdir(name, 0o700, dir_fd=at)
        with contextlib.suppress(FileNotFoundError):  # a sweep came between, and found it without its lock
            descriptor = open_folder(name, at)
            if _hold(descriptor) and _is_still(name, at, descriptor):
                return name, descriptor
            os.close(descriptor)
    raise OSError(errno.EBUSY, "others remove it again and again")


def _hold(descriptor: int) -> bool:
    try:
        return try_lock(descriptor, shared=True)
    except BaseException:
        os.close(descriptor)
        raise


def _is_still(name: str, at: int, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(name, dir_fd=at, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def sweep_folder(at: int) -> int:
    """End and remove what dead owners have left below the open group `at`; return how many there were."""
    return sum(_sweep_one(name, at) for name in groups_below(at) if name.startswith(PREFIX))


def _sweep_one(name: str, at: int) -> bool:
    try:
        descriptor = open_folder(name, at)
    except OSError:  # gone meanwhile, or another user's
        return False
    try:
        return try_lock(descriptor) and remove(name, at, _PATIENCE)
    finally:
        os.close(descriptor)


def _forget() -> None:
    """In a fork: let go of the folders, which belong to the process that it was forked from."""
    for one in list(_held):
        one.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
