"""The index of a log, as commands open it: how far it is shown, and why it could not be kept.

Rules this module keeps: a log that another plugin keeps has no index; its runs are gathered by reading it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from licet.cli.progress import Steps

if TYPE_CHECKING:
    from licet_audit.index import Index
    from licet_audit.reader import LogReader

_MEBI = 2**20


@contextmanager
def index_of(reader: LogReader) -> Iterator[Index]:
    """The index of a log, up to date.

    Raises:
        AuditUnavailable: the log can't be read.
    """
    from licet.cli.terminal import warn

    from licet_audit.index import Index

    with Steps("MiB of records indexed") as steps:
        done = 0

        def hear(indexed: int, total: int) -> None:
            nonlocal done
            steps.expect(total // _MEBI)
            while done < indexed // _MEBI:
                done += 1
                steps.step()

        with Index.open(reader.state, hear) as index:
            if index.note is not None:
                warn(f"the index of the log is in memory, and made again next time: {index.note}")
            yield index
