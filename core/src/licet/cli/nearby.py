"""Places as they are found from the current directory.

Rules this module keeps:

- what lies below the current directory is named from there, everything else as it is;
- inside sentences only places with a line are shortened, never the target of an entry: that is relative to
  the file which names it, so a shortened one could be copied to where it means something else;
- documents for programs keep whole paths.
"""

from __future__ import annotations

import os
import re

from licet.errors import Position


def near(place: Position | str) -> str:
    """A place, or a path, from the current directory if it lies below that."""
    text, here = str(place), _here()
    return text.removeprefix(here) if here and text != here else text


def nearby(text: str) -> str:
    """A sentence whose places, `FILE:LINE`, are named so."""
    here = _here()
    if not here or here not in text:
        return text
    return re.sub(rf"(?<![^\s(])(?<!read )(?<!write ){re.escape(here)}(?=[^\s:]+:\d)", "", text)


def _here() -> str:
    """The current directory with a separator behind it; empty where it is gone, or the root of all."""
    try:
        here = os.path.realpath(os.getcwd())  # noqa: PTH109, a path that is gone is no reason to fail
    except OSError:
        return ""
    return "" if here == os.path.dirname(here) else os.path.join(here, "")  # noqa: PTH118, PTH120
