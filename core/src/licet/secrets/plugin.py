"""The scrubber for secrets that licet ships.

Rules this module keeps:

- most output is plain, and costs one quick look; the detector is loaded by the first text that is not;
- shapes and detector read a text in which escapes are what they stand for, at the same places, and
  both all of it: a rule may need beside it what a shape found;
- where the detector is not installed the shapes do what they can, and whoever asks is told; one that is
  installed and fails has not read the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from licet.hookspecs import hookimpl
from licet.scrubbing import Channel, Secret, plain
from licet.secrets import detector, shapes

_ESCAPED = re.compile(r"\\[nrt\"'\\]")
_AS_READ = {r"\n": " \n", r"\r": " \n", r"\t": "  ", r"\"": ' "', r"\'": " '", r"\\": "  "}


@hookimpl
def licet_scrub(text: str, channel: Channel) -> Sequence[Secret]:
    """Every secret of a known shape, or that a rule of the detector finds."""
    if plain(text):
        return ()
    read = as_read(text)
    found = tuple(shapes.secrets(read))
    if not detector.is_installed():
        return found
    return (*found, *detector.secrets(read))


@hookimpl
def licet_lacks() -> Mapping[str, str]:
    """The detector, where it is not installed."""
    return {} if detector.is_installed() else {"detector": "pip install 'licet[secrets]'"}


def as_read(text: str) -> str:
    """`text`, as long as it was, without what would hide a key: escapes of a repr or of JSON, and NULs."""
    if "\0" in text:
        text = text.replace("\0", " ")
    return _ESCAPED.sub(lambda match: _AS_READ[match[0]], text) if "\\" in text else text
