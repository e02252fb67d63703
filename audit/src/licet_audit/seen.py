"""What this user saw of each log, kept outside it: `seen/<log id>.json` in the user's own state directory.

Rules this module keeps:

- the key of a log is pinned when it is first seen, and no other one takes its place;
- the checkpoint only moves forward, so that a log which was cut or replaced can't hide it. That a later one
  continues the earlier is proved by whoever remembers it: by a consistency proof, or by reading the log;
- a file that says nothing is an error, never a log that was not seen;
- what was remembered is whole whenever power is lost; that it is the newest then, nobody waits for, since the
  checkpoint beside the log is durable and only a loss of power and of that one together would show less;
- readable by hand: JSON, a signed note and a key as C2SP spells them, times in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from licet import files
from licet.errors import AuditUnavailable
from licet.files import make_folder, read_plain
from licet.locks import lock_file
from licet.state import StateDirectory, failures, user_state, user_state_path

from licet_audit import notes
from licet_audit.chain import now
from licet_audit.notes import Head, InvalidNote, Note, VerifierKey

_PATIENCE = 5.0  # seconds
_ADVICE = "run `licet audit verify`, then move that file aside"


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one log: since when (`opened`), where it was, its key, and its newest checkpoint.

    `closed` is when a writer last closed it well, None if none did yet.
    """

    log_id: str
    opened: str
    path: str
    key: VerifierKey | None = None
    checkpoint: Note | None = None
    closed: str | None = None

    @property
    def head(self) -> Head | None:
        """What the newest checkpoint says."""
        return Head.parse(self.checkpoint.text) if self.checkpoint else None

    @property
    def signed_at(self) -> int | None:
        """When the log signed the newest checkpoint, in seconds since the epoch."""
        return self.checkpoint.time_by(self.key) if self.checkpoint and self.key else None

    def as_json(self) -> dict[str, Any]:
        """What the file holds."""
        return {
            "key": str(self.key) if self.key else None,
            "checkpoint": self.checkpoint.data.decode() if self.checkpoint else None,
            "opened": self.opened,
            "closed": self.closed,
            "path": self.path,
        }


def path_of(log_id: str) -> Path | None:
    """The file that says what was seen of a log; None if this user has no state directory."""
    home = user_state_path()
    return home / "seen" / f"{log_id}.json" if home else None


def of(log_id: str) -> Seen | None:
    """What this user saw of a log, None if nothing; makes and changes nothing.

    Raises:
        AuditUnavailable: the file can't be read, or says nothing.
    """
    path = path_of(log_id)
    if path is None:
        return None
    with failures(path):
        try:
            data = read_plain(path, 2 * notes.MOST_BYTES)
        except FileNotFoundError:
            return None
    try:
        return _parse(log_id, json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        why = str(problem) if isinstance(problem, InvalidNote) else "it is not what licet writes"
        raise AuditUnavailable(
            f"`{path}` does not say what was seen of the log: {why}", advice=_ADVICE
        ) from None


def log_ids() -> tuple[str, ...]:
    """The logs that something is known of.

    Raises:
        AuditUnavailable: the directory can't be read.
    """
    home = user_state_path()
    if home is None:
        return ()
    with failures(home):
        try:
            names = [path.name for path in (home / "seen").iterdir()]
        except FileNotFoundError:
            return ()
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


def begin(state: StateDirectory) -> None:
    """Note that a log is in use from now on, if nothing is known of it yet.

    Raises:
        AuditUnavailable: it can't be written.
    """
    with _locked() as folder:
        if of(state.log_id) is None:
            _write(folder, Seen(state.log_id, now(), str(state.path)))


def remember(state: StateDirectory, key: VerifierKey, checkpoint: Note, *, closed: bool = False) -> bool:
    """Remember a checkpoint that continues the one before; False if a later one is known.

    `closed` says that a writer left the log well just now.

    Raises:
        AuditUnavailable: it is not signed by `key` for this log, another key is pinned, another tree of the
            same size was seen, or it can't be written.
    """
    head, at = _checked(state, key, checkpoint)
    with _locked() as folder:
        known = of(state.log_id) or Seen(state.log_id, now(), str(state.path))
        if known.key not in (None, key):
            raise AuditUnavailable(
                f"a checkpoint of `{state.path}` is signed by another key than the one that was seen before",
                advice=_ADVICE,
            )
        forward = _moves_forward(known, head, at)
        after = replace(known, key=key, path=str(state.path))
        if forward:
            after = replace(after, checkpoint=checkpoint)
        if closed:
            after = replace(after, closed=now())
        if after != known:
            _write(folder, after)
        return forward or known.head == head


def _checked(state: StateDirectory, key: VerifierKey, checkpoint: Note) -> tuple[Head, int]:
    try:
        head = Head.parse(checkpoint.text)
    except InvalidNote as problem:
        raise AuditUnavailable(f"that is no checkpoint: {problem}") from None
    at = checkpoint.time_by(key)
    if head.origin != notes.origin_of(state.log_id) or at is None:
        raise AuditUnavailable(f"the checkpoint of `{head.origin}` is not signed by the key of this log")
    return head, at


def _moves_forward(known: Seen, head: Head, at: int) -> bool:
    before = known.head
    if before is None or before.size < head.size:
        return True
    if before.size == head.size and before.root != head.root:
        raise AuditUnavailable(
            f"two checkpoints of `{head.origin}` cover {head.size} records and differ: "
            f"{before.root.hex()} was seen before, now {head.root.hex()}",
            advice="run `licet audit verify`; the log was rewritten, or its key is used elsewhere",
        )
    return before.size == head.size and (known.signed_at or 0) < at


def _parse(log_id: str, content: Any) -> Seen:
    key, checkpoint, closed = content["key"], content["checkpoint"], content["closed"]
    found = Seen(
        log_id,
        content["opened"],
        content["path"],
        None if key is None else VerifierKey.parse(key),
        None if checkpoint is None else Note.parse(checkpoint.encode()),
        closed,
    )
    texts = (found.opened, found.path, "" if closed is None else closed)
    if not all(type(text) is str for text in texts) or (found.checkpoint and not found.key):
        raise ValueError("a field is of another type")
    head = found.head
    if head is not None and head.origin != notes.origin_of(log_id):
        raise InvalidNote(f"its checkpoint is one of `{head.origin}`")
    return found


@contextmanager
def _locked() -> Iterator[Path]:
    folder = user_state() / "seen"
    with failures(folder):
        make_folder(folder)
        with lock_file(folder / ".lock", _PATIENCE) as held:
            if not held:
                raise AuditUnavailable(f"`{folder}` stayed locked for {_PATIENCE:.0f} s")
            yield folder


def _write(folder: Path, content: Seen) -> None:
    text = json.dumps(content.as_json(), indent=2)
    files.replace(folder / f"{content.log_id}.json", f"{text}\n".encode("ascii"), settled=False)
