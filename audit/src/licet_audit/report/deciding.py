"""The decision of a run, as its record tells it: intents, rules with their conditions, approvals.

Rules this module keeps: a body may hold anything; what is missing or of another type is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from licet.workbench.history import bodies

from licet_audit.report import words
from licet_audit.report.safe import Part, part

MOST = 50
"""Verdicts, rules, or conditions of a rule, in one card."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one intent; `by` are the entries and rules that gave it, with their places."""

    intent: str
    effect: words.Label
    source: str
    line: int | None
    by: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """One part of a condition, and what came of it."""

    clause: str
    text: str
    truth: str
    why: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that applied."""

    name: str
    where: str
    truth: str
    leaves: Part[Leaf]


@dataclass(frozen=True, slots=True)
class Deciding:
    """What was decided of one run, or of one call."""

    policy: str | None
    policy_digest: str | None
    documents: tuple[str, ...]
    stale: str | None
    verdicts: Part[Verdict]
    rules: Part[Rule]
    demands: tuple[str, ...]
    violations: tuple[str, ...]
    ballots: tuple[str, ...]
    rehearsals: tuple[str, ...]


def deciding(body: Mapping[str, Any]) -> Deciding:
    """Read the body of a decision."""
    stale = body.get("policy_stale")
    return Deciding(
        policy=bodies.text(body, "policy"),
        policy_digest=bodies.text(body, "policy_digest"),
        documents=tuple(bodies.texts(body.get("documents"))[:MOST]),
        stale=None if stale is None else str(stale),
        verdicts=part(map(_verdict, bodies.mappings(body.get("verdicts"))), MOST),
        rules=rules(body),
        demands=tuple(bodies.texts(body.get("demands"))[:MOST]),
        violations=tuple(map(_violation, bodies.mappings(body.get("violations"))[:MOST])),
        ballots=tuple(map(_ballot, bodies.mappings(body.get("ballots"))[:MOST])),
        rehearsals=tuple(
            f"{bodies.text(one, 'document') or '?'} would say {bodies.text(one, 'effect') or '?'}"
            for one in bodies.mappings(body.get("rehearsals"))[:MOST]
        ),
    )


def rules(body: Mapping[str, Any]) -> Part[Rule]:
    """The rules that applied to a decision, or to a call."""
    return part(map(_rule, bodies.mappings(body.get("rules"))), MOST)


def reasons(body: Mapping[str, Any]) -> Iterator[str]:
    """Why a decision is not a plain yes: the intents that it answers as it does, worst ones alone."""
    worst = bodies.text(body, "effect")
    for one in bodies.mappings(body.get("violations")):
        if one.get("refused"):
            yield f"the screen refuses it: {_violation(one)}"
    for one in bodies.mappings(body.get("verdicts")):
        if one.get("effect") == worst != "allow" and one.get("source") != "granted":
            line = bodies.line(one.get("line"))
            at = f" (line {line})" if line is not None else ""
            yield f"{bodies.text(one, 'intent')}{at}: {bodies.text(one, 'reason')}"


def _verdict(one: Mapping[str, Any]) -> Verdict:
    return Verdict(
        intent=bodies.text(one, "intent") or "?",
        effect=words.effect(bodies.text(one, "effect")),
        source=bodies.text(one, "source") or "?",
        line=bodies.line(one.get("line")),
        by=tuple(bodies.texts(one.get("by"))[:MOST]),
        reason=bodies.text(one, "reason") or "",
    )


def _rule(one: Mapping[str, Any]) -> Rule:
    return Rule(
        name=bodies.text(one, "rule") or "?",
        where=bodies.text(one, "where") or "?",
        truth=bodies.text(one, "truth") or "?",
        leaves=part(map(_leaf, bodies.mappings(one.get("leaves"))), MOST),
    )


def _leaf(one: Mapping[str, Any]) -> Leaf:
    clause, text, truth, why = (bodies.text(one, name) or "" for name in ("clause", "text", "truth", "why"))
    return Leaf(clause, text, truth, why)


def _violation(one: Mapping[str, Any]) -> str:
    line = bodies.line(one.get("line"))
    return f"{bodies.text(one, 'code') or '?'}{f' in line {line}' if line is not None else ''}"


def _ballot(one: Mapping[str, Any]) -> str:
    told = (bodies.text(one, name) for name in ("decider", "effect", "reason"))
    return " · ".join(one for one in told if one)
