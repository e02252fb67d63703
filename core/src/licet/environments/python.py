"""Which Python code runs in: what a policy asks for, and what a plan says.

Rules this module keeps:

- a path is absolute and real: no link is left that somebody could point elsewhere after it was looked at;
- packages are looked for in the directories listed, in that order, after the standard library; no `.pth` file
  in them is obeyed and no `sitecustomize` imported, since `site` does not run.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from licet.errors import Position

if TYPE_CHECKING:
    from licet.environments.lockfile import LockFile


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter and the packages that go with it, as a backend has to give them to the code.

    `interpreter` is the program. `prefix` is the installation it belongs to, which has to be visible to it:
    the standard library lies in there. `packages` are directories for the end of `sys.path`, readable, never
    writable. `digest` covers all of it and what is installed; a plan with another digest is another plan.
    """

    interpreter: str
    prefix: str
    packages: tuple[str, ...]
    digest: str
    version: str

    def as_json(self) -> dict[str, Any]:
        """By name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class PythonWish:
    """What a policy says under `python`: `written` in the file at `where`, which means `path` on this host.

    `lock` is what the list of packages says, once it was read; a prefix has none.
    """

    kind: Literal["packages", "prefix"]
    written: str
    path: str = field(compare=False)
    where: Position = field(compare=False, repr=False)
    lock: LockFile | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.written}"

    def content(self) -> Mapping[str, str]:
        """What the policy's digest covers: all that a list of packages says, or the name of a prefix."""
        return {self.kind: self.written if self.lock is None else self.lock.digest}


@dataclass(frozen=True, slots=True)
class Identity:
    """What an interpreter must be for packages that were built for one to be of use to another."""

    implementation: str
    version: str
    abi: str
    platform: str

    def __str__(self) -> str:
        return f"{self.implementation} {self.version} ({self.abi.strip('.').removesuffix('.so')})"


@cache
def this_identity() -> Identity:
    """That of this interpreter; `abi` is the ending of its extension modules."""
    return Identity(
        sys.implementation.name,
        platform.python_version(),
        EXTENSION_SUFFIXES[0],
        f"{sys.platform}-{platform.machine()}",
    )


@cache
def this_interpreter() -> tuple[str, str]:
    """The real path of this interpreter, outside of any virtual environment, and of its installation."""
    program = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    return program, os.path.realpath(sys.base_prefix)


def store_path() -> Path | None:
    """Where built environments lie or would lie; None if this system knows no home for caches."""
    import platformdirs

    path = platformdirs.user_cache_path("licet", appauthor=False)
    return Path(os.path.realpath(path)) / "environments" if path.is_absolute() else None


def digest_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of plain content, as `sha256:` and 64 digits."""
    spelled = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(spelled.encode()).hexdigest()}"
