"""What is recorded of the run itself: its start, what it asked for, how it ended."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from licet.record_schema.parts import Decided, Hash, Levels, Opened, Part, Verdict


class PythonGiven(Part):
    """The interpreter and the packages that policy gives to the code."""

    interpreter: str
    prefix: str
    """The installation that the interpreter belongs to."""
    packages: list[str]
    """Directories at the end of `sys.path`."""
    digest: str
    """Over all of it and what is installed; the plan's digest covers it."""
    version: str


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
    governs: list[Literal["clock", "random"]] | None = None
    """Of what the code sees of the world, all that it gets from licet alone."""
    python: PythonGiven | None = None


class CallBefore(Decided):
    """A call that the code makes, decided before it has an effect."""

    sequence: int
    """Counts the calls of a run."""
    tool: str
    call_digest: str
    """Over the plan's digest, the sequence, the tool and its arguments, under the host's key."""
    verdict: Verdict
    objections: list[Verdict] | None = None
    """What was denied or asked about of that which the tool touches, and `run` where that ends the run."""
    touches: list[str] | None = None
    """What the tool itself reaches on the host, as its author says: actions and targets."""
    idempotent: bool | None = None
    """Whether its author says that a call may be repeated whose outcome is not known."""
    argument_bytes: int | None = None
    """Of the arguments in wire form."""
    took_ns: int | None = None
    """How long the decision took, in nanoseconds."""


class Scrubbed(Part):
    """Secrets of one kind that were taken out of one channel."""

    channel: Literal["stdout", "stderr", "value", "error", "detail"]
    """Which way they would have left the run."""
    kind: str
    """What they are, such as `github_token`; `withheld` for a text that a scrubber could not look through."""
    count: int
    reason: str | None
    """Why a text was withheld; null otherwise."""


class CallAfter(Part):
    """How a call ended."""

    sequence: int
    """That of the call before, if it was decided."""
    tool: str
    outcome: str
    """`returned`, `raised`, `denied` or `unknown tool`; `refused` if it was not made, since its arguments
    don't fit (then it was not decided, and there is no record before this one) or the run ended first;
    `withheld` if it returned what can't enter the sandbox; `timed_out` if it was stopped at its own time
    limit, `unknown` if nobody waited for its end: both may have had an effect."""
    result_bytes: int | None = None
    """Of what it returned, in wire form."""
    scrubbed: list[Scrubbed] = Field(default_factory=list)
    """What was taken out of the message of its exception."""
    error: str | None = None
    """The class of the exception that the code got; what it says is content and not recorded."""
    result_digest: str | None = None
    """Of what it returned, under the host's key."""


class Access(Part):
    """A file, a connection or the time, which the code asked for while it ran."""

    action: Literal["read", "write", "network", "clock"]
    target: str
    """A path, `HOST:PORT`, or what reads the clock."""
    allowed: bool
    readings: list[str] | None = None
    """Of a clock that is not frozen: the times that it showed, one after the other, in seconds since 1970."""
    call_digest: str | None = None
    """Of a connection that was asked about: that of the first one to this target, which was answered."""


class ConnectionBefore(Decided):
    """A connection that the plan keeps apart to be asked about, decided before anybody is asked."""

    action: Literal["network"]
    target: str
    """`HOST:PORT`."""
    sequence: int
    """Counts the connections of a run."""
    call_digest: str
    """Over the plan's digest, the sequence and the target, under the host's key."""
    verdict: Verdict
    objections: list[Verdict] | None = None
    """What by now denies the run."""


class ConnectionAfter(Part):
    """What came of a connection that was allowed."""

    action: Literal["network"]
    target: str
    """`HOST:PORT`."""
    addresses: list[str]
    """All that the name resolved to, once; the connection goes to one of these. Empty if one of them was not
    to be reached, or there was no answer."""
    outcome: str
    """`connected`, the class of the error that the code got, or `unknown` if the run ended first."""


class FileChange(Part):
    """One path that is about to be changed."""

    path: str
    change: Literal["create", "replace", "remove", "make_directory", "remove_directory"]
    bytes: int | None
    """The size of the file that is to stand there; null where none is."""
    digest: Hash | None
    """HMAC-SHA256 under the host's key, over the SHA-256 of its content."""


class Commit(Part):
    """What the code wrote in its sandbox, and is about to be written to the host: all of it or nothing."""

    changes: list[FileChange]


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


class Seen(Part):
    """How much the code saw of the world."""

    clock_readings: int
    """How often it read the clock, as far as the sandbox governs that."""
    clock_unrecorded: int
    """Readings that no record has, since there were too many: such a run can't be repeated exactly."""
    random_bytes: int
    """How many random bytes it got from licet."""


class Result(Part):
    """How a run that was executed ended."""

    termination: str
    """How it ended: `exited`, `timeout` and others."""
    success: bool
    writes: Literal["none", "committed", "refused", "dropped"] | None = None
    """What became of what the code wrote; `dropped` if it did not end well."""
    writes_refused: str | None = None
    """What stood in the way of `refused`."""
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
    """The plugins that looked for secrets in what the run left, with what each had to do without."""
    scrubbed: list[Scrubbed] = Field(default_factory=list)
    """What was taken out before anything of it was shown, recorded or kept; never the secret itself."""
    tool_calls: int
    accesses: int
    surroundings: Seen | None = None
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
