"""Anchors: checkpoints of the log, seen outside this host by those whom settings name.

An anchor is over the *text* of a checkpoint (name of the log, number of records, root), not over its
signatures, which are renewed while nothing happens:

- a file on other media gets the signed checkpoint appended;
- a time-stamping authority (RFC 3161) signs the SHA-256 of the text, with a time;
- a witness (C2SP tlog-witness) checks that it continues all that it saw before, and cosigns it with a time.

Rules this package keeps:

- nothing is anchored unless settings name somebody; one that fails spoils no other;
- what an anchor answers is checked before it is kept, and again, against the log and against keys that come
  from elsewhere, whenever the log is verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from licet.errors import LicetError, reason_of
from licet.output import bounded
from licet.record import AnchorFailure, AnchorReceipt, Checkpoint

if TYPE_CHECKING:
    from licet.settings import Anchors

Answer = AnchorReceipt | AnchorFailure

FILE, TIMESTAMP, WITNESS = "file", "timestamp", "witness"
"""The kinds of licet's own anchors."""


class NotAnchored(Exception):
    """Why an anchor did not see a checkpoint; the message says it."""


def anchored(checkpoint: Checkpoint, wanted: Anchors) -> Iterator[Answer]:
    """Have a checkpoint seen by each of the built-in anchors that are wanted."""
    from licet_audit.anchors import appended, timestamps, witnesses

    for path in wanted.files:
        yield _tried(FILE, str(path), partial(appended.see, checkpoint, path))
    for authority in wanted.timestamps:
        yield _tried(TIMESTAMP, authority.url, partial(timestamps.see, checkpoint, authority))
    for witness in wanted.witnesses:
        name = witness.key.partition("+")[0]
        yield _tried(WITNESS, name, partial(witnesses.see, checkpoint, witness))


def _tried(kind: str, name: str, see: Callable[[], tuple[bytes, str | None]]) -> Answer:
    try:
        data, time = see()
    except (NotAnchored, LicetError) as problem:
        return AnchorFailure(kind, name, bounded(str(problem), 500))
    except OSError as problem:
        return AnchorFailure(kind, name, bounded(reason_of(problem), 500))
    return AnchorReceipt(kind, name, data, time)
