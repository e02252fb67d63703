"""A keeper between two runs: it waits a while for the next one.

It runs in the keeper, sent by the host. Rules this module keeps:

- it waits only as the keeper was born: code can change some things of any process of its user, such as its
  priority or its limits, and a keeper that was changed ends;
- it ends when the host closes the control socket or dies, and when nobody asked for long enough.
"""

from __future__ import annotations

import marshal
import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ENDS = 5
STATE = ("status", "limits", "cgroup", "oom_score_adj")
LINES = (b"Umask", b"Uid", b"Gid", b"Groups", b"Cap", b"Seccomp", b"Cpus_", b"Mems_")


class Standby:
    """Made before the first guest is."""

    def __init__(self, control: int, host: list[int], read: Callable[[int, int], bytes]) -> None:
        self._control = control
        self._host = host
        self._read = read
        self._born = _state()
        self._socket: Any = None

    def next(self, idle: float) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Return settings and descriptors of the next run; ends this process if there is none."""
        import _socket
        import select

        poll = select.poll()
        for fd in (self._control, *self._host):
            poll.register(fd, select.POLLIN)
        if _state() != self._born or poll.poll(idle * 1000) != [(self._control, select.POLLIN)]:
            posix._exit(0)
        if self._socket is None:
            self._socket = _socket.socket(fileno=self._control)
        space = _socket.CMSG_SPACE(4 * ENDS)
        data, ancillary, _, _ = self._socket.recvmsg(1, space, _socket.MSG_CMSG_CLOEXEC)
        if not data or not ancillary:
            posix._exit(0)
        posix.write(self._control, b"taken\n")
        size = int.from_bytes(self._read(self._control, 8), "big")
        settings = marshal.loads(self._read(self._control, size))
        return settings, tuple(memoryview(ancillary[0][2]).cast("i"))


def _state() -> list[bytes]:
    """What others can change of this process."""
    found = [b"%d %d" % (posix.getpriority(posix.PRIO_PROCESS, 0), posix.sched_getscheduler(0))]
    for name in STATE:
        fd = posix.open(f"/proc/self/{name}", posix.O_RDONLY)
        text = posix.read(fd, 1 << 16)
        posix.close(fd)
        found += [line for line in text.split(b"\n") if name != "status" or line.startswith(LINES)]
    return found
