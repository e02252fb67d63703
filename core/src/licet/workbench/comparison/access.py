"""What two policies differ in of what code may do, at every target that either of them names.

Rules this module keeps:

- both are asked the very question that decides a run, before any rule applies; no text is compared;
- a target inside another one that changed in the same way is not told again;
- licet's own paths are no part of a policy, so that one policy in two places is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from licet.errors import Position
from licet.hosts import ANY, PRIVATE
from licet.policy import PolicyStack
from licet.request import ACTIONS, TARGETLESS, Action, Intent
from licet.rules import Rules, Vote, includes
from licet.workbench import words
from licet.workbench.comparison.changes import Change, Direction, turn_of_demands
from licet.workbench.samples import samples

_ACT: Mapping[Action, tuple[str, str]] = {
    "run": ("run", "running"),
    "read": ("read {}", "reading {}"),
    "write": ("write {}", "writing {}"),
    "network": ("reach {}", "reaching {}"),
    "shell": ("start other programs", "starting other programs"),
    "tool": ("call {}", "calling {}"),
}
_WIDE = {ANY: "any public host", PRIVATE: "any private host"}


@dataclass(frozen=True, slots=True)
class _Turn:
    """The answers of both at one target; two are equal if they turn in the same way."""

    before: Vote
    after: Vote

    @property
    def key(self) -> tuple[object, ...]:
        """All of it that matters."""
        return self.before.effect, _demanded(self.before), self.after.effect, _demanded(self.after)

    @property
    def changed(self) -> bool:
        """Whether they differ in anything that matters."""
        return self.key[:2] != self.key[2:]


def _demanded(vote: Vote) -> frozenset[object]:
    return frozenset(vote.demands) if vote.effect == "ask" else frozenset()


def access(old: PolicyStack, new: PolicyStack, base: str | None = None) -> Iterator[Change]:
    """The changes of what may be done; paths below `base` are shown relative to it."""
    before, after = (Rules.of(replace(stack, sealed=()), words.STAND_IN) for stack in (old, new))
    documents = (*old.documents, *new.documents)
    for action in ACTIONS:
        turns = {
            target: _Turn(before.vote(Intent(action, target)), after.vote(Intent(action, target)))
            for target in samples(documents, action)
        }
        for target, turn in turns.items():
            if turn.changed and not _told_around(action, target, turns):
                yield _change(action, target, turn, base)


def _told_around(action: Action, target: str | None, turns: Mapping[str | None, _Turn]) -> bool:
    """Whether all that lies closest around a target turns in the same way."""
    if action in TARGETLESS:
        return False
    around = [other for other in turns if other != target and _contains(action, other, target)]
    closest = [o for o in around if not any(n != o and _contains(action, o, n) for n in around)]
    return bool(closest) and all(turns[other].key == turns[target].key for other in closest)


def _contains(action: Action, outer: str | None, inner: str | None) -> bool:
    if action == "tool":
        return outer is not None and inner is not None and words.glob_covers(outer, inner)
    return includes(Intent(action, outer), Intent(action, inner))


def _change(action: Action, target: str | None, turn: _Turn, base: str | None) -> Change:
    shown = _WIDE.get(target or "", "") if action == "network" else ""
    shown = shown or words.target(target, base)
    may, doing = (text.format(shown) for text in _ACT[action])
    before, after = turn.before.effect, turn.after.effect
    asked = words.listed(sorted(map(words.approval, turn.after.demands)))
    which: Direction = "other"
    if before == "deny":
        which, text = "looser", f"may now {may}" + (f", if approved by {asked}" if after == "ask" else "")
    elif after == "deny":
        which, text = "tighter", f"may no longer {may}" + (", approved or not" if before == "ask" else "")
    elif after == "allow":
        which, text = "looser", f"no longer asks before {doing}"
    elif before == "allow":
        which, text = "tighter", f"now asks {asked} before {doing}"
    else:
        once = words.listed(sorted(map(words.approval, turn.before.demands)))
        which = turn_of_demands(turn.before.demands, turn.after.demands)
        text = f"asks {asked} instead of {once} before {doing}"
    return Change(action, which, text, _where(turn), before, after)


def _where(turn: _Turn) -> Position | None:
    """The place that makes it so: in the newer policy, or in the older one if that has no line for it."""
    for vote in (turn.after, turn.before):
        if vote.by and vote.by[0].line:
            return Position(vote.by[0].document, vote.by[0].line)
    return None
