"""How orders come to a launcher, and from it to a room: one message each, with descriptors.

It runs in the launcher and what it forks, sent by the host. Rules this module keeps:

- whoever waits for an order ends when the host dies, or when nobody can send one any more.
"""

from __future__ import annotations

import _socket
import marshal
import posix
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_ENDS = 16
MOST_ORDER = 1 << 20
CLOSE_ON_EXEC = 0x40000000


def socket(fd: int) -> Any:
    """The socket that a descriptor is."""
    return _socket.socket(fileno=fd)


def pair() -> tuple[Any, Any]:
    """Two ends over which messages go as they are."""
    return _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)


def take(control: Any) -> tuple[bytes, list[int]]:
    """Return the message that is there, and its descriptors; ends this process if there will be none."""
    data, ancillary, _, _ = control.recvmsg(MOST_ORDER, 4 * MOST_ENDS + 64, CLOSE_ON_EXEC)
    if not data or not ancillary:
        posix._exit(0)
    packed = ancillary[0][2]
    return data, [int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4)]


def give(control: Any, data: bytes, ends: list[int]) -> None:
    """Send a message with descriptors."""
    packed = b"".join(fd.to_bytes(4, "little") for fd in ends)
    control.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])


def receive(hand: int, host: list[int]) -> tuple[dict[str, Any], list[int]]:
    """Wait in a room for its order."""
    control = _socket.socket(fileno=hand)
    poll = select.poll()
    for fd in (hand, *host):
        poll.register(fd, select.POLLIN)
    if any(fd != hand for fd, _ in poll.poll()):
        posix._exit(0)  # the host is dead
    data, ends = take(control)
    control.detach()
    return marshal.loads(data), ends
