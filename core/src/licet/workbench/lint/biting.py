"""Rules that could never change a decision: what they do is done already, or by another rule.

Rules this module keeps:

- a rule is asked part by part: each entry and each setting is idle or not, and says because of what;
- a rule of which every part is idle in its own document is an error, an idle part of another one a warning;
- beside the document, only the root's rules are held against the bounds in force: a bound is written for
  roots that are not there yet;
- where the working directory decides, only a run can tell, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from licet.contract import Evidence
from licet.policy import Pattern, PolicyDocument, PolicyStack
from licet.policy.rule import Rule
from licet.request import ACTIONS, DEFAULT_LIMITS, Action, Intent
from licet.rules import Rules
from licet.units import show_limit
from licet.workbench.lint.findings import Finding
from licet.workbench.samples import EVERYTHING, entries_of, inside, samples
from licet.workbench.words import STAND_IN, listed


@dataclass(frozen=True, slots=True)
class _Part:
    """One thing that a rule does; `idle` is why it changes nothing, None if it can."""

    text: str
    idle: str | None


def idle(stack: PolicyStack) -> Iterator[Finding]:
    """The rules of every document that can't bite, and the parts of rules that can't."""
    for document in (*stack.documents, *stack.rehearsed):
        surely = _Surroundings.of(document, root=document is stack.root)
        around = _Surroundings(stack, stack.root, True) if document is stack.root and stack.bounds else None
        for rule in document.rules:
            parts = list(surely.parts(rule))
            if all(part.idle for part in parts):
                yield _idle_rule(rule, parts)
                continue
            yield from (_idle_part(rule, part) for part in parts if part.idle)
            if around is not None:
                under = list(around.parts(rule))
                if all(part.idle for part in under):
                    yield _idle_here(rule, under)
    if not _asks(stack):
        yield from (_nothing_asks(rule) for d in stack.documents for rule in d.rules if _only_demands(rule))


def _asks(stack: PolicyStack) -> bool:
    return any(document.ask or any(rule.ask for rule in document.rules) for document in stack.documents)


def _only_demands(rule: Rule) -> bool:
    return rule.approval is not None and not rule.ask


@dataclass(frozen=True)
class _Surroundings:
    """What a rule is held against: one document by itself, or a whole stack."""

    stack: PolicyStack
    document: PolicyDocument
    root: bool

    @classmethod
    def of(cls, document: PolicyDocument, *, root: bool) -> _Surroundings:
        """One document alone; a bound is put around a root that allows everything."""
        if root:
            return cls(PolicyStack(document), document, True)
        return cls(PolicyStack(EVERYTHING, (document,)), document, False)

    @cached_property
    def _rules(self) -> Rules:
        return Rules.of(self.stack, STAND_IN)

    @cached_property
    def _samples(self) -> Mapping[Action, tuple[str | None, ...]]:
        documents = self.stack.documents
        return {action: samples(documents, action) for action in ACTIONS}

    @cached_property
    def _workdir(self) -> Mapping[Action, bool]:
        """Whether the working directory of a run decides."""
        documents = self.stack.documents
        return {action: any(one.names_workdir for one in entries_of(documents, action)) for action in ACTIONS}

    def parts(self, rule: Rule) -> Iterator[_Part]:
        """What a rule does, each part with why it is idle here."""
        for entry in rule.entries:
            yield _Part(f"{entry.effect}: {entry.text}", self._entry(rule, entry))
        for name, value in rule.limits.stated().items():
            lowest = self._limit(name)
            at_most = lowest is not None and value >= lowest
            why = f"{name} is {show_limit(name, lowest)} already" if at_most and lowest else None
            yield _Part(f"limits.{name}", why)
        yield from self._demanded_of_sandbox(rule)
        if rule.audit.mode is not None:
            yield _Part("audit.mode", self._word("mode", "best_effort", "required"))
        if rule.audit.content is not None:
            yield _Part("audit.content", self._word("content", "kept", "digest"))
        if _only_demands(rule):
            yield _Part("approval", None)

    def _demanded_of_sandbox(self, rule: Rule) -> Iterator[_Part]:
        required = self.stack.requirements if self.root else self.document.sandbox.require
        for control, level in rule.sandbox.require.items():
            known = required.get(control)
            strong = known is not None and known.rank >= level.rank
            yield _Part(f"require {control}", f"it is required as {known} already" if strong else None)
        if (asked := rule.sandbox.evidence) is not None:
            stated = self.stack.evidence if self.root else self.document.sandbox.evidence
            known_evidence = stated or Evidence.declared
            enough = known_evidence.rank >= asked.rank
            yield _Part("evidence", f"{known_evidence} is asked for already" if enough else None)
        if rule.sandbox.only is not None:
            only = self.stack.only if self.root else self.document.sandbox.only
            narrow = only is not None and set(only) <= set(rule.sandbox.only)
            yield _Part("only", f"only {listed(sorted(only or ()))} is admitted already" if narrow else None)
        if rule.sandbox.warm is not None:
            cold = self.stack.warm is False if self.root else self.document.sandbox.warm is False
            yield _Part("warm", "nothing that was started before takes part anyway" if cold else None)

    def _limit(self, name: str) -> float | int | None:
        if not self.root:
            return self.document.limits.stated().get(name)
        return self.stack.limits.stated().get(name, DEFAULT_LIMITS.stated().get(name))

    def _word(self, name: str, weak: str, strong: str) -> str | None:
        if self.root:
            known: str = self.stack.audit_mode if name == "mode" else self.stack.content_mode
        else:
            known = getattr(self.document.audit, name) or weak
        return f"it is {strong} already" if known == strong else None

    def _entry(self, rule: Rule, entry: Pattern) -> str | None:
        """Why an entry of a rule changes nothing: its targets are denied, or asked about just so, anyway."""
        if entry.names_workdir or self._workdir[entry.action]:
            return _said_so(entry, self.document)
        targets = inside(entry, self._samples[entry.action])
        votes = [self._rules.vote(Intent(entry.action, target)) for target in targets]
        if all(vote.effect == "deny" for vote in votes):
            return f"it is denied anyway: {votes[0].reason}"
        if entry.effect == "ask":
            same = (
                asked
                for document in self.stack.documents
                for asked in document.ask
                if asked.spelled == entry.spelled and document.demands == rule.approval
            )
            return next((f"{one.where} asks about it just so anyway" for one in same), None)
        return None


def _said_so(entry: Pattern, document: PolicyDocument) -> str | None:
    cover = next((denial for denial in document.deny if denial.shadows(entry)), None)
    return f"it is denied anyway: {cover.where} denies `{cover.text}`" if cover else None


def _because(parts: list[_Part]) -> str:
    told = dict.fromkeys(f"`{part.text}`: {part.idle}" for part in parts)
    return "; ".join(told) or "it restricts nothing"


def _idle_rule(rule: Rule, parts: list[_Part]) -> Finding:
    return Finding(
        "error",
        "idle-rule",
        rule.where,
        f"the rule `{rule.id}` can never change anything ({_because(parts)})",
        "allow at the top of the document what it restricts, make it stricter, or take it out",
    )


def _idle_part(rule: Rule, part: _Part) -> Finding:
    return Finding(
        "warning",
        "idle-part",
        rule.where,
        f"`{part.text}` of the rule `{rule.id}` changes nothing: {part.idle}",
        "make it stricter, or take it out",
    )


def _idle_here(rule: Rule, parts: list[_Part]) -> Finding:
    return Finding(
        "warning",
        "idle-under-bounds",
        rule.where,
        f"the rule `{rule.id}` changes nothing under the bounds in force ({_because(parts)})",
        "leave it for the day when the bounds change, or take it out",
    )


def _nothing_asks(rule: Rule) -> Finding:
    return Finding(
        "warning",
        "idle-approval",
        rule.where,
        f"the rule `{rule.id}` demands an approval, and no entry or rule ever asks",
        "give it an `ask`",
    )
