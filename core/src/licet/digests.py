"""Digests of content under the host's key, so that what was erased can't be guessed from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from licet import state

Digest = Callable[[str, bytes], str]

_SMALL = 256  # bytes up to which a digest is remembered


class HostDigest:
    """Call it with the name of a part and its bytes; the key is made at its first use."""

    def __init__(self) -> None:
        self._key: bytes | None = None

    def key(self) -> bytes:
        """The host's key.

        Raises:
            AuditUnavailable: it can't be read, nor made.
        """
        if self._key is None:
            self._key = state.host_key()
        return self._key

    def of_random(self, kind: str, of: str) -> bytes:
        """The key of the random bytes of a run: `of` is its id, or the digest of its plan.

        Digests have two parts, and this has three: no record ever tells it.
        """
        return state.derived(self.key(), b"random", kind.encode(), of.encode())

    def __call__(self, name: str, content: bytes) -> str:
        """The digest of `content` as the part `name`."""
        # most parts of most requests are small and the same: limits, directory, an empty input
        digest = _remembered if len(content) <= _SMALL else state.digest
        return digest(self.key(), name.encode(), content)


_remembered = lru_cache(maxsize=512)(state.digest)


def of_call(digest: Digest, plan_digest: str, sequence: int, tool: str, arguments: str) -> str:
    """The digest of one call of a tool, whose `arguments` are JSON."""
    return digest("call", f"{plan_digest}\0{sequence}\0{tool}\0{arguments}".encode())


def of_connection(digest: Digest, plan_digest: str, sequence: int, target: str) -> str:
    """The digest of one connection that is asked about, to a canonical target."""
    return digest("call", f"{plan_digest}\0{sequence}\0network\0{target}".encode())


def no_digest(name: str, content: bytes) -> str:
    """Stands for digests where there is no key to make them with, and nothing is recorded."""
    return ""
