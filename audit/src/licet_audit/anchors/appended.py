"""The anchor that is a file on other media: each checkpoint is appended to it, one below the other.

Rules this module keeps:

- what is appended is durable, whole, and nothing before it changes; a line that was cut is closed first;
- the file has to be there, and to be a plain one: a medium that is not mounted, and a link that leads away
  from it, must not be mistaken for it;
- what else is in the file is passed over when it is read; several logs may share it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from licet.errors import reason_of
from licet.files import open_plain
from licet.locks import wait_lock
from licet.record import Checkpoint

from licet_audit.anchors import NotAnchored
from licet_audit.files import sync, write_all
from licet_audit.notes import Head, InvalidNote, Note

_PATIENCE = 5.0  # seconds
_MOST_BYTES = 1 << 28  # of such a file; a checkpoint has some 400
_NOTE = re.compile(rb"(?:[^\n]+\n){3,16}\n(?:\xe2\x80\x94 [^\n]+\n){1,16}")


def see(checkpoint: Checkpoint, path: Path) -> tuple[bytes, None]:
    """Append a checkpoint, unless the file ends with it already.

    Raises:
        NotAnchored: the file is no plain file, or in use for too long.
        OSError: it can't be written.
    """
    try:
        descriptor = open_plain(path, os.O_RDWR | os.O_APPEND)
    except FileNotFoundError:
        raise NotAnchored(
            f"there is no file `{path}`: is its medium there? an empty one has to be made once"
        ) from None
    except OSError as problem:
        raise NotAnchored(f"`{path}` can't be used: {reason_of(problem)}") from None
    try:
        if not wait_lock(descriptor, _PATIENCE):
            raise NotAnchored(f"another process held `{path}` for {_PATIENCE:.0f} s")
        size = os.fstat(descriptor).st_size
        data = checkpoint.note + b"\n"
        end = _read_end(descriptor, size, len(data))
        if end != data:
            write_all(descriptor, data if not end or end.endswith(b"\n\n") else b"\n\n" + data)
        sync(descriptor)
    finally:
        os.close(descriptor)
    return checkpoint.note, None


def found_in(path: Path, origin: str) -> Iterator[Note]:
    """The checkpoints of the log called `origin` in such a file, in its order.

    Raises:
        OSError: it can't be read.
    """
    with os.fdopen(open_plain(path, os.O_RDONLY, follow=True), "rb") as file:
        data = file.read(_MOST_BYTES)
    for match in _NOTE.finditer(data):
        try:
            note = Note.parse(match[0])
            if Head.parse(note.text).origin == origin:
                yield note
        except InvalidNote:
            continue


def _read_end(descriptor: int, size: int, most: int) -> bytes:
    os.lseek(descriptor, max(size - most, 0), os.SEEK_SET)
    return os.read(descriptor, most)
