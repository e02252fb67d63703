"""One exchange with the server of the webhook, and what its answer comes to.

Rules this module keeps:

- what can pass is told apart from what can't: no connection, 429 and 5xx are worth another try, all else is
  final;
- an answer is bounded in bytes, time and number of tokens; a redirection is an answer like any other;
- the id of a message is that of the approval, so a delivery that comes twice is one;
- errors name the server, never the rest of its address, which may be a secret.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

from licet.approvals.forms import ApprovalRequest
from licet.approvals.keys import secrets_in
from licet.approvals.webhook.signing import headers
from licet.errors import AskingFailed
from licet.settings import Webhook
from licet.units import show_moment
from licet.web import Answer, NoAnswer, Web

TYPE = "licet.approval.asked"
MOST_TOKENS = 100
MOST_BYTES = 2 << 20  # of an answer

_PATIENCE_S = 10.0
_LONGEST_ASKED_S = 60.0
_NOTHING_YET = frozenset({204, 404, 405})  # also of a server that is not asked in this way


class TryAgain(Exception):
    """Why an exchange came to nothing; `pause` is how many seconds the server asks to be left alone."""

    def __init__(self, why: str, pause: float = 0.0) -> None:
        super().__init__(why)
        self.pause = pause


class Receiver:
    """The server that settings name; each exchange blocks."""

    def __init__(self, settings: Webhook, *, patience: float = _PATIENCE_S) -> None:
        self._settings = settings
        self._web = Web(patience=patience, most=MOST_BYTES)
        parts = urlsplit(settings.url)
        self.name = f"{parts.scheme}://{parts.netloc}"

    def deliver(self, request: ApprovalRequest) -> tuple[str, ...]:
        """Tell of a request; return the tokens that answer it at once.

        Raises:
            TryAgain: it is not delivered yet.
            AskingFailed: it will not be.
            InvalidSettings: there is no secret to sign with.
        """
        body = message(request)
        signed = self._signed(request, body) | {"Content-Type": "application/json"}
        answer = self._exchange(lambda: self._web.post(self._settings.url, body, signed))
        if not 200 <= answer.status < 300:
            raise self._failed(f"it answered {answer}", "check the address and the secret")
        return self._tokens(answer)

    def answers(self, request: ApprovalRequest) -> tuple[str, ...]:
        """The tokens that answer it by now.

        Raises:
            TryAgain, AskingFailed, InvalidSettings: as for `deliver`.
        """
        url = f"{self._settings.url.rstrip('/')}/{quote(request.id, safe='')}"
        signed = self._signed(request, b"")
        answer = self._exchange(lambda: self._web.get(url, signed))
        if answer.status in _NOTHING_YET:
            return ()
        if not 200 <= answer.status < 300:
            raise self._failed(f"it answered {answer}", "check the address and the secret")
        return self._tokens(answer)

    def close(self) -> None:
        """Let go of connections."""
        self._web.close()

    def _signed(self, request: ApprovalRequest, body: bytes) -> dict[str, str]:
        return headers(secrets_in(self._settings.secret_file), request.id, int(time.time()), body)

    def _exchange(self, ask: Callable[[], Answer]) -> Answer:
        try:
            answer = ask()
        except NoAnswer as problem:
            if problem.advice is not None:
                raise self._failed(str(problem), problem.advice) from None
            raise TryAgain(f"`{self.name}`: {problem}") from None
        if answer.status == 429 or answer.status >= 500:
            raise TryAgain(f"`{self.name}` answered {answer}", _pause(answer))
        return answer

    def _failed(self, why: str, advice: str) -> AskingFailed:
        return AskingFailed(f"nobody can be asked by the webhook `{self.name}`: {why}", advice=advice)

    def _tokens(self, answer: Answer) -> tuple[str, ...]:
        try:
            found: Any = json.loads(answer.body) if answer.body.strip() else {}
            tokens = found.get("tokens", [])
            if not (isinstance(tokens, list) and all(isinstance(one, str) for one in tokens)):
                raise ValueError
        except (ValueError, AttributeError, RecursionError):
            raise self._failed(
                f"what answered {answer.status} there is no receiver of approvals",
                'a receiver answers with nothing, or with JSON: `{"tokens": [...]}`',
            ) from None
        if len(tokens) > MOST_TOKENS:
            raise self._failed(
                f"it answered with {len(tokens)} tokens", f"at most {MOST_TOKENS} are read: one a person"
            )
        return tuple(tokens)


def message(request: ApprovalRequest) -> bytes:
    """What the server is told; always the same bytes, all ASCII."""
    data = {"id": request.id, "shown": request.shown, "document": request.document}
    told = {"type": TYPE, "timestamp": show_moment(request.asked.wall), "data": data}
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode()


def _pause(answer: Answer) -> float:
    asked = answer.headers.get("retry-after", "").strip()
    return min(float(asked[:9]), _LONGEST_ASKED_S) if asked.isascii() and asked.isdigit() else 0.0
