"""The key `python` of a document: which interpreter and packages code is given.

Rules this module keeps:

- exactly one of `packages` and `prefix`; nothing on the host is looked at here: a list is read when documents
  are loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from licet.environments.python import PythonWish
from licet.errors import InvalidPolicy, Position
from licet.policy.keys import Keys
from licet.policy.yaml import Fields

KEYS: tuple[Literal["packages", "prefix"], ...] = ("packages", "prefix")


def parse_python(value: object, where: Position, base: Path) -> PythonWish:
    """Read what stands under `python` at `where`; relative paths are taken from `base`.

    Raises:
        InvalidPolicy: it is no mapping with exactly one of the keys, or that one names no path.
    """
    if not isinstance(value, Fields):
        raise InvalidPolicy(
            f"`python` is a mapping, found `{value}`",
            where=where,
            advice="write `python: {packages: FILE}` or `python: {prefix: DIRECTORY}`",
        )
    keys = Keys(value, where)
    keys.only(KEYS, "`python`")
    stated = [key for key in KEYS if key in value]
    if len(stated) != 1:
        found = "both" if stated else "neither"
        raise InvalidPolicy(
            f"`python` takes one of `packages` and `prefix`, found {found}",
            where=keys.place(stated[-1]) if stated else where,
            advice="`packages` lists what is built and kept by licet, `prefix` names what is there",
        )
    kind = stated[0]
    written, spot = value[kind], keys.place(kind)
    if not isinstance(written, str) or not written.strip() or "\0" in written:
        raise InvalidPolicy(f"`python.{kind}` is a path, found `{written}`", where=spot)
    return PythonWish(kind, written, str(base / written), spot)
