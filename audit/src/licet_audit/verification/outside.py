"""What is known about a log besides its records: the key it signs with, its checkpoints, what was seen of it.

Rules this module keeps:

- the key comes from whoever verifies, else from what this user has pinned; one that only lies beside the log
  counts at first sight, and then the answer says so;
- a file that is damaged is a finding, and the rest is judged all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from licet.errors import AuditUnavailable, reason_of
from licet.files import read_plain
from licet.state import StateDirectory

from licet_audit import checkpointer, keys, notes, seen
from licet_audit.notes import Head, InvalidNote, Note, VerifierKey
from licet_audit.seen import Seen

Source = Literal["given", "pinned", "beside", "none"]

_KEPT = re.compile(r"\d{20}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint that is kept beside newer ones, in a file of some name; or why it is none."""

    name: str
    note: Note | None
    head: Head | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Outside:
    """All of it.

    `source` says where `key` comes from, `key_problem` why there is none, `beside` what `log.vkey` holds.
    `newest` is the newest checkpoint of the log, `newest_problem` why that can't be read; `seen` is what this
    user remembers, `seen_problem` why that can't be read.
    """

    key: VerifierKey | None
    source: Source
    key_problem: str | None
    beside: VerifierKey | None
    newest: Kept | None
    kept: tuple[Kept, ...]
    seen: Seen | None
    seen_problem: str | None

    @property
    def sizes(self) -> set[int]:
        """The sizes whose roots somebody signed or saw."""
        heads = [one.head for one in (self.newest, *self.kept) if one is not None]
        heads.append(self.seen.head if self.seen else None)
        return {head.size for head in heads if head is not None}


def known(state: StateDirectory, given: VerifierKey | None) -> Outside:
    """Gather what is known about a log; `given` is the key that the verifier brings.

    Raises:
        AuditUnavailable: something can't be read at all.
    """
    remembered, seen_problem = _seen(state)
    beside, beside_problem = _beside(state)
    key, source = _key(given, remembered, seen_problem, beside)
    return Outside(
        key,
        source,
        beside_problem if source == "none" else None,
        beside,
        _newest(state),
        tuple(_kept(state)),
        remembered,
        seen_problem,
    )


def _key(
    given: VerifierKey | None, remembered: Seen | None, seen_problem: str | None, beside: VerifierKey | None
) -> tuple[VerifierKey | None, Source]:
    if given is not None:
        return given, "given"
    if remembered is not None and remembered.key is not None:
        return remembered.key, "pinned"
    if seen_problem is not None or beside is None:
        return None, "none"  # what can't be read may say another key than the one beside the log
    return beside, "beside"


def _seen(state: StateDirectory) -> tuple[Seen | None, str | None]:
    try:
        return seen.of(state.log_id), None
    except AuditUnavailable as problem:
        return None, problem.message


def _beside(state: StateDirectory) -> tuple[VerifierKey | None, str | None]:
    try:
        return keys.published(state), None
    except InvalidNote as problem:
        return None, f"`log.vkey` holds no key: {problem}"
    except AuditUnavailable as problem:
        return None, problem.message


def _newest(state: StateDirectory) -> Kept | None:
    name = "checkpoint"
    try:
        note = checkpointer.signed(state)
    except InvalidNote as problem:
        return Kept(name, None, None, str(problem))
    except AuditUnavailable as problem:
        return Kept(name, None, None, problem.message)
    return None if note is None else _parsed(state, name, note)


def _kept(state: StateDirectory) -> Iterator[Kept]:
    """The checkpoints that are kept, from the smallest on."""
    folder = state.path / "checkpoints"
    try:
        names = sorted(path.name for path in folder.iterdir() if _KEPT.fullmatch(path.name))
    except FileNotFoundError:
        return
    except OSError as problem:
        yield Kept("checkpoints", None, None, reason_of(problem))
        return
    for name in names:
        yield _read(state, folder / name)


def _read(state: StateDirectory, path: Path) -> Kept:
    name = f"checkpoints/{path.name}"
    try:
        found = _parsed(state, name, Note.parse(read_plain(path, notes.MOST_BYTES + 1)))
    except InvalidNote as problem:
        return Kept(name, None, None, str(problem))
    except OSError as problem:
        return Kept(name, None, None, reason_of(problem))
    if found.head is not None and found.head.size != int(path.name):
        return Kept(name, None, None, f"it is one of {found.head.size} records")
    return found


def _parsed(state: StateDirectory, name: str, note: Note) -> Kept:
    try:
        head = Head.parse(note.text)
    except InvalidNote as problem:
        return Kept(name, None, None, str(problem))
    if head.origin != notes.origin_of(state.log_id):
        return Kept(name, None, None, f"it is one of `{head.origin}`")
    return Kept(name, note, head)
