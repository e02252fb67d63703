"""What stands where other systems have their keeper: it runs in the child before any code of the guest.

Rules this module keeps: the job holds the tree, so that nothing has to be forked or watched here; the
channel is handed on to no child; what the code prints ends its lines as it does everywhere else.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def start(settings: dict[str, Any]) -> list[str]:
    """Settle in; the host knows the walls itself, so none is told."""
    if sys.platform == "win32":
        import msvcrt
        import nt

        nt.set_handle_inheritable(msvcrt.get_osfhandle(settings["channel"]), False)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(newline="\n")  # type: ignore[union-attr]
    return []
