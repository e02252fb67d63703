"""What several kinds of records have in common."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Hash = str
Effect = Literal["allow", "ask", "deny"]
Truth = Literal["true", "false", "unknown"]
"""What is unknown counts as a hit."""
Levels = dict[str, Literal["not_enforced", "planned", "partial", "enforced", "not_applicable"]]


class Part(BaseModel):
    """An object of which every field is known here."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Verdict(Part):
    """The answer for one intent."""

    intent: str
    source: Literal["declared", "inferred", "granted"]
    line: int | None
    """Of the code, where the screen saw it."""
    when: Literal["start", "access", "call"]
    effect: Effect
    by: list[str]
    """Document, line and entry of all that decided it."""
    reason: str


class Leaf(Part):
    """One leaf of a condition."""

    clause: str
    text: str
    truth: Truth
    why: str | None


class Hit(Part):
    """A rule that applies."""

    rule: str
    where: str
    """Its file and line."""
    truth: Truth
    leaves: list[Leaf]


class Rehearsal(Part):
    """What a bound in `mode: dry_run` would have said."""

    document: str
    effect: Effect
    verdicts: list[Verdict]
    rules: list[Hit]


class Ballot(Part):
    """The vote of another decider."""

    decider: str
    effect: Literal["ask", "deny"] | None
    reason: str
    policy_digest: str | None


class Decided(Part):
    """What rules and others said of an intent or of all of them."""

    effect: Effect
    rules: list[Hit]
    """Every rule that applies."""
    pending: list[str]
    """Rules that read the arguments of calls that have not been made."""
    demands: list[str]
    """The approvals that are asked for."""
    rehearsals: list[Rehearsal]
    ballots: list[Ballot]


class Opened(Part):
    """What a sandbox opens."""

    read: list[str]
    write: list[str]
    read_masked: list[str]
    write_masked: list[str]
    sealed: list[str]
    network: list[str]
    network_masked: list[str]
    shell: bool
    tools: list[str]
