"""What becomes of the changes of a run at its end: recorded, then committed; or dropped.

Rules this module keeps:

- only a run that ended well changes the host, and only after a durable record says how;
- a commit that a process left open by dying is undone or finished before the next run begins, and recorded;
- what was begun is brought to its end, whoever cancels meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from licet import bodies
from licet.backend import Outcome
from licet.errors import AuditUnavailable
from licet.plan import ExecutionPlan
from licet.trail import Trail
from licet.writes.commit import commit
from licet.writes.journal import Journal
from licet.writes.settling import recover
from licet.writes.staged import NOTHING_WRITTEN, NotCommitted, Staged, Written
from licet.writes.telling import changes_of

T = TypeVar("T")
Digest = Callable[[str, bytes], str]


class Commits:
    """The commits of one runtime; their journal lies in its state directory, which `open_state` makes."""

    def __init__(self, state_path: Path, open_state: Callable[[], Path]) -> None:
        self._journal = Journal(state_path / "journal")
        self._open_state = open_state

    async def recover(self, trail: Trail) -> None:
        """Undo or finish what was left open here, and note it in the trail.

        Raises:
            AuditUnavailable: the journal can't be read.
        """
        try:
            if self._journal.is_empty:
                return
            self._open_state()  # a directory that came from elsewhere is not trusted with our files
            recovered = await asyncio.to_thread(recover, self._journal)
        except OSError as problem:
            raise AuditUnavailable(
                f"files of an earlier run are half written, and the journal can't be read: {problem}",
                advice="repair that, then run again",
            ) from None
        for one in recovered:
            trail.aside(bodies.recovered(one))

    async def settle(self, plan: ExecutionPlan, outcome: Outcome, trail: Trail, digest: Digest) -> Written:
        """Commit the changes of a run that ended well; drop those of any other."""
        staged = outcome.staged
        if staged is None:
            return NOTHING_WRITTEN
        try:
            if not outcome.succeeded:
                return Written(dropped=staged.lost)
            if staged.refused is not None:
                return Written(refused=staged.refused)
            if not staged.edits:
                return NOTHING_WRITTEN
            return await self._committed(plan, staged, trail, digest)
        except NotCommitted as problem:
            return Written(refused=str(problem))
        except AuditUnavailable as problem:
            return Written(refused=f"what the code wrote could not be recorded: {problem.message}")
        finally:
            staged.close()

    async def _committed(self, plan: ExecutionPlan, staged: Staged, trail: Trail, digest: Digest) -> Written:
        changes = await asyncio.to_thread(changes_of, staged.edits)
        trail.step("commit", bodies.commit(changes, digest), phase="before")
        await trail.commit()
        await asyncio.to_thread(self._commit, plan, staged)
        return Written(changes)

    def _commit(self, plan: ExecutionPlan, staged: Staged) -> None:
        self._open_state()
        try:
            with self._journal.alone():
                commit(plan.run_id, staged.edits, plan.opened, self._journal)
        except OSError as problem:
            raise NotCommitted(f"nothing was written: the journal can't be used: {problem}") from None


async def to_the_end(work: Awaitable[T]) -> T:
    """Wait for `work` until it is done, whoever cancels meanwhile; only then is a cancellation passed on."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as problem:
            if task.cancelled():
                raise
            cancelled = problem
        except BaseException:
            break  # it is the task's own, and raised below
    if cancelled is not None:
        raise cancelled
    return task.result()
