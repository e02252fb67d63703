"""Records reach a real collector over HTTP, all of them and always the same, whatever happens to either."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import io
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from licet.cli.terminal import fail
from licet.errors import ExportFailed, LicetError, UsageError
from licet.record import Record
from licet.state import StateDirectory
from licet_audit.exports import Export
from licet_audit.log import DurableLog
from licet_audit.otlp.collector import Answer, Collector
from licet_audit.otlp.command import Destination, headers_of, write
from licet_audit.otlp.cursor import Cursor, CursorFile
from licet_audit.reader import LogReader
from licet_audit.selection import Selection
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

Append = Callable[..., list[Record]]
Reply = tuple[int, dict[str, str], bytes]
GOOD: Reply = (200, {"content-type": "application/x-protobuf"}, b"")


class LocalCollector:
    """An OTLP/HTTP collector; `replies` are its next answers, before it takes everything."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.logs: list[tuple[str, bytes]] = []
        self.spans: list[tuple[bytes, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.asked = 0
        self.free = 0  # how many requests are answered at once, before `gate` counts
        self.reached = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.asked += 1
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, headers, answer = outer.replies.pop(0) if outer.replies else GOOD
                if status == 200:
                    outer.take(self.path, gzip.decompress(body))
                if outer.free > 0:
                    outer.free -= 1
                else:
                    outer.reached.set()
                    outer.gate.wait(30)
                try:
                    self.send_response(status)
                    for name, value in (headers | {"content-length": str(len(answer))}).items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:  # the other side was killed
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/logs":
            for group in ExportLogsServiceRequest.FromString(body).resource_logs:
                for record in group.scope_logs[0].log_records:
                    name = attributes(record)["licet.record.id"]
                    self.logs.append((name, record.SerializeToString(deterministic=True)))
        else:
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans.extend((span.span_id, span) for span in group.scope_spans[0].spans)

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()


def attributes(item: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in item.attributes}


@pytest.fixture
def collector() -> Iterator[LocalCollector]:
    one = LocalCollector()
    yield one
    one.close()


@pytest.fixture
def filled(append: Append, entry: Callable[..., Any]) -> list[Record]:
    """A log of 30 runs, one refused each third time."""
    return append(*[batch for n in range(30) for batch in run_of(entry, n)])


def run_of(entry: Callable[..., Any], n: int) -> list[list[Any]]:
    name = f"run{n:02d}"
    effect = "deny" if n % 3 == 0 else "allow"
    before = [
        entry("request", name, at="2026-11-29T16:59:59.999000+00:00", subject={"id": "ada"}),
        entry("decision", name, effect=effect, policy="p", verdicts=[]),
    ]
    if effect == "deny":
        return [[*before, entry("result", name, "after", termination="policy_denied", success=False)]]
    execution = entry("execution", name, "before", backend="monty", version="1")
    return [[*before, execution], [entry("result", name, "after", termination="exited", success=True)]]


def start(state: StateDirectory, url: str, *options: str) -> subprocess.Popen[bytes]:
    """The command line, as its users run it."""
    options = ("--format", "otlp", "--to", url, "--state", str(state.path), *options)
    words = [sys.executable, "-m", "licet", "audit", "export", *options, "--json"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def export(state: StateDirectory, url: str, **options: Any) -> tuple[int, Any, str]:
    """What that command does, in this process: its exit code, its document, and what it says."""
    defaults = {"to": url, "header": (), "signal": "logs", "follow": False, "patience": None, "again": False}
    selection = options.pop("selection", Selection())
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = write(Export(LogReader(state), selection, defaults | options, as_json=True))
        except LicetError as problem:
            code = fail(problem, as_json=True)
    return code, json.loads(out.getvalue()), err.getvalue()


def ids(state: StateDirectory, records: list[Record]) -> list[str]:
    return [f"{state.log_id}/{record.seq}" for record in records]


def lines(state: StateDirectory) -> list[bytes]:
    return b"".join(path.read_bytes() for path in sorted((state.path / "log").iterdir())).splitlines()


def test_every_record_arrives_once_with_the_line_that_its_leaf_is_of(
    state: StateDirectory, filled: list[Record], append: Append, entry: Any, collector: LocalCollector
) -> None:
    process = start(state, collector.url, "--header", "x-key=a b")
    said, code, every = json.loads(process.communicate(timeout=60)[0]), process.returncode, lines(state)
    assert (code, said["items"], said["rejected"]) == (0, len(every), 0)
    assert collector.headers[0]["x-key"] == "a b"
    assert [name for name, _ in collector.logs] == [f"{state.log_id}/{seq}" for seq in range(len(every))]
    for line, (_, sent) in zip(every, collector.logs, strict=True):
        record = LogRecord.FromString(sent)
        assert record.body.string_value.encode() == line
        assert attributes(record)["licet.audit.leaf"] == hashlib.sha256(b"\0" + line).hexdigest()
    collector.logs.clear()
    assert export(state, collector.url)[1]["records"] == 0
    assert collector.logs == []
    later = append([entry("request", "later")])
    assert export(state, collector.url)[0] == 0
    assert set(ids(state, later)) <= {name for name, _ in collector.logs}
    assert len(collector.logs) == len(lines(state)) - len(every)


def test_a_busy_collector_is_asked_again_when_it_says(
    state: StateDirectory, filled: list[Record], collector: LocalCollector
) -> None:
    collector.replies = [(429, {"retry-after": "0"}, b""), (503, {"retry-after": "0"}, b"busy")]
    code, said, heard = export(state, collector.url)
    assert (code, said["items"]) == (0, len(lines(state)))
    assert (collector.asked, heard.count("it answered 429"), heard.count("it answered 503")) == (3, 1, 1)


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    time = monotonic

    def sleep(self, seconds: float, /) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_pauses_grow_and_end_with_patience(collector: LocalCollector) -> None:
    clock = FakeClock()
    collector.replies = [(503, {}, b"")] * 100
    asked = Collector(collector.url, "logs", {}, patience=100, clock=clock)
    with pytest.raises(ExportFailed, match="it answered 503"):
        asked.send(b"")
    asked.close()
    bounds = [min(2.0**n, 60) for n in range(len(clock.slept))]
    assert all(most / 2 <= slept <= most for slept, most in zip(clock.slept, bounds, strict=True))
    assert 40 < sum(clock.slept) <= 100


@pytest.mark.parametrize(
    ("asks", "pause"),
    [
        ("7", 7.0),
        ("Thu, 01 Jan 1970 00:17:00 GMT", 20.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("99999", 600.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(collector: LocalCollector, asks: str, pause: float) -> None:
    clock = FakeClock()
    collector.replies = [(503, {"retry-after": asks}, b"")]
    asked = Collector(collector.url, "logs", {}, patience=None, clock=clock)
    assert asked.send(b"") == Answer()
    asked.close()
    assert clock.slept == [pause]


def test_a_dead_collector_costs_nothing_but_time(
    state: StateDirectory, filled: list[Record], collector: LocalCollector
) -> None:
    dead = "http://127.0.0.1:1"
    code, said, _ = export(state, dead, patience=0.0)
    assert (code, said["error"]["slug"]) == (8, "export-failed")
    file = CursorFile(state.log_id, f"{dead}/v1/logs", "logs")
    assert file.read() == Cursor()


@pytest.mark.parametrize("status", [400, 401, 404, 500, 302])
def test_what_is_final_is_not_tried_again(
    state: StateDirectory, filled: list[Record], collector: LocalCollector, status: int
) -> None:
    collector.replies = [(status, {"content-type": "text/plain", "location": collector.url}, b"no\x1b[2J")]
    code, said, heard = export(state, collector.url)
    assert (code, collector.asked) == (8, 1)
    assert f"it answered {status}" in said["error"]["message"]
    assert "\x1b" not in heard + said["error"]["message"]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_an_answer_is_never_unpacked(
    state: StateDirectory, filled: list[Record], collector: LocalCollector, encoding: str
) -> None:
    headers = {"content-type": "application/x-protobuf", "content-encoding": encoding}
    collector.replies = [(200, headers, gzip.compress(bytes(1 << 24)))]
    code, said, _ = export(state, collector.url)
    assert (code, collector.headers[0]["accept-encoding"]) == (8, "identity")
    assert said["error"]["message"] == "what answered 200 there is no OTLP collector"


def test_a_page_that_says_200_is_no_answer(
    state: StateDirectory, filled: list[Record], collector: LocalCollector
) -> None:
    collector.replies = [(200, {"content-type": "text/html"}, b"<h1>Log in</h1>")]
    code, said, _ = export(state, collector.url)
    assert (code, said["error"]["slug"]) == (8, "export-failed")
    collector.logs.clear()
    export(state, collector.url)
    assert len(collector.logs) == len(lines(state))


def test_what_a_collector_did_not_take_is_said_and_not_sent_for_ever(
    state: StateDirectory, filled: list[Record], collector: LocalCollector
) -> None:
    partial = ExportLogsServiceResponse()
    partial.partial_success.rejected_log_records = 2
    partial.partial_success.error_message = "too old\x1b[2J"
    collector.replies = [(200, GOOD[1], partial.SerializeToString())]
    code, said, _ = export(state, collector.url)
    assert (code, said["rejected"], said["items"]) == (3, 2, len(lines(state)) - 2)
    assert said["messages"] == [
        f"the collector did not take 2 items of records #0 to #{len(lines(state)) - 1}: too old\\x1b[2J"
    ]
    assert export(state, collector.url)[:1] == (0,)
    assert collector.asked == 1


def test_a_warning_is_no_rejection_and_json_is_an_answer(
    state: StateDirectory, filled: list[Record], collector: LocalCollector
) -> None:
    answer = b'{"partialSuccess": {"errorMessage": "slow down"}}'
    collector.replies = [(200, {"content-type": "application/json"}, answer)]
    code, said, _ = export(state, collector.url)
    assert (code, said["rejected"], len(said["messages"])) == (0, 0, 1)


def test_a_batch_that_is_too_large_is_halved(
    state: StateDirectory, filled: list[Record], collector: LocalCollector
) -> None:
    collector.replies = [(413, {}, b"")] * 3
    assert export(state, collector.url)[0] == 0
    assert [name for name, _ in collector.logs] == [f"{state.log_id}/{n}" for n in range(len(lines(state)))]


@pytest.mark.parametrize("sent", ["logs", "traces"])
def test_kill_9_in_the_middle_loses_nothing_and_repeats_only_the_same(
    state: StateDirectory, append: Append, entry: Any, collector: LocalCollector, sent: str
) -> None:
    append(*[[e for n in range(k, 600, 6) for batch in run_of(entry, n) for e in batch] for k in range(6)])
    for free in range(3):  # each is killed once the collector has taken a batch, before it has answered
        collector.free = free
        collector.reached.clear()
        collector.gate.clear()
        process = start(state, collector.url, "--signal", sent)
        assert collector.reached.wait(30)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        collector.gate.set()
    assert export(state, collector.url, signal=sent)[0] == 0
    every = len(lines(state))
    if sent == "logs":
        assert Counter(name for name, _ in set(collector.logs)) == {
            f"{state.log_id}/{n}": 1 for n in range(every)
        }
        assert len(collector.logs) > every
    else:
        whole = {(key, span.SerializeToString(deterministic=True)) for key, span in collector.spans}
        assert len(whole) == len({key for key, _ in whole}) < len(collector.spans)
        assert sum(span.name == "licet.run" for _, span in dict(collector.spans).items()) == 600


def test_spans_are_whole_however_often_the_export_stops_within_a_run(
    state: StateDirectory, entry: Any, collector: LocalCollector
) -> None:
    async def record_and_export() -> None:
        log = DurableLog(state)
        for n in range(6):
            for batch in run_of(entry, n):
                await log.append(batch)
                done = await asyncio.to_thread(export, state, collector.url, signal="traces")
                assert done[0] == 0
        await log.close()

    asyncio.run(record_and_export())
    names = Counter(span.name for _, span in collector.spans)
    assert names["licet.run"] == names["licet.decide"] == names["licet.result"] == 6
    assert names["licet.execute"] == 4
    assert len({key for key, _ in collector.spans}) == len(collector.spans)
    spans = dict(collector.spans)
    for key, span in spans.items():
        if span.name in ("licet.execute", "licet.decide"):
            parent = spans[span.parent_span_id]
            assert (parent.name, parent.trace_id) == ("licet.run", span.trace_id), key
    roots = [span for span in spans.values() if span.name == "licet.run"]
    assert {attributes(root)["licet.termination"] for root in roots} == {"exited", "policy_denied"}
    assert {root.status.code for root in roots} == {0}


def test_a_log_that_was_cut_is_not_sent_as_if_it_went_on(
    state: StateDirectory, append: Append, entry: Any, collector: LocalCollector
) -> None:
    append([entry(n=n) for n in range(20)])
    segment = state.path / "log" / "seg-00000000000000000000.jsonl"
    assert export(state, collector.url)[0] == 0
    whole = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(whole[:10]))
    code, said, _ = export(state, collector.url)
    assert code == 8
    assert "it was cut or written anew" in said["error"]["message"]


def test_two_exports_to_one_place_do_not_run_at_once(
    state: StateDirectory, filled: list[Record], collector: LocalCollector
) -> None:
    with CursorFile(state.log_id, f"{collector.url}/v1/logs", "logs").held():
        code, said, _ = export(state, collector.url)
    assert (code, said["error"]["slug"], collector.asked) == (8, "export-failed", 0)


def test_following_sends_what_is_recorded_later(
    state: StateDirectory, append: Append, entry: Any, collector: LocalCollector
) -> None:
    append([entry("request", "first")])
    process = start(state, collector.url, "--follow")
    try:
        assert collector.reached.wait(30)
        collector.reached.clear()
        [later] = ids(state, append([entry("request", "second")]))
        while later not in {name for name, _ in collector.logs}:
            assert collector.reached.wait(30)
            collector.reached.clear()
    finally:
        process.kill()
        process.communicate()
    assert len({name for name, _ in collector.logs}) == len(collector.logs)


def test_no_password_is_kept_or_shown(
    state: StateDirectory, filled: list[Record], collector: LocalCollector
) -> None:
    url = collector.url.replace("http://", "http://me:secret@")
    code, said, heard = export(state, url)
    assert (code, said["to"]) == (0, f"{collector.url}/v1/logs")
    kept = CursorFile(state.log_id, f"{collector.url}/v1/logs", "logs").path.read_text()
    assert "secret" not in kept + heard + json.dumps(said)
    assert collector.headers[0]["authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://c.example:4318", "https://c.example:4318/v1/logs"),
        ("https://c.example/otlp/", "https://c.example/otlp/v1/logs"),
        ("https://c.example/v1/logs", "https://c.example/v1/logs"),
        ("http://[::1]:4318", "http://[::1]:4318/v1/logs"),
    ],
)
def test_the_address_is_the_base_that_others_take(base: str, url: str) -> None:
    assert Destination.of(base, "logs").url == url


@pytest.mark.parametrize(
    "base", ["c.example:4318", "ftp://c.example", "https://", "https://c.example:99999", ""]
)
def test_what_is_no_address_is_refused(state: StateDirectory, filled: list[Record], base: str) -> None:
    code, said, _ = export(state, base)
    assert (code, said["error"]["slug"]) == (2, "usage")


@pytest.mark.parametrize("base", ["http://me:secret@:1", "ftp://me:secret@h", "http://me:secret@h:99999"])
def test_a_password_in_what_is_no_address_is_not_shown(
    state: StateDirectory, filled: list[Record], base: str
) -> None:
    code, said, heard = export(state, base)
    assert (code, said["error"]["slug"]) == (2, "usage")
    assert "secret" not in json.dumps(said) + heard


def test_patience_is_a_number(state: StateDirectory, filled: list[Record]) -> None:
    code, said, _ = export(state, "http://127.0.0.1:1", patience=float("nan"))
    assert (code, said["error"]["message"]) == (2, "`--patience` is no number of seconds")


def test_headers_come_from_the_environment_and_options_win() -> None:
    environment = "Api-Key=a%20b,x=1, "
    assert headers_of(["x=2"], environment) == {"api-key": "a b", "x": "2"}
    for wrong in ("x", "=1", "a b=1", "x=\r\ny: z"):
        with pytest.raises(UsageError):
            headers_of([wrong], "")
    for wrong in ("x=1%0d%0ay: secret", "x=%c3%a9", "x=1%00"):
        with pytest.raises(UsageError) as caught:
            headers_of([], wrong)
        assert "secret" not in str(caught.value)


def test_a_selection_can_not_be_sent(state: StateDirectory, filled: list[Record]) -> None:
    code, said, _ = export(state, "http://127.0.0.1:1", selection=Selection(("run01",)))
    assert (code, said["error"]["slug"]) == (2, "usage")


def test_without_the_extra_there_is_advice(
    state: StateDirectory, filled: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "urllib3", None)
    code, said, _ = export(state, "http://127.0.0.1:1")
    assert (code, said["error"]["advice"]) == (2, "pip install 'licet-audit[otlp]'")
