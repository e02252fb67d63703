"""Asking a server that need not be friendly.

Rules this module keeps:

- an answer is bounded in bytes and in time; a redirection is not followed, since nobody named its target;
- certificates are checked against those that the system trusts, or those in SSL_CERT_FILE; no proxy is taken
  from the environment;
- a name and a password in an address are sent, and no error names them;
- it needs `urllib3`, so whoever asks imports this module when there is somebody to be asked.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from urllib.parse import unquote

import urllib3
from urllib3.exceptions import HTTPError, LocationValueError, NewConnectionError, SSLError, TimeoutError

from licet.output import bounded, escape

_SHOWN = 300  # characters of what a server says


class NoAnswer(Exception):
    """Why there is none; `advice` says what to change where asking again would change nothing."""

    def __init__(self, why: str, *, advice: str | None = None) -> None:
        super().__init__(why)
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def content_type(self) -> str:
        """What it says that the body is, without parameters; empty if it does not say."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def said(self) -> str:
        """What it says in words, bounded and harmless; empty if it says it in bytes."""
        if self.content_type != "text/plain" and "json" not in self.content_type:
            return ""
        return bounded(escape(self.body.decode("utf-8", "replace").strip(), newlines=False), _SHOWN)

    def __str__(self) -> str:
        return f"status {self.status}" + (f": {self.said}" if self.said else "")


class Web:
    """Asks servers, and keeps connections to them until it is closed.

    `patience` is how many seconds a connection may take, and the pause between two pieces of an answer; the
    whole of an answer may take twice as long. `most` is how many bytes it may have.
    """

    def __init__(self, *, patience: float, most: int) -> None:
        self._patience = patience
        self._most = most
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=patience, read=patience), retries=False
        )

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send a request and return its answer, whatever its status is.

        Raises:
            NoAnswer: there is none, or it is too large or too slow.
        """
        return self._ask("POST", url, body, headers)

    def get(self, url: str, headers: Mapping[str, str]) -> Answer:
        """Ask for what is at an address, as `post` does."""
        return self._ask("GET", url, None, headers)

    def _ask(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        own = {"User-Agent": f"licet/{version('licet')}"}
        try:
            if (auth := urllib3.util.parse_url(url).auth) is not None:
                own |= urllib3.make_headers(basic_auth=unquote(auth))
            response = self._pool.request(
                method,
                url,
                body=body,
                headers=own | dict(headers),
                preload_content=False,
                decode_content=False,
                redirect=False,
            )
            try:
                found = self._read(response)
            finally:
                response.close()
            return Answer(
                response.status, {name.lower(): value for name, value in response.headers.items()}, found
            )
        except (HTTPError, OSError) as problem:
            raise self._no_answer(problem) from None

    def close(self) -> None:
        """Let go of connections."""
        self._pool.clear()

    def _read(self, response: urllib3.BaseHTTPResponse) -> bytes:
        deadline = time.monotonic() + 2 * self._patience
        found = bytearray()
        while piece := response.read1(self._most):
            found += piece
            if len(found) > self._most:
                raise NoAnswer(
                    f"it answered with more than {self._most >> 10} KiB", advice="check the address"
                )
            if time.monotonic() > deadline:
                raise NoAnswer(f"it took more than {2 * self._patience:.0f} s to answer")
        return bytes(found)

    def _no_answer(self, problem: Exception) -> NoAnswer:
        """What is wrong, without the names of objects in memory."""
        if isinstance(problem, LocationValueError):
            return NoAnswer("that is no address", advice="check the address")
        if isinstance(problem, SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(problem):
            return NoAnswer(
                f"its certificate is not trusted here: {bounded(str(problem), _SHOWN)}",
                advice="name the file that vouches for it in SSL_CERT_FILE",
            )
        if isinstance(problem, TimeoutError) and not isinstance(problem, NewConnectionError):
            return NoAnswer(f"it took more than {self._patience:.0f} s")
        cause = problem.__cause__ or problem
        if isinstance(cause, OSError) and cause.strerror:
            return NoAnswer(cause.strerror.lower())
        said = str(problem).rpartition(">: ")[2]
        return NoAnswer(bounded(escape(f"{type(problem).__name__}: {said}", newlines=False), _SHOWN))
