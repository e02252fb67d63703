"""Where the state of a policy is, and how to name that place on the command line.

Rules this module keeps: a command is shown as it can be typed in the current directory; looking for a state
directory makes none.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from licet.errors import InvalidSettings
from licet.settings import Settings, directory_of, settings_beside

_PACK = "licet:compute"  # whose state lies in the current directory, like that of every pack


def found(policy: str | None = None) -> tuple[Path, Settings]:
    """The state directory for `policy` (None: for packs in the current directory), and its settings.

    Raises:
        InvalidSettings: the settings are wrong.
    """
    directory = directory_of(policy or _PACK)
    settings = settings_beside(directory, os.environ)
    return settings.state_beside(directory), settings


def command(words: str, state: Path) -> str:
    """`licet WORDS`, with `--state` where the log at `state` is not the one that it finds by itself."""
    try:
        usual: Path | None = found()[0]
    except InvalidSettings:  # it finds none, then
        usual = None
    same = usual is not None and os.path.realpath(usual) == os.path.realpath(state)
    return f"licet {words}" + ("" if same else f" --state {shlex.quote(str(state))}")
