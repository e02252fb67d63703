"""What the machine says of itself: where its administrator's files are, and when its system started.

Rules this module keeps:

- the place is the system's to say, never a variable's: whoever could move it would leave the bounds behind.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PROGRAM_DATA = 0x23  # CSIDL_COMMON_APPDATA


def administrators_directory() -> Path:
    """The directory of machine-wide settings and policies; it need not exist."""
    if sys.platform == "win32":
        import ctypes

        buffer = ctypes.create_unicode_buffer(260)
        failed = ctypes.windll.shell32.SHGetFolderPathW(None, _PROGRAM_DATA, None, 0, buffer)
        return Path(r"C:\ProgramData" if failed else buffer.value) / "licet"
    return Path("/etc/licet")


@cache
def boot() -> str | None:
    """The id of the system's start, which the monotonic clock counts from; None where it has none."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except (OSError, ValueError):
        return None
