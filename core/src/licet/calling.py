"""What is known of the tools that a request brings, before any of them is called.

Rules this module keeps:

- the parameters of a tool are what the policy declares, or else what Python says of it;
- a tool that contradicts its declaration is refused before anything runs, since a rule would otherwise read
  one argument and the tool use another;
- rules that read the arguments of a tool are checked against it as soon as it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from licet.errors import InvalidRequest
from licet.policy import PolicyStack
from licet.policy.signatures import Signature, as_taken, mismatch, of_callable
from licet.request import Tool


def signature_of(tool: str, stack: PolicyStack, handler: Callable[..., Any] | None) -> Signature | None:
    """What the policy, or else Python, says that a tool takes; None if neither knows."""
    declared = stack.tools.get(tool)
    python = None if handler is None else of_python(handler)
    if declared is None or python is None:
        return python if declared is None else declared
    return as_taken(declared, python)


def check_tools(tools: Mapping[str, Tool], stack: PolicyStack) -> None:
    """Check the tools of a request against what the policy says of them.

    Raises:
        InvalidRequest: a tool contradicts its declaration.
        InvalidPolicy: a rule reads arguments that a tool does not have; with the place in the policy.
    """
    from licet.policy.conditions import check_calls  # a run without tools has no use for it

    for name, tool in tools.items():
        python = of_python(tool.handler)
        if python is None:
            continue
        if (declared := stack.tools.get(name)) is None:
            for rule in stack.rulebook.about_calls:
                if rule.matches_tool(name):
                    check_calls(rule.condition, {name: python})
        elif (how := mismatch(declared, python)) is not None:
            raise InvalidRequest(
                f"the tool `{name}` is not what `tools` of {stack.root.file} declares: {how}",
                advice="change the declaration, or pass the tool that it means",
            )


def of_python(handler: Callable[..., Any]) -> Signature | None:
    """What Python says that a tool takes; None if it does not know."""
    try:
        return _kept(handler)
    except Exception:  # a callable that can't be kept by its hash
        return _read(handler)


def _read(handler: Callable[..., Any]) -> Signature | None:
    try:
        return of_callable(handler)
    except ValueError:
        return None


_kept = lru_cache(maxsize=256)(_read)
