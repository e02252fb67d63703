"""Entries of `allow`, `ask` and `deny`: which intents they match, and which other entries they cover.

Rules this module keeps:

- an entry reads `ACTION TARGET [except TARGET]...`, `run` and `shell` take no target;
- path targets are canonical from the moment they are read; `workdir` stands for the directory of the run,
  is bound to it later, and never climbs out of it;
- a port is mandatory in `allow` and `ask`; in `deny`, a missing one means every port;
- `network any` opens what is public and closes everything; a range opens no service that hands out the
  credentials of a machine, unless that is said.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
from dataclasses import dataclass, replace
from typing import Literal

from licet import hosts, paths
from licet.errors import InvalidPolicy, Position
from licet.request import ACTIONS, TARGETLESS, Action

Effect = Literal["allow", "ask", "deny"]
WORKDIR = "workdir"

_EXCEPT = re.compile(r"(?:^|\s+)except(?=\s|$)")
_TOOL = re.compile(r"[A-Za-z_*][A-Za-z0-9_*]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One entry. `target` and `excepts` are canonical; `text` is what the author wrote."""

    effect: Effect
    action: Action
    target: str | None
    excepts: tuple[str, ...]
    text: str
    where: Position

    @property
    def names_workdir(self) -> bool:
        """Whether the path word `workdir` stands in this entry."""
        return self.action in ("read", "write") and any(
            _is_workdir(target) for target in (self.target, *self.excepts)
        )

    @property
    def spelled(self) -> str:
        """What it says, in one spelling for all that say the same."""
        return json.dumps([self.action, self.target, sorted(set(self.excepts))])

    @property
    def resolved(self) -> tuple[tuple[str, str], ...]:
        """The paths in it, each as it was written and as it was read; without those that only a run knows."""
        if self.action not in ("read", "write") or self.target is None:
            return ()
        written = (part.strip() for part in _EXCEPT.split(self.text.strip().partition(" ")[2].strip()))
        pairs = zip(written, (self.target, *self.excepts), strict=True)
        return tuple(pair for pair in pairs if not _is_workdir(pair[1]))

    def bind(self, workdir: str) -> Pattern:
        """The same entry with `workdir` replaced by the directory of a run.

        Raises:
            InvalidPolicy: in that directory, the entry names no path that can be used.
        """
        if not self.names_workdir:
            return self
        try:
            bound = tuple(_bind(target, workdir) for target in self.excepts)
            return replace(self, target=_bind(self.target or "", workdir), excepts=bound)
        except ValueError as problem:
            raise InvalidPolicy(f"`{self.text}` can't be used here: {problem}", where=self.where) from None

    def covers(self, target: str | None) -> bool:
        """Whether this entry matches all of `target`, leaving out the excepted targets alone.

        A `target` of None (unknown) is covered only by an entry for everything.
        """
        if not self._target_covers(self.target, target):
            return False
        return not any(self._target_covers(out, target) for out in self.excepts)

    def shadows(self, other: Pattern) -> bool:
        """Whether every target of `other` is one of this, whatever the run."""
        if self.action != other.action or not self._target_covers(self.target, other.target):
            return False
        return all(
            any(self._target_covers(gap, out) for gap in other.excepts)
            or not self._overlaps(out, other.target)
            for out in self.excepts
        )

    def touches(self, target: str) -> bool:
        """Whether this entry and `target` share anything: one contains the other, or they meet."""
        return self._overlaps(self.target, target)

    def takes_out(self, target: str) -> bool:
        """Whether an `except` of this entry leaves out all of `target`."""
        return any(self._target_covers(gap, target) for gap in self.excepts)

    def _overlaps(self, mine: str | None, other: str | None) -> bool:
        if self.action == "network" and mine is not None and other is not None:
            return hosts.read_back(mine).meet(hosts.read_back(other)) is not None
        if self.action == "tool" and mine is not None and other is not None:
            return _globs_may_meet(mine, other)
        return self._target_covers(mine, other) or self._target_covers(other, mine)

    def _target_covers(self, mine: str | None, other: str | None) -> bool:
        if self.action in TARGETLESS:
            return True
        if mine is None or other is None:
            return mine is not None and self._is_everything(mine)
        if self.action == "network":
            return hosts.read_back(mine).covers(hosts.read_back(other))
        if self.action == "tool":
            return fnmatch.fnmatchcase(other, mine)
        return paths.contains(mine, other)

    def _is_everything(self, target: str) -> bool:
        return target == {"network": str(hosts.EVERYTHING), "tool": "*"}.get(self.action, "/")


network = hosts.read_back
"""Read a canonical network target back."""


def parse(text: str, effect: Effect, *, base: str, where: Position) -> Pattern:
    """Read one entry; relative paths are taken from the directory `base`.

    Raises:
        ValueError: the entry is malformed; the message says what was expected.
    """
    action, _, rest = text.strip().partition(" ")
    if action not in ACTIONS:
        raise ValueError(f"`{text}` begins with no action; write one of {', '.join(ACTIONS)}")
    target, *excepts = (part.strip() for part in _EXCEPT.split(rest.strip()))
    if action in TARGETLESS:
        if rest.strip():
            raise ValueError(f"`{action}` takes no target, found `{rest.strip()}`")
        return Pattern(effect, action, None, (), text, where)
    if not target:
        raise ValueError(f"`{action}` needs a target: {_EXAMPLES[action]}")
    if not all(excepts):
        raise ValueError(f"`{text}` says `except` and not what; a file of that name reads `./except`")
    canonical = _canonical(action, target, effect, base)
    gaps = tuple(_canonical(action, gap, "deny", base) for gap in excepts)
    entry = Pattern(effect, action, canonical, gaps, text, where)
    for gap, written in zip(gaps, excepts, strict=True):
        if not entry.touches(gap):
            raise ValueError(f"`except {written}` takes nothing away from `{target}`{_closed_anyway(entry)}")
        if entry.takes_out(canonical):
            raise ValueError(f"`except {written}` leaves nothing of `{target}`, so `{text}` says nothing")
    _refuse_hidden_credentials(entry)
    return entry


def denies_address(entry: Pattern, target: hosts.Endpoint) -> bool:
    """Whether an entry of `deny` closes an address, by whatever name one gets there.

    Entries for names and for everything say nothing of the addresses that names resolve to.
    """
    if entry.action != "network" or entry.target is None:
        return False
    return not network(entry.target).names and entry.covers(str(target))


def canonical_target(action: Action, target: str, *, base: str) -> str | None:
    """The canonical form of an intent's target; a relative path is taken from `base`.

    Raises:
        ValueError: the action takes no target, needs one, or this is none.
    """
    if action in TARGETLESS:
        if target:
            raise ValueError(f"`{action}` takes no target, found `{target}`")
        return None
    if action == "network":
        return _canonical_host(target)
    if action == "tool":
        if not target.isidentifier():
            raise ValueError(f"`{target}` is no name of a tool")
        return target
    return _path(target, base)


def _canonical(action: Action, target: str, effect: Effect, base: str) -> str:
    if action == "network":
        if effect == "deny" and target == hosts.ANY:
            return str(hosts.EVERYTHING)
        return str(hosts.endpoint(target, patterns=True, port_optional=effect == "deny"))
    if action == "tool":
        if not _TOOL.fullmatch(target):
            raise ValueError(f"`{target}` is no name of a tool, or pattern with `*`")
        return target
    return _below_workdir(target) if _is_workdir(target) else _path(target, base)


def _canonical_host(target: str) -> str:
    try:
        found = network(target)  # what later stages read too, so that it is read once
        if not found.many and str(found) == target:
            return target
    except ValueError:
        pass
    return str(hosts.endpoint(target, patterns=target in (hosts.ANY, hosts.PRIVATE)))


def _closed_anyway(entry: Pattern) -> str:
    if entry.target != hosts.ANY:
        return ""
    return ": `any` opens public hosts alone, as far as no other entry names one that is not"


def _refuse_hidden_credentials(entry: Pattern) -> None:
    """A range that opens a metadata service has to say so, or to leave it out."""
    if entry.action != "network" or entry.effect == "deny" or entry.target is None:
        return
    for service in hosts.metadata_in(network(entry.target)):
        if not entry.takes_out(str(service)):
            raise ValueError(
                f"`{entry.text}` would open `{service.host}`, where a cloud hands out credentials; "
                f"write `{entry.text} except {service}`, and name that address alone if it is meant"
            )


def _below_workdir(target: str) -> str:
    plain = posixpath.normpath(target)
    if "\0" in target:
        raise ValueError(f"the path `{target}` can't be used: it holds a NUL byte")
    if not _is_workdir(plain):
        raise ValueError(f"the path `{target}` can't be used: it climbs out of the directory of the run")
    return plain


def _path(target: str, base: str) -> str:
    try:
        return paths.canonical(target, base=base)
    except ValueError as problem:
        raise ValueError(f"the path `{target}` can't be used: {problem}") from None


def _is_workdir(target: str | None) -> bool:
    return target is not None and (target == WORKDIR or target.startswith(WORKDIR + "/"))


def _bind(target: str, workdir: str) -> str:
    if not _is_workdir(target):
        return target
    return paths.canonical(target.removeprefix(WORKDIR).lstrip("/") or ".", base=workdir)


def _globs_may_meet(left: str, right: str) -> bool:
    """Whether some name may match both; says yes too often, never too seldom."""
    if "*" not in left or "*" not in right:
        return fnmatch.fnmatchcase(left, right) or fnmatch.fnmatchcase(right, left)
    head, other_head = left.partition("*")[0], right.partition("*")[0]
    tail, other_tail = left.rpartition("*")[2], right.rpartition("*")[2]
    return (head.startswith(other_head) or other_head.startswith(head)) and (
        tail.endswith(other_tail) or other_tail.endswith(tail)
    )


_EXAMPLES: dict[Action, str] = {
    "read": "`read ./data`",
    "write": "`write ./out`",
    "network": "`network api.example.com:443`",
    "tool": "`tool find_order`",
}
