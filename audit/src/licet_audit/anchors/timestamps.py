"""The anchor that is a time-stamping authority: RFC 3161 over HTTP.

Rules this module keeps:

- a time stamp counts only if certificates vouch for it that the caller brings; without any, an answer is
  kept if it is of the right digest and nonce, and proves nothing until somebody brings them;
- what is stamped is the text of the checkpoint, so `openssl ts -verify -digest` checks it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from licet.errors import reason_of
from licet.files import read_plain
from licet.record import Checkpoint

from licet_audit.anchors import NotAnchored
from licet_audit.anchors.posting import ADVICE, post
from licet_audit.notes import Note

if TYPE_CHECKING:
    from licet.settings import TimestampAuthority

_MOST_BYTES = 1 << 20  # of a file of certificates
_SHA256 = "2.16.840.1.101.3.4.2.1"


class OtherText(NotAnchored):
    """A time stamp that is good as such, and of something else; `time` is when that was stamped."""

    def __init__(self, time: str) -> None:
        super().__init__("the time stamp is of something else")
        self.time = time


def see(checkpoint: Checkpoint, authority: TimestampAuthority) -> tuple[bytes, str]:
    """Have the text of a checkpoint stamped; return the answer, and the time in it.

    Raises:
        NotAnchored: there is no answer, it is no stamp of this text, or the roots don't vouch for it.
    """
    client = _client()
    text = Note.parse(checkpoint.note).text
    builder = client.TimestampRequestBuilder().data(text).hash_algorithm(client.base.HashAlgorithm.SHA256)
    request = builder.nonce(nonce=True).cert_request(cert_request=True).build()
    answer = post(authority.url, request.as_bytes(), "application/timestamp-query")
    if answer.status != 200 or answer.content_type != "application/timestamp-reply":
        raise NotAnchored(f"it does not answer with a time stamp: {answer}")
    roots = [authority.roots] if authority.roots else []
    return answer.body, stamped(answer.body, text, roots, nonce=request.nonce)


def stamped(data: bytes, text: bytes, roots: Sequence[Path], *, nonce: int | None = None) -> str:
    """When `data` was stamped, RFC 3339 in UTC; with `roots`, files of certificates, one of them must vouch.

    Raises:
        OtherText: it is a stamp, which the roots vouch for, of something else than `text`.
        NotAnchored: it is no stamp, not an answer to `nonce`, or no root vouches for it.
    """
    client = _client()
    try:
        answer = client.decode_timestamp_response(data)
        if answer.status != client.tsp.PKIStatus.GRANTED:
            raise NotAnchored(
                f"it refuses: status {answer.status} {'; '.join(answer.status_string)}".rstrip()
            )
        info = answer.tst_info
        imprint, found_nonce = info.message_imprint, info.nonce
        time = f"{info.gen_time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        digest, algorithm = bytes(imprint.message), imprint.hash_algorithm.dotted_string
    except ValueError as problem:
        raise NotAnchored(f"that is no time stamp: {problem}") from None
    if nonce is not None and found_nonce != nonce:
        raise NotAnchored("the time stamp answers another question than was asked: it may be an old one")
    if roots:
        _require_vouched(client, answer, digest, roots)
    if (algorithm, digest) != (_SHA256, sha256(text).digest()):
        raise OtherText(time)
    return time


def _require_vouched(client: Any, answer: Any, digest: bytes, roots: Sequence[Path]) -> None:
    problem: Exception | None = None
    for root in (one for path in roots for one in certificates(path)):
        try:
            client.VerifierBuilder().add_root_certificate(root).build().verify(answer, digest)
            return
        except (client.VerificationError, ValueError) as found:
            problem = found
    raise NotAnchored(f"no certificate that is trusted vouches for the time stamp: {problem}")


def certificates(path: Path) -> Sequence[Any]:
    """The certificates in a PEM file.

    Raises:
        NotAnchored: it can't be read, or holds none.
    """
    from cryptography.x509 import load_pem_x509_certificates

    try:
        return load_pem_x509_certificates(read_plain(path, _MOST_BYTES, follow=True))
    except OSError as problem:
        raise NotAnchored(f"the certificates in `{path}` can't be read: {reason_of(problem)}") from None
    except ValueError:
        raise NotAnchored(f"`{path}` holds no certificates in PEM") from None


def _client() -> Any:
    try:
        import rfc3161_client
        import rfc3161_client.base
        import rfc3161_client.tsp
    except ImportError:
        raise NotAnchored(f"`rfc3161-client` is not installed; {ADVICE}") from None
    return rfc3161_client
