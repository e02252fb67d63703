"""Answering what a run asks for while it goes on: the calls of its tools, and its connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from licet.supervise import bootstrap
from licet.supervise.calling import Calls
from licet.supervise.channel import Channel

if TYPE_CHECKING:
    from licet.supervise.asking import Asking
    from licet.supervise.descriptors import Descriptors
    from licet.supervise.spec import Spec
    from licet.supervise.wires import Wires

End = Callable[[BaseException | None], object]
"""Ends the run: for what was raised in place of an answer, or because the answer is the last."""


def channel_of(spec: Spec, asking: Asking | None, wires: Wires, fd: int, end: End) -> Channel:
    """What hears the guest at `fd`, and has its calls answered if it has tools."""
    if asking is None or asking.on_call is None or not spec.tools:
        return Channel(bootstrap.FRAME_LIMIT)
    calls = Calls(spec.tools, asking.on_call, asking.courier, wires, fd, end)
    return Channel(bootstrap.CALL_LIMIT, calls.take)


def open_gate(
    spec: Spec, asking: Asking | None, wires: Wires, fds: Descriptors, listener: int | None, end: End
) -> None:
    """Answer for the guest's connections, if the kernel asks about them."""
    if listener is None or spec.jail is None:
        return
    from licet.supervise.notify.gate import Ask, Gate, asker, refuse
    from licet.supervise.notify.names import Names

    ask: Ask = refuse
    if asking is not None and asking.connect is not None:
        ask = asker(asking.courier, asking.connect, end)
    Gate(listener, wires, fds, ask, Names(spec.jail.names))
