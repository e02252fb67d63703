"""A suspended run as bytes that may lie anywhere: sealed, and bound to all that it may go on with.

Monty checks nothing when it loads a snapshot: a flipped bit can change which call waits, and the source and
the inputs stand in it as plain text. So what was written down is encrypted and authenticated before it
leaves the process.

Rules this module keeps:

- what is bound stands in front as plain text, and is authenticated with the rest; one changed bit anywhere
  makes the whole worthless;
- whoever opens it says what has to be bound: the run, the call that waits, policy, code, backend, versions. A
  difference is told by name, before anything of the snapshot is used;
- the key is derived for each suspension from the host's key and fresh random bytes, so no nonce repeats;
- opening it twice is possible, since bytes can be copied: that a run goes on once is its store's to keep.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from licet import values
from licet.errors import SuspensionVoid
from licet.output import bounded
from licet.plan import MOST_SUSPENSION

MOST_BYTES = 2 * MOST_SUSPENSION
_MAGIC = b"licet suspension 1\n"
_MOST_HEADER = 64 << 10
_SALT = 32
_NONCE = bytes(12)  # each key seals one thing only
_KEY = 32
_FRAME = 8
_LOST = "it was damaged, forged, or sealed on another host"
_START_AGAIN = "run the code again; what is not proved to be the run that was suspended never goes on"


@dataclass(frozen=True, slots=True)
class Binding:
    """What a suspended run may go on with, and with nothing else.

    `sequence`, `tool` and `call_digest` are of the call that waits. `configuration` tells which very
    interpreter wrote the snapshot down (see `Descriptor.configuration`), `contract` is the digest of what its
    backend claims.
    """

    run_id: str
    sequence: int
    tool: str
    call_digest: str
    plan_digest: str
    policy_digest: str
    code_digest: str
    backend: str
    version: str
    configuration: str
    contract: str


@dataclass(frozen=True, slots=True)
class Suspended:
    """A run as it waits: `state` is what its host has counted and heard (plain data), `snapshot` the rest."""

    state: Mapping[str, Any]
    snapshot: bytes = field(repr=False)


def seal(suspended: Suspended, binding: Binding, key: bytes) -> bytes:
    """Encrypt and authenticate a suspended run under the host's `key`.

    Raises:
        ValueError: it is larger than `MOST_BYTES`.
    """
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    state = json.dumps(suspended.state, sort_keys=True).encode()
    content = len(state).to_bytes(_FRAME, "big") + state + suspended.snapshot
    if len(content) > MOST_BYTES:
        raise ValueError(f"a suspended run may have {MOST_BYTES} bytes, and this has {len(content)}")
    header = json.dumps(asdict(binding), sort_keys=True, separators=(",", ":")).encode() + b"\n"
    salt = secrets.token_bytes(_SALT)
    front = _MAGIC + header + salt
    return front + ChaCha20Poly1305(_derived(key, salt)).encrypt(_NONCE, content, front)


def unseal(sealed: bytes, binding: Binding, key: bytes) -> Suspended:
    """Open what `seal` made of a run that is bound to exactly `binding`.

    Raises:
        SuspensionVoid: something that binds it has changed since, or these are not the sealed bytes.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    bound, front = _front(sealed)
    for part in fields(Binding):
        then, now = getattr(bound, part.name), getattr(binding, part.name)
        if then != now:
            raise SuspensionVoid(
                f"the {_WORDS[part.name]} changed while the run waited: it was `{bounded(str(then), 200)}`, "
                f"and is `{bounded(str(now), 200)}` now",
                advice=_START_AGAIN,
            )
    salt = front[-_SALT:]
    try:
        content = ChaCha20Poly1305(_derived(key, salt)).decrypt(_NONCE, sealed[len(front) :], front)
    except InvalidTag:
        raise _void(_LOST) from None
    size = int.from_bytes(content[:_FRAME], "big")
    return Suspended(json.loads(content[_FRAME : _FRAME + size]), content[_FRAME + size :])


def bound(sealed: bytes) -> Binding:
    """What a sealed run says it is bound to; nothing vouches for it until `unseal` has opened it.

    Raises:
        SuspensionVoid: these bytes are no suspended run.
    """
    return _front(sealed)[0]


_WORDS = {
    "run_id": "run",
    "sequence": "number of the call that waits",
    "tool": "tool that waits to be called",
    "call_digest": "call that waits",
    "plan_digest": "plan",
    "policy_digest": "policy",
    "code_digest": "code",
    "backend": "backend",
    "version": "version of the backend",
    "configuration": "interpreter",
    "contract": "contract of the backend",
}


def _front(sealed: bytes) -> tuple[Binding, bytes]:
    """The part in front of what is encrypted, and what it says."""
    end = sealed.find(b"\n", len(_MAGIC), len(_MAGIC) + _MOST_HEADER)
    if not sealed.startswith(_MAGIC) or end < 0 or len(sealed) < end + 1 + _SALT:
        raise _void("it does not begin as one")
    try:
        said = values.parse(sealed[len(_MAGIC) : end])
    except ValueError:
        raise _void("its header can't be read") from None
    if not isinstance(said, dict) or said.keys() != _WORDS.keys():
        raise _void("its header says something else")
    for name, value in said.items():
        if type(value) is not (int if name == "sequence" else str):
            raise _void(f"its header has no proper `{name}`")
    return Binding(**said), sealed[: end + 1 + _SALT]


def _void(why: str) -> SuspensionVoid:
    return SuspensionVoid(f"these bytes are no suspended run: {why}", advice=_START_AGAIN)


def _derived(key: bytes, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), _KEY, salt, b"licet suspension 1").derive(key)
