"""Room on the stack for the parser, which recurses in C and would take the process down where it has none.

Rules this module keeps:

- the parser's own limits hold on any stack of `ENOUGH` bytes: measured, a quarter of it suffices;
- where a thread of this process could have less, the work is done on a thread that has it;
- the size of other threads' stacks is left as it was.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

ENOUGH = 4 << 20
"""Bytes of stack that the parser can't use up."""

_sizes = threading.Lock()

if sys.platform == "win32":

    def _granted() -> int:
        return ENOUGH  # the program file states the size, and Python's own limits fit it

else:
    import resource

    def _granted() -> int:
        soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
        return ENOUGH if soft == resource.RLIM_INFINITY else soft


def _after_fork() -> None:
    global _sizes
    _sizes = threading.Lock()  # its holder may not have been forked along


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _chosen() -> int:
    """The size of stacks that somebody chose for new threads, 0 if nobody did."""
    with _sizes:
        size = threading.stack_size()
        if size:
            threading.stack_size(size)  # to ask is to reset
    return size


def ample() -> bool:
    """Whether every thread of this process has at least `ENOUGH`, as far as settings tell."""
    return (_chosen() or ENOUGH) >= ENOUGH and _granted() >= ENOUGH


def with_room(work: Callable[[], T]) -> T:
    """Do `work` where there is room for it, and return or raise what it does.

    Raises:
        RuntimeError: no thread can be started.
    """
    if ample():
        return work()
    done: list[T] = []
    failed: list[BaseException] = []

    def on_thread() -> None:
        try:
            done.append(work())
        except BaseException as problem:
            failed.append(problem)

    worker = threading.Thread(target=on_thread, name="licet-screen", daemon=True)
    with _sizes:
        before = threading.stack_size(ENOUGH)
        try:
            worker.start()
        finally:
            threading.stack_size(before)
    worker.join()
    if failed:
        raise failed[0]
    return done[0]
