"""The list of packages that an environment is made of: pip's requirements format, pinned and hashed.

Rules this module keeps:

- each requirement names one version (`==`) and at least one SHA-256; everything else that the format knows
  (options, indexes, addresses, paths, other files, sources to build) is refused with its line;
- one list has one digest: order, comments and layout are no part of it;
- what an installer is handed is spelled anew from what was understood, never the file itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from licet.environments.python import digest_of
from licet.errors import InvalidLockFile, Position, reason_of
from licet.files import read_plain
from licet.output import bounded

MAX_BYTES = 4 << 20
_SHOWN = 120

_COMMENT = re.compile(r"(^|\s)#.*$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_PINNED = re.compile(
    rf"(?P<name>{_NAME})\s*(?:\[\s*(?P<extras>{_NAME}(?:\s*,\s*{_NAME})*)\s*\])?"
    r"\s*==\s*(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)\s*(?:;\s*(?P<marker>.+))?"
)
_MARKER = re.compile(r"""[A-Za-z0-9_.\s<>=!~'"(),+*-]+""")

_TOOLS = "`uv pip compile --generate-hashes` and `pip-compile --generate-hashes` write such lists"
_OPTIONS = {
    "-r": "put all requirements into one file",
    "--requirement": "put all requirements into one file",
    "-c": "pin the version in the requirement itself",
    "--constraint": "pin the version in the requirement itself",
    "-e": "build a wheel of that project, and list it by version and hash",
    "--editable": "build a wheel of that project, and list it by version and hash",
}
_INDEXES = "say in pip's own configuration where packages come from (`PIP_INDEX_URL`, `pip config`)"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One distribution in one version, as one of the wheels with these SHA-256, where `marker` holds."""

    name: str
    version: str
    hashes: tuple[str, ...]
    extras: tuple[str, ...] = ()
    marker: str = ""
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        marker = f" ; {self.marker}" if self.marker else ""
        return f"{self.name}{extras}=={self.version}{marker}"

    def spelled(self) -> str:
        """The line for an installer."""
        return " ".join((str(self), *(f"--hash=sha256:{digest}" for digest in self.hashes)))


@dataclass(frozen=True)
class LockFile:
    """All that a list says."""

    requirements: tuple[Requirement, ...]

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The requirements in their one spelling, sorted."""
        return tuple(sorted(one.spelled() for one in self.requirements))

    @cached_property
    def digest(self) -> str:
        """SHA-256 over what it says."""
        return digest_of({"requirements": self.lines})


def read_lock(path: Path, where: Position | None = None) -> LockFile:
    """Read the list at `path`, which was named at `where`.

    Raises:
        InvalidLockFile: it can't be read, or a line is not pinned, not hashed, or more than a requirement.
    """
    try:
        data = read_plain(path, MAX_BYTES + 1, follow=True)
    except (OSError, ValueError) as problem:
        why = reason_of(problem) if isinstance(problem, OSError) else str(problem)
        raise InvalidLockFile(
            f"the list of packages `{path}` can't be read: {why}",
            where=where,
            advice="name a plain file that exists",
        ) from None
    return parse_lock(data, str(path))


def parse_lock(data: bytes, file: str) -> LockFile:
    """Read the bytes of a list; `file` is how errors call it.

    Raises:
        InvalidLockFile: a line is not pinned, not hashed, or more than a requirement.
    """
    if len(data) > MAX_BYTES:
        raise InvalidLockFile(f"the file is larger than {MAX_BYTES >> 20} MiB", where=Position(file))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise InvalidLockFile(f"not UTF-8 at byte {problem.start}", where=Position(file, line)) from None
    _refuse_other_formats(text, file)
    known: dict[tuple[str, str], Requirement] = {}
    for line, whole in _joined(text):
        found = _requirement(whole, Position(file, line))
        other = known.setdefault((found.name, found.marker), found)
        if other is not found:
            raise InvalidLockFile(
                f"`{found.name}` is listed in line {other.line} already",
                where=Position(file, line),
                advice="list each distribution once",
            )
    if not known:
        raise InvalidLockFile(
            "the list names no package",
            where=Position(file),
            advice=f"list at least one, or leave `python` out; {_TOOLS}",
        )
    return LockFile(tuple(known.values()))


def _refuse_other_formats(text: str, file: str) -> None:
    name = file.replace("\\", "/").rpartition("/")[2]
    if re.fullmatch(r"pylock(\..+)?\.toml", name) or re.search(r"^lock-version\s*=", text, re.MULTILINE):
        raise InvalidLockFile(
            "a `pylock.toml` is not read yet, only pip's requirements format",
            where=Position(file),
            advice="export it: `uv export --format requirements-txt`; " + _TOOLS,
        )


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """The logical lines that say something, each with the number of its first line."""
    begun, parts = 0, list[str]()
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = _COMMENT.sub("", raw).strip()
        if not line and parts and raw.strip():
            continue  # a comment between the lines of one requirement
        begun = begun if parts else number
        goes_on = line.endswith("\\")
        parts.append(line.removesuffix("\\").strip())
        if not goes_on:
            if any(parts):
                yield begun, " ".join(filter(None, parts))
            parts = []
    if any(parts):
        yield begun, " ".join(filter(None, parts))


def _requirement(text: str, where: Position) -> Requirement:
    asked, *options = re.split(r"\s+(?=-)", text)
    if asked.startswith("-"):
        option = re.split(r"[=\s]", asked)[0]
        advice = _OPTIONS.get(option, _INDEXES if "index" in option or "link" in option else None)
        raise InvalidLockFile(
            f"the option `{bounded(option, _SHOWN)}` has no place in a list of packages",
            where=where,
            advice=advice or "a list holds requirements with their hashes and nothing else",
        )
    hashes = tuple(sorted({_hash(option, where) for option in options}))
    found = _PINNED.fullmatch(asked)
    if found is None or (found["marker"] is not None and not _MARKER.fullmatch(found["marker"])):
        raise _not_pinned(asked, where)
    if not hashes:
        raise InvalidLockFile(
            f"`{bounded(asked, _SHOWN)}` has no hash, so anything could be installed for it",
            where=where,
            advice=f"add `--hash=sha256:…` of its wheel; {_TOOLS}",
        )
    extras = re.split(r"\s*,\s*", found["extras"]) if found["extras"] else []
    return Requirement(
        normalized(found["name"]),
        found["version"],
        hashes,
        tuple(sorted(map(normalized, extras))),
        " ".join((found["marker"] or "").split()),
        where.line,
    )


def _hash(option: str, where: Position) -> str:
    found = _HASH.fullmatch(option)
    if found is not None:
        return found[1]
    if option.startswith("--hash="):
        raise InvalidLockFile(
            f"`{bounded(option, _SHOWN)}` is no SHA-256",
            where=where,
            advice="write `--hash=sha256:` and 64 hexadecimal digits, in small letters",
        )
    raise InvalidLockFile(
        f"`{bounded(option, _SHOWN)}` has no place after a requirement",
        where=where,
        advice="only `--hash=sha256:…` may stand there",
    )


def _not_pinned(asked: str, where: Position) -> InvalidLockFile:
    if "@" in asked.partition(";")[0] or "://" in asked or asked.startswith((".", "/")):
        why, advice = "names an address or a path", f"list it by version and hash; {_INDEXES}"
    else:
        why, advice = "is not one version of one distribution", f"write `NAME==VERSION`; {_TOOLS}"
    return InvalidLockFile(f"`{bounded(asked, _SHOWN)}` {why}", where=where, advice=advice)


def normalized(name: str) -> str:
    """The name of a distribution as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
