"""The approvals of one state directory, in `approvals.sqlite`."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from licet.approvals.clocks import Moment
from licet.approvals.forms import Answer, ApprovalRequest, Ending, Person, State, StoredApproval
from licet.state import StateDirectory

NAME = "approvals.sqlite"


class ApprovalStore:
    """What is pending, granted, spent; used by many processes and threads at one time."""

    def __init__(self, state: StateDirectory) -> None:
        """Open the store, which is made where it is missing.

        Raises:
            ApprovalsUnavailable: it can't be opened, was damaged, or is of a later version.
        """
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""

    def ask(
        self, request: ApprovalRequest, *, frozen: bytes | None = None, sealed: bytes | None = None
    ) -> None:
        """Keep a new approval, pending; durable when this returns."""
        raise NotImplementedError

    def get(self, approval: str) -> StoredApproval:
        """The approval of this id, or of the one that begins so, expired where its time is over at
        `clocks.now()`.

        Raises:
            NoApproval: there is none, or more than one begins so.
        """
        raise NotImplementedError

    def of_run(self, run_id: str) -> tuple[StoredApproval, ...]:
        """All approvals of a run, oldest first."""
        raise NotImplementedError

    def listed(self, states: Sequence[State] = (), *, limit: int | None = None) -> tuple[StoredApproval, ...]:
        """Approvals in any of `states` (empty: in all), newest first; without frozen and sealed parts."""
        raise NotImplementedError

    def answer(self, approval: str, answer: Answer, at: Moment) -> StoredApproval:
        """Take one answer, and say what the approval is then; durable when this returns.

        Raises:
            NoApproval: there is none of this id.
            ApprovalClosed: it is over, or has expired.
            AnswerRefused: this person may not answer, or has answered; the document is another one; the
            token is spent.
        """
        raise NotImplementedError

    def end(
        self, approval: str, state: State, at: Moment, *, reason: str, by: Person | None = None
    ) -> StoredApproval:
        """Make a pending or granted one `denied`, `withdrawn` or `revoked`, for a reason other than an
        answer.

        Raises:
            NoApproval, ApprovalClosed: as in `answer`.
        """
        raise NotImplementedError

    def expired(self, at: Moment) -> tuple[StoredApproval, ...]:
        """Mark what expired by now, and return what this call marked: each to exactly one caller."""
        raise NotImplementedError

    def consume(self, approval: str, seq: int, at: Moment) -> StoredApproval:
        """Spend one use of a granted one; `seq` is that of the record that says so. One caller wins.

        Raises:
            NoApproval: there is none of this id.
            ApprovalClosed: it is not granted (any more), is spent, or has expired.
        """
        raise NotImplementedError

    def ended(self, approval: str, ending: Ending, at: Moment) -> None:
        """Note what came of the use that was spent last; what is not needed any more is dropped."""
        raise NotImplementedError

    def suspend(self, approval: str, sealed: bytes) -> None:
        """Keep the suspended run of a call that waits."""
        raise NotImplementedError

    def reaching(self, request: ApprovalRequest, at: Moment) -> StoredApproval | None:
        """The oldest granted one of scope `session` or `shape` that covers `request`, if there is one."""
        raise NotImplementedError

    def previous(self, request: ApprovalRequest) -> StoredApproval | None:
        """The last that was approved of the same kind, requester, directory and tool: to compare with."""
        raise NotImplementedError

    def forget(self, run_id: str) -> int:
        """Erase all content of the approvals of a run; how many there were."""
        raise NotImplementedError
