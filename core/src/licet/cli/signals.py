"""Being asked to stop, by a person (Ctrl-C), a supervisor (SIGTERM) or a terminal that closes (SIGHUP).

Rules this module keeps:

- all three mean the same: cancel;
- a signal that was ignored when the process began (`nohup`, a background job) stays ignored;
- a second request to stop does not disturb the recording of the first.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

_STOPPING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def interrupt_on_all() -> None:
    """Let each of the signals raise `KeyboardInterrupt`, as SIGINT does by itself."""
    for number in _STOPPING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def ignore_all() -> None:
    """The command is over: whoever stops it now changes nothing."""
    for number in (signal.SIGINT, *_STOPPING):
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def cancelling(task: asyncio.Task[Any]) -> Iterator[None]:
    """Let each of the signals cancel `task`, once, while its loop runs; `asyncio.run` does so for SIGINT."""
    loop = task.get_loop()

    def cancel() -> None:
        if not task.cancelling():
            task.cancel()

    taken = []
    for number in _STOPPING:
        if signal.getsignal(number) is signal.default_int_handler:
            with contextlib.suppress(NotImplementedError):  # Windows, where nobody sends these
                loop.add_signal_handler(number, cancel)
                taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.default_int_handler)
