"""An OpenTelemetry collector, by OTLP over HTTP: a request is delivered, or an error says why not.

Rules this module keeps:

- delivered means that the collector answered 2xx in words of OTLP; a page of some proxy is no answer;
- what the protocol calls retryable is tried again, with growing pauses or the ones that the collector asks
  for, until patience ends; what it calls final is final;
- what `licet.web` keeps: redirections are not followed, and answers are bounded.
"""

from __future__ import annotations

import email.utils
import gzip
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from licet.errors import ExportFailed
from licet.output import bounded, escape
from licet.web import Answer as Response
from licet.web import NoAnswer, Web
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

_RETRYABLE = frozenset({429, 502, 503, 504})
_TOO_LARGE = 413
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _LONGEST_ASKED_S = 1.0, 60.0, 600.0
_PATIENCE_S = 30.0
_MOST_ANSWER = 1 << 20
_SHOWN = 300
_ANSWERS: Mapping[str, tuple[type[Message], str]] = {
    "logs": (ExportLogsServiceResponse, "rejected_log_records"),
    "traces": (ExportTraceServiceResponse, "rejected_spans"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a collector did with a request: how many items it did not take, and what it had to say."""

    rejected: int = 0
    message: str = ""


class TooLarge(Exception):
    """The collector takes requests of this kind, but none as large as this one."""


class Clock(Protocol):
    """Where time comes from; tests bring their own."""

    def monotonic(self) -> float:
        """Seconds."""
        ...

    def time(self) -> float:
        """Seconds since 1970."""
        ...

    def sleep(self, seconds: float, /) -> None:
        """Wait."""
        ...


class Collector:
    """A collector's endpoint for one signal.

    `patience` is for how long a request is tried again, in seconds; None means for ever. `hear` is told
    why something is tried again.
    """

    def __init__(
        self,
        url: str,
        signal: str,
        headers: dict[str, str],
        *,
        patience: float | None,
        hear: Callable[[str], None] = lambda text: None,
        clock: Clock = time,
    ) -> None:
        self._url = url
        self._kind, self._count = _ANSWERS[signal]
        self._patience = patience
        self._hear = hear
        self._clock = clock
        self._headers = headers | {"content-type": "application/x-protobuf", "content-encoding": "gzip"}
        self._web = Web(patience=_PATIENCE_S, most=_MOST_ANSWER)

    def close(self) -> None:
        """Let go of connections."""
        self._web.close()

    def send(self, request: bytes) -> Answer:
        """Deliver a request.

        Raises:
            TooLarge: it has to be sent in parts.
            ExportFailed: it is not delivered, and trying on would not help, or patience has ended.
        """
        packed = gzip.compress(request, compresslevel=6, mtime=0)
        deadline = None if self._patience is None else self._clock.monotonic() + self._patience
        pause = _FIRST_PAUSE_S
        while True:
            found, asked = self._try(packed)
            if isinstance(found, Answer):
                return found
            wait = min(asked, _LONGEST_ASKED_S) if asked is not None else pause * random.uniform(0.5, 1.0)
            if deadline is not None and self._clock.monotonic() + wait > deadline:
                raise ExportFailed(
                    f"the collector does not take it: {found}",
                    advice="run the same again when it does: it goes on where it stopped",
                )
            self._hear(f"tried again in {wait:.1f} s: {found}")
            self._clock.sleep(wait)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _try(self, packed: bytes) -> tuple[Answer | str, float | None]:
        """The answer; or why to try again, and in how many seconds if the collector says so."""
        try:
            return self._judge(self._web.post(self._url, packed, self._headers))
        except NoAnswer as problem:
            if problem.advice is not None:
                raise ExportFailed(f"nothing can be sent there: {problem}", advice=problem.advice) from None
            return str(problem), None

    def _judge(self, response: Response) -> tuple[Answer | str, float | None]:
        status = response.status
        said = f"it answered {status}" + (f" ({response.said})" if response.said else "")
        if 200 <= status < 300:
            return self._answer(response), None
        if status in _RETRYABLE:
            return said, self._asked(response.headers.get("retry-after", ""))
        if status == _TOO_LARGE:
            raise TooLarge
        raise ExportFailed(f"the collector refuses it: {said}", advice=_ADVICE.get(status))

    def _answer(self, response: Response) -> Answer:
        answer: Any = self._kind()
        body, kind = response.body, response.content_type
        try:
            if "json" in kind:
                json_format.Parse(body, answer)
            elif "protobuf" in kind or not body:
                answer.ParseFromString(body)
            else:
                raise DecodeError("it is no protobuf")
        except (DecodeError, json_format.ParseError, UnicodeDecodeError):
            raise ExportFailed(
                f"what answered {response.status} there is no OTLP collector",
                advice="check the address; OTLP over HTTP usually has port 4318",
            ) from None
        partial = answer.partial_success
        rejected = max(getattr(partial, self._count), 0)
        return Answer(rejected, bounded(escape(partial.error_message), _SHOWN))

    def _asked(self, value: str) -> float | None:
        """The pause that a collector asks for: seconds, or a date."""
        value = value.strip()
        if value.isascii() and value.isdigit():
            return float(value[:9])
        try:
            return max(email.utils.parsedate_to_datetime(value).timestamp() - self._clock.time(), 0.0)
        except (TypeError, ValueError, OverflowError):
            return None


_ADVICE = {
    400: "the collector can't read it: is it old?",
    401: "give it what it asks for with `--header`, or in OTEL_EXPORTER_OTLP_HEADERS",
    403: "give it what it asks for with `--header`, or in OTEL_EXPORTER_OTLP_HEADERS",
    404: "check the address: it is the base to which /v1/logs or /v1/traces is added",
}
