"""The resolved policy: one root that grants, bounds that only restrict, and what both say together.

Rules this module keeps:

- a stack is immutable and has one digest; documents are never merged across it;
- limits combine by minimum, requirements and evidence by maximum, `only` by intersection, `deny` lists by
  union; `refuse`, `required` and `digest` win; the rest is the root's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from licet.contract import Control, Evidence, Level
from licet.policy.document import PolicyDocument
from licet.policy.patterns import Pattern
from licet.request import DEFAULT_LIMITS, Limits


@dataclass(frozen=True, eq=False)
class PolicyStack:
    """What decides: `root` grants, `bounds` restrict, `sealed` is never granted.

    `sealed` holds canonical paths: the state directory, keys, every loaded policy file and the managed
    directory. `sources` has the SHA-256 of the bytes of each file that was read, by the name that documents
    carry as `file`. `stale` says why newer text of these files is not in force, where there is some.
    """

    root: PolicyDocument
    bounds: tuple[PolicyDocument, ...] = ()
    sealed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    stale: str | None = None

    @property
    def documents(self) -> tuple[PolicyDocument, ...]:
        """All documents, root first."""
        return (self.root, *self.bounds)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over what the documents say; comments, layout and licet's own paths are no part of it.

        So one policy has one digest, in whatever directory it is used.
        """
        bounds = sorted({_content(bound) for bound in self.bounds})
        text = json.dumps([_content(self.root), bounds])
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def names_workdir(self) -> bool:
        """Whether the path word `workdir` stands in any document."""
        return any(document.names_workdir for document in self.documents)

    @cached_property
    def limits(self) -> Limits:
        """The limit in force for each name: the root's or the default, lowered by every bound."""
        names: dict[str, float | int] = {**DEFAULT_LIMITS.stated(), **self.root.limits.stated()}
        for bound in self.documents[1:]:
            for name, value in bound.limits.stated().items():
                names[name] = min(value, names.get(name, value))
        return Limits(**names)

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """The root's variables that every bound lets through; `pass` stands for the host's value."""
        kept = dict(self.root.env or {})
        for bound in self.documents[1:]:
            if bound.env is not None:
                kept = {name: value for name, value in kept.items() if name in bound.env}
        return kept

    @cached_property
    def requirements(self) -> Mapping[Control, Level]:
        """What `sandbox.require` asks, by maximum."""
        asked: dict[Control, Level] = {}
        for document in self.documents:
            for control, level in document.sandbox.require.items():
                asked[control] = max(level, asked.get(control, level), key=lambda item: item.rank)
        return asked

    @cached_property
    def evidence(self) -> Evidence:
        """The strongest evidence that any document asks for; `probed` if none says."""
        asked = [d.sandbox.evidence for d in self.documents if d.sandbox.evidence is not None]
        return max(asked, key=lambda item: item.rank, default=Evidence.probed)

    @cached_property
    def only(self) -> frozenset[str] | None:
        """The backends that every document admits; None means all."""
        sets = [frozenset(d.sandbox.only) for d in self.documents if d.sandbox.only is not None]
        return frozenset.intersection(*sets) if sets else None

    @property
    def prefer(self) -> tuple[str, ...]:
        """The root's ranking of backends."""
        return self.root.sandbox.prefer

    @property
    def screen_mode(self) -> Literal["refuse", "report"]:
        """`report` only if the root says so and no bound says `refuse`."""
        modes = [d.screen.mode for d in self.documents]
        return "report" if modes[0] == "report" and "refuse" not in modes else "refuse"

    @cached_property
    def denied_modules(self) -> frozenset[str]:
        """Modules that any document denies to the screen."""
        return frozenset(name for d in self.documents for name in d.screen.modules.deny)

    @property
    def audit_mode(self) -> Literal["required", "best_effort"]:
        """`best_effort` only if the root says so and no bound says `required`."""
        modes = [d.audit.mode for d in self.documents]
        return "best_effort" if modes[0] == "best_effort" and "required" not in modes else "required"

    @property
    def content_mode(self) -> Literal["digest", "kept"]:
        """`kept` only if the root says so and no bound says `digest`."""
        modes = [d.audit.content for d in self.documents]
        return "kept" if modes[0] == "kept" and "digest" not in modes else "digest"

    @property
    def name(self) -> str:
        """How cards call this policy: the file's name and the first digits of the digest."""
        return f"{self.root.file.rpartition('/')[2]}@{self.digest.removeprefix('sha256:')[:4]}"


def _content(document: PolicyDocument) -> str:
    """All that a document says, in one spelling; order and repetition go where they mean nothing."""
    plain = document.model_dump(mode="json", exclude={"file", "allow", "ask", "deny", "extends", "within"})
    for effect, entries in (("allow", document.allow), ("ask", document.ask), ("deny", document.deny)):
        plain[effect] = sorted({_spelled(entry) for entry in entries})
    plain["screen"]["modules"]["deny"] = sorted(set(document.screen.modules.deny))
    if document.sandbox.only is not None:
        plain["sandbox"]["only"] = sorted(set(document.sandbox.only))
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _spelled(entry: Pattern) -> str:
    return json.dumps([entry.action, entry.target, sorted(set(entry.excepts))])
