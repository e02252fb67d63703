"""The format `otlp` of `licet audit export`: its options, and what it says."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from licet.cli.progress import Steps
from licet.errors import UsageError
from licet.output import bounded

from licet_audit.exports import Export
from licet_audit.otlp.cursor import Cursor, CursorFile

if TYPE_CHECKING:
    from licet_audit.otlp.collector import Collector

_FOLLOW_S = 1.0
_INCOMPLETE = 3
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to, as it is called and as it is shown: without a password."""

    url: str
    shown: str

    @staticmethod
    def of(base: str, signal: str) -> Destination:
        """The endpoint of a signal below a collector's address.

        Raises:
            UsageError: it is no address.
        """
        try:
            parts = urlsplit(base)
            host, _ = parts.hostname, parts.port
        except ValueError:
            host = None
        if not host or parts.scheme not in ("http", "https"):
            raise UsageError(
                f"`{bounded(base, 300)}` is no address of a collector",
                advice="write it as in `--to https://collector.example.com:4318`",
            )
        end = f"/v1/{signal}"
        path = parts.path.rstrip("/")
        path = path if path.endswith(end) else path + end
        place = parts.netloc.rpartition("@")[2]
        url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
        return Destination(url, urlunsplit((parts.scheme, place, path, "", "")))


def headers_of(given: Iterable[str], environment: str) -> dict[str, str]:
    """Headers from the environment (as OpenTelemetry writes them) and from options, which win.

    Raises:
        UsageError: one is no NAME=VALUE, or can't be a header.
    """
    found: dict[str, str] = {}
    for text in environment.split(","):
        if text.strip():
            name, value = _header(text)
            found[name] = unquote(value)
    return found | dict(map(_header, given))


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    name = name.strip()
    sound = name.replace("-", "").replace("_", "").isalnum() and _is_plain(name + value)
    if not equals or not sound:
        raise UsageError(
            "a header is no NAME=VALUE in ASCII", advice="write it as in `--header api-key=SECRET`"
        )
    return name.lower(), value.strip()


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def write(export: Export) -> int:
    """Send what the destination has not had yet.

    Raises:
        UsageError: an option is missing or wrong, or the extra is not installed.
        ExportFailed: it was not taken.
        AuditUnavailable: the log can't be read, or the cursor can't be kept.
    """
    options = export.options
    if not export.selection.is_all:
        raise UsageError(
            "`otlp` sends the whole log, since it goes on where it stopped",
            advice="leave out RUN, `--since` and `--until`",
        )
    if options["to"] is None:
        raise UsageError("`otlp` needs a collector", advice="name it with `--to URL`")
    destination = Destination.of(options["to"], options["signal"])
    headers = headers_of(options["header"], os.environ.get(HEADERS, ""))
    for needed in ("urllib3", "opentelemetry.proto"):
        if not _is_installed(needed):
            raise UsageError(
                f"exporting over OTLP needs `{needed}`", advice="pip install 'licet-audit[otlp]'"
            )
    return _Session(export, destination, headers).run()


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even what it would be in
        return False


class _Session:
    """One export, from its cursor to the end of the log, or for as long as it follows it."""

    def __init__(self, export: Export, destination: Destination, headers: dict[str, str]) -> None:
        from licet_audit.otlp.shipping import Sent

        self._export = export
        self._signal: str = export.options["signal"]
        self._follow: bool = export.options["follow"]
        self._destination = destination
        self._headers = headers
        self._state = export.reader.state
        self._file = CursorFile(self._state.log_id, destination.shown, self._signal)
        self._sent = Sent()

    def run(self) -> int:
        """Send, say what was sent, and return the exit code."""
        from licet.cli.terminal import warn

        from licet_audit.otlp.collector import Collector

        patience: float | None = self._export.options["patience"]
        if patience is None:
            patience = None if self._follow else 300.0
        with self._file.held(), Steps() as steps:
            if self._export.options["again"]:
                self._file.write(Cursor())
            begin = self._file.read()
            collector = Collector(
                self._destination.url, self._signal, self._headers, patience=patience, hear=warn
            )
            try:
                cursor = self._passes(begin, collector, steps)
            finally:
                collector.close()
        return self._say(begin.seq, cursor.seq)

    def _passes(self, cursor: Cursor, collector: Collector, steps: Steps) -> Cursor:
        from licet.cli.terminal import warn

        from licet_audit.otlp.shipping import SIGNALS, ship

        told = 0
        while True:
            signal = SIGNALS[self._signal]()
            step = lambda: steps.step("records read and sent")  # noqa: E731
            cursor = ship(self._state, cursor, signal, collector.send, self._file.write, self._sent, step)
            for message in self._sent.messages[told:]:
                warn(message)
            told = len(self._sent.messages)
            if not self._follow:
                return cursor
            time.sleep(_FOLLOW_S)

    def _say(self, begin: int, end: int) -> int:
        from licet.cli.terminal import Card, put_json, show_card

        sent = self._sent
        if self._export.as_json:
            put_json(
                {
                    "to": self._destination.shown,
                    "signal": self._signal,
                    "first": begin + 1 if sent.records else None,
                    "last": end if sent.records else None,
                    "records": sent.records,
                    "items": sent.items,
                    "rejected": sent.rejected,
                    "messages": sent.messages,
                }
            )
        else:
            rows = [
                ("to", self._destination.shown),
                ("sent", f"{sent.items} {self._signal} of {sent.records} records"),
            ]
            if sent.records:
                rows.append(("records", f"#{begin + 1} to #{end}"))
            if sent.rejected:
                rows.append(("not taken", f"{sent.rejected}; what the collector said is above"))
            show_card(Card("warn" if sent.rejected else "good", "sent", "", rows))
        return _INCOMPLETE if sent.rejected else 0
