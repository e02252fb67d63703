"""The webhook, against real servers: good ones, dead ones, slow ones, and ones that lie."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from issuing import SECRET, Signer, asked
from licet.approvals import Answer, ApprovalRequest
from licet.approvals.keys import secrets_in
from licet.approvals.webhook.receiver import MOST_BYTES, Receiver, TryAgain, message
from licet.approvals.webhook.service import WebhookService, pauses
from licet.approvals.webhook.signing import headers
from licet.errors import AskingFailed, InvalidSettings
from licet.settings import Settings, Webhook

DESK = Signer()
Reply = tuple[int, dict[str, str], bytes]
Act = Callable[["Seen"], Reply]


@dataclass
class Seen:
    """A request as the server got it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Desk:
    """A server of a test: `act` says what it answers, `seen` is what it was asked."""

    act: Act
    seen: list[Seen] = field(default_factory=list)
    url: str = ""


def reply(*tokens: str, status: int = 200) -> Reply:
    return status, {"content-type": "application/json"}, json.dumps({"tokens": tokens}).encode()


NOTHING = (202, {}, b"")


@pytest.fixture
def serve() -> Iterator[Callable[..., Desk]]:
    """Start a server that does what a test says; over TLS with a `certificate`."""
    servers = []

    def start(act: Act, certificate: Path | None = None) -> Desk:
        desk = Desk(act)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                size = int(self.headers.get("content-length", 0))
                known = {name.lower(): value for name, value in self.headers.items()}
                seen = Seen(self.command, self.path, known, self.rfile.read(size))
                desk.seen.append(seen)
                status, more, body = desk.act(seen)
                try:
                    self.send_response(status)
                    for name, value in {"content-length": str(len(body)), **more}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:  # whoever asked is gone
                    self.close_connection = True

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        scheme = "http" if certificate is None else "https"
        desk.url = f"{scheme}://127.0.0.1:{server.server_address[1]}/hooks/T0P-S3CR3T"
        return desk

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "webhook.secret"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def service(secret_file: Path) -> Callable[..., WebhookService]:
    """The service for a server, with short pauses."""

    def make(url: str, patience: float = 10.0, pause: float = 0.01, **webhook: Any) -> WebhookService:
        given = {"url": url, "secret_file": str(secret_file), "deadline": 10, "retries": 3, **webhook}
        approvals = {"webhook": given, "issuers": [DESK.settings()]}
        settings = Settings.model_validate({"approvals": approvals})
        return WebhookService(settings, pause=pause, patience=patience)

    return make


def ask(one: WebhookService, request: ApprovalRequest, most: int = 100) -> list[Answer]:
    """The first answers, up to so many; the service is closed then, as by somebody who has decided."""

    async def gather() -> list[Answer]:
        found: list[Answer] = []
        answers = one.ask(request)
        try:
            async for answer in answers:
                found.append(answer)
                if len(found) == most:
                    break
        finally:
            await answers.aclose()  # type: ignore[attr-defined]
            await one.close()
        return found

    return asyncio.run(gather())


def collect(one: WebhookService, request: ApprovalRequest) -> list[Answer]:
    async def gather() -> list[Answer]:
        try:
            return list(await one.collect(request))
        finally:
            await one.close()

    return asyncio.run(gather())


def failure(one: WebhookService, request: ApprovalRequest) -> AskingFailed:
    with pytest.raises(AskingFailed) as problem:
        ask(one, request)
    assert problem.value.advice
    said = f"{problem.value} {problem.value.advice}"
    assert "S3CR3T" not in said and SECRET not in said and SECRET.removeprefix("whsec_") not in said
    return problem.value


# What is sent


def test_signatures_are_those_of_the_specification() -> None:
    """The example of the Standard Webhooks specification."""
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = headers([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_each_secret_signs_while_one_takes_over(secret_file: Path) -> None:
    other = "whsec_" + base64.b64encode(b"n" * 24).decode()
    secret_file.write_text(f"{SECRET}\n\n{other}\n")
    known = secrets_in(secret_file)
    assert known == (bytes(range(32)), b"n" * 24)
    both = headers(known, "id", 7, b"body")["webhook-signature"].split(" ")
    assert both == [headers([one], "id", 7, b"body")["webhook-signature"] for one in known]


def test_the_whole_document_is_sent_signed_and_escaped(
    serve: Callable[..., Desk], service: Callable[..., WebhookService]
) -> None:
    desk = serve(lambda seen: NOTHING)
    code = "x = '\u202e \x1b[2J \ud800 é'\n" * 1000
    request = asked(document={"licet": 1, "code": code})
    assert ask(service(desk.url, deadline="0s"), request) == []
    (seen,) = desk.seen
    assert (seen.method, seen.path) == ("POST", "/hooks/T0P-S3CR3T")
    assert (seen.headers["content-type"], seen.headers["webhook-id"]) == ("application/json", request.id)
    assert abs(int(seen.headers["webhook-timestamp"]) - time.time()) < 60
    assert seen.body.isascii()
    told = json.loads(seen.body)
    assert told["type"] == "licet.approval.asked"
    assert told["data"] == {"id": request.id, "shown": request.shown, "document": {"licet": 1, "code": code}}
    assert seen.headers["webhook-signature"] == signature(seen)


def signature(seen: Seen) -> str:
    signed = f"{seen.headers['webhook-id']}.{seen.headers['webhook-timestamp']}.".encode() + seen.body
    return "v1," + base64.b64encode(hmac.digest(bytes(range(32)), signed, hashlib.sha256)).decode()


@given(st.recursive(st.text() | st.integers() | st.booleans() | st.none(), st.lists))
def test_what_is_sent_is_the_same_each_time_and_says_the_same(value: Any) -> None:
    request = asked(document={"value": value})
    assert message(request) == message(request)
    assert json.loads(message(request))["data"]["document"] == {"value": value}


# Answers


def test_an_answer_may_come_at_once(
    serve: Callable[..., Desk], service: Callable[..., WebhookService]
) -> None:
    request = asked()
    desk = serve(lambda seen: reply(DESK.sign(request, reason="good"), DESK.sign(request, sub="bob")))
    found = ask(service(desk.url), request, most=2)
    assert [(one.person.id, one.approve, one.service, one.reason) for one in found] == [
        ("ann", True, "webhook", "good"),
        ("bob", True, "webhook", ""),
    ]
    assert [seen.method for seen in desk.seen] == ["POST"]


def test_answers_come_later_and_each_is_given_once(
    serve: Callable[..., Desk], service: Callable[..., WebhookService]
) -> None:
    request = asked("01/JD 7M?")
    ann, bob = DESK.sign(request), DESK.sign(request, sub="bob", answer="deny")
    script = [NOTHING, (404, {}, b""), reply(), reply(ann), reply(ann), reply(ann, bob)]
    desk = serve(lambda seen: script[min(len(desk.seen), len(script)) - 1])
    found = ask(service(desk.url), request, most=2)
    assert [(one.person.id, one.approve) for one in found] == [("ann", True), ("bob", False)]
    polls = desk.seen[1:]
    assert [seen.method for seen in polls] == ["GET"] * 5
    assert {seen.path for seen in polls} == {"/hooks/T0P-S3CR3T/01%2FJD%207M%3F"}
    assert all(seen.headers["webhook-signature"] == signature(seen) for seen in polls)


def test_an_answer_that_is_signed_anew_each_time_is_given_once(
    serve: Callable[..., Desk], service: Callable[..., WebhookService]
) -> None:
    request = asked()
    desk = serve(lambda seen: reply(DESK.sign(request), DESK.sign(request)))
    found = ask(service(desk.url, deadline=0.3), request)
    assert [(one.person.id, one.approve) for one in found] == [("ann", True)]
    assert len(desk.seen) > 2
    desk.act = lambda seen: reply(DESK.sign(request), DESK.sign(request, answer="deny"))  # the twin
    found = ask(service(desk.url, deadline=0.3), request)
    assert [(one.person.id, one.approve) for one in found] == [("ann", True), ("ann", False)]


def test_who_comes_later_collects_all_answers(
    serve: Callable[..., Desk], service: Callable[..., WebhookService]
) -> None:
    request = asked()
    ann, bob = DESK.sign(request), DESK.sign(request, sub="bob")
    desk = serve(lambda seen: reply(ann, bob))
    for _ in range(2):  # whether a token was used before is for the store to say
        assert [one.person.id for one in collect(service(desk.url), request)] == ["ann", "bob"]
    assert [seen.method for seen in desk.seen] == ["GET", "GET"]
    desk.act = lambda seen: reply()
    assert collect(service(desk.url), request) == []


def test_nobody_is_waited_for_beyond_the_deadline(
    serve: Callable[..., Desk], service: Callable[..., WebhookService]
) -> None:
    desk = serve(lambda seen: NOTHING)
    one, none = service(desk.url, deadline=0.2), service(desk.url, deadline=0)
    assert (one.attended, one.waits, none.attended, none.waits, one.name) == (
        True,
        True,
        False,
        True,
        "webhook",
    )
    began = time.monotonic()
    assert ask(one, asked()) == []
    assert time.monotonic() - began < 5
    assert {seen.method for seen in desk.seen} == {"POST", "GET"}
    desk.seen.clear()
    assert ask(none, asked()) == []
    assert [seen.method for seen in desk.seen] == ["POST"]


def test_a_caller_that_is_cancelled_is_let_go_at_once(
    serve: Callable[..., Desk], service: Callable[..., WebhookService]
) -> None:
    came, over = threading.Event(), threading.Event()

    def hang(seen: Seen) -> Reply:
        came.set()
        over.wait(30)
        return NOTHING

    one = service(serve(hang).url)

    async def cancel() -> None:
        task = asyncio.create_task(anext(aiter(one.ask(asked()))))  # type: ignore[arg-type]
        await asyncio.to_thread(came.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not over.is_set()
        over.set()
        await one.close()

    asyncio.run(cancel())


# Servers that are not well


def test_a_delivery_is_tried_again_while_that_may_help(
    serve: Callable[..., Desk], service: Callable[..., WebhookService]
) -> None:
    request = asked()
    script = [(500, {}, b""), (429, {"retry-after": "0"}, b""), (503, {}, b""), reply(DESK.sign(request))]
    desk = serve(lambda seen: script[len(desk.seen) - 1])
    assert [one.person.id for one in ask(service(desk.url), request, most=1)] == ["ann"]
    assert len({seen.body for seen in desk.seen}) == 1
    assert [seen.headers["webhook-id"] for seen in desk.seen] == [request.id] * 4


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("7", 7.0), (" 7 ", 7.0), ("0", 0.0), ("9" * 400, 60.0), ("-1", 0.0), ("soon", 0.0), ("1.5", 0.0)],
)
def test_a_server_may_ask_for_a_pause_that_is_not_too_long(
    serve: Callable[..., Desk], secret_file: Path, said: str, seconds: float
) -> None:
    desk = serve(lambda seen: (503, {"retry-after": said}, b""))
    receiver = Receiver(Webhook(url=desk.url, secret_file=secret_file))
    with pytest.raises(TryAgain) as problem:
        receiver.deliver(asked())
    receiver.close()
    assert problem.value.pause == seconds


def test_pauses_grow_to_a_bound_and_are_never_those_of_all_others() -> None:
    both = [list(islice(pauses(1.0), 8)) for _ in range(2)]
    for found in both:
        for most, pause in zip((1, 2, 4, 8, 15, 15, 15, 15), found, strict=True):
            assert most / 2 <= pause <= most
    assert both[0] != both[1]


def test_a_server_that_stays_broken_is_told(
    serve: Callable[..., Desk], service: Callable[..., WebhookService]
) -> None:
    desk = serve(lambda seen: (500, {"content-type": "text/plain"}, b"out of order\x1b[2J"))
    host = desk.url.partition("/hooks")[0]
    problem = failure(service(desk.url, retries=2), asked())
    assert problem.message == (
        f"nobody could be asked by the webhook: `{host}` answered status 500: out of order\\x1b[2J"
    )
    assert len(desk.seen) == 3


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 403, 404, 405, 410])
def test_what_is_final_is_not_tried_again(
    serve: Callable[..., Desk], service: Callable[..., WebhookService], status: int
) -> None:
    elsewhere = serve(lambda seen: reply(DESK.sign(asked())))
    desk = serve(lambda seen: (status, {"location": elsewhere.url}, b""))
    problem = failure(service(desk.url), asked())
    assert problem.message.endswith(f": it answered status {status}")
    assert (len(desk.seen), elsewhere.seen) == (1, [])


def test_a_server_that_is_not_there_is_told(service: Callable[..., WebhookService]) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and not listened at
        url = f"http://127.0.0.1:{held.getsockname()[1]}/hooks/T0P-S3CR3T"
        problem = failure(service(url, retries=1), asked())
        assert problem.message == (
            f"nobody could be asked by the webhook: `{url.partition('/hooks')[0]}`: connection refused"
        )
        assert collect(service(url), asked()) == []


def test_a_server_that_is_slow_is_left(
    serve: Callable[..., Desk], service: Callable[..., WebhookService]
) -> None:
    over = threading.Event()
    desk = serve(lambda seen: (over.wait(30), NOTHING)[1])
    problem = failure(service(desk.url, patience=0.1, retries=1), asked())
    over.set()
    assert problem.message.endswith(": it took more than 0 s")
    assert len(desk.seen) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"<html>hello</html>",
        b"[]",
        b"true",
        b'"approve"',
        b'{"tokens": "a.b.c"}',
        b'{"tokens": [1]}',
        b'{"tokens": null}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_what_is_no_receiver_is_told(
    serve: Callable[..., Desk], service: Callable[..., WebhookService], body: bytes
) -> None:
    desk = serve(lambda seen: (200, {}, body))
    assert (
        "what answered 200 there is no receiver of approvals" in failure(service(desk.url), asked()).message
    )
    assert collect(service(desk.url), asked()) == []


def test_answers_are_bounded(serve: Callable[..., Desk], service: Callable[..., WebhookService]) -> None:
    desk = serve(lambda seen: (200, {}, b" " * (MOST_BYTES + 1)))
    assert failure(service(desk.url), asked()).message.endswith("it answered with more than 2048 KiB")
    desk.act = lambda seen: reply(*["a.b.c"] * 101)
    assert failure(service(desk.url), asked()).message.endswith("it answered with 101 tokens")


# Answers that do not count


def test_a_token_that_does_not_count_is_told_and_spoils_no_other(
    serve: Callable[..., Desk],
    service: Callable[..., WebhookService],
    caplog: pytest.LogCaptureFixture,
) -> None:
    request, other = asked(), asked("01YESTERDAY")
    bad = (
        Signer().sign(request),
        DESK.sign(other),
        DESK.sign(request, shown="sha256:other"),
        DESK.sign(request, exp=1),
        "yes",
    )
    desk = serve(lambda seen: reply(*bad, DESK.sign(request, sub="bob")))
    with caplog.at_level(logging.WARNING, "licet.approvals"):
        assert [one.person.id for one in ask(service(desk.url), request, most=1)] == ["bob"]
    said = [
        record.getMessage().removeprefix(f"approval {request.id}: the token does not count: ")
        for record in caplog.records
    ]
    assert said == [
        "its signature is not of the key of `desk`",
        "it answers the approval `01YESTERDAY`, this is `01JD7MAPPROVAL`",
        f"it answers another document: it says `sha256:other`, asked was `{request.shown}`",
        "it expired at 1970-01-01T00:00:01Z",
        "it is no signed JWT of three parts",
    ]


def test_a_server_that_says_yes_without_a_signature_approves_nothing(
    serve: Callable[..., Desk], service: Callable[..., WebhookService]
) -> None:
    desk = serve(lambda seen: (200, {}, b'{"approved": true, "answer": "approve", "tokens": []}'))
    assert ask(service(desk.url, deadline=0.1), asked()) == []


def test_a_server_that_dies_while_it_is_asked_after_gives_no_answer(
    serve: Callable[..., Desk], service: Callable[..., WebhookService], caplog: pytest.LogCaptureFixture
) -> None:
    desk = serve(lambda seen: NOTHING if seen.method == "POST" else (503, {}, b""))
    with caplog.at_level(logging.WARNING, "licet.approvals"):
        assert ask(service(desk.url, deadline=0.2), asked()) == []
    assert len(caplog.records) == 1
    assert "S3CR3T" not in caplog.text


# TLS


def test_a_certificate_that_nobody_trusts_ends_it(
    serve: Callable[..., Desk],
    service: Callable[..., WebhookService],
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = asked()
    desk = serve(lambda seen: reply(DESK.sign(request)), certificate)
    problem = failure(service(desk.url), request)
    assert "its certificate is not trusted here" in problem.message
    assert problem.advice == "name the file that vouches for it in SSL_CERT_FILE"
    assert desk.seen == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert [one.person.id for one in ask(service(desk.url), request, most=1)] == ["ann"]
    elsewhere = desk.url.replace("127.0.0.1", "localhost")  # it speaks for another name
    assert "its certificate is not trusted here" in failure(service(elsewhere), request).message


# Settings that can't be used


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        ("", 0o600, "the file holds no secret"),
        ("hunter2", 0o600, "the file has a word 1 that is no secret"),
        (f"{SECRET} whsec_c2hvcnQ=", 0o600, "the file has a word 2 that is no secret"),
        (SECRET, 0o644, "others can read or change the key: its mode is 0644"),
        (SECRET, 0o620, "others can read or change the key: its mode is 0620"),
        ("a" * 70_000, 0o600, "the key is larger than 64 KiB"),
    ],
)
def test_a_secret_that_is_none_is_told_without_it(
    service: Callable[..., WebhookService], secret_file: Path, content: str, mode: int, message: str
) -> None:
    secret_file.write_text(content)
    secret_file.chmod(mode)
    with pytest.raises(InvalidSettings) as problem:
        service("http://127.0.0.1:1/")
    assert str(problem.value) == f"{secret_file}: {message}"
    assert "hunter2" not in f"{problem.value.advice}"


def test_a_secret_of_a_group_that_reads_it_is_one(
    service: Callable[..., WebhookService], secret_file: Path
) -> None:
    secret_file.chmod(0o640)
    assert service("http://127.0.0.1:1/").name == "webhook"


def test_a_secret_that_is_changed_meanwhile_signs_the_next_request(
    serve: Callable[..., Desk], service: Callable[..., WebhookService], secret_file: Path
) -> None:
    desk = serve(lambda seen: NOTHING)
    one = service(desk.url, deadline=0)
    secret_file.write_text("whsec_" + base64.b64encode(b"n" * 32).decode())
    ask(one, asked())
    assert desk.seen[0].headers["webhook-signature"] != signature(desk.seen[0])
    again = service(desk.url)
    secret_file.unlink()
    with pytest.raises(InvalidSettings, match="the key can't be read: no such file or directory"):
        ask(again, asked())


def test_a_webhook_without_what_it_needs_is_told(secret_file: Path) -> None:
    hook = {"url": "http://127.0.0.1:1/", "secret_file": str(secret_file)}
    for approvals, missing in (
        ({"issuers": [DESK.settings()]}, "approvals.webhook"),
        ({"webhook": hook}, "approvals.issuers"),
    ):
        with pytest.raises(InvalidSettings, match=f"`{missing}` is not set"):
            WebhookService(Settings.model_validate({"approvals": approvals}))
