"""The scrubber for secrets that licet ships.

Rules this module keeps:

- most output is plain, and costs one quick look; the detector is loaded by the first text that is not;
- shapes and detector read a text in which escapes are what they stand for, at the same places; the detector
  what the shapes have left of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from licet.hookspecs import hookimpl
from licet.scrubbing import Channel, Secret, plain

from licet_secrets import shapes

_ESCAPED = re.compile(r"\\[nrt\"'\\]")
_AS_READ = {r"\n": " \n", r"\r": " \n", r"\t": "  ", r"\"": ' "', r"\'": " '", r"\\": "  "}


@hookimpl
def licet_scrub(text: str, channel: Channel) -> Sequence[Secret]:
    """Every secret of a known shape, or that a rule of the detector finds."""
    if plain(text):
        return ()
    from licet_secrets import detector  # most output needs none

    read = as_read(text)
    found = tuple(shapes.secrets(read))
    return (*found, *detector.secrets(without(read, found)))


def without(text: str, found: Sequence[Secret]) -> str:
    """`text`, as long as it was, with blanks where something was found."""
    pieces: list[str] = []
    done = 0
    for one in sorted(found, key=lambda secret: secret.start):
        start = max(one.start, done)
        pieces += (text[done:start], " " * (one.end - start))
        done = max(one.end, done)
    return "".join((*pieces, text[done:]))


def as_read(text: str) -> str:
    """`text`, as long as it was, without what would hide a key: escapes of a repr or of JSON, and NULs."""
    if "\0" in text:
        text = text.replace("\0", " ")
    return _ESCAPED.sub(lambda match: _AS_READ[match[0]], text) if "\\" in text else text
