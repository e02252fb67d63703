"""What is asked: requests as callers write them, and the same request in one canonical spelling.

Rules this module keeps:

- every value is frozen; a later stage makes a new value and never edits an earlier one;
- an intent has one spelling everywhere: policy, command line, cards and records;
- `intents: None` means all that policy allows; a list narrows to exactly that list.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from licet import toolkits, units
from licet.contract import Control, Level
from licet.errors import InvalidRequest

Action = Literal["run", "read", "write", "network", "shell", "tool"]
Source = Literal["declared", "inferred", "granted"]
When = Literal["start", "call", "access"]

ACTIONS: tuple[Action, ...] = ("run", "read", "write", "network", "shell", "tool")
TARGETLESS: frozenset[Action] = frozenset({"run", "shell"})


@dataclass(frozen=True, slots=True)
class Intent:
    """One thing the code wants.

    `target` is None for `run` and `shell`, and for an inferred intent whose target can't be known before
    the code runs. `excerpt` is the piece of code that showed an inferred intent, at most 80 characters.
    """

    action: Action
    target: str | None = None
    source: Source = "declared"
    line: int | None = None
    when: When = "start"
    excerpt: str | None = None

    def __str__(self) -> str:
        if self.action in TARGETLESS:
            return self.action
        return f"{self.action} {self.target if self.target is not None else '(unknown)'}"


RUN = Intent("run")

MOST_BYTES = 1 << 20
"""How many bytes the arguments of a call may have, and its result, where the tool says nothing else."""


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A function of the embedding program that code may call as `name`.

    `touches` says what `handler` itself reaches on the host, whoever calls it. `idempotent` says that a call
    may be repeated whose outcome is not known. `timeout` is the most seconds that one call may take (None: as
    long as the run), `most_bytes` the most that its arguments, and its result, may have in wire form.
    `description` is told to whoever writes the code.
    """

    name: str
    handler: Callable[..., Any]
    touches: tuple[Intent, ...] = ()
    idempotent: bool = False
    timeout: float | None = None
    most_bytes: int = MOST_BYTES
    description: str = ""

    @property
    def is_async(self) -> bool:
        """Whether a call gives an awaitable, so that code may await it."""
        handler = self.handler
        while isinstance(handler, functools.partial):
            handler = handler.func
        called = getattr(type(handler), "__call__", None)  # noqa: B004
        return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(called)


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that the screen or normalisation refuses: a stable `code`, the line, and what to do."""

    code: str
    line: int | None
    message: str
    advice: str


@dataclass(frozen=True, slots=True)
class CodeNeeds:
    """What the code needs of an interpreter, as far as its text shows.

    `syntax` holds feature names (see `licet.screen.FEATURES`), `modules` dotted names of imported
    modules, `builtins` the built-in names it reads, `members` dotted names of what it takes from modules
    (`math.sqrt`, `datetime.datetime.now`), `stdin` whether it reads standard input. Each name comes with its
    first line.
    """

    syntax: Mapping[str, int] = field(default_factory=dict)
    modules: Mapping[str, int] = field(default_factory=dict)
    builtins: Mapping[str, int] = field(default_factory=dict)
    members: Mapping[str, int] = field(default_factory=dict)
    stdin: bool = False


@dataclass(frozen=True, slots=True)
class ScreenReport:
    """All that the screen saw in one piece of code.

    `syntax_error` is a message with its line; it is no violation, the run reports it as the code's own.
    `imports` are the dotted names of all imports, those too whose failure the code catches. `canonical` says
    that the targets of `intents` are in canonical form already.
    """

    violations: tuple[Violation, ...] = ()
    intents: tuple[Intent, ...] = ()
    needs: CodeNeeds = field(default_factory=CodeNeeds)
    syntax_error: Violation | None = None
    imports: tuple[str, ...] = ()
    canonical: bool = False


Duration = Annotated[float, BeforeValidator(units.duration)]
Size = Annotated[int, BeforeValidator(units.size)]
Count = Annotated[int, BeforeValidator(units.count)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Limits(_Frozen):
    """Upper bounds of one run; None means that this side states none.

    Durations are seconds, sizes bytes. `output` counts stdout and stderr together and ends the run,
    `stdout` and `stderr` truncate what is kept.
    """

    wall_time: Duration | None = None
    cpu_time: Duration | None = None
    memory: Size | None = None
    processes: Count | None = None
    code: Size | None = None
    stdin: Size | None = None
    stdout: Size | None = None
    stderr: Size | None = None
    output: Size | None = None
    files: Size | None = None
    recursion: Count | None = None
    tool_calls: Count | None = None

    def stated(self) -> dict[str, float | int]:
        """The limits that are set, by name."""
        return dict(_stated(self)) if self.model_fields_set else {}


@lru_cache(maxsize=256)
def _stated(limits: Limits) -> Mapping[str, float | int]:
    # kept by value, not on the object: a changed copy of an object has all that was kept on it
    return {name: value for name, value in limits if value is not None}


DEFAULT_LIMITS = Limits(
    wall_time=60.0,
    code=1 << 20,
    stdin=1 << 20,
    stdout=1 << 20,
    stderr=1 << 20,
    output=16 << 20,
    recursion=1000,
    tool_calls=1000,
)
"""What holds where no policy states a limit, so that no run is unbounded by omission."""


class Subject(_Frozen):
    """For whom a run happens, and who vouches for that (`asserted_by`)."""

    type: str = "user"
    id: str = "unknown"
    groups: tuple[str, ...] = ()
    properties: Mapping[str, str | int | float | bool] = Field(default_factory=dict)
    tenant: str | None = None
    session: str | None = None
    on_behalf_of: str | None = None
    asserted_by: Literal["caller", "os", "token", "mcp"] = "caller"


@dataclass(frozen=True, slots=True)
class Mount:
    """A file of the host that code sees at another path; both are canonical."""

    path: str
    host: str


_NO_LIMITS = Limits()
_NOBODY = Subject()


class ExecutionRequest(_Frozen):
    """What a caller asks to run.

    `code` as bytes is decoded as UTF-8. `requirements` asks more of the sandbox than policy does, never
    less. `files` are files of the host (relative to `workdir`) that code sees in its working directory under
    the names given; each is a declared intent to read, so naming one narrows the request as a list does.
    `env` is recorded but not obeyed: the environment comes from policy alone. `learn` asks to go on,
    with no more opened, where policy says nothing of an intent, so that all of them are collected.
    `tools` takes what `licet.toolkit` does; what code calls them by is the key.
    """

    code: str | bytes
    inputs: Mapping[str, Any] = Field(default_factory=dict)
    stdin: str | bytes = b""
    workdir: str | None = None
    limits: Limits = Field(default_factory=lambda: _NO_LIMITS)
    env: Mapping[str, str] = Field(default_factory=dict)
    intents: tuple[Intent, ...] | None = None
    tools: Annotated[Mapping[str, Any], BeforeValidator(toolkits.named)] = Field(default_factory=dict)
    files: Mapping[str, str] = Field(default_factory=dict)
    subject: Subject = Field(default_factory=lambda: _NOBODY)
    requirements: Mapping[Control, Level] = Field(default_factory=dict)
    metadata: Mapping[str, str] = Field(default_factory=dict)
    learn: bool = False

    @field_validator("workdir", mode="before")
    @classmethod
    def _path_like(cls, value: object) -> object:
        return value if value is None or isinstance(value, str) else str(value)

    @field_validator("files", mode="before")
    @classmethod
    def _paths_like(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        return {name: str(path) if isinstance(path, os.PathLike) else path for name, path in value.items()}


@dataclass(frozen=True, slots=True)
class Change:
    """Something that normalisation did to a request, with the value that was asked for."""

    field: str
    requested: Any
    effective: Any
    reason: str


@dataclass(frozen=True, slots=True)
class FieldDigests:
    """Named digests of the parts of a request, HMACs under the host's key."""

    code: str
    stdin: str
    inputs: str
    environment: str
    limits: str
    workdir: str
    files: str | None = None

    def as_json(self) -> dict[str, str]:
        """By name; without those of what a request does not have."""
        named = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: digest for name, digest in named if digest is not None}


def as_request(request: ExecutionRequest | str | bytes, fields: Mapping[str, Any]) -> ExecutionRequest:
    """The request that a caller means by code, or by a request, and further `fields`.

    Raises:
        InvalidRequest: a field can't be understood.
    """
    try:
        if not isinstance(request, ExecutionRequest):
            return ExecutionRequest(code=request, **fields)
        return ExecutionRequest(**{**dict(request), **fields}) if fields else request
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise InvalidRequest(f"`{field}`: {first['msg'].removeprefix('Value error, ').lower()}") from None


@dataclass(frozen=True, slots=True)
class NormalizedRequest:
    """A request in one canonical spelling: the only form in which the later stages see it.

    `code_bytes` and `stdin_bytes` are sizes as they were sent. `asked` are the limits that the request itself
    states, `limits` states every limit that applies. `intents` are canonical and hold no `run`, which every
    request contains. `violations` are refusals of form (size, NUL, encoding cookie, learning that policy does
    not allow).
    """

    code: str
    code_bytes: int
    inputs: Mapping[str, Any]
    stdin: bytes
    stdin_bytes: int
    workdir: str
    asked: Limits
    limits: Limits
    environment: Mapping[str, str]
    intents: tuple[Intent, ...] | None
    tools: Mapping[str, Tool]
    subject: Subject
    requirements: Mapping[Control, Level]
    metadata: Mapping[str, str]
    changes: tuple[Change, ...]
    violations: tuple[Violation, ...]
    digests: FieldDigests
    learn: bool = False
    files: tuple[Mount, ...] = ()
