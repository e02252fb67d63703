"""The one tree of errors.

Rules this module keeps:

- every error has a stable `slug`, which names its page in `docs/reference/errors.md`, and an exit code;
- a message says what was expected and what was found, in lower case and without a full stop;
- `advice` says what to do next, `where` says at which place of which file;
- what was found is quoted, however large it is, so a message ends at `MOST_CHARACTERS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from licet.output import bounded

MOST_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file: 1-based line and column; `line` 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


def reason_of(problem: OSError) -> str:
    """What the operating system says is wrong, as messages spell it."""
    return (problem.strerror or str(problem)).lower()


class LicetError(Exception):
    """Base of all errors that licet raises on purpose."""

    slug: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 8

    def __init__(self, message: str, *, advice: str | None = None, where: Position | None = None) -> None:
        message = bounded(message, MOST_CHARACTERS)
        super().__init__(message)
        self.message = message
        self.advice = advice and bounded(advice, MOST_CHARACTERS)
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class UsageError(LicetError):
    """The caller asked for something that can't be understood."""

    slug = "usage"
    exit_code = 2


class InvalidRequest(UsageError):
    """A request is malformed: a bad limit, a name that is none, an input that can't cross."""

    slug = "invalid-request"


class InvalidPolicy(UsageError):
    """A policy can't be read, parsed or combined; nothing runs under it."""

    slug = "invalid-policy"


class InvalidLockFile(InvalidPolicy):
    """A list of packages can't be read, or names something that is not pinned and hashed."""

    slug = "invalid-lock-file"


class EnvironmentUnavailable(UsageError):
    """The interpreter or the packages that policy names are not there, or not as they were built."""

    slug = "environment-unavailable"


class InvalidSettings(UsageError):
    """`config.toml`, a `LICET_*` variable or a plugin list is wrong."""

    slug = "invalid-settings"


class AuditUnavailable(LicetError):
    """The trail can't be written, so nothing runs."""

    slug = "audit-unavailable"
    exit_code = 7


class EntryRefused(AuditUnavailable):
    """One entry can't be recorded, because of what is in it; the log itself is sound."""

    slug = "entry-refused"


class ExportFailed(LicetError):
    """A trail could not be sent to where it was to go; the trail itself is as it was."""

    slug = "export-failed"
    exit_code = 8


class RuntimeClosed(UsageError):
    """A runtime was used after it was closed."""

    slug = "runtime-closed"


class BackendError(LicetError):
    """A backend failed for a reason of its own, not of the code's."""

    slug = "backend-error"
    exit_code = 8


class LaunchFailed(BackendError):
    """A sandbox could not be started; the code did not run."""

    slug = "launch-failed"


class BuildFailed(LicetError):
    """An environment could not be built; what was there before is as it was."""

    slug = "build-failed"
    exit_code = 8


class PlanNotSealed(BackendError):
    """A backend was handed a plan that the runtime did not make, or made for an earlier run."""

    slug = "plan-not-sealed"


class SuspensionVoid(LicetError):
    """A suspended run can't go on: it is not what was sealed, or something that binds it has changed."""

    slug = "suspension-void"
    exit_code = 3


class ApprovalsUnavailable(LicetError):
    """The store of approvals can't be read or written, so nothing is granted and nothing spent."""

    slug = "approvals-unavailable"
    exit_code = 8


class NoApproval(UsageError):
    """No approval has this id, or more than one begins so."""

    slug = "no-approval"


class ApprovalClosed(LicetError):
    """An approval is over or not granted: spent, denied, expired, withdrawn, revoked, or still pending."""

    slug = "approval-closed"
    exit_code = 3


class AnswerRefused(LicetError):
    """An answer to an approval does not count: not of this person, to this document, or a second time."""

    slug = "answer-refused"
    exit_code = 3


class AskingFailed(LicetError):
    """An approval service could not ask anybody, so nobody answered by it."""

    slug = "asking-failed"
    exit_code = 8


class TypesUnchecked(LicetError):
    """The types of code could not be checked; whether it runs does not depend on that."""

    slug = "types-unchecked"
    exit_code = 8


class RunFailed(LicetError):
    """Raised by `ExecutionResult.unwrap()` for a run that was no success."""

    slug = "run-failed"
    exit_code = 1
