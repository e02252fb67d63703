"""What an exception of a tool may say to the code: no place on this host, and no more than a paragraph.

Rules this module keeps:

- of an absolute path only its last name is told, behind `…/`; an address on the web is no path;
- known places of this process (home, working directory, interpreter) are found even with blanks in them;
- control characters are escaped, the length is bounded, a message that can't be had is said to be missing;
- time is linear in the length of the message, which is cut before it is looked at.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from licet.output import bounded

MOST_MESSAGE = 1000
_MOST_READ = 8 * MOST_MESSAGE
_MARK = "…/"

_ENDS = r"\s'\"`<>|:;,()\[\]{}"
_QUOTED = re.compile(
    r"""(['"`])((?:file://)?(?:~[^'"`/\n]*)?/[^'"`\n]*|[A-Za-z]:[\\/][^'"`\n]*|\\\\[^'"`\n]*)\1"""
)
_PATH = re.compile(
    rf"(?<![\w.])\.{{1,2}}/[^{_ENDS}]*"  # ./x tells nothing, and is left alone
    rf"|(?<!\w)file:/+[^{_ENDS}]+"
    rf"|(?<!\w)~\w*/[^{_ENDS}]*"
    rf"|(?<![\w/…:\\])/+[^{_ENDS}]+"  # /srv/x
    rf"|(?<=:)/(?!/)[^{_ENDS}]+"  # in: /srv/x, but not the middle of https://x
    rf"|(?<!\w)[A-Za-z]:[\\/](?!/)[^{_ENDS}]*"  # C:\x
    rf"|(?<![\\\w])\\\\[^{_ENDS}]+"  # \\server\x
)


def told(problem: BaseException, private: Iterable[str] = ()) -> str:
    """The message of `problem` as code may see it; `private` are further places of this host."""
    try:
        key = _key(problem)
        message = str(problem) if key is None else key
    except KeyboardInterrupt:  # the user's
        raise
    except BaseException:
        return "its message can't be shown"
    return without_places(message, private)


def _key(problem: BaseException) -> str | None:
    """The text that a `KeyError` was made of: `str` quotes it, and the code's own would once more."""
    if isinstance(problem, KeyError) and type(problem).__str__ is KeyError.__str__ and len(problem.args) == 1:
        key = problem.args[0]
        return key if type(key) is str else None
    return None


def without_places(message: str, private: Iterable[str] = ()) -> str:
    """`message` with every path of this host cut to its last name."""
    text = bounded(message, _MOST_READ)
    for place in sorted({*_usual(), *filter(None, private)}, key=len, reverse=True):
        if place in text:
            text = re.sub(rf"{re.escape(place)}(?=[/\\]|\b|$)([^{_ENDS}]*)", _known, text)
    text = _QUOTED.sub(lambda found: f"{found[1]}{_last(found[2])}{found[1]}", text)
    text = bounded(_PATH.sub(lambda found: _last(found[0]), text), MOST_MESSAGE)
    return text if text.isprintable() else repr(text)[1:-1]


def _known(found: re.Match[str]) -> str:
    return _last(found[1]) if found[1].strip("/\\") else "…"


def _last(path: str) -> str:
    if path.startswith("."):
        return path
    name = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    return f"{_MARK}{name}" if name and not name.endswith(":") else "…"


@lru_cache(maxsize=1)
def _usual() -> frozenset[str]:
    """Places that tell of this host and its user, and may hold blanks; never the root alone."""
    found = {sys.prefix, sys.base_prefix}
    for place in (Path.home, Path.cwd):
        try:
            found.add(str(place()))
        except (OSError, RuntimeError):  # there is no home, or the directory is gone
            continue
    return frozenset(place for place in found if len(place) > 1)
