"""The policy of a running program: read anew when its files change, whole or not at all.

Rules this module keeps:

- who asks gets one stack and keeps it: nothing changes under a run;
- a change that can't be used leaves the stack before it in force, bounds included, says so in the log once,
  and is told by the stack itself (`stale`) for as long as that lasts; the files that can't be used yet are
  sealed like those that were, so no run writes the policy of the next;
- nothing happens in the background: whoever asks first after a change reads, the others wait for it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from licet.errors import InvalidPolicy
from licet.output import bounded, escape
from licet.policy.load import PolicySource, anchored, load_stack
from licet.policy.references import PACK_PREFIX
from licet.policy.stack import PolicyStack
from licet.policy.watch import Watch

_RETRY_S = 1.0
"""After so long what failed is tried again, changed or not: the system may have been short of something."""

_log = logging.getLogger("licet")


@dataclass(frozen=True, slots=True)
class _Held:
    """The stack in force, and what was looked at when it was last tried to read it."""

    stack: PolicyStack
    watch: Watch
    again_at: float = float("inf")

    def is_current(self) -> bool:
        return self.watch.is_current() and time.monotonic() < self.again_at


class LivePolicy:
    """The policy `root` (a file, or `licet:PACK`) as its files say it now; for any thread."""

    def __init__(self, root: str | Path, source: PolicySource, *, sealed: Iterable[Path] = ()) -> None:
        """Load it; the arguments are those of `load_stack`.

        Raises:
            InvalidPolicy: it can't be loaded; there is nothing before it to keep.
        """
        name = str(root)
        self._root = name if name.startswith(PACK_PREFIX) else anchored(name)
        self._source = source
        self._sealed = tuple(Path(anchored(str(path))) for path in sealed)
        self._guard = threading.Lock()
        _policies.add(self)
        watch = Watch()
        self._held = _Held(self._load(watch), watch)

    def in_child(self) -> None:
        """After a fork: nobody here reads, and nobody holds the lock."""
        self._guard = threading.Lock()

    def at_once(self) -> PolicyStack | None:
        """The stack in force if nothing has to be read for it; for event loops, which must not wait."""
        held = self._held
        return held.stack if held.is_current() else None

    def current(self) -> PolicyStack:
        """The stack in force; the same object for as long as its files are the same.

        Without a change this costs a few microseconds for each file and each directory above it.
        """
        held = self._held
        if not held.is_current():
            with self._guard:
                if self._held is held or not self._held.is_current():
                    self._renew()
                held = self._held
        return held.stack

    def _renew(self) -> None:
        before, watch = self._held.stack, Watch()
        try:
            stack = self._load(watch)
        except (InvalidPolicy, OSError) as problem:
            self._keep(before, watch, bounded(escape(str(problem), newlines=False), 500))
            return
        self._held = _Held(stack, watch)
        if (stack.digest, stack.stale) != (before.digest, before.stale):
            _log.info("the policy `%s` is in force", stack.name)

    def _keep(self, stack: PolicyStack, watch: Watch, why: str) -> None:
        is_news = stack.stale != why or not self._held.watch.is_current()
        sealed = tuple(dict.fromkeys((*stack.sealed, *watch.followed())))
        if (stack.stale, stack.sealed) != (why, sealed):
            stack = replace(stack, stale=why, sealed=sealed)
        self._held = _Held(stack, watch, time.monotonic() + _RETRY_S)
        if is_news:
            _log.warning(
                "the policy has changed and can't be used, so `%s` stays in force: %s", stack.name, why
            )

    def _load(self, watch: Watch) -> PolicyStack:
        return load_stack(self._root, self._source, sealed=self._sealed, watch=watch)


_policies: weakref.WeakSet[LivePolicy] = weakref.WeakSet()


def _after_fork() -> None:
    for policy in tuple(_policies):
        policy.in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
