"""One pass over a log: what a destination has not had yet, in batches, in the order of the log.

Rules this module keeps:

- the first record that is sent is the one after the cursor's, whose leaf it names; anything else is an error;
- the cursor moves past a batch when the collector has answered for it, and not before;
- a batch that is too large for the collector is halved until it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from licet.errors import AuditUnavailable, ExportFailed
from licet.record import Record
from licet.state import StateDirectory, failures

from licet_audit.ends import durable_part
from licet_audit.lines import read
from licet_audit.otlp import encoding
from licet_audit.otlp.assembly import Assembly
from licet_audit.otlp.collector import Answer, TooLarge
from licet_audit.otlp.cursor import Cursor
from licet_audit.segments import lines_from, snapshot

_MOST_ITEMS = 512
_MOST_BYTES = 2 << 20
_MOST_MESSAGES = 20

Send = Callable[[bytes], Answer]


@dataclass(slots=True)
class Sent:
    """What a pass has done so far."""

    records: int = 0
    items: int = 0
    rejected: int = 0
    messages: list[str] = field(default_factory=list)

    def note(self, answer: Answer, first: Record, last: Record) -> None:
        """Note what a collector did with the records from `first` to `last`."""
        self.rejected += answer.rejected
        if not (answer.rejected or answer.message) or len(self.messages) >= _MOST_MESSAGES:
            return
        where = f"records #{first.seq} to #{last.seq}"
        if answer.rejected:
            why = answer.message or "it does not say why"
            self.messages.append(f"the collector did not take {answer.rejected} items of {where}: {why}")
        else:
            self.messages.append(f"the collector took {where}, and says: {answer.message}")


class Signal(Protocol):
    """Makes the items of a signal from records."""

    @property
    def oldest(self) -> int | None:
        """The first record that is needed again to make the items that are not made yet."""
        ...

    def items(self, line: bytes, record: Record) -> Sequence[Any]:
        """The items that this record makes."""
        ...

    def encode(self, items: Sequence[Any]) -> bytes:
        """A request that brings these items."""
        ...


class Logs:
    """Every record is a log record."""

    oldest: int | None = None

    def items(self, line: bytes, record: Record) -> Sequence[Any]:
        """The record."""
        return ((line, record),)

    def encode(self, items: Sequence[Any]) -> bytes:
        """A request for logs."""
        return encoding.logs(items)


class Traces:
    """A record ends spans, or none."""

    def __init__(self) -> None:
        self._assembly = Assembly()

    @property
    def oldest(self) -> int | None:
        """Where the oldest open run begins."""
        return self._assembly.oldest

    def items(self, line: bytes, record: Record) -> Sequence[Any]:
        """The spans that the record ends."""
        return tuple(self._assembly.feed(record))

    def encode(self, items: Sequence[Any]) -> bytes:
        """A request for traces."""
        return encoding.traces(items)


SIGNALS: dict[str, Callable[[], Signal]] = {"logs": Logs, "traces": Traces}


def ship(
    state: StateDirectory,
    cursor: Cursor,
    signal: Signal,
    send: Send,
    keep: Callable[[Cursor], None],
    sent: Sent,
    step: Callable[[], None] = lambda: None,
) -> Cursor:
    """Send what is committed and was not sent; `keep` makes each cursor durable.

    Raises:
        ExportFailed: a batch was not taken, or the log does not go on from the cursor.
        AuditUnavailable: the log can't be read, or a cursor can't be kept.
    """
    batch: list[Any] = []
    size, first = 0, None
    last: Record | None = None
    for line, record in _from(state, cursor, signal):
        first = first or record
        batch.extend(signal.items(line, record))
        size += len(line)
        last = record
        sent.records += 1
        step()
        if len(batch) >= _MOST_ITEMS or size >= _MOST_BYTES:
            cursor = _deliver(cursor, signal, send, batch, first, last, sent)
            keep(cursor)
            batch, size, first = [], 0, None
    if last is not None and first is not None:
        cursor = _deliver(cursor, signal, send, batch, first, last, sent)
        keep(cursor)
    return cursor


def _deliver(
    cursor: Cursor, signal: Signal, send: Send, batch: Sequence[Any], first: Record, last: Record, sent: Sent
) -> Cursor:
    before = sent.rejected
    _send(signal, send, batch, first, last, sent)
    rejected = cursor.rejected + sent.rejected - before
    return replace(cursor, seq=last.seq, leaf=last.leaf, oldest=signal.oldest, rejected=rejected)


def _send(signal: Signal, send: Send, batch: Sequence[Any], first: Record, last: Record, sent: Sent) -> None:
    if not batch:
        return
    try:
        answer = send(signal.encode(batch))
    except TooLarge:
        if len(batch) == 1:
            raise ExportFailed(
                f"the collector takes no request as large as record #{last.seq} alone",
                advice="raise its limit (`max_request_body_size`), then run the same again",
            ) from None
        half = len(batch) // 2
        _send(signal, send, batch[:half], first, last, sent)
        _send(signal, send, batch[half:], first, last, sent)
        return
    sent.items += len(batch) - answer.rejected
    sent.note(answer, first, last)


def _from(state: StateDirectory, cursor: Cursor, signal: Signal) -> Iterator[tuple[bytes, Record]]:
    """What comes after the cursor, once `signal` has seen what it needs of what comes before.

    Raises:
        ExportFailed: the log does not go on from there.
    """
    with failures(state.path):
        segments = durable_part(state) or snapshot(state)  # what is sent must not be lost afterwards
        begin = max(min(cursor.seq, cursor.seq if cursor.oldest is None else cursor.oldest), 0)
        seen = cursor.seq < 0
        for seq, line in lines_from(segments, begin):
            record = read(seq, line)
            if record.seq <= cursor.seq:
                signal.items(line, record)
                seen = record.seq == cursor.seq and record.leaf == cursor.leaf
                continue
            if not seen and not (record.seq == cursor.seq + 1 and record.prev == cursor.leaf):
                raise _broken(cursor, record)
            seen = True
            yield line, record
        if not seen:
            raise _broken(cursor, None)


def _broken(cursor: Cursor, found: Record | None) -> ExportFailed | AuditUnavailable:
    if found is not None and found.seq > cursor.seq + 1:
        return ExportFailed(
            f"records #{cursor.seq + 1} to #{found.seq - 1} were removed before they were sent there",
            advice="send what is left again with `--again`; the collector knows records by `licet.record.id`",
        )
    return ExportFailed(
        f"the log does not go on from record #{cursor.seq}, which was sent last: it was cut or written anew",
        advice="run `licet audit verify`; what the collector has is evidence",
    )
