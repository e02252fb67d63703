"""From what a policy asks for to what a plan says, without building, downloading or running any of it.

Rules this module keeps:

- a built environment is looked at whole, if quickly, when it is first used; after that only whether it is the
  one that was looked at;
- a prefix is looked at each time: whoever installs something into it makes another digest;
- what is missing is a refusal that says how to make it.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from licet.environments.python import (
    Python,
    PythonWish,
    digest_of,
    store_path,
    this_identity,
    this_interpreter,
)
from licet.errors import EnvironmentUnavailable

if TYPE_CHECKING:
    from licet.environments.lockfile import LockFile

_Looks = tuple[tuple[int, ...], ...]


class Environments:
    """Finds environments, and remembers those that it has looked at; for any thread."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Looks, Python]] = {}

    def find(self, wish: PythonWish | None) -> Python | None:
        """What `wish` comes to on this host; None if nothing is wished for.

        Raises:
            EnvironmentUnavailable: it is not built, not as it was built, or no Python that can be used.
        """
        if wish is None:
            return None
        if wish.lock is None:
            from licet.environments.prefixes import find_prefix  # most policies name none

            return find_prefix(wish.path, wish.where)
        looks = _looks(wish.lock)
        known = self._known.get(wish.lock.digest)
        if known is None or looks is None or known[0] != looks:
            found = _python_of(wish, wish.lock)
            if looks is None:
                return found
            known = self._known[wish.lock.digest] = looks, found
        return known[1]


def _python_of(wish: PythonWish, lock: LockFile) -> Python:
    from licet.environments.store import find

    found, advice = find(lock), f"run `licet env build {shlex.quote(wish.path)}`"
    if found is None:
        raise EnvironmentUnavailable(
            f"the environment of `{wish.written}` is not built for {this_identity()}",
            where=wish.where,
            advice=advice,
        )
    if found.problem is not None:
        raise EnvironmentUnavailable(
            f"the environment of `{wish.written}` is not as it was built: {found.problem}",
            where=wish.where,
            advice=f"{advice}, which makes it anew",
        )
    interpreter, prefix = this_interpreter()
    identity = this_identity()
    content = {"environment": found.digest, "interpreter": interpreter, "version": identity.version}
    return Python(interpreter, prefix, (found.packages,), digest_of(content), identity.version)


def _looks(lock: LockFile) -> _Looks | None:
    """What tells an environment that was looked at from another one, or from itself changed at the top."""
    from licet.environments.manifest import NAME
    from licet.environments.store import key_of

    home = store_path()
    if home is None:
        return None
    path = os.path.join(home, key_of(lock))  # noqa: PTH118
    try:
        found = [os.lstat(place) for place in (path, os.path.join(path, NAME))]  # noqa: PTH118
    except OSError:
        return None
    return tuple((one.st_dev, one.st_ino, one.st_mtime_ns, one.st_ctime_ns) for one in found)
