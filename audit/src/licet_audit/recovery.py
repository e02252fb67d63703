"""What a writer that died left open: its runs, and the end of its last line.

Rules this module keeps:

- every writer holds a locked file that names the first record it may have written; a file whose lock is free
  belongs to a writer that is dead, however it died;
- a run of a dead writer that began and has no result gets one, `unknown`, exactly once, with the tool calls
  that may or may not have taken effect; a run belongs to whoever began or resumed it last;
- a run that waits for an approval is not lost with its writer, until it is resumed;
- all of it happens under the lock of the log; what stands for the dead goes once their records are durable.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from licet.files import open_plain, sync_directory
from licet.locks import try_lock
from licet.record import Entry
from licet.state import StateDirectory

from licet_audit.chain import decode, log_entry, mono_ns, now
from licet_audit.segments import Segment, lines_from

_PENDING = ".pending"
_NUMBER = b"%020d"  # always as long, so that a new number replaces the whole old one


@dataclass(frozen=True, slots=True)
class Writer:
    """The locked file of one writer; the lock is held while `descriptor` is open."""

    path: Path
    descriptor: int
    first_seq: int

    def advance(self, seq: int) -> None:
        """Say that no record before `seq` has to be looked at if this writer dies."""
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        os.write(self.descriptor, _NUMBER % seq)

    @property
    def instance(self) -> str:
        """The name that its records carry."""
        return self.path.name

    def release(self) -> None:
        """Give up the lock and leave the file: what it stands for may still have to be recovered."""
        os.close(self.descriptor)

    def remove(self) -> None:
        """Give up the lock and the file: nothing of this writer is open."""
        os.close(self.descriptor)
        self.path.unlink(missing_ok=True)


@dataclass(slots=True)
class _OpenRun:
    """A run without a result; `asked` are calls, by digest, that no approval was spent on yet."""

    seq: int
    instance: str
    trace_id: str | None
    waits: bool = False
    calls: dict[object, dict[str, Any]] = field(default_factory=dict)
    asked: dict[object, dict[str, Any]] = field(default_factory=dict)
    attempts: dict[object, object] = field(default_factory=dict)


def announce(state: StateDirectory, instance: str, first_seq: int) -> Writer:
    """Make the file of a new writer; the caller holds the lock of the log."""
    path = state.path / "writers" / instance
    descriptor = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try_lock(descriptor)
    writer = Writer(path, descriptor, first_seq)
    writer.advance(first_seq)
    os.fsync(descriptor)
    sync_directory(path.parent)
    return writer


def is_alive(path: Path) -> bool:
    """Whether the writer whose file this is lives, and so holds its lock.

    Raises:
        OSError: the file can't be opened.
    """
    descriptor = open_plain(path, os.O_RDONLY)
    try:
        return not try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def dead_writers(state: StateDirectory) -> Iterator[list[Writer]]:
    """All writers that died, locked; their files go if the body recovers them without an error.

    The caller holds the lock of the log.
    """
    dead: list[Writer] = []
    try:
        for path in sorted((state.path / "writers").iterdir()):
            with contextlib.suppress(FileNotFoundError):  # it closed just now
                descriptor = open_plain(path, os.O_RDWR)
                if try_lock(descriptor):
                    dead.append(Writer(path, descriptor, _first_seq(descriptor)))
                else:
                    os.close(descriptor)
        yield dead
        for writer in dead:
            writer.path.unlink(missing_ok=True)
    finally:
        for writer in dead:
            writer.release()


def unknown_results(segments: Sequence[Segment], dead: Sequence[Writer]) -> list[Entry]:
    """A result for each run that a dead writer began and nobody closed, in the order they began."""
    if not dead:
        return []
    instances = {writer.instance for writer in dead}
    open_runs: dict[str, _OpenRun] = {}
    earlier: set[str] = set()
    for _, line in lines_from(segments, min(writer.first_seq for writer in dead)):
        _read(open_runs, line, instances, earlier)
    if earlier:  # what was resumed began before anything that the dead wrote
        for run_id in earlier:
            open_runs.pop(run_id, None)
        names = [name.encode() for name in earlier]
        for _, line in lines_from(segments, 0):
            if any(name in line for name in names):
                _read(open_runs, line, set(), set(), only=earlier)
    lost = [(run_id, run) for run_id, run in open_runs.items() if run.instance in instances and not run.waits]
    return [_unknown(*one) for one in sorted(lost, key=lambda one: one[1].seq)]


def set_aside(state: StateDirectory, segment: Segment, descriptor: int, end: int) -> None:
    """Move what follows the last whole line of a segment into `quarantine` and cut it off the segment."""
    os.lseek(descriptor, end, os.SEEK_SET)
    torn = os.read(descriptor, segment.size - end)
    name = f"{segment.path.stem}-at-{end}-{hashlib.sha256(torn).hexdigest()[:16]}"
    target = open_plain(state.path / "quarantine" / (name + _PENDING), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with os.fdopen(target, "wb") as file:
        file.write(torn)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(state.path / "quarantine")
    os.ftruncate(descriptor, end)


def pending_tails(state: StateDirectory) -> dict[Path, Entry]:
    """What was set aside and is not known to be recorded, with the entry that records it.

    Raises:
        OSError: one can't be read, or is a link or a pipe and no tail.
    """
    found = {}
    for path in sorted((state.path / "quarantine").glob(f"*{_PENDING}")):
        with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
            size, digest = os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256")
        found[path] = log_entry(
            "torn_tail_quarantined",
            bytes=size,
            sha256=digest.hexdigest(),
            file=f"quarantine/{path.stem}.torn",
        )
    return found


def mark_recorded(tails: Iterable[Path]) -> None:
    """Say that these tails are recorded; called once their records are durable."""
    for path in tails:
        path.replace(path.with_suffix(".torn"))


def _first_seq(descriptor: int) -> int:
    text = os.read(descriptor, 32)
    # A writer that died before it wrote its number wrote no record either: any number is right.
    return int(text) if text.isdigit() else 0


def _read(
    open_runs: dict[str, _OpenRun],
    line: bytes,
    instances: set[str],
    earlier: set[str],
    only: set[str] | None = None,
) -> None:
    """Follow a line, or only if it is of one of these runs."""
    # damage is for `verify` to name; the runs around it are closed all the same
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        record = decode(line)
        if only is None or record["run_id"] in only:
            _follow(open_runs, record, instances, earlier)


def _follow(
    open_runs: dict[str, _OpenRun], record: Mapping[str, Any], instances: set[str], earlier: set[str]
) -> None:
    """Follow one record; `earlier` takes runs that `instances` resumed and that began before."""
    run_id, kind, phase = record["run_id"], record["kind"], record.get("phase")
    run = open_runs.get(run_id)
    if kind == "result":
        open_runs.pop(run_id, None)
        earlier.discard(run_id)
    elif kind == "execution" and phase == "before":
        instance = record["writer"]["instance"]
        if run is None:
            open_runs[run_id] = _OpenRun(record["seq"], instance, record.get("trace_id"))
        else:
            run.instance = instance
    elif kind == "tool_call" and run is not None:
        _follow_call(run, record, begins=phase == "before")
    elif kind == "approval":
        if run is not None:
            _follow_approval(run, record)
        elif record["body"]["event"] == "resumed" and record["writer"]["instance"] in instances:
            earlier.add(run_id)


def _follow_call(run: _OpenRun, record: Mapping[str, Any], *, begins: bool) -> None:
    body = record["body"]
    effect, number = body.get("verdict", {}).get("effect"), body.get("sequence")
    if begins and effect != "deny":
        named = {key: body[key] for key in ("sequence", "tool", "call_digest") if key in body}
        call = {"seq": record["seq"], **named}
        if effect == "ask":
            run.asked[body.get("call_digest")] = call
        else:
            run.calls[number] = call
    else:
        run.calls.pop(number, None)


def _follow_approval(run: _OpenRun, record: Mapping[str, Any]) -> None:
    body = record["body"]
    match body["event"]:
        case "waiting":
            run.waits = True
        case "resumed":
            run.waits, run.instance = False, record["writer"]["instance"]
        case "consuming":
            run.attempts[record["seq"]] = body["digest"]
        case "consumed":
            call = run.asked.pop(run.attempts.pop(body["consuming"], None), None)
            if call is not None:
                run.calls[call.get("sequence")] = call


def _unknown(run_id: str, run: _OpenRun) -> Entry:
    body = {
        "termination": "unknown",
        "success": False,
        "recovered": True,
        "instance": run.instance,
        "execution_seq": run.seq,
        "unknown_effects": list(run.calls.values()),
    }
    return Entry("result", run_id, body, now(), mono_ns(), phase="after", trace_id=run.trace_id)
