"""Approvals by a chat: what is asked is posted to a Slack channel with two buttons; a press is signed.

    python chat.py --dir desk people.json

It is the desk of ../approval-desk with Slack in front. `people.json` says who is who, such as
`{"U024BE7LH": {"id": "ann", "groups": ["finance"]}}`. SLACK_BOT_TOKEN (scope `chat:write`),
SLACK_SIGNING_SECRET and SLACK_CHANNEL come from the environment. The app's interactivity URL is
`/slack/actions` of this server, through a proxy of yours that speaks TLS.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "approval-desk"))
from desk import PORT, SKEW_S, Desk, Handler, Refused, render, serve, visible, write_once

API = os.environ.get("SLACK_API", "https://slack.com/api")
MOST_SHOWN = 3000  # characters that one message can hold without loss
MOST_BYTES = 1 << 20  # of an answer of Slack


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere, since the token would go along."""

    def redirect_request(self, *_: Any) -> None:
        return None


def slack(method: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Call a method of Slack's Web API."""
    request = urllib.request.Request(
        f"{API}/{method}",
        json.dumps({"channel": os.environ["SLACK_CHANNEL"], **content}).encode(),
        {
            "authorization": f"Bearer {os.environ['SLACK_BOT_TOKEN']}",
            "content-type": "application/json; charset=utf-8",
        },
    )
    try:
        with urllib.request.build_opener(NoRedirect).open(request, timeout=10) as response:
            found: dict[str, Any] = json.loads(response.read(MOST_BYTES))
    except (OSError, ValueError) as problem:
        raise Refused(f"Slack is not there: {type(problem).__name__}", 503) from None
    if not found.get("ok"):
        raise Refused(f"Slack refuses {method}: {visible(str(found.get('error')))}", 502)
    return found


def blocks(request: Mapping[str, Any], answers: Mapping[str, str]) -> list[dict[str, Any]]:
    """A message that shows all of a request, as text that Slack does not read markup in; or no buttons."""
    text = render(request)
    if len(text) > MOST_SHOWN:
        why = f"{request['id']} is too long for a message: `python desk.py show` has all of it."
        return [{"type": "section", "text": {"type": "plain_text", "text": why, "emoji": False}}]
    shown = {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]}
    buttons = [
        {
            "type": "button",
            "action_id": answer,
            "style": style,
            "text": {"type": "plain_text", "text": label},
            "value": json.dumps({"id": request["id"], "shown": request["shown"]}),
        }
        for answer, label, style in (("approve", "Approve", "primary"), ("deny", "Deny", "danger"))
    ]
    said = ", ".join(f"{who}: {what}" for who, what in answers.items()) or "pending"
    return [
        {"type": "rich_text", "elements": [shown]},
        {"type": "actions", "elements": buttons},
        {
            "type": "context",
            "elements": [{"type": "plain_text", "text": visible(said)[:2000], "emoji": False}],
        },
    ]


class Chat(Handler):
    """The desk's server, which also speaks with Slack."""

    people: ClassVar[Mapping[str, Any]] = {}

    def received(self, request: Mapping[str, Any]) -> None:
        """Post a request, once; where Slack is away, licet will tell of it again."""
        posted = self.desk.folder / "requests" / f"{request['id']}.posted"
        if not posted.exists():
            content = {"text": f"approval {request['id']}", "blocks": blocks(request, {})}
            write_once(posted, str(slack("chat.postMessage", content)["ts"]).encode())

    def post(self) -> None:
        if self.path != "/slack/actions":
            super().post()
            return
        body = self.body()
        self.check_slack(body)
        try:
            payload = json.loads(urllib.parse.parse_qs(body.decode())["payload"][0])
            user, action = payload["user"]["id"], payload["actions"][0]
            about, answer = json.loads(action["value"]), action["action_id"]
            request = self.desk.get(str(about["id"]))
        except (ValueError, KeyError, IndexError, TypeError):
            raise Refused("that is no press of a button") from None
        self.reply(200, b"")  # Slack waits three seconds
        try:
            self.press(request, about["shown"], str(user), answer)
        except Refused as problem:
            print(f"{request['id']}: {problem}", file=sys.stderr, flush=True)

    def press(self, request: Mapping[str, Any], shown: object, user: str, answer: str) -> None:
        """Sign what a person pressed, and say so in the message; or tell the person why not."""
        try:
            self.sign(request, shown, user, answer)
        except Refused as problem:
            slack("chat.postEphemeral", {"user": user, "text": f"nothing was answered: {problem}"})
            return
        stamp = (self.desk.folder / "requests" / f"{request['id']}.posted").read_text()
        said = {
            "text": f"approval {request['id']}",
            "blocks": blocks(request, self.desk.given(request["id"])),
        }
        slack("chat.update", {"ts": stamp, **said})

    def sign(self, request: Mapping[str, Any], shown: object, user: str, answer: str) -> None:
        """Sign the answer of whoever has this id in the chat."""
        if shown != request["shown"] or answer not in ("approve", "deny"):
            raise Refused("that is a button of something else")
        person = self.people.get(user)
        if person is None:
            raise Refused("nobody says who you are: ask for a place in people.json")
        self.desk.answer(request["id"], answer, person["id"], person["groups"], reviewer="human")

    def check_slack(self, body: bytes) -> None:
        """Refuse what Slack did not sign, now."""
        headers = self.headers_by_name()
        sent = headers.get("x-slack-request-timestamp", "")
        if not (sent.isascii() and sent.isdigit() and abs(int(sent[:15]) - time.time()) <= SKEW_S):
            raise Refused("the request is too old, or not signed", 401)
        secret = os.environ["SLACK_SIGNING_SECRET"].encode()
        good = "v0=" + hmac.new(secret, f"v0:{sent}:".encode() + body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(good.encode(), headers.get("x-slack-signature", "").encode()):
            raise Refused("Slack did not sign it", 401)


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description="approvals by a chat")
    parser.add_argument("--dir", type=Path, default=Path(os.environ.get("DESK_DIR", "desk")))
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("people", type=Path)
    options = parser.parse_args()
    missing = [
        name for name in ("BOT_TOKEN", "SIGNING_SECRET", "CHANNEL") if not os.environ.get(f"SLACK_{name}")
    ]
    if missing:
        sys.exit(f"SLACK_{missing[0]} is not set")
    Chat.people = json.loads(options.people.read_bytes())
    serve(Chat, Desk(options.dir), options.port)


if __name__ == "__main__":
    main()
