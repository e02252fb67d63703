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
    """An action and its target."""
    source: Literal["declared", "inferred", "granted"]
    """Asked for by the caller, seen in the code, or offered by the policy."""
    line: int | None
    """Of the code, where the screen saw it."""
    when: Literal["start", "access", "call"]
    """Decided at the start, at an access, or at a call."""
    effect: Effect
    by: list[str]
    """Document, line and entry of all that decided it."""
    reason: str


class Leaf(Part):
    """One leaf of a condition."""

    clause: str
    """`if`, `unless` or `during`."""
    text: str
    """As the policy has it."""
    truth: Truth
    why: str | None
    """What was found, as a sentence."""


class Hit(Part):
    """A rule that applies."""

    rule: str
    """Its id."""
    where: str
    """Its file and line."""
    truth: Truth
    leaves: list[Leaf]


class Rehearsal(Part):
    """What a bound in `mode: dry_run` would have said."""

    document: str
    """The bound."""
    effect: Effect
    """What would have been decided."""
    verdicts: list[Verdict]
    rules: list[Hit]


class Ballot(Part):
    """The vote of another decider."""

    decider: str
    """Its name."""
    effect: Literal["ask", "deny"] | None
    """Null if it has nothing to object."""
    reason: str
    policy_digest: str | None


class Decided(Part):
    """What rules and others said of an intent or of all of them."""

    effect: Effect
    """Deny beats ask beats allow."""
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
    """Roots, absolute."""
    write: list[str]
    read_masked: list[str]
    """What policy keeps closed below them."""
    write_masked: list[str]
    """What policy keeps closed below them."""
    sealed: list[str]
    """Paths of licet itself, closed whatever else is said."""
    network: list[str]
    """`HOST:PORT`, `any` or `private`."""
    network_masked: list[str]
    """What policy keeps closed of these."""
    network_asked: list[str] | None = None
    """What is asked about when the code connects."""
    shell: bool
    tools: list[str]
