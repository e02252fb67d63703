"""Writing that lasts.

Rules this module keeps: `write_all` writes everything or raises; `sync` returns only when the data of a file
would survive the loss of power, as far as the operating system can say.
"""

from __future__ import annotations

import os
import sys

if sys.platform == "darwin":
    import fcntl

    def sync(descriptor: int) -> None:
        """Make what was written durable; on macOS only F_FULLFSYNC reaches the disk."""
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)

elif sys.platform == "win32":

    def sync(descriptor: int) -> None:
        """Make what was written durable."""
        os.fsync(descriptor)

else:

    def sync(descriptor: int) -> None:
        """Make what was written durable, with as much metadata as is needed to read it."""
        os.fdatasync(descriptor)


def write_all(descriptor: int, data: bytes | bytearray) -> None:
    """Write all of `data` at the end of a file that is open for appending.

    Raises:
        OSError: some of it could not be written; some may have been.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
