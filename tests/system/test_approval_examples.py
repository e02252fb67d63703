"""The examples of approvals, as their pages say: a desk, and a chat in front of it, asked by the webhook."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import pty
import re
import subprocess
import sys
import threading
import time
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from licet.approvals import Answer, ApprovalRequest
from licet.approvals.clocks import now
from licet.approvals.keys import secrets_in
from licet.approvals.webhook.receiver import message
from licet.approvals.webhook.service import WebhookService
from licet.approvals.webhook.signing import headers
from licet.request import Subject
from licet.settings import Settings

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
DESK, CHAT = EXAMPLES / "approval-desk" / "desk.py", EXAMPLES / "chat-approvals" / "chat.py"
TRICK = "refund('A1', 250)  # \u202e)('tfig' \x1b[2J<script>alert(1)</script>\n"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")


def asked(approval: str = "01JD7MFINANCE", code: str = TRICK) -> ApprovalRequest:
    return ApprovalRequest(
        id=approval,
        run_id="01JD7MRUN",
        kind="run",
        digest="hmac-sha256:plan",
        shown=f"hmac-sha256:of-{approval}",
        document={"licet": 1, "requester": {"id": "eve"}, "code": code, "metadata": {}},
        fields={},
        policy_digest="sha256:policy",
        requirements=(),
        requester=Subject(id="eve"),
        asked=now(),
        expires=3600.0,
    )


def desk(*arguments: str, code: int = 0) -> str:
    """Run the desk without a terminal; its output."""
    done = subprocess.run(
        [sys.executable, str(DESK), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def at_terminal(*arguments: str, typed: str) -> str:
    """Run the desk at a terminal; all that it showed."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(DESK), *arguments], stdin=slave, stdout=slave, stderr=slave, close_fds=True
    )
    os.close(slave)
    shown = b""
    while b"[y/N] " not in shown:
        shown += os.read(master, 65536)
    os.write(master, typed.encode() + b"\n")
    try:
        while piece := os.read(master, 65536):
            shown += piece
    except OSError:  # Linux says the end of a terminal so
        pass
    os.close(master)
    process.wait(30)
    return shown.decode()


Serve = Callable[..., Settings]


@pytest.fixture
def serve(own_directories: Path) -> Iterator[Serve]:
    """Make keys, start an example, and return what licet's settings then say."""
    running: list[subprocess.Popen[str]] = []

    def start(*command: str, environment: Mapping[str, str] | None = None) -> Settings:
        said = tomllib.loads(desk("init"))
        process = subprocess.Popen(
            [sys.executable, *command, "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        running.append(process)
        assert process.stderr is not None
        url = re.findall(r"http://\S+/", process.stderr.readline())[0]
        assert said["approvals"]["webhook"]["url"] == "http://127.0.0.1:8917/approvals"
        said["approvals"]["webhook"]["url"] = f"{url}approvals"
        return Settings.model_validate(said)

    yield start
    for process in running:
        process.kill()
        process.communicate()


def url_of(settings: Settings, path: str = "/") -> str:
    assert settings.approvals.webhook is not None
    return settings.approvals.webhook.url.removesuffix("/approvals") + path


def answers(settings: Settings, request: ApprovalRequest, between: Callable[[], object]) -> list[Answer]:
    """Have a request delivered and left pending; then what is collected after `between`."""
    assert settings.approvals.webhook is not None
    webhook = settings.approvals.webhook.model_copy(update={"deadline": 0.0})
    approvals = settings.approvals.model_copy(update={"webhook": webhook})

    async def gather() -> list[Answer]:
        service = WebhookService(settings.model_copy(update={"approvals": approvals}), pause=0.01)
        assert [one async for one in service.ask(request)] == []
        await asyncio.to_thread(between)
        found = await service.collect(request)
        await service.close()
        return list(found)

    return asyncio.run(gather())


def fetch(url: str, body: bytes | None = None, more: Mapping[str, str] | None = None) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, dict(more or {}))) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code, problem.read().decode()


# The desk


def test_two_people_of_finance_approve(serve: Serve) -> None:
    settings, request = serve(str(DESK), "serve"), asked()

    def approve() -> None:
        shown = at_terminal("approve", request.id, "--as", "ann", "--groups", "finance", typed="y")
        assert shown.rstrip().endswith(f"approved {request.id} as ann (human)")
        said = desk("approve", request.id[:8], "--as", "bob", "--groups", "finance,ops", "--reason", "fine")
        assert said.rstrip().endswith(f"approved {request.id} as bob (auto)")
        assert desk("list") == f"{request.id}  ann: approve, bob: approve\n"

    found = answers(settings, request, approve)
    people = [
        (one.person.id, one.person.groups, one.person.reviewer, one.person.asserted_by) for one in found
    ]
    assert people == [("ann", ("finance",), "human", "token"), ("bob", ("finance", "ops"), "auto", "token")]
    assert [(one.approve, one.shown, one.reason) for one in found] == [
        (True, request.shown, ""),
        (True, request.shown, "fine"),
    ]
    assert len({one.token for one in found}) == 2


def test_a_person_can_deny_and_answers_once(serve: Serve) -> None:
    settings, request = serve(str(DESK), "serve"), asked()

    def deny() -> None:
        desk("deny", request.id, "--as", "ann", "--reason", "not this customer")
        assert desk("approve", request.id, "--as", "ANN", code=1) == "ANN has answered already\n"
        assert "nothing was answered" in at_terminal("approve", request.id, "--as", "bob", typed="")

    (found,) = answers(settings, request, deny)
    assert (found.person.id, found.approve, found.reason) == ("ann", False, "not this customer")


def test_nothing_hides_in_what_is_shown(serve: Serve) -> None:
    settings, request = serve(str(DESK), "serve"), asked()
    pages: list[tuple[int, str]] = []
    assert answers(settings, request, lambda: pages.append(fetch(url_of(settings)))) == []
    [(status, page)] = pages
    assert status == 200
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    for text in (page, desk("show", request.id)):
        assert "‹U+202E›" in text
        assert "‹U+001B›[2J" in text
        assert not {"\u202e", "\x1b"} & set(text)
        assert '"id": "eve"' in text.replace("&quot;", '"')


def test_a_long_request_is_shown_whole(serve: Serve) -> None:
    settings, request = serve(str(DESK), "serve"), asked(code="".join(f"line({n})\n" for n in range(5000)))
    assert answers(settings, request, lambda: None) == []
    shown = desk("show", request.id)
    assert [f"line({n})" in shown for n in (0, 2500, 4999)] == [True] * 3


def test_only_a_site_that_is_here_sees_the_page(serve: Serve) -> None:
    settings = serve(str(DESK), "serve")
    assert fetch(url_of(settings))[0] == 200
    assert fetch(url_of(settings), more={"host": "evil.example:8917"})[0] == 403


def test_a_desk_takes_only_what_is_signed_now(serve: Serve) -> None:
    settings, request = serve(str(DESK), "serve"), asked()
    assert settings.approvals.webhook is not None
    url, secrets = settings.approvals.webhook.url, secrets_in(settings.approvals.webhook.secret_file)
    body, at = message(request), int(time.time())
    good = headers(secrets, request.id, at, body)
    old, early = (headers(secrets, request.id, at + off, body) for off in (-400, 400))
    other = headers([b"n" * 32], request.id, at, body)
    bad = [{}, old, early, other, good | {"webhook-id": "other"}, good | {"webhook-signature": "v1,"}]
    assert [fetch(url, body, one)[0] for one in bad] == [401] * len(bad)
    assert fetch(url, body + b" ", good)[0] == 401
    assert desk("list") == ""
    assert [fetch(url, body, good)[0] for _ in range(2)] == [200, 200]  # the same again is the same
    changed = message(asked(code="1\n"))
    assert fetch(url, changed, headers(secrets, request.id, at, changed))[0] == 409
    assert desk("list") == f"{request.id}  pending\n"
    answers_url = f"{url}/{request.id}"
    assert fetch(answers_url)[0] == 401
    assert fetch(answers_url, more=headers(secrets, "01OTHER", at, b""))[0] == 401
    assert fetch(answers_url, more=headers(secrets, request.id, at, b"")) == (200, '{"tokens": []}')


@pytest.mark.parametrize("approval", ["../../etc/x", "..", ".hidden", "a/b", "", "a" * 101])
def test_no_id_leads_out_of_the_desk(serve: Serve, approval: str) -> None:
    settings = serve(str(DESK), "serve")
    assert settings.approvals.webhook is not None
    body = message(asked(approval))
    signed = headers(secrets_in(settings.approvals.webhook.secret_file), approval, int(time.time()), body)
    assert fetch(settings.approvals.webhook.url, body, signed) == (400, "that is no id of an approval\n")


def test_a_second_init_keeps_the_keys(own_directories: Path) -> None:
    assert desk("init") == desk("init")
    for name in ("desk.key", "webhook.secret"):
        assert (own_directories / "desk" / name).stat().st_mode & 0o777 == 0o600
    assert desk("show", "01", code=1) == "0 requests have an id that begins with '01'\n"
    missing = "there is no desk in nowhere: run `python desk.py init` first\n"
    assert desk("--dir", "nowhere", "list", code=1) == missing


# The chat


class Slack:
    """The methods of Slack's Web API that the example calls, here."""

    def __init__(self) -> None:
        self.called: list[tuple[str, dict[str, Any]]] = []
        self.tokens: set[str | None] = set()
        self.answer: dict[str, Any] = {"ok": True, "ts": "1503435956.000247"}
        self.came = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.tokens.add(self.headers["authorization"])
                outer.called.append((self.path.removeprefix("/api/"), json.loads(body)))
                answer = json.dumps(outer.answer).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                outer.came.set()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "SLACK_API": f"http://127.0.0.1:{self.server.server_address[1]}/api",
            "SLACK_BOT_TOKEN": "xoxb-token",
            "SLACK_SIGNING_SECRET": "8f742231b10e",
            "SLACK_CHANNEL": "C012AB3CD",
        }

    def buttons(self) -> dict[str, str]:
        """The values of the buttons of the message that was posted, by their action."""
        blocks = next(content for method, content in self.called if method == "chat.postMessage")["blocks"]
        rows = [block["elements"] for block in blocks if block["type"] == "actions"]
        return {one["action_id"]: one["value"] for row in rows for one in row}


@pytest.fixture
def chat(own_directories: Path) -> Iterator[Slack]:
    people = {"U1": {"id": "ann", "groups": ["finance"]}, "U2": {"id": "bob", "groups": ["finance"]}}
    (own_directories / "people.json").write_text(json.dumps(people))
    slack = Slack()
    yield slack
    slack.server.shutdown()
    slack.server.server_close()


def press(
    settings: Settings,
    slack: Slack,
    user: str,
    answer: str,
    value: str,
    *,
    age: int = 0,
    secret: str = "8f742231b10e",
) -> int:
    """Press a button as Slack tells of it; the status, once the example has spoken to Slack about it."""
    payload = {
        "type": "block_actions",
        "user": {"id": user},
        "actions": [{"action_id": answer, "value": value}],
    }
    body = urllib.parse.urlencode({"payload": json.dumps(payload)}).encode()
    sent = str(int(time.time()) - age)
    signature = hmac.new(secret.encode(), f"v0:{sent}:".encode() + body, hashlib.sha256).hexdigest()
    signed = {"x-slack-request-timestamp": sent, "x-slack-signature": f"v0={signature}"}
    slack.came.clear()
    status, _ = fetch(url_of(settings, "/slack/actions"), body, signed)
    assert status != 200 or slack.came.wait(30)
    return status


def test_people_approve_in_a_chat(serve: Serve, chat: Slack) -> None:
    settings = serve(str(CHAT), "people.json", environment=chat.environment)
    request = asked()

    def go() -> None:
        buttons = chat.buttons()
        assert press(settings, chat, "U1", "approve", buttons["approve"]) == 200
        assert press(settings, chat, "U2", "deny", buttons["deny"]) == 200

    found = answers(settings, request, go)
    assert [(one.person.id, one.approve, one.person.reviewer) for one in found] == [
        ("ann", True, "human"),
        ("bob", False, "human"),
    ]
    assert [method for method, _ in chat.called] == ["chat.postMessage", "chat.update", "chat.update"]
    assert chat.tokens == {"Bearer xoxb-token"}
    posted, updated = chat.called[0][1], chat.called[2][1]
    assert (posted["channel"], updated["ts"]) == ("C012AB3CD", "1503435956.000247")
    (shown,) = posted["blocks"][0]["elements"]
    text = shown["elements"][0]["text"]
    assert shown["type"] == "rich_text_preformatted"  # in which Slack reads no markup
    assert ("‹U+202E›" in text, "\u202e" in text, "<script>alert(1)</script>" in text) == (True, False, True)
    assert updated["blocks"][2]["elements"][0]["text"] == "ann: approve, bob: deny"


def test_who_is_not_known_or_has_answered_is_told(serve: Serve, chat: Slack) -> None:
    settings = serve(str(CHAT), "people.json", environment=chat.environment)
    request = asked()

    def go() -> None:
        value = chat.buttons()["approve"]
        for user in ("U9", "U1", "U1"):
            assert press(settings, chat, user, "approve", value) == 200
        other = json.dumps({"id": request.id, "shown": "sha256:other"})
        assert press(settings, chat, "U2", "approve", other) == 200

    assert [one.person.id for one in answers(settings, request, go)] == ["ann"]
    told = [
        (content["user"], content["text"])
        for method, content in chat.called
        if method == "chat.postEphemeral"
    ]
    assert told == [
        ("U9", "nothing was answered: nobody says who you are: ask for a place in people.json"),
        ("U1", "nothing was answered: ann has answered already"),
        ("U2", "nothing was answered: that is a button of something else"),
    ]


def test_a_press_that_slack_did_not_sign_now_counts_for_nothing(serve: Serve, chat: Slack) -> None:
    settings = serve(str(CHAT), "people.json", environment=chat.environment)
    request = asked()

    def go() -> None:
        value = chat.buttons()["approve"]
        assert press(settings, chat, "U1", "approve", value, secret="guessed") == 401
        assert press(settings, chat, "U1", "approve", value, age=400) == 401
        assert fetch(url_of(settings, "/slack/actions"), b"payload={}")[0] == 401

    assert answers(settings, request, go) == []


def test_what_is_too_long_for_a_message_has_no_buttons(serve: Serve, chat: Slack) -> None:
    settings = serve(str(CHAT), "people.json", environment=chat.environment)
    request = asked(code="1\n" * 2000)
    assert answers(settings, request, lambda: None) == []
    assert chat.buttons() == {}
    assert "python desk.py show" in chat.called[0][1]["blocks"][0]["text"]["text"]


def test_a_request_is_told_again_while_slack_is_away(serve: Serve, chat: Slack) -> None:
    settings = serve(str(CHAT), "people.json", environment=chat.environment)
    chat.answer = {"ok": False, "error": "ratelimited"}

    def recover() -> None:
        chat.came.wait(30)
        chat.answer = {"ok": True, "ts": "1"}

    threading.Thread(target=recover).start()
    assert answers(settings, asked(), lambda: None) == []
    assert {method for method, _ in chat.called} == {"chat.postMessage"}
    assert len(chat.called) >= 2
