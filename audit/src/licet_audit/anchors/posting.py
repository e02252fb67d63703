"""Asking an anchor that has an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from licet_audit.anchors import NotAnchored

if TYPE_CHECKING:
    from licet.web import Answer

MOST_BYTES = 64 * 1024  # of an answer
PATIENCE = 10.0  # seconds
ADVICE = "install what anchors need: `pip install 'licet-audit[anchors]'`"


def post(url: str, body: bytes, content_type: str) -> Answer:
    """Send a request and return its answer, whatever its status is.

    Raises:
        NotAnchored: there is no answer, it is too large or too slow, or the library for it is missing.
    """
    try:
        from licet.web import NoAnswer, Web
    except ImportError:
        raise NotAnchored(f"`urllib3` is not installed; {ADVICE}") from None
    web = Web(patience=PATIENCE, most=MOST_BYTES)
    try:
        return web.post(url, body, {"Content-Type": content_type})
    except NoAnswer as problem:
        raise NotAnchored(f"asking `{url}` failed: {problem}") from None
    finally:
        web.close()
