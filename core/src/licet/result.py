"""What a run gives back, in Python and as JSON.

Rules this module keeps:

- `success` means: exited with code 0, writes committed, and the trail complete;
- durations are seconds (float), sizes bytes (int); a value that JSON can't say is `{"$type": ...}`;
- a result never raises by itself; `unwrap` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from licet import values
from licet.backend import GuestError, Termination, Usage
from licet.contract import SandboxEnforcementContract
from licet.errors import RunFailed
from licet.output import Kept, text_of
from licet.report import Explanation
from licet.request import Change
from licet.units import show_instant
from licet.writes.staged import Artifact

if TYPE_CHECKING:
    from licet.approvals.forms import StoredApproval
    from licet.scrubbing import Finding

EXIT_CODES: dict[Termination, int] = {
    Termination.exited: 1,
    Termination.policy_denied: 3,
    Termination.approval_denied: 3,
    Termination.approval_pending: 4,
    Termination.no_backend: 5,
    Termination.timeout: 6,
    Termination.cpu_limit: 6,
    Termination.memory_limit: 6,
    Termination.process_limit: 6,
    Termination.output_limit: 6,
    Termination.file_limit: 6,
    Termination.tool_limit: 6,
    Termination.audit_unavailable: 7,
    Termination.launch_failed: 8,
    Termination.backend_error: 8,
    Termination.backend_lost: 8,
    Termination.unknown: 8,
    Termination.cancelled: 130,
}
"""The exit code of `licet run` for each way to end without success."""


@dataclass(frozen=True, slots=True)
class BackendUsed:
    """The backend that ran the code."""

    name: str
    version: str
    isolation: str


CallOutcome = Literal[
    "returned", "raised", "withheld", "denied", "refused", "unknown tool", "timed_out", "unknown", "differs"
]
"""How a tool call ends; `withheld` is one that returned what can't enter the sandbox, `refused` one that was
not made, since its arguments don't fit or the run ended first, `differs` one of a run that repeats another,
and made another call there."""

UNCERTAIN: tuple[object, ...] = ("timed_out", "unknown")
"""Outcomes of calls that may have had their effect; not hashed, since a record may hold a list there."""


@dataclass(frozen=True, slots=True)
class ToolCallMade:
    """One tool call of a run; `duration` is seconds, until its answer or until nobody waited for one."""

    sequence: int
    tool: str
    call_digest: str
    decision: str
    outcome: CallOutcome
    duration: float


@dataclass(frozen=True, slots=True)
class Output:
    """What the code wrote: text within its limits, whether it was shortened, and bytes in all.

    `stdout_kept` and `stderr_kept` are the bytes behind the text: head and tail, as they were written.
    """

    stdout: str = ""
    stderr: str = ""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_kept: tuple[bytes, bytes] = field(default=(b"", b""), repr=False)
    stderr_kept: tuple[bytes, bytes] = field(default=(b"", b""), repr=False)


def output_of(stdout: Kept, stderr: Kept) -> Output:
    """What of two streams is kept, as text."""
    return Output(
        stdout=text_of(stdout),
        stderr=text_of(stderr),
        stdout_truncated=stdout.truncated,
        stderr_truncated=stderr.truncated,
        stdout_bytes=stdout.total,
        stderr_bytes=stderr.total,
        stdout_kept=(stdout.head, stdout.tail),
        stderr_kept=(stderr.head, stderr.tail),
    )


@dataclass(frozen=True, slots=True)
class Protection:
    """What was seen of the protection of one run, by control.

    `configured` is what the backend set up, `observed` what the system showed of it afterwards; `unknown` are
    the controls that were asked for and that nothing was observed of.
    """

    configured: Mapping[str, str] = field(default_factory=dict)
    observed: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditPlace:
    """Where the last record of a run stands."""

    log: str
    seq: int
    leaf: str


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """All that a caller learns of one run.

    `stdout_kept` and `stderr_kept` are the bytes behind the texts, head and tail, as they were written; where
    secrets were taken out of a text, they are those of what is left. `scrubbed` says how many, and of what
    kind. `approval` is what the run waits for, or was not given.
    `artifacts` are the files that it left on the host.
    `audit` is where the last record of the run stands, `unrecorded` why a `best_effort` trail lost any.
    """

    run_id: str
    termination: Termination
    success: bool
    value: Any = None
    value_repr: str | None = None
    stdout: str = ""
    stderr: str = ""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_kept: tuple[bytes, bytes] = field(default=(b"", b""), repr=False)
    stderr_kept: tuple[bytes, bytes] = field(default=(b"", b""), repr=False)
    exit_code: int | None = None
    error: GuestError | None = None
    decision: Explanation | None = None
    backend: BackendUsed | None = None
    contract: SandboxEnforcementContract | None = None
    usage: Usage = field(default_factory=Usage)
    changes: tuple[Change, ...] = ()
    tool_calls: tuple[ToolCallMade, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    audit: AuditPlace | None = None
    unrecorded: str | None = None
    protection: Protection = field(default_factory=Protection)
    detail: str | None = None
    advice: str | None = None
    scrubbed: tuple[Finding, ...] = ()
    approval: StoredApproval | None = None

    def unwrap(self) -> Any:
        """The value of the last expression.

        Raises:
            RunFailed: the run was no success; the message says why.
        """
        if self.success:
            return self.value
        raise RunFailed(self.summary, advice=self.advice)

    @property
    def summary(self) -> str:
        """One line that says how the run ended."""
        if self.error is not None:
            place = f" in line {self.error.line}" if self.error.line else ""
            return f"{self.error.type}: {self.error.message}{place}"
        return self.detail or self.termination.value.replace("_", " ")

    @property
    def process_exit_code(self) -> int:
        """What `licet run` exits with."""
        return 0 if self.success else EXIT_CODES[self.termination]

    def as_json(self) -> dict[str, Any]:
        """The form of `licet run --json`."""
        return {
            "run_id": self.run_id,
            "termination": self.termination.value,
            "success": self.success,
            "value": values.encode(self.value),
            "value_repr": self.value_repr,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "stdout_truncated": self.stdout_truncated,
            "stderr_truncated": self.stderr_truncated,
            "stdout_bytes": self.stdout_bytes,
            "stderr_bytes": self.stderr_bytes,
            "exit_code": self.exit_code,
            "error": asdict(self.error) if self.error else None,
            "decision": self.decision.as_json() if self.decision else None,
            "backend": asdict(self.backend) if self.backend else None,
            "contract": self.contract.as_json() if self.contract else None,
            "approval": _approval(self.approval) if self.approval else None,
            "usage": asdict(self.usage),
            "changes": [asdict(change) for change in self.changes],
            "tool_calls": [asdict(call) for call in self.tool_calls],
            "artifacts": [asdict(artifact) for artifact in self.artifacts],
            "audit": asdict(self.audit) if self.audit else None,
            "unrecorded": self.unrecorded,
            "protection": asdict(self.protection),
            "detail": self.detail,
            "advice": self.advice,
            "scrubbed": [asdict(finding) for finding in self.scrubbed],
        }


def _approval(stored: StoredApproval) -> dict[str, Any]:
    expires_at = stored.request.asked.wall + stored.request.expires
    return {
        "id": stored.request.id,
        "state": stored.state,
        "expires_at": show_instant(round(expires_at * 1e9)),
    }
