"""Signed notes and checkpoints (C2SP signed-note, tlog-checkpoint and tlog-cosignature), with Ed25519.

Rules this module keeps:

- what is read is read strictly, and a signature counts only for a key that the caller brings;
- a checkpoint carries the log's signature, which witnesses check, and a cosignature of the same key, which
  says when it was made; the origin in front of one and the header in front of the other keep them apart;
- the library that signs is imported by whoever signs or checks: it costs 8 ms, and reading takes none of it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from licet.units import show_moment

NOTE = 1
"""The type of a signature over a note."""
COSIGNATURE = 4
"""The type of a signature over a checkpoint and a time."""

MOST_BYTES = 64 * 1024  # of a note; it is a few hundred

_NAME = re.compile(r"[^\s+]+")
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
_CONTROL = re.compile(rb"[\x00-\x09\x0b-\x1f]")
_DASH = "\N{EM DASH} "


class InvalidNote(ValueError):
    """A note, checkpoint or key that is not what it should be; the message says how."""


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key, what its signatures are named, and what they are over (`NOTE` or `COSIGNATURE`)."""

    name: str
    public: bytes
    kind: int = NOTE

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """Read `NAME+ID+BASE64`, as keys are handed to those who verify.

        Raises:
            InvalidNote: it is none, or its parts don't fit.
        """
        parts = text.strip().split("+", 2)  # base64 may hold a plus, a name may not
        try:
            name, key_id, material = parts[0], bytes.fromhex(parts[1]), bytes_of(parts[2])
        except (IndexError, ValueError):
            raise InvalidNote("a key reads NAME+ID+BASE64") from None
        if not _NAME.fullmatch(name) or len(material) != 33 or material[0] not in (NOTE, COSIGNATURE):
            raise InvalidNote("that is no Ed25519 key for notes or cosignatures")
        key = cls(name, material[1:], material[0])
        if key.key_id != key_id:
            raise InvalidNote(f"its id is {key_id.hex()}, but the key has {key.key_id.hex()}")
        return key

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{base64_of(bytes([self.kind]) + self.public)}"

    @property
    def key_id(self) -> bytes:
        """The four bytes that point from a signature to its key; they prove nothing."""
        material = b"%s\n%c%s" % (self.name.encode(), self.kind, self.public)
        return hashlib.sha256(material).digest()[:4]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the public key in hexadecimal: what people compare."""
        return hashlib.sha256(self.public).hexdigest()

    def of_kind(self, kind: int) -> VerifierKey:
        """The same key for signatures of another kind."""
        return VerifierKey(self.name, self.public, kind)

    def verifies(self, signature: bytes, text: bytes) -> bool:
        """Whether `signature` (without the key's id) is this key's over a note of `text`."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        message, signed = text, signature
        if self.kind == COSIGNATURE:
            if len(signature) != 72:
                return False
            message, signed = _timed(text, int.from_bytes(signature[:8], "big")), signature[8:]
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signed, message)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class Signature:
    """One line below a note."""

    name: str
    key_id: bytes
    data: bytes

    @property
    def line(self) -> str:
        """The line with its newline."""
        return f"{_DASH}{self.name} {base64_of(self.key_id + self.data)}\n"


@dataclass(frozen=True, slots=True)
class Note:
    """A text that ends in a newline, and its signatures, of which nothing is known yet."""

    text: bytes
    signatures: tuple[Signature, ...]

    @classmethod
    def parse(cls, data: bytes) -> Note:
        """Read a signed note.

        Raises:
            InvalidNote: it is none.
        """
        if len(data) > MOST_BYTES:
            raise InvalidNote(f"it has more than {MOST_BYTES} bytes")
        text, gap, below = data.rpartition(b"\n\n")
        if not gap or not below.endswith(b"\n") or _CONTROL.search(data):
            raise InvalidNote("it is no text with signatures below an empty line")
        try:
            data.decode("utf-8")
            signatures = tuple(map(_signature, below.decode("utf-8").split("\n")[:-1]))
        except UnicodeDecodeError:
            raise InvalidNote("it is not UTF-8") from None
        return cls(text + b"\n", signatures)

    @property
    def data(self) -> bytes:
        """The note as it is written."""
        return self.text + b"\n" + "".join(one.line for one in self.signatures).encode()

    def signed_by(self, key: VerifierKey) -> Signature | None:
        """The signature of `key` that verifies, if there is one."""
        for one in self.signatures:
            if (one.name, one.key_id) == (key.name, key.key_id) and key.verifies(one.data, self.text):
                return one
        return None

    def time_by(self, key: VerifierKey) -> int | None:
        """When `key` cosigned it, in seconds since the epoch; None if it didn't."""
        found = self.signed_by(key.of_kind(COSIGNATURE))
        return int.from_bytes(found.data[:8], "big") if found else None

    def moment_by(self, key: VerifierKey) -> str | None:
        """The same in RFC 3339 and UTC, or in words if no calendar has it."""
        at = self.time_by(key)
        return None if at is None else spelled(at)

    def with_signatures(self, more: Iterable[Signature]) -> Note:
        """The same text with further signatures, each once."""
        return Note(self.text, tuple(dict.fromkeys((*self.signatures, *more))))


@dataclass(frozen=True, slots=True)
class Head:
    """What a checkpoint says: the log called `origin` had `size` records, with this root.

    Extensions are further lines; licet writes none.
    """

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: bytes) -> Head:
        """Read the text of a checkpoint.

        Raises:
            InvalidNote: it is none.
        """
        try:
            origin, size, root, *extensions, end = text.decode("utf-8").split("\n")
            found = cls(origin, int(size), bytes_of(root), tuple(extensions))
        except ValueError:
            raise InvalidNote("it has no origin, size and root") from None
        if not origin or not _SIZE.fullmatch(size) or len(found.root) != 32 or end or "" in extensions:
            raise InvalidNote("it has no well-formed origin, size and root")
        return found

    @property
    def text(self) -> bytes:
        """The text that is signed."""
        return "".join(
            f"{line}\n" for line in (self.origin, self.size, base64_of(self.root), *self.extensions)
        ).encode()


class Signer:
    """A private key that signs checkpoints as the log called `name`."""

    def __init__(self, name: str, seed: bytes) -> None:
        """`seed` is the private key: 32 secret bytes."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.key = VerifierKey(name, self._private.public_key().public_bytes_raw())

    def sign(self, head: Head, at: int) -> Note:
        """A checkpoint, signed and cosigned as made `at` that second since the epoch."""
        text = head.text
        timed = at.to_bytes(8, "big") + self._private.sign(_timed(text, at))
        cosigner = self.key.of_kind(COSIGNATURE)
        return Note(
            text,
            (
                Signature(self.key.name, self.key.key_id, self._private.sign(text)),
                Signature(cosigner.name, cosigner.key_id, timed),
            ),
        )


def origin_of(log_id: str) -> str:
    """The name of a log in its checkpoints, and of its key."""
    return f"licet/{log_id}"


def spelled(seconds: int) -> str:
    """The time of a cosignature, RFC 3339 in UTC, or in words if no calendar has it."""
    try:
        return show_moment(seconds)
    except (OverflowError, ValueError, OSError):
        return f"second {seconds} since 1970"


def _timed(text: bytes, seconds: int) -> bytes:
    return b"cosignature/v1\ntime %d\n%s" % (seconds, text)


def _signature(line: str) -> Signature:
    name, space, data = line.removeprefix(_DASH).partition(" ")
    try:
        found = bytes_of(data)
    except ValueError:
        found = b""
    if not line.startswith(_DASH) or not space or not _NAME.fullmatch(name) or len(found) < 5:
        raise InvalidNote("a line below it is no signature")
    return Signature(name, found[:4], found[4:])


def base64_of(data: bytes) -> str:
    """Bytes in base64."""
    return base64.b64encode(data).decode("ascii")


def bytes_of(text: str) -> bytes:
    """Decode the one spelling of some bytes.

    Raises:
        ValueError: it is no base64, or not in that spelling.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as problem:
        raise ValueError(str(problem)) from None
    if base64_of(data) != text:
        raise ValueError("it is spelled otherwise than base64 is")
    return data
