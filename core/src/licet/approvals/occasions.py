"""What can wait for an approval in the middle of a run, as its document tells it.

Rules this module keeps: values stand in their exact wire form, so that two that differ never look the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from licet import values
from licet.calling import signature_of
from licet.hosts import read_back
from licet.policy.signatures import bind
from licet.prepare import Prepared
from licet.request import Tool
from licet.stubs import shown_signature
from licet.waiting import WaitingCall


@dataclass(frozen=True, slots=True)
class Call:
    """A call that waits. `args` and `kwargs` are in wire form, `bound` are they by their parameters."""

    waiting: WaitingCall
    tool: Tool
    about: Mapping[str, Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    bound: Mapping[str, Any] | None

    @classmethod
    def of(cls, prepared: Prepared, waiting: WaitingCall) -> Call:
        """The call `waiting`.

        Raises:
            ValueError: the tool is not passed, or the arguments don't fit it.
        """
        tool = prepared.request.tools.get(waiting.name)
        if tool is None:
            raise ValueError(f"there is no tool `{waiting.name}`")
        args, kwargs = values.from_json(waiting.arguments)
        signature = signature_of(waiting.name, prepared.stack, tool.handler)
        bound = bind(signature, args, kwargs) if signature else None
        return cls(waiting, tool, tool_shown(tool, prepared), tuple(args), kwargs, bound)

    def arguments(self) -> dict[str, Any]:
        """The value of each argument by what it is called: its parameter, or its place or name."""
        if self.bound is not None:
            return dict(self.bound)
        named = {name if name.isidentifier() else ascii(name): one for name, one in self.kwargs.items()}
        return {**{str(place): one for place, one in enumerate(self.args)}, **named}

    def shown(self) -> dict[str, Any]:
        """All of it."""
        return {
            "tool": self.tool.name,
            "line": self.waiting.line,
            "sequence": self.waiting.sequence,
            "arguments": {"args": [values.exactly(one) for one in self.args], "kwargs": wired(self.kwargs)},
            "bound": None if self.bound is None else wired(self.bound),
            **self.about,
        }


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection that waits."""

    sequence: int
    target: str

    @classmethod
    def of(cls, waiting: WaitingCall) -> Connection:
        """The connection `waiting`."""
        return cls(waiting.sequence, waiting.arguments)

    def shown(self) -> dict[str, Any]:
        """All of it."""
        where = read_back(self.target)
        return {"target": self.target, "host": where.host, "port": where.port, "sequence": self.sequence}


def tool_shown(tool: Tool, prepared: Prepared) -> dict[str, Any]:
    """What is known of a tool before it is called."""
    signature = signature_of(tool.name, prepared.stack, tool.handler)
    return {
        "signature": shown_signature(tool, signature),
        "touches": [str(act) for act in tool.touches],
        "idempotent": tool.idempotent,
    }


def wired(named: Mapping[str, Any]) -> dict[str, str]:
    """Each value in wire form, which is exact, as text."""
    return {name: values.exactly(value) for name, value in sorted(named.items())}
