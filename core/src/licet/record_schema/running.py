"""What is recorded of the run itself: its start, what it asked for, how it ended."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from licet.record_schema.parts import Decided, Hash, Levels, Opened, Part, Verdict


class Execution(Part):
    """What is about to run, and what the sandbox claims."""

    backend: str
    version: str
    plan_digest: str
    """That of the selection."""
    isolation: str
    """What kind of walls; `none` if there are none."""
    contract: str
    """Digest of what the backend claims."""
    claimed: Levels
    """What it claims to hold, by control."""
    opened: Opened


class CallBefore(Decided):
    """A call that the code makes, decided before it has an effect."""

    sequence: int
    """Counts the calls of a run."""
    tool: str
    call_digest: str
    """Over the plan's digest, the sequence, the tool and its arguments, under the host's key."""
    verdict: Verdict
    took_ns: int | None = None
    """How long the decision took, in nanoseconds."""


class CallAfter(Part):
    """How a call ended."""

    sequence: int
    """That of the call before."""
    tool: str
    outcome: str
    """`returned`, `raised`, `denied` or `unknown tool`."""
    result_digest: str | None = None
    """Of what it returned, under the host's key."""


class Access(Part):
    """A file or a connection that the code asked for while it ran."""

    action: Literal["read", "write", "network"]
    target: str
    """A path, or `HOST:PORT`."""
    allowed: bool


class Failure(Part):
    """The exception that ended the code."""

    type: str
    """Its class; what it says is content and not recorded."""
    line: int | None
    """Of the code."""


class Usage(Part):
    """What a run used; null where the backend can't tell."""

    wall_time: str
    """Seconds, as text."""
    cpu_time: str | None
    """Seconds, as text."""
    peak_memory: int | None
    """Bytes."""
    bytes_written: int | None
    """Bytes, to files."""


class Scrubbed(Part):
    """Secrets of one kind that were taken out of one channel."""

    channel: Literal["stdout", "stderr", "value", "error", "detail"]
    """Which way they would have left the run."""
    kind: str
    """What they are, such as `github_token`; `withheld` for a text that a scrubber could not look through."""
    count: int
    reason: str | None
    """Why a text was withheld; null otherwise."""


class Result(Part):
    """How a run that was executed ended."""

    termination: str
    """How it ended: `exited`, `timeout` and others."""
    success: bool
    exit_code: int | None
    error: Failure | None
    usage: Usage
    stdout_bytes: int
    """As the code wrote it, before it was shortened."""
    stderr_bytes: int
    """The same."""
    stdout_truncated: bool
    stderr_truncated: bool
    digests: dict[str, Hash]
    """HMAC-SHA256 of output and value under the host's key, without the secrets that were taken out."""
    configured: dict[str, str]
    """What was set for this run, by control."""
    observed: dict[str, str]
    """What was read back of it, by control."""
    unknown: list[str]
    """Required controls of which nothing was seen in this run."""
    scrubbers: list[str] = Field(default_factory=list)
    """The plugins that looked for secrets in what the run left; empty where there was none."""
    scrubbed: list[Scrubbed] = Field(default_factory=list)
    """What was taken out before anything of it was shown, recorded or kept; never the secret itself."""
    tool_calls: int
    accesses: int
    took_ns: int | None = None
    """How long it took to digest what the code left, in nanoseconds."""


class Refused(Part):
    """A run that ended before anything ran."""

    termination: str
    success: Literal[False]
    detail: str
    """The sentence that says why."""
    executed: Literal[False]


class Lost(Part):
    """A run whose process died: written by whoever opened the log next."""

    termination: Literal["unknown"]
    success: Literal[False]
    recovered: Literal[True]
    instance: str
    """The writer that died."""
    execution_seq: int
    """The record before which nothing is known of it."""
    unknown_effects: list[dict[str, Any]]
    """Calls that had begun, each of which may have taken effect or not."""
