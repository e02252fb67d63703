"""The approvals of one state directory, as commands open them.

Rules this module keeps:

- looking makes nothing; a state directory that this user's licet did not make is never used;
- what an answer changes is recorded, in the log of that directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from licet import state as states
from licet.approvals.store import NAME, ApprovalStore
from licet.cli import places
from licet.errors import ApprovalsUnavailable, NoApproval, UsageError
from licet.output import bounded
from licet.settings import Settings
from licet.state import StateDirectory

if TYPE_CHECKING:
    from licet.approvals.clerk import Clerk
    from licet.record import AuditLog
    from licet.trail import Trail

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_PLACE = (
    click.option("--policy", metavar="FILE", help="The policy whose approvals these are."),
    click.option("--state", metavar="DIR", help="The state directory that holds them."),
    click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout."),
)


def with_place(command: F) -> F:
    """Give a command the options that say whose approvals are meant, and that of its output."""
    for option in reversed(_PLACE):
        command = option(command)
    return command


@dataclass(frozen=True)
class Office:
    """The open store of a state directory, with the settings in force there."""

    state: StateDirectory
    settings: Settings
    store: ApprovalStore

    def recorded(self, run_id: str, work: Callable[[Clerk, Trail], Awaitable[T]]) -> T:
        """Have the clerk do some work, whose records go to the log here as those of the run `run_id`."""
        from licet.approvals.clerk import Clerk
        from licet.logbook import Gaps, Logbook
        from licet.trail import Trail

        async def main() -> T:
            book = Logbook(self._open_log)
            try:
                with Trail(book.current(), run_id, best_effort=False, gaps=Gaps()) as trail:
                    return await work(Clerk(self.store), trail)
            finally:
                await book.close()

        return asyncio.run(main())

    def _open_log(self) -> AuditLog:
        from licet.plugins import Plugins

        return Plugins(self.settings).audit_log(states.open_state(self.state.path))


@contextlib.contextmanager
def opened(policy: str | None, state: str | None) -> Iterator[Office]:
    """The approvals of `policy` or in the directory `state`; without either, those of packs here.

    Raises:
        UsageError: both are given.
        NoApproval: nothing was ever asked there.
        ApprovalsUnavailable: they can't be read, or belong to somebody else.
    """
    with looked_into(policy, state) as office:
        if office is None:
            raise NoApproval(
                "there are no approvals here",
                advice="name their policy with `--policy`, or their directory with `--state`",
            )
        yield office


@contextlib.contextmanager
def looked_into(policy: str | None, state: str | None) -> Iterator[Office | None]:
    """As `opened`; None where nothing was ever asked.

    Raises:
        UsageError, ApprovalsUnavailable: as there.
    """
    if state is not None and policy is not None:
        raise UsageError("`--state` and `--policy` both name approvals", advice="give one of them")
    usual, settings = places.found(policy)
    found = in_directory(Path(state) if state is not None else usual)
    if found is None:
        yield None
        return
    with ApprovalStore(found) as store:
        yield Office(found, settings, store)


def in_directory(path: Path) -> StateDirectory | None:
    """The state directory at `path` if approvals were ever asked there.

    Raises:
        ApprovalsUnavailable: this user's licet did not make it.
    """
    if not os.path.lexists(path / NAME):
        return None
    if (found := states.trusted(path)) is None:
        raise ApprovalsUnavailable(
            f"`{bounded(str(path), 300)}` was not made by this user's licet, so no approval in it counts",
            advice="name the state directory that runs here use, with `--state`",
        )
    return found
