"""What the processes of a run have used, counted by the one that reaps them.

It runs in a keeper, sent by the host.
"""

from __future__ import annotations

import posix
import sys


class Used:
    """The status of the guest, and what the processes of its run have used, each with those that it reaped.

    The peak is that of the largest process, in bytes; the time is that of all, in seconds.
    """

    def __init__(self, guest: int) -> None:
        self.status: int | None = None
        self.peak = 0
        self.time = 0.0
        self._guest = guest

    def reap(self) -> bool:
        """Reap one child if one is dead.

        Raises:
            ChildProcessError: there is no child.
        """
        pid, status, usage = posix.wait4(-1, posix.WNOHANG)
        if pid == self._guest:
            self.status = status
        if pid:
            self.peak = max(
                self.peak, usage.ru_maxrss if sys.platform == "darwin" else usage.ru_maxrss * 1024
            )
            self.time += usage.ru_utime + usage.ru_stime
        return bool(pid)
