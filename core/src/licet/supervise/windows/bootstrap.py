"""What the host sends to a new interpreter on Windows: one message, over the channel that will report.

Rules this module keeps: flags, modules and settings are those of other systems
(`licet.supervise.bootstrap`); the channel is one handle for both ways, since no keeper stands between.
"""

from __future__ import annotations

import marshal

from licet.supervise.bootstrap import BUDGET, FLAGS, FRAME_LIMIT, load_modules, snippet_settings
from licet.supervise.spec import INTERPRETER, Snippet

_LOADER = """\
import marshal, msvcrt, nt, sys
def read(fd, size):
    data = b""
    while len(data) < size:
        piece = nt.read(fd, size - len(data))
        if not piece:
            nt._exit(0)
        data += piece
    return data
def load(fd):
    modules, settings = marshal.loads(read(fd, int.from_bytes(read(fd, 8), "big")))
    spaces = {name: {"__name__": name} for name, code in modules}
    for name, code in modules:
        exec(code, spaces[name])
    settings["channel"] = fd
    return spaces, settings
def start():
    spaces, settings = load(msvcrt.open_osfhandle(int(sys.argv[1]), nt.O_RDWR | nt.O_NOINHERIT))
    spaces["guest"]["enter"](settings, spaces)
start()
"""
_SENT = (
    ("show", "licet.values", "_show.py"),
    ("encode", "licet.values", "_encode.py"),
    ("decode", "licet.values", "_decode.py"),
    ("keeper", "licet.supervise.windows", "_settle.py"),
    ("guest", "licet.supervise", "_guest.py"),
)


def arguments(interpreter: str, channel: int) -> tuple[str, ...]:
    """Return the arguments of an isolated interpreter that reads its message from the handle `channel`."""
    return (interpreter, *FLAGS, "-c", _LOADER, str(channel))


def message(work: Snippet, interpreter: str) -> bytes:
    """Return what the new interpreter reads first.

    Raises:
        ValueError: an input can't cross.
    """
    settings = {
        "locale": None,
        "frame_limit": FRAME_LIMIT,
        "budget": BUDGET,
        "argv": None,
        **snippet_settings(work),
    }
    data = marshal.dumps((load_modules(_SENT, interpreter == INTERPRETER), settings))
    return len(data).to_bytes(8, "big") + data
