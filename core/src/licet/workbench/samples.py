"""Targets at which the answers of policies can differ: enough of them to stand for all.

Rules this module keeps:

- between two targets that entries name, no answer changes (`licet.rules.Rules.points`); what two patterns
  share is named by none of them, and is a sample of its own;
- a sample is a target, or a pattern that stands for each target that no narrower one names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from licet.errors import Position
from licet.hosts import ANY, PRIVATE, with_meets
from licet.hosts import EVERYTHING as EVERYTHING_THERE_IS
from licet.policy.document import PolicyDocument
from licet.policy.patterns import Pattern, network, parse
from licet.policy.rule import Rule
from licet.request import TARGETLESS, Action
from licet.workbench.words import STAND_IN

_WHOLE: Mapping[Action, frozenset[str]] = {
    "read": frozenset("/"),
    "write": frozenset("/"),
    "network": frozenset((ANY, PRIVATE)),
    "tool": frozenset("*"),
}

_NOWHERE = Position("everything")
EVERYTHING = PolicyDocument.model_construct(
    licet=1,
    file="everything",
    allow=tuple(
        parse(text, "allow", base="/", where=_NOWHERE)
        for text in ("read /", "write /", "network any", "network private", "shell", "tool *")
    ),
)
"""A root that allows everything, to put bounds around that are looked at by themselves."""


def entries_of(parts: Iterable[PolicyDocument | Rule], action: Action) -> list[Pattern]:
    """All entries of `parts` about one action."""
    return [entry for part in parts for entry in part.entries if entry.action == action]


def samples(parts: Iterable[PolicyDocument | Rule], action: Action) -> tuple[str | None, ...]:
    """Samples for all that `parts` say of `action`; None alone if it takes no target.

    `workdir` is the stand-in for it.
    """
    if action in TARGETLESS:
        return (None,)
    parts = tuple(parts)
    named = {
        target
        for entry in (entry.bind(STAND_IN) for entry in entries_of(parts, action))
        for target in (entry.target, *entry.excepts)
        if target is not None
    }
    named |= _WHOLE[action]
    if action == "network":
        hosts = with_meets(map(network, named)) - {EVERYTHING_THERE_IS}  # its two halves stand for it
        return tuple(sorted(map(str, hosts)))
    if action == "tool":
        named |= {name for part in parts if isinstance(part, PolicyDocument) for name in part.tools or ()}
        return tuple(sorted(_with_shared_names(named)))
    return tuple(sorted(named))


def inside(entry: Pattern, known: Iterable[str | None]) -> tuple[str | None, ...]:
    """The samples that `entry` matches, itself among them; `known` are those of all the others."""
    if entry.target is None:
        return (None,)
    found = dict.fromkeys((entry.target, *known, *_shared(entry, known)))
    return tuple(sample for sample in found if entry.covers(sample))


def _shared(entry: Pattern, known: Iterable[str | None]) -> Iterator[str]:
    """What the target of an entry has in common with other samples, and neither names."""
    assert entry.target is not None
    for sample in known:
        if sample is None:
            continue
        if entry.action == "network":
            if (meet := network(entry.target).meet(network(sample))) is not None:
                yield str(meet)
        elif entry.action == "tool" and "*" in entry.target:
            yield from _with_shared_names({entry.target, sample})


def _with_shared_names(globs: set[str]) -> set[str]:
    """Names that several globs match: the head of one with the tail of another, and what stands between."""
    shared = {glob.replace("*", "") for glob in globs}
    for one in globs:
        for other in globs:
            if "*" in one and "*" in other:
                shared.add(one.partition("*")[0] + other.rpartition("*")[2])
    return globs | {name for name in shared if name.isidentifier()}
