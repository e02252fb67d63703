"""What an operation on files takes, in the two actions that a policy knows: `read` and `write`.

Rules this module keeps:

- whoever takes a name away writes to the directory that holds it: a granted root can't be removed or renamed
  from inside, since what lies around it is not granted;
- a second name for a file is a way to write to it, so a hard link writes to both;
- whatever changes a file without touching what it says (its mode, owner, times) writes to it.
"""

from __future__ import annotations

import posixpath
from typing import Literal

from licet.request import Intent

Operation = Literal["read", "write", "create", "change", "remove", "rename", "link", "symlink"]
"""`change` is of mode, owner or times; `remove` of a file or a directory; `symlink` makes one at its path."""


def intents_of(operation: Operation, path: str, other: str | None = None) -> tuple[Intent, ...]:
    """The intents that an operation on canonical paths takes; it is allowed if all of them are.

    `other` is the new name of `rename` and `link`.

    Raises:
        ValueError: `rename` or `link` without a new name, or a new name for anything else.
    """
    if (other is not None) != (operation in ("rename", "link")):
        raise ValueError(f"`{operation}` takes {'two paths' if other is None else 'one path'}")
    if operation == "read":
        return (Intent("read", path),)
    written = {path: None}
    if operation in ("remove", "rename"):
        written[posixpath.dirname(path)] = None
    if other is not None:
        written |= {other: None, posixpath.dirname(other): None}
    return tuple(Intent("write", one) for one in written)
