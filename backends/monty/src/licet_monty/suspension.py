"""A waiting run as bytes: Monty's dump, and in front of it what Monty forgets.

A loaded dump has its clock, its generator and its limits again. It has lost how many calls it had made and
what the code came upon in files; and whoever could change it could have it announce another call.

Rules this module keeps:

- what is read here was sealed by licet (see `licet.suspension`), and nobody else's is to be read; still the
  call that a loaded dump announces is compared with the one that was written down;
- it goes on only where the same text was fed: another version of what is written into code would misread it;
- limits go on counting where they were.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from licet import values
from licet.errors import SuspensionVoid

from licet_monty.bounds import SHORTEST_S, Bounds
from licet_monty.prelude import HEAD

_MAGIC = b"licet monty 1\n"
_FRAME = 8
_START_AGAIN = "run the code again"


@dataclass(frozen=True, slots=True)
class Announced:
    """The call of a tool that waits: `call` is Monty's number of it, `awaited` if the code goes on meanwhile.

    `digest` is that of the three texts that were handed over with it.
    """

    call: int
    tool: str
    digest: str
    awaited: bool


@dataclass(frozen=True, slots=True)
class Past:
    """What became of a run before it was suspended; seconds and numbers.

    `slept` is how far a clock that stands got. `memory` (bytes) and `suspensions` are what is left of limits
    as Monty was told them. `came_upon` is what the code saw of files. `fed` is the digest of what was fed.
    """

    announced: Announced
    fed: str
    tools: tuple[str, ...]
    wall: float
    cpu: float
    accesses: int
    slept: float
    memory: int
    suspensions: int
    came_upon: Mapping[str, Any] = field(default_factory=dict)

    def of(self, bounds: Bounds) -> Bounds:
        """What is left of `bounds`; Monty's own clock goes on by itself."""
        return replace(
            bounds,
            wall=max(bounds.wall - self.wall, SHORTEST_S),
            cpu=None if bounds.cpu is None else max(bounds.cpu - self.cpu, SHORTEST_S),
            memory=min(bounds.memory, self.memory),
            suspensions=max(min(bounds.suspensions, self.suspensions), 1),
        )


def text_digest(*texts: str) -> str:
    """The digest of texts that the sandbox handed over, or that it was fed."""
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(_FRAME, "big") + data)
    return digest.hexdigest()


def fed_digest(code: str) -> str:
    """The digest of all that a session is fed before and with this code."""
    return text_digest(HEAD, code)


def write(past: Past, dump: bytes) -> bytes:
    """Put what Monty forgets in front of its dump."""
    header = json.dumps(asdict(past), separators=(",", ":")).encode()
    return _MAGIC + len(header).to_bytes(_FRAME, "big") + header + dump


def read(suspension: bytes) -> tuple[Past, bytes]:
    """What `write` made, in its parts.

    Raises:
        SuspensionVoid: it made nothing of the kind.
    """
    start = len(_MAGIC) + _FRAME
    size = int.from_bytes(suspension[len(_MAGIC) : start], "big")
    try:
        if not suspension.startswith(_MAGIC):
            raise ValueError("it does not begin as one")
        told = values.parse(suspension[start : start + size])
        if not isinstance(told, dict) or told.keys() != {one.name for one in fields(Past)}:
            raise ValueError("it says something else")
        announced, tools = Announced(**told.pop("announced")), tuple(told.pop("tools"))
        return Past(announced=announced, tools=tools, **told), suspension[start + size :]
    except (TypeError, ValueError) as problem:
        raise void(f"these bytes are no run that monty wrote down: {problem}") from None


def void(why: str) -> SuspensionVoid:
    """The refusal to go on."""
    return SuspensionVoid(why, advice=_START_AGAIN)
