"""The text of a new policy, from what its author wishes.

Rules this module keeps:

- what is written loads: each answer is read by the very parsers that read policies, before it is taken;
- nothing is opened that was not wished for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from licet import units
from licet.errors import Position
from licet.policy.patterns import parse
from licet.policy.signatures import KINDS
from licet.request import Action
from licet.workbench.schema import EDITOR_LINE
from licet.workbench.yamltext import scalar


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a new policy is to say: its `name`, the `pack` it starts from, entries of `allow`, and bounds.

    `limits` are texts by name, as in `{"memory": "256MiB"}`. `editor` puts the line for editors on top.
    """

    name: str
    pack: str
    allow: Sequence[str] = ()
    limits: Sequence[tuple[str, str]] = ()
    within: Sequence[str] = ()
    editor: bool = True


def entry(action: Action, target: str, base: str) -> str:
    """One entry of `allow`; relative paths are taken from `base`.

    Raises:
        ValueError: it is none; the message says what was expected.
    """
    text = f"{action} {target}".strip()
    parse(text, "allow", base=base, where=Position("answer"))
    return text


def duration(text: str) -> str:
    """A duration as it was written; raises `ValueError` for anything else."""
    units.duration(text)
    return text


def size(text: str) -> str:
    """A size as it was written; raises `ValueError` for anything else."""
    units.size(text)
    return text


def text(wishes: Wishes) -> str:
    """A small policy with comments."""
    lines = [EDITOR_LINE] if wishes.editor else []
    lines += ["licet: 1", f"name: {scalar(wishes.name)}"]
    lines.append(f"extends: {wishes.pack}  # what it starts from; `licet policy show {wishes.pack}` tells it")
    if wishes.within:
        lines.append("within:  # each has to permit too")
        lines += _items(wishes.within)
    if wishes.allow:
        lines.append("allow:  # what nothing allows is denied")
        lines += _items(wishes.allow)
    else:
        lines.append("# allow: [read ./data, write ./out, network api.example.com:443]")
    lines.append("# ask: [write ./out/final]  # needs an approval; beats `allow`")
    lines.append("# deny: [read ./data/secrets]  # beats both")
    stated = ", ".join(f"{name}: {scalar(value, flow=True)}" for name, value in wishes.limits)
    lines.append(f"limits: {{{stated}}}" if stated else "# limits: {wall_time: 10s, memory: 128MiB}")
    named = [one.removeprefix("tool ") for one in wishes.allow if one.startswith("tool ")]
    if named:
        lines.append(
            f"# tools: {{{named[0].rstrip('*') or 'f'}: {{amount: {KINDS[2]}}}}}  # what a tool takes"
        )
    return "\n".join((*lines, ""))


def _items(texts: Iterable[str]) -> list[str]:
    return [f"  - {scalar(one)}" for one in texts]
