"""The form of what the screen knows about names: rules over dotted paths.

Rules this module keeps:

- a path is the full name of a thing (`os.path.exists`, `builtins.open`); `x()` stands for an instance of
  the class `x`, and `x.*` for the members of `x` that have no rule of their own;
- the nearest rule decides: the path's own, else that of the closest ancestor that states one for members;
- no rule means nothing to object to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from licet.request import Action

Reader = Literal[
    "none", "path", "directory", "self", "pattern", "mode", "self_mode", "url", "host", "address"
]
"""How the target of an effect is read from a call: not at all, a path, a directory (the
current one if none is passed), the object the method is called on,
a glob pattern, a path with an open mode (of the object, for `self_mode`), a URL, a host with the port in
the next argument, or a `(host, port)` pair."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One action that a call performs, and where in its arguments the target is."""

    action: Action
    reader: Reader = "none"
    position: int = 0
    keyword: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a use of a name means.

    `effects` are intents. `violation` is a code of refusal; `unless` names a check of the call that lifts it
    (see `licet.screen.exemptions`). A rule with neither says that the name is harmless.
    """

    effects: tuple[Effect, ...] = ()
    violation: str = ""
    unless: str = ""


HARMLESS = Rule()


def words(text: str) -> frozenset[str]:
    """Return the words of a text: how the tables write sets of names."""
    return frozenset(text.split())


def nearest(rules: Mapping[str, Rule], path: str) -> Rule | None:
    """Return the rule that decides `path`, or None."""
    rule = rules.get(path)
    if rule is not None:
        return rule
    parent = path
    while (cut := parent.rfind(".")) > 0:
        parent = parent[:cut]
        rule = rules.get(parent + ".*")
        if rule is not None:
            return rule
    return None
