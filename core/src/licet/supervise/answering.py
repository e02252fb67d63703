"""What a run asks of its caller, put on the wires of the run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from licet.supervise import bootstrap
from licet.supervise.calling import Calls
from licet.supervise.channel import Channel

if TYPE_CHECKING:
    from licet.supervise.asking import Asking
    from licet.supervise.descriptors import Descriptors
    from licet.supervise.wires import Wires

End = Callable[[BaseException | None], object]
"""Ends the run: by an answer that is its last, or by what was raised instead of one."""


def answer_calls(asking: Asking, tools: Collection[str], wires: Wires, guest: int, end: End) -> Channel:
    """The channel of a run whose calls of `tools` are answered, over the descriptor `guest`."""
    wires.listen(asking.courier.fileno(), asking.courier.deliver)
    if asking.on_call is None or not tools:
        return Channel(bootstrap.FRAME_LIMIT)
    calls = Calls(tools, asking.on_call, asking.courier, wires, guest, end)
    return Channel(bootstrap.CALL_LIMIT, calls.take)


def answer_connections(
    asking: Asking | None, listener: int, names: tuple[str, ...], wires: Wires, fds: Descriptors, end: End
) -> None:
    """Answer the connections that the kernel asks about; with nobody to make them, each is refused."""
    from licet.supervise.notify.gate import Ask, Gate, asker, refuse
    from licet.supervise.notify.names import Names

    ask: Ask = refuse
    if asking is not None and asking.connect is not None:
        ask = asker(asking.courier, asking.connect, end)
    Gate(listener, wires, fds, ask, Names(names))
