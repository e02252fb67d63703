"""A desk for approvals: licet tells it what is asked, people answer, and it signs their answers.

    python desk.py init                 make keys, and print the settings for licet
    python desk.py serve                receive requests; a page at http://127.0.0.1:8917/ shows them
    python desk.py list
    python desk.py show ID
    python desk.py approve ID --as ann --groups finance
    python desk.py deny ID --as ann --groups finance --reason 'not this customer'

It needs `pip install 'pyjwt[crypto]'`, and nothing of licet. It believes `--as`: put your own login there
before others than you can reach it.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import html
import json
import os
import re
import sys
import time
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

PORT = 8917
ISSUER = "desk"
NAMES = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
MOST_BYTES = 32 << 20  # of a request
SKEW_S = 300  # how old a signed request may be
FIRST = ("requester", "asks", "requirements", "call", "suspicious", "code")
INVISIBLE = {"\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"} | {chr(code) for code in range(0xFE00, 0xFE10)}


class Refused(Exception):
    """Why something is not done, and the HTTP status that says so."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


class Desk:
    """What a desk keeps, in files of one directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests = folder / "requests"
        self.answers = folder / "answers"

    def init(self) -> None:
        """Make the keys, once."""
        for path in (self.requests, self.answers):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        private = Ed25519PrivateKey.generate()
        pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_once(self.folder / "desk.key", pem)
        write_once(self.folder / "webhook.secret", b"whsec_" + base64.b64encode(os.urandom(32)) + b"\n")

    def settings(self) -> str:
        """What licet's `config.toml` has to say."""
        private: Any = load_pem_private_key((self.folder / "desk.key").read_bytes(), None)
        public = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return f"""[approvals]
services = ["webhook"]

[approvals.webhook]
url = "http://127.0.0.1:{PORT}/approvals"
secret_file = {json.dumps(str((self.folder / "webhook.secret").resolve()))}

[[approvals.issuers]]
issuer = "{ISSUER}"
key = "{base64.b64encode(public).decode()}"
"""

    def check(self, headers: Mapping[str, str], body: bytes) -> str:
        """The id of a message that is signed with our secret, now; see standardwebhooks.com."""
        message, sent = headers.get("webhook-id") or "", headers.get("webhook-timestamp") or ""
        if not (sent.isascii() and sent.isdigit() and abs(int(sent[:15]) - time.time()) <= SKEW_S):
            raise Refused("the request is too old, or not signed", 401)
        secret = (self.folder / "webhook.secret").read_text().strip().removeprefix("whsec_")
        signed = f"{message}.{sent}.".encode() + body
        good = (
            "v1," + base64.b64encode(hmac.digest(base64.b64decode(secret), signed, hashlib.sha256)).decode()
        )
        given = (headers.get("webhook-signature") or "").split(" ")
        if not any(hmac.compare_digest(good.encode(), one.encode()) for one in given):
            raise Refused("the signature is not of our secret", 401)
        if not NAMES.fullmatch(message):
            raise Refused("that is no id of an approval")
        return message

    def receive(self, message: str, body: bytes) -> dict[str, Any]:
        """Keep a request; the same one may come again."""
        try:
            data = json.loads(body)["data"]
            if (
                data["id"] != message
                or not isinstance(data["document"], dict)
                or not isinstance(data["shown"], str)
            ):
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Refused("that is no request for an approval") from None
        path = self.requests / f"{message}.json"
        write_once(path, body)
        if path.read_bytes() != body:
            raise Refused("another request has this id", 409)
        found: dict[str, Any] = data
        return found

    def all(self) -> Iterator[dict[str, Any]]:
        """All requests, the newest first."""
        for path in sorted(self.requests.glob("*.json"), key=lambda one: one.stat().st_mtime, reverse=True):
            yield json.loads(path.read_bytes())["data"]

    def get(self, name: str) -> dict[str, Any]:
        """The request whose id begins so."""
        found = [one for one in self.all() if one["id"].startswith(name)]
        if len(found) != 1:
            raise Refused(f"{len(found)} requests have an id that begins with {visible(name)!r}", 404)
        return found[0]

    def tokens(self, approval: str) -> list[str]:
        """The signed answers to an approval."""
        path = self.answers / f"{approval}.jsonl"
        return path.read_text().split() if path.exists() else []

    def given(self, approval: str) -> dict[str, str]:
        """Who answered what."""
        claims = [jwt.decode(token, options={"verify_signature": False}) for token in self.tokens(approval)]
        return {one["sub"]: one["answer"] for one in claims}

    def answer(
        self, approval: str, answer: str, person: str, groups: list[str], *, reviewer: str, reason: str = ""
    ) -> None:
        """Sign what a person answers."""
        request = self.get(approval)
        if person.casefold() in map(str.casefold, self.given(request["id"])):
            raise Refused(f"{visible(person)} has answered already", 409)
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": "licet",
            "sub": person,
            "groups": groups,
            "reviewer": reviewer,
            "approval": request["id"],
            "shown": request["shown"],
            "answer": answer,
            "reason": reason,
            "jti": os.urandom(16).hex(),
            "iat": now,
            "exp": ending(request["document"]) or now + 86400,
        }
        token = jwt.encode(claims, (self.folder / "desk.key").read_bytes(), "EdDSA")
        with (self.answers / f"{request['id']}.jsonl").open("a") as file:
            file.write(token + "\n")


def write_once(path: Path, content: bytes) -> None:
    """Make a file of mode 0600 with all of its content, unless there is one."""
    draft = path.with_name(f".{path.name}-{os.urandom(8).hex()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def ending(document: Mapping[str, Any]) -> int | None:
    """When the approval expires, if its document says so."""
    try:
        return int(datetime.fromisoformat(document["expires_at"]).timestamp())
    except (KeyError, TypeError, ValueError):
        return None


def visible(text: str) -> str:
    """Text in which nothing hides: controls, bidi marks and invisible characters become ‹U+202E›."""
    return "".join(
        f"‹U+{ord(one):04X}›"
        if one != "\n" and (unicodedata.category(one)[0] == "C" or one in INVISIBLE or one in "\u2028\u2029")
        else one
        for one in text
    )


def render(request: Mapping[str, Any]) -> str:
    """A whole request as text: nothing is left out, and texts of several lines have numbers."""
    document = request["document"]
    rest = [name for name in document if name not in FIRST]
    lines = [f"approval {request['id']}", f"document {request['shown']}"]
    for name in (*(one for one in FIRST if one in document), *rest):
        value = document[name]
        if isinstance(value, str) and ("\n" in value or name == "code"):
            numbered = enumerate(value.removesuffix("\n").split("\n"), 1)
            lines += [f"{name}:", *(f"{number:5} │ {line}" for number, line in numbered)]
        elif value not in (None, [], {}, ""):
            lines.append(f"{name}: {json.dumps(value, ensure_ascii=False, indent=2)}")
    return visible("\n".join(lines))


class Handler(BaseHTTPRequestHandler):
    """The server: requests of licet, and a page for people."""

    desk: Desk
    server_version = "desk"
    sys_version = ""
    timeout = 30

    def do_POST(self) -> None:
        self.guard(self.post)

    def do_GET(self) -> None:
        self.guard(self.get)

    def post(self) -> None:
        if self.path != "/approvals":
            raise Refused("there is nothing here", 404)
        body = self.body()
        self.received(self.desk.receive(self.desk.check(self.headers_by_name(), body), body))
        self.reply(200, b"{}")

    def received(self, request: Mapping[str, Any]) -> None:
        """A request came, maybe again."""

    def get(self) -> None:
        if self.path == "/":
            self.page()
            return
        approval = self.desk.check(self.headers_by_name(), b"")
        if self.path != f"/approvals/{approval}":
            raise Refused("the signature is for another address", 401)
        self.reply(200, json.dumps({"tokens": self.desk.tokens(approval)}).encode())

    def page(self) -> None:
        if (self.headers.get("host") or "").rpartition(":")[0] not in ("127.0.0.1", "localhost"):
            raise Refused("this page is for this machine", 403)  # and for no site that got our address
        parts = ["<!doctype html><meta charset=utf-8><title>Approvals</title><h1>Approvals</h1>"]
        for request in self.desk.all():
            answers = ", ".join(f"{who}: {what}" for who, what in self.desk.given(request["id"]).items())
            parts.append(
                f"<h2>{html.escape(request['id'])}</h2><p>{html.escape(visible(answers or 'pending'))}</p>"
            )
            parts.append(f"<pre>{html.escape(render(request))}</pre>")
        self.reply(200, "\n".join(parts).encode(), "text/html; charset=utf-8")

    def guard(self, work: Any) -> None:
        try:
            work()
        except Refused as problem:
            self.reply(problem.status, f"{problem}\n".encode(), "text/plain; charset=utf-8")

    def body(self) -> bytes:
        size = self.headers.get("content-length") or ""
        if not (size.isascii() and size.isdigit()):
            raise Refused("how long is it?", 411)
        if len(size) > 12 or int(size) > MOST_BYTES:
            raise Refused("it is too large", 413)
        return self.rfile.read(int(size))

    def headers_by_name(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def reply(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-security-policy", "default-src 'none'")
        self.send_header("x-content-type-options", "nosniff")
        self.end_headers()
        self.wfile.write(body)


def serve(handler: type[Handler], desk: Desk, port: int) -> None:
    """Serve until the process is ended."""
    bound = type("Bound", (handler,), {"desk": desk})
    with ThreadingHTTPServer(("127.0.0.1", port), bound) as server:
        print(f"the desk is at http://127.0.0.1:{server.server_address[1]}/", file=sys.stderr, flush=True)
        server.serve_forever()


def decide(desk: Desk, options: argparse.Namespace) -> None:
    """Show what is asked, and sign an answer; a person who is there is asked whether it is meant."""
    request = desk.get(options.id)
    print(render(request))
    there = sys.stdin.isatty() and sys.stdout.isatty()
    if there and input(f"{options.command} this as {visible(options.person)}? [y/N] ").strip().lower() != "y":
        raise Refused("nothing was answered")
    groups = [name for name in options.groups.split(",") if name]
    reviewer = "human" if there else "auto"
    desk.answer(
        request["id"], options.command, options.person, groups, reviewer=reviewer, reason=options.reason
    )
    done = "approved" if options.command == "approve" else "denied"
    print(f"{done} {request['id']} as {visible(options.person)} ({reviewer})")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description="a desk for approvals")
    found.add_argument("--dir", type=Path, default=Path(os.environ.get("DESK_DIR", "desk")))
    commands = found.add_subparsers(dest="command", required=True)
    commands.add_parser("init")
    commands.add_parser("list")
    commands.add_parser("serve").add_argument("--port", type=int, default=PORT)
    commands.add_parser("show").add_argument("id")
    for name in ("approve", "deny"):
        one = commands.add_parser(name)
        one.add_argument("id")
        one.add_argument("--as", dest="person", required=True)
        one.add_argument("--groups", default="")
        one.add_argument("--reason", default="")
    return found


def main() -> None:
    """Do what the command line says."""
    options = parser().parse_args()
    desk = Desk(options.dir)
    try:
        if options.command == "init":
            desk.init()
            print(desk.settings(), end="")
        elif not desk.requests.is_dir():
            raise Refused(f"there is no desk in {desk.folder}: run `python desk.py init` first", 404)
        elif options.command == "serve":
            serve(Handler, desk, options.port)
        elif options.command == "list":
            for request in desk.all():
                answers = [f"{who}: {what}" for who, what in desk.given(request["id"]).items()]
                print(visible(f"{request['id']}  {', '.join(answers) or 'pending'}"))
        elif options.command == "show":
            print(render(desk.get(options.id)))
        else:
            decide(desk, options)
    except Refused as problem:
        sys.exit(f"{problem}")


if __name__ == "__main__":
    main()
