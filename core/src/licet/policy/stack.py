"""The resolved policy: one root that grants, bounds that only restrict, and what both say together.

Rules this module keeps:

- a stack is immutable and has one digest; documents are never merged across it;
- rules that apply to a request join its stack for that request, and combine like bounds;
- limits combine by minimum, requirements and evidence by maximum, `only` by intersection, `deny` lists by
  union; `refuse`, `required`, `digest` and `learn: false` win; the rest is the root's;
- a bound with `mode: dry_run` decides nothing, and is kept apart to be rehearsed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

from licet.contract import Control, Evidence, Level, strongest
from licet.environments.python import PythonWish
from licet.policy.document import PolicyDocument
from licet.policy.rule import Rule
from licet.policy.signatures import Signature
from licet.request import DEFAULT_LIMITS, Limits
from licet.surroundings import Clock, Randomness

if TYPE_CHECKING:
    from licet.policy.rulebook import Rulebook


@dataclass(frozen=True, eq=False)
class PolicyStack:
    """What decides: `root` grants, `bounds` restrict, `sealed` is never granted.

    `sealed` holds canonical paths: the state directory, keys, every loaded policy file and the managed
    directory. `hits` are the rules that apply to the request at hand; a stack that was loaded has none yet.
    `rehearsed` are the bounds that are evaluated and decide nothing. `sources` has the SHA-256 of the bytes
    of each file that was read, by the name that documents carry as `file`. `stale` says why newer text of
    these files is not in force, where there is some. `managed` are the files of bounds that an administrator
    set.
    """

    root: PolicyDocument
    bounds: tuple[PolicyDocument, ...] = ()
    sealed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    hits: tuple[Rule, ...] = ()
    rehearsed: tuple[PolicyDocument, ...] = ()
    loaded: PolicyStack | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    stale: str | None = None
    managed: tuple[str, ...] = ()

    @property
    def documents(self) -> tuple[PolicyDocument, ...]:
        """All documents that decide, root first."""
        return (self.root, *self.bounds)

    @cached_property
    def has_rules(self) -> bool:
        """Whether any document that decides has one."""
        return any(document.rules for document in self.documents)

    @cached_property
    def rulebook(self) -> Rulebook:
        """Every rule of every document that decides."""
        from licet.policy.rulebook import Rulebook  # conditions cost a run without rules nothing

        return Rulebook(rule for document in self.documents for rule in document.rules)

    def applying(self, hits: tuple[Rule, ...]) -> PolicyStack:
        """This stack for a request to which the rules `hits` apply."""
        return _applying(self, hits) if hits else self

    @cached_property
    def rehearsals(self) -> tuple[tuple[PolicyDocument, PolicyStack], ...]:
        """For each rehearsed bound, this stack as it would be if that bound decided too."""
        return tuple(
            (bound, replace(self, bounds=(*self.bounds, bound), rehearsed=(), loaded=self))
            for bound in self.rehearsed
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 over what the documents say; comments, layout and licet's own paths are no part of it.

        So one policy has one digest, in whatever directory it is used, and whatever rules apply to a run.
        """
        if self.loaded is not None:
            return self.loaded.digest
        bounds = sorted({_content(bound) for bound in (*self.bounds, *self.rehearsed)})
        text = json.dumps([_content(self.root), bounds])
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def opens_unasked(self) -> bool:
        """Whether anything is opened to a run that lists no intents; what it calls is looked at by itself."""
        return any(entry.action not in ("run", "tool") for entry in self.root.allow)

    @cached_property
    def limits(self) -> Limits:
        """The limit in force for each name: the root's or the default, lowered by every bound and rule."""
        names: dict[str, float | int] = {**DEFAULT_LIMITS.stated(), **self.root.limits.stated()}
        for part in self._tightening[1:]:
            for name, value in part.limits.stated().items():
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
        return strongest(part.sandbox.require for part in self._tightening)

    @cached_property
    def evidence(self) -> Evidence:
        """The strongest evidence that any document or rule asks for; a silent root asks for `probed`."""
        asked = [self.root.sandbox.evidence or Evidence.probed]
        asked += [p.sandbox.evidence for p in self._tightening[1:] if p.sandbox.evidence is not None]
        return max(asked, key=lambda item: item.rank)

    @cached_property
    def only(self) -> frozenset[str] | None:
        """The backends that every document and rule admits; None means all."""
        sets = [frozenset(p.sandbox.only) for p in self._tightening if p.sandbox.only is not None]
        return frozenset.intersection(*sets) if sets else None

    @property
    def prefer(self) -> tuple[str, ...]:
        """The root's ranking of backends."""
        return self.root.sandbox.prefer

    @cached_property
    def warm(self) -> bool:
        """Whether what was started before a run may take part in it: unless any document or rule says no."""
        return all(p.sandbox.warm is not False for p in self._tightening)

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
        """`best_effort` only if the root says so and no bound or rule says `required`."""
        modes = [part.audit.mode for part in self._tightening]
        return "best_effort" if modes[0] == "best_effort" and "required" not in modes else "required"

    @cached_property
    def content_mode(self) -> Literal["digest", "kept"]:
        """`kept` only if the root says so and no bound or rule says `digest`."""
        modes = [part.audit.content for part in self._tightening]
        return "kept" if modes[0] == "kept" and "digest" not in modes else "digest"

    @property
    def may_learn(self) -> bool:
        """Whether the root lets a run collect what it would need, and no bound says `learn: false`."""
        return self.root.learn is True and all(bound.learn is not False for bound in self.bounds)

    @property
    def clock(self) -> Clock:
        """The clock that code reads: the root's word, or the real one."""
        return self.root.clock or "real"

    @property
    def random(self) -> Randomness:
        """Where the random bytes of code come from: the root's word, or unpredictable ones."""
        return self.root.random or "real"

    @property
    def python(self) -> PythonWish | None:
        """Which interpreter and packages code is given: the root's word, or None for the default ones."""
        return self.root.python

    @property
    def tools(self) -> Mapping[str, Signature]:
        """The signatures that the root declares of its tools; a bound's are a list of what may be called."""
        return self.root.tools or {}

    @property
    def name(self) -> str:
        """How cards call this policy: the file's name and the first digits of the digest."""
        return f"{self.root.file.rpartition('/')[2]}@{self.digest.removeprefix('sha256:')[:4]}"

    @cached_property
    def _tightening(self) -> tuple[PolicyDocument | Rule, ...]:
        """All that settings combine over, root first."""
        return (*self.documents, *self.hits)


@lru_cache(maxsize=256)
def _applying(stack: PolicyStack, hits: tuple[Rule, ...]) -> PolicyStack:
    return replace(stack, hits=hits, loaded=stack.loaded or stack)


def digest_of(document: PolicyDocument) -> str:
    """SHA-256 over what one document says, after `extends`, in the sense of `PolicyStack.digest`."""
    return "sha256:" + hashlib.sha256(_content(document).encode()).hexdigest()


def _content(document: PolicyDocument) -> str:
    """All that a document says, in one spelling; order and repetition go where they mean nothing."""
    apart = {"file", "places", "allow", "ask", "deny", "extends", "within", "rules", "tools", "python"}
    plain = document.model_dump(mode="json", exclude=apart)
    for effect, entries in (("allow", document.allow), ("ask", document.ask), ("deny", document.deny)):
        plain[effect] = sorted({entry.spelled for entry in entries})
    plain["screen"]["modules"]["deny"] = sorted(set(document.screen.modules.deny))
    if document.sandbox.only is not None:
        plain["sandbox"]["only"] = sorted(set(document.sandbox.only))
    plain["rules"] = sorted((rule.content() for rule in document.rules), key=lambda content: content["id"])
    plain["tools"] = document.tools and {name: str(one) for name, one in document.tools.items()}
    if document.python is not None:
        plain["python"] = document.python.content()
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))
