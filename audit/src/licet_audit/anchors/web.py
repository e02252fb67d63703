"""Asking a server that need not be friendly.

Rules this module keeps:

- an answer is bounded in bytes and in time; a redirection is not followed, since nobody named its target;
- certificates are checked against those that the system trusts; no proxy is taken from the environment.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.metadata import version

from licet_audit.anchors import NotAnchored

MOST_BYTES = 64 * 1024  # of an answer
_PATIENCE = 10.0  # seconds for a connection, and between two pieces of an answer
_DEADLINE = 20.0  # seconds for the whole of an answer
_ADVICE = "install what anchors need: `pip install 'licet-audit[anchors]'`"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered."""

    status: int
    content_type: str
    body: bytes


def post(url: str, body: bytes, content_type: str) -> Answer:
    """Send a request and return its answer, whatever its status is.

    Raises:
        NotAnchored: there is no answer, it is too large or too slow, or the library for it is missing.
    """
    try:
        import urllib3
    except ImportError:
        raise NotAnchored(f"`urllib3` is not installed; {_ADVICE}") from None
    headers = {"Content-Type": content_type, "User-Agent": f"licet-audit/{version('licet-audit')}"}
    timeout = urllib3.Timeout(connect=_PATIENCE, read=_PATIENCE)
    deadline = time.monotonic() + _DEADLINE
    try:
        with urllib3.PoolManager(timeout=timeout, retries=False) as pool:
            answer = pool.request(
                "POST",
                url,
                body=body,
                headers=headers,
                preload_content=False,
                decode_content=False,
                redirect=False,
            )
            found = bytearray()
            while piece := answer.read1(MOST_BYTES):
                found += piece
                if len(found) > MOST_BYTES:
                    raise NotAnchored(f"`{url}` answered with more than {MOST_BYTES >> 10} KiB")
                if time.monotonic() > deadline:
                    raise NotAnchored(f"`{url}` took more than {_DEADLINE:.0f} s to answer")
            kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            return Answer(answer.status, kind, bytes(found))
    except (urllib3.exceptions.HTTPError, OSError) as problem:
        raise NotAnchored(f"`{url}` can't be asked: {_reason(problem)}") from None


def text_of(answer: Answer) -> str:
    """What a server said in words, in short."""
    said = answer.body[:200].decode("utf-8", "replace").strip()
    return f"status {answer.status}" + (f": {said}" if said and answer.content_type == "text/plain" else "")


def _reason(problem: Exception) -> str:
    """What is wrong, without the names of objects in memory."""
    import urllib3

    if isinstance(problem, urllib3.exceptions.TimeoutError) and not isinstance(
        problem, urllib3.exceptions.NewConnectionError
    ):
        return f"it took more than {_PATIENCE:.0f} s"
    cause = problem.__cause__ or problem
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    return f"{type(problem).__name__}: {str(problem).rpartition('>: ')[2]}"
