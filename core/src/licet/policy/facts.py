"""What the conditions of a policy may read: one frozen value a request, and one a tool call.

Rules this module keeps:

- facts are made by the stages before; nothing here looks at a clock, a file or the host;
- what is not known is None or absent, never an empty text or a zero that would read as an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from licet.policy.signatures import Signature
from licet.request import Intent, Limits, Subject

ANONYMOUS = frozenset(("", "unknown"))
"""The ids of a subject that nobody has named."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What is known of a request before it runs.

    `code_bytes` is the size of the code as it was sent. `inputs` and `tools` are names. `intents` are the
    declared and inferred ones, canonical; `narrows` says that the request lists its intents, `complete` that
    these are all: a request that lists none wants whatever the policy opens besides. `modules` are the dotted
    names of the imports that the screen saw. Durations are seconds, sizes bytes.
    """

    code_bytes: int = 0
    workdir: str = "/"
    inputs: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    intents: tuple[Intent, ...] = ()
    narrows: bool = False
    complete: bool = True
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFacts:
    """One call of a tool, its arguments by the name of the parameter.

    `signature` is what the policy, or else Python, says that the tool takes; a call of a tool that neither
    knows has no arguments that a condition could read.
    """

    tool: str
    args: Mapping[str, Any]
    signature: Signature | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What conditions may read. `at` is aware; `call` is None before a call.

    `derived` keeps what a condition engine made of these facts, so that all leaves of a request share it.
    """

    subject: Subject
    at: datetime
    request: RequestFacts = field(default_factory=RequestFacts)
    language: str = "python"
    call: CallFacts | None = None
    derived: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.at.tzinfo is None:
            raise ValueError("the time of a decision needs its zone")

    @property
    def anonymous(self) -> bool:
        """Whether nobody said who the subject is."""
        return self.subject.id in ANONYMOUS
