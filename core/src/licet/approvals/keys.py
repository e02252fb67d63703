"""Keys of approvals: whose signature under an answer counts, and what requests are signed with.

Rules this module keeps:

- a key decides by itself how it signs: Ed25519 by EdDSA, P-256 by ES256, RSA by RS256; nothing else is a key,
  and no token chooses;
- a file that others can change is no key, and one that others can read is no secret;
- no message holds what is in a secret file.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_public_key

from licet.errors import InvalidSettings, Position, reason_of
from licet.files import open_plain
from licet.settings import Issuer

SECRET_PREFIX = "whsec_"
"""What a secret of the Standard Webhooks specification begins with; base64 follows."""

PublicKey: TypeAlias = Ed25519PublicKey | EllipticCurvePublicKey | RSAPublicKey

_MOST_BYTES = 64 << 10
_FEWEST_RSA_BITS = 2048
_SECRET_BYTES = range(24, 65)
_CHANGEABLE = 0o022  # by the group or by others
_READABLE = 0o004 | _CHANGEABLE
_MAKE_ONE = "write a line of `whsec_` and the base64 of 24 to 64 random bytes"


@dataclass(frozen=True, slots=True)
class Key:
    """A public key, and the one algorithm that it is used with."""

    algorithm: str
    public: PublicKey


def key_of(issuer: Issuer) -> Key:
    """The public key of an issuer, read anew.

    Raises:
        InvalidSettings: there is none, it is of another kind, or others can change it.
    """
    try:
        if Path(issuer.key).is_absolute():
            found = load_pem_public_key(_read(Path(issuer.key), _CHANGEABLE))
        else:
            found = load_der_public_key(base64.b64decode(issuer.key, validate=True))
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidSettings(
            f"the key of the issuer `{issuer.issuer}` is no public key",
            advice="give the absolute path of a PEM file (`-----BEGIN PUBLIC KEY-----`), or the base64 in it",
        ) from None
    if isinstance(found, Ed25519PublicKey):
        return Key("EdDSA", found)
    if isinstance(found, EllipticCurvePublicKey) and isinstance(found.curve, SECP256R1):
        return Key("ES256", found)
    if isinstance(found, RSAPublicKey) and found.key_size >= _FEWEST_RSA_BITS:
        return Key("RS256", found)
    raise InvalidSettings(
        f"the key of the issuer `{issuer.issuer}` is of a kind that is not used here",
        advice="use Ed25519, P-256, or RSA of at least 2048 bits",
    )


def secrets_in(path: Path) -> tuple[bytes, ...]:
    """The secrets in a file, one a line; several while one takes over from another.

    Raises:
        InvalidSettings: there are none, or others can read the file.
    """
    lines = _read(path, _READABLE).split()
    found = tuple(map(_secret, lines))
    if not found or None in found:
        what = "holds no secret" if not found else f"has a word {found.index(None) + 1} that is no secret"
        raise InvalidSettings(f"the file {what}", where=Position(str(path)), advice=_MAKE_ONE)
    return tuple(secret for secret in found if secret is not None)


def _secret(word: bytes) -> bytes | None:
    prefix = SECRET_PREFIX.encode()
    try:
        secret = base64.b64decode(word.removeprefix(prefix), validate=True)
    except binascii.Error:
        return None
    return secret if word.startswith(prefix) and len(secret) in _SECRET_BYTES else None


def _read(path: Path, closed: int) -> bytes:
    """A small file, of which the bits `closed` of its mode are not set."""
    where = Position(str(path))
    try:
        with os.fdopen(open_plain(path, os.O_RDONLY, follow=True), "rb") as file:
            found, data = os.fstat(file.fileno()), file.read(_MOST_BYTES + 1)
    except OSError as problem:
        raise InvalidSettings(f"the key can't be read: {reason_of(problem)}", where=where) from None
    if len(data) > _MOST_BYTES:
        raise InvalidSettings(f"the key is larger than {_MOST_BYTES >> 10} KiB", where=where)
    if sys.platform != "win32":
        if found.st_uid not in (0, os.geteuid()):
            advice = "make it a file of yours, or of root"
            raise InvalidSettings("the key belongs to another user", where=where, advice=advice)
        if found.st_mode & closed:
            mode = stat.S_IMODE(found.st_mode)
            what, right = ("read or change", 0o600) if closed == _READABLE else ("change", mode & ~closed)
            raise InvalidSettings(
                f"others can {what} the key: its mode is {mode:04o}",
                where=where,
                advice=f"`chmod {right:04o} {path}`",
            )
    return data
