"""A witness by the text of C2SP tlog-witness, and a time-stamping authority that OpenSSL is."""

import base64
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from licet_audit import tree
from licet_audit.anchors.anchoring import SignedHead
from licet_audit.notes import COSIGNATURE, Head, Note, Signature, VerifierKey

Reply = tuple[int, str, bytes]
Grow = Callable[[int], SignedHead]


@dataclass
class Server:
    """Answers a POST with what `reply(path, body)` returns, or with whatever a test puts in its place."""

    reply: Callable[[str, bytes], Reply]
    url: str = ""
    asked: list[bytes] = field(default_factory=list)


Serve = Callable[[Callable[[str, bytes], Reply]], Server]


class Witness:
    """A witness that knows the logs in `trusted` (origin to key) and remembers the newest head of each."""

    def __init__(self, name: str = "witness.example/w1", seed: bytes = b"w" * 32) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.key = VerifierKey(name, self._private.public_key().public_bytes_raw(), COSIGNATURE)
        self.trusted: dict[str, VerifierKey] = {}
        self.seen: dict[str, Head] = {}
        self.time = 1_800_000_000

    def reply(self, path: str, body: bytes) -> Reply:
        """`add-checkpoint`."""
        if path != "/add-checkpoint":
            return 404, "text/plain", b"no such call"
        above, _, checkpoint = body.partition(b"\n\n")
        first, *proof = above.decode("ascii").split("\n")
        old = re.fullmatch(r"old (0|[1-9][0-9]*)", first)
        note = Note.parse(checkpoint)
        head = Head.parse(note.text)
        if head.origin not in self.trusted:
            return 404, "text/plain", b"unknown log"
        if note.signed_by(self.trusted[head.origin]) is None:
            return 403, "text/plain", b"unknown key"
        if old is None or len(proof) > 63 or int(old[1]) > head.size:
            return 400, "text/plain", b"bad request"
        size, before = int(old[1]), self.seen.get(head.origin, Head(head.origin, 0, tree.EMPTY))
        if size != before.size or (size == head.size and head.root != before.root):
            return 409, "text/x.tlog.size", b"%d\n" % before.size
        hashes = [base64.b64decode(line, validate=True) for line in proof]
        if not tree.is_consistent(size, before.root, head.size, head.root, hashes):
            return 422, "text/plain", b"inconsistent"
        self.seen[head.origin] = head
        return 200, "text/plain", self.cosign(note.text)

    def cosign(self, text: bytes) -> bytes:
        """A signature line over a checkpoint."""
        message = b"cosignature/v1\ntime %d\n%s" % (self.time, text)
        data = self.time.to_bytes(8, "big") + self._private.sign(message)
        return Signature(self.key.name, self.key.key_id, data).line.encode()


@dataclass
class Authority:
    """A time-stamping authority that OpenSSL is; `roots` is the certificate that vouches for it."""

    folder: Path

    @property
    def roots(self) -> Path:
        return self.folder / "ca.pem"

    def reply(self, path: str, body: bytes) -> Reply:
        """Stamp a query."""
        (self.folder / "query").write_bytes(body)
        self._openssl("ts", "-reply", "-config", "ts.cnf", "-queryfile", "query", "-out", "reply")
        return 200, "application/timestamp-reply", (self.folder / "reply").read_bytes()

    def make(self) -> None:
        """Make a certificate authority, and a key that it lets stamp."""
        (self.folder / "serial").write_text("01\n")
        (self.folder / "ext.cnf").write_text(
            "extendedKeyUsage=critical,timeStamping\nkeyUsage=digitalSignature\n"
        )
        (self.folder / "ts.cnf").write_text(
            "[tsa]\ndefault_tsa=t\n[t]\nserial=serial\ncrypto_device=builtin\nsigner_cert=tsa.pem\n"
            "signer_key=tsa.key\nsigner_digest=sha256\ndefault_policy=1.2.3.4.1\ndigests=sha256\n"
            "accuracy=secs:1\nordering=no\ntsa_name=no\ness_cert_id_chain=no\ness_cert_id_alg=sha256\n"
        )
        new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        self._openssl(*new, "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=root", "-days", "2")
        self._openssl(*new, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=tsa")
        sign = ("x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        self._openssl(*sign, "-out", "tsa.pem", "-days", "2", "-extfile", "ext.cnf")

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(("openssl", *arguments), cwd=self.folder, check=True, capture_output=True)
