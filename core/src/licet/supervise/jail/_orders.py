"""How orders come to a launcher, from it to a room, and from there to the guest: as descriptors alone.

It runs in the launcher and what it forks, sent by the host. Rules this module keeps:

- what an order says of its run is in a file that the guest alone reads: no memory that a later run is forked
  from has ever held it;
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
CLOSE_ON_EXEC = 0x40000000


def socket(fd: int) -> Any:
    """The socket that a descriptor is."""
    return _socket.socket(fileno=fd)


def pair() -> tuple[Any, Any]:
    """Two ends over which messages go as they are."""
    return _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)


def take(control: Any) -> list[int]:
    """Return the descriptors of the order that is there; ends this process if there will be none."""
    data, ancillary, _, _ = control.recvmsg(1, 4 * MOST_ENDS + 64, CLOSE_ON_EXEC)
    if not data or not ancillary:
        posix._exit(0)
    packed = ancillary[0][2]
    return [int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4)]


def give(control: Any, ends: list[int], message: bytes = b"!") -> None:
    """Pass an order on, or send another message with descriptors."""
    packed = b"".join(fd.to_bytes(4, "little") for fd in ends)
    control.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)] if ends else [])


def receive(hand: int, host: list[int]) -> list[int]:
    """Wait for the order of a room, or for the death of the host, which ends this process."""
    control = _socket.socket(fileno=hand)
    poll = select.poll()
    for fd in (hand, *host):
        poll.register(fd, select.POLLIN)
    if any(fd != hand for fd, _ in poll.poll()):
        posix._exit(0)
    ends = take(control)
    control.close()
    return ends


def read(fd: int) -> Any:
    """What an order says of its run, from the file that it is in."""
    return marshal.loads(posix.pread(fd, posix.fstat(fd).st_size, 0))
