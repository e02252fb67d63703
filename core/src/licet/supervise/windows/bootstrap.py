"""How a new interpreter begins on Windows: by the message that a guest gets elsewhere, over a handle.

Rules this module keeps: flags, modules and settings are those of other systems
(`licet.supervise.bootstrap`); the channel is one handle for both ways, since no keeper stands between.
"""

from __future__ import annotations

from licet.supervise.bootstrap import FLAGS, LOADER

_LOADER = f"""\
import msvcrt, nt as system
{LOADER}
start(msvcrt.open_osfhandle(int(sys.argv[1]), system.O_RDWR | system.O_NOINHERIT))
"""


def arguments(interpreter: str, channel: int) -> tuple[str, ...]:
    """Return the arguments of an isolated interpreter that reads its message from the handle `channel`."""
    return (interpreter, *FLAGS, "-c", _LOADER, str(channel))
