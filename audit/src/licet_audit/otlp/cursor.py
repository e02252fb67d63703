"""How far an export to one destination got: in the user's state directory, outside the log.

Rules this module keeps:

- a cursor names the last record that a collector has answered for, by number and by leaf, so that a log
  which was cut or written anew is noticed;
- it is replaced in one durable step, and one export at a time may do so.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from licet import files
from licet.errors import AuditUnavailable, ExportFailed
from licet.locks import lock_file
from licet.state import failures, user_state

_SMALL = 64 * 1024


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last record that was answered for; -1 before the first one.

    `oldest` is the first record of the oldest run whose spans have not all been sent, `rejected` how many
    items the collector has said that it did not take.
    """

    seq: int = -1
    leaf: str = ""
    oldest: int | None = None
    rejected: int = 0


class CursorFile:
    """The cursor of one log, destination and signal."""

    def __init__(self, log_id: str, to: str, signal: str) -> None:
        self._about = {"log": log_id, "to": to, "signal": signal}
        name = hashlib.sha256("\0".join((to, signal)).encode()).hexdigest()[:32]
        self.path: Path = user_state() / "exports" / log_id / f"{name}.json"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep every other export to this destination away.

        Raises:
            ExportFailed: one is under way.
            AuditUnavailable: the user's state directory can't be written.
        """
        with contextlib.ExitStack() as stack:
            with failures(self.path):
                files.make_folder(self.path.parent)
                held = stack.enter_context(lock_file(self.path.with_suffix(".lock"), 0.0))
            if not held:
                raise ExportFailed(
                    "another export of this log to this destination is under way",
                    advice="wait for it, or stop it",
                )
            yield

    def read(self) -> Cursor:
        """The cursor; one before the first record if there is none.

        Raises:
            AuditUnavailable: it can't be read, or says nothing.
        """
        with failures(self.path):
            try:
                content: Any = json.loads(files.read_plain(self.path, _SMALL))
                found = Cursor(content["seq"], content["leaf"], content["oldest"], content["rejected"])
            except FileNotFoundError:
                return Cursor()
            except (ValueError, KeyError, TypeError):
                found = None
        if found is None or not _is_sound(found):
            raise AuditUnavailable(
                f"`{self.path}` does not say how far the export got",
                advice="send all of it again with `--again`",
            )
        return found

    def write(self, cursor: Cursor) -> None:
        """Remember it durably.

        Raises:
            AuditUnavailable: it can't be written.
        """
        content = json.dumps(self._about | asdict(cursor), sort_keys=True)
        with failures(self.path):
            files.replace(self.path, content.encode())


def _is_sound(cursor: Cursor) -> bool:
    numbers = (cursor.seq, cursor.rejected, 0 if cursor.oldest is None else cursor.oldest)
    return all(type(number) is int for number in numbers) and isinstance(cursor.leaf, str)
