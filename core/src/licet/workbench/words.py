"""Entries, rules and settings in words.

Rules this module keeps: a word stands for what is in force, and what an author wrote is quoted as it stands.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from licet import paths
from licet.policy.conditions import CLAUSES
from licet.policy.parts import Approval
from licet.policy.patterns import WORKDIR
from licet.policy.rule import Rule
from licet.units import show_limit

STAND_IN = "/(workdir)"
"""A directory that no path leads to: it stands for that of a run, whichever it will be."""


def listed(items: Iterable[str]) -> str:
    """`a, b and c`; `nothing` for none."""
    names = list(items)
    if len(names) < 2:
        return names[0] if names else "nothing"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def quoted(items: Iterable[str]) -> str:
    """The same, each in backticks."""
    return listed(f"`{item}`" for item in items)


def target(text: str | None, base: str | None = None) -> str:
    """A canonical target as people write it: paths below `base` relative to it, and `workdir` by its word."""
    if text is None:
        return ""
    if text.startswith("/") and paths.contains(STAND_IN, text):
        return WORKDIR + text.removeprefix(STAND_IN)
    if base and base != "/" and text.startswith("/") and paths.contains(base, text):
        return f".{text.removeprefix(base)}"
    return text


def approval(demand: Approval) -> str:
    """One approval that is demanded, with all that it says: `2 human persons of finance within 24 h`."""
    told = [f"{demand} within {show_limit('wall_time', demand.expires)}"] if demand.expires else [str(demand)]
    if demand.unattended == "queue":
        told.append("queued where nobody is there")
    return ", ".join(told)


def condition(rule: Rule) -> str:
    """When a rule applies: `always`, or its clauses as they were written."""
    told = []
    for clause in CLAUSES:
        texts = [leaf.text for leaf in rule.condition.leaves if leaf.clause == clause]
        if texts:
            told.append(f"{clause} {quoted(texts)}")
    return " ".join(told) or "always"


def effects(rule: Rule) -> Sequence[str]:
    """What a rule does while it applies, one text each."""
    told = []
    if rule.deny:
        told.append(f"denies {quoted(entry.text for entry in rule.deny)}")
    if rule.ask:
        asked = f"asks before {quoted(entry.text for entry in rule.ask)}"
        told.append(asked + (f" ({approval(rule.approval)})" if rule.approval else ""))
    elif rule.approval:
        told.append(f"demands {approval(rule.approval)} of whatever asks")
    told += [f"limits {name} to {show_limit(name, value)}" for name, value in rule.limits.stated().items()]
    told += [f"requires {control} {level}" for control, level in rule.sandbox.require.items()]
    if rule.sandbox.evidence is not None:
        told.append(f"asks for {rule.sandbox.evidence} evidence")
    if rule.sandbox.only is not None:
        told.append(f"admits only {listed(rule.sandbox.only)}")
    if rule.sandbox.warm is not None:
        told.append("has nothing take part that was started before")
    if rule.audit.mode is not None:
        told.append(f"has the trail {rule.audit.mode}")
    if rule.audit.content is not None:
        told.append(f"records content as {rule.audit.content}")
    return told


def sentence(rule: Rule) -> str:
    """A rule in one line."""
    return f"{'; '.join(effects(rule))}, {condition(rule)}"


def glob_covers(outer: str, inner: str) -> bool:
    """Whether a name or pattern of tools matches all of another one."""
    return fnmatch.fnmatchcase(inner, outer)
