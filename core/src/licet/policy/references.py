"""Bounds as documents name them: a file or a pack, and the pin that holds its content.

Rules this module keeps:

- a relative path is taken from the directory of the file that names it;
- a pin is the SHA-256 of the bytes of one file, so an unknown key beside it is an error, never a pin less.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from licet.errors import InvalidPolicy, Position
from licet.output import bounded
from licet.policy.problems import unknown
from licet.policy.yaml import Fields

PACK_PREFIX = "licet:"

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_KEYS = ("file", "sha256")


@dataclass(frozen=True, slots=True)
class Reference:
    """A bound that a document names: an absolute path or a pack, and the place that names it.

    `base` is the directory of the file that names it, None if no file does. `sha256` is the pin, where there
    is one: what the bytes of the bound have as their SHA-256, in 64 lower-case hexadecimal digits.
    """

    path: str
    base: str | None
    where: Position
    sha256: str | None = None


def reference(item: object, where: Position, base: Path) -> Reference:
    """Read one item of `within`: a path, a pack, or `{file: PATH, sha256: DIGITS}`.

    Raises:
        InvalidPolicy: it is none of these.
    """
    pin: str | None = None
    if isinstance(item, Fields):
        _refuse_unknown(item, where)
        pin = _pin(item, where) if "sha256" in item else None
        item = item.get("file")
    if not isinstance(item, str):
        raise InvalidPolicy(
            "`within`: expected a file, or a list of files",
            where=where,
            advice="write `./org.yaml`, or `{file: ./org.yaml, sha256: DIGITS}` to pin its content",
        )
    path = item if item.startswith(PACK_PREFIX) else str(base / item)
    return Reference(path, base.as_posix(), where, pin)


def _refuse_unknown(item: Fields, where: Position) -> None:
    for key in item:
        if key not in _KEYS:
            place = Position(where.file, *item.places[key])
            raise unknown(f"unknown key `within.{key}`", key, _KEYS, place)


def _pin(item: Fields, where: Position) -> str:
    digits = item["sha256"]
    if isinstance(digits, str) and _SHA256.fullmatch(digits):
        return digits.lower()
    raise InvalidPolicy(
        f"`within.sha256`: expected 64 hexadecimal digits, found `{bounded(str(digits), 100)}`",
        where=Position(where.file, *item.places["sha256"]),
        advice="`licet policy show` prints the digest of each bound; put it in quotes",
    )
