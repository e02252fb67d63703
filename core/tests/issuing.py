"""For tests of signed answers: a request that was asked, and an issuer who signs what he is told to."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from licet.approvals import ApprovalRequest
from licet.approvals.clocks import Moment
from licet.request import Subject

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def asked(approval: str = "01JD7MAPPROVAL", **more: Any) -> ApprovalRequest:
    """What somebody is asked, now, for an hour."""
    given: dict[str, Any] = {
        "id": approval,
        "run_id": "01JD7MRUN",
        "kind": "call",
        "digest": "hmac-sha256:plan",
        "shown": f"hmac-sha256:of-{approval}",
        "document": {"licet": 1, "id": approval, "code": "refund('A1')\n"},
        "fields": {"code": "hmac-sha256:code"},
        "policy_digest": "sha256:policy",
        "requirements": (),
        "requester": Subject(id="eve"),
        "asked": Moment(time.time(), 1000.0, "boot"),
        "expires": 3600.0,
    }
    return ApprovalRequest(**{**given, **more})


def later(request: ApprovalRequest, seconds: float, *, by_wall: float | None = None) -> Moment:
    """An instant after the asking; `by_wall` is what the wall clock says has passed."""
    wall = request.asked.wall + (seconds if by_wall is None else by_wall)
    return Moment(wall, request.asked.running + seconds, request.asked.boot)


@dataclass
class Signer:
    """An issuer with his private key."""

    name: str = "desk"
    private: Any = field(default_factory=Ed25519PrivateKey.generate)
    algorithm: str = "EdDSA"
    count: int = 0

    @property
    def key(self) -> str:
        """The public key as settings have it."""
        public = self.private.public_key()
        return base64.b64encode(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()

    def pem(self, folder: Path) -> str:
        """The public key as a file."""
        path = folder / f"{self.name}.pem"
        path.write_bytes(
            self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
        path.chmod(0o644)
        return str(path)

    def settings(self, **more: Any) -> dict[str, Any]:
        """What settings say of him."""
        return {"issuer": self.name, "key": self.key, **more}

    def claims(self, request: ApprovalRequest, **more: Any) -> dict[str, Any]:
        """Claims that count; None leaves one out."""
        self.count += 1
        claims = {
            "iss": self.name,
            "sub": "ann",
            "aud": "licet",
            "jti": f"{self.name}-{self.count}",
            "iat": int(request.asked.wall),
            "exp": int(request.asked.wall) + 600,
            "approval": request.id,
            "shown": request.shown,
            "answer": "approve",
            "groups": ["finance"],
        }
        return {name: value for name, value in {**claims, **more}.items() if value is not None}

    def sign(self, request: ApprovalRequest, headers: dict[str, Any] | None = None, **more: Any) -> str:
        """A token with these claims."""
        return jwt.encode(self.claims(request, **more), self.private, self.algorithm, headers)


def part(value: object) -> str:
    """Base64 of a JSON value, as tokens have it."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()
