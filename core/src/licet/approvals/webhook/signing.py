"""Signatures of requests by the Standard Webhooks specification (HMAC-SHA256, version `v1`).

Rules this module keeps:

- id, time and body are signed together, so that none of them can be exchanged, nor the whole be sent again
  later;
- each secret signs, so that a receiver may know the old one or the new one while they change.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence


def headers(secrets: Sequence[bytes], message: str, at: int, body: bytes) -> dict[str, str]:
    """The headers that sign `body` as the message of this id, sent `at` seconds since the epoch."""
    signed = f"{message}.{at}.".encode() + body
    signatures = [base64.b64encode(hmac.digest(one, signed, hashlib.sha256)).decode() for one in secrets]
    return {
        "webhook-id": message,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
