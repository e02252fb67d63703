"""The receipts of anchors, beside the log: `anchors/<size>/<kind>-<name>`, each as the anchor gave it.

Rules this module keeps:

- the first receipt of an anchor for a size stays: it proves the most;
- a name comes from outside, so it is spelled with letters, digits and `.-_%` alone, and is short;
- what is read back proves nothing by itself; `checked` holds it against the log and against trusted keys.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from licet.errors import AuditUnavailable
from licet.files import create_once, make_folder, read_plain
from licet.record import AnchorReceipt
from licet.state import StateDirectory, failures

from licet_audit.anchors import WITNESS
from licet_audit.notes import InvalidNote, Note

MOST_BYTES = (
    1 << 20
)  # of a receipt; a witness answers with a few hundred, a time-stamping authority with 8 KiB
_LONGEST = 120  # characters of a name

_SIZE = re.compile(r"\d{20}", re.ASCII)
_NAME = re.compile(r"([a-z][a-z0-9_]*)-([A-Za-z0-9._%~-]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt as it is kept: of a checkpoint of `size` records, by an anchor of some kind."""

    size: int
    kind: str
    anchor: str
    data: bytes

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.kind}-{self.anchor}"


def is_whole(receipt: Receipt) -> bool:
    """Whether it is what its kind of anchor gives, whatever that proves."""
    try:
        return bool(receipt.data) and (receipt.kind != WITNESS or bool(Note.parse(receipt.data)))
    except InvalidNote:
        return False


def spelled(anchor: str) -> str:
    """The name of an anchor as names of files have it."""
    text = quote(anchor, safe="", errors="surrogatepass")
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 17]}~{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def store(state: StateDirectory, size: int, receipt: AnchorReceipt) -> bool:
    """Keep a receipt durably; False if that anchor has given one for this size before.

    Raises:
        AuditUnavailable: it can't be written, or is no receipt.
    """
    name = f"{receipt.kind}-{spelled(receipt.anchor)}"
    if not _NAME.fullmatch(name) or len(receipt.data) > MOST_BYTES:
        raise AuditUnavailable(f"an anchor of the kind `{receipt.kind}` gave a receipt that can't be kept")
    path = _folder(state) / f"{size:020d}" / name
    with failures(path):
        make_folder(path.parent)
        return create_once(path, receipt.data)


def all_of(state: StateDirectory) -> Mapping[int, tuple[Receipt, ...]]:
    """All receipts by the size of their checkpoint, the smallest first; other files there are passed over.

    Raises:
        AuditUnavailable: they can't be read.
    """
    folder = _folder(state)
    with failures(folder):
        sizes = sorted(name for name in _names(folder) if _SIZE.fullmatch(name))
        return {int(size): found for size in sizes if (found := _of(folder / size, int(size)))}


def _of(folder: Path, size: int) -> tuple[Receipt, ...]:
    matches = [match for name in sorted(_names(folder)) if (match := _NAME.fullmatch(name))]
    return tuple(Receipt(size, match[1], match[2], _read(folder / match[0])) for match in matches)


def _read(path: Path) -> bytes:
    """The bytes of a receipt; of what is none, such as a link, there are none, which prove nothing."""
    try:
        return read_plain(path, MOST_BYTES)
    except OSError:
        if path.is_symlink() or not path.is_file():
            return b""
        raise


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _folder(state: StateDirectory) -> Path:
    return state.path / "anchors"
