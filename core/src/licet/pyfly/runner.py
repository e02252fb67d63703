"""The runner under PyFly's name: screen, execute, scrub; and its way to bring the tools of a toolkit.

Rules this module keeps:

- what a `SafetyPolicy` denies never reaches the environment; what licet's screen finds reaches one only if
  that refuses, and records, it by itself;
- the caller's scrubber reads every text of a result; one that fails has not read it, so the text is withheld.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from licet.pyfly.environment import ExecutionEnvironment, Functions
from licet.pyfly.outcomes import ExecutionLimits, ExecutionResult
from licet.pyfly.safety import SafetyPolicy, analyze_code
from licet.request import Tool
from licet.scrubbing.contents import contents, replaced
from licet.tooling import toolkit

Scrubber = Callable[[str], str]


class SecureScriptRunner:
    """Screens code, has an environment run it, and scrubs what comes back.

    `output_scrubber` gets each text of a result (`stdout`, `stderr`, texts in `output`, `error`, its type,
    `violations`) and returns it as it may be shown. It comes after licet's own scrubbing of secrets.
    """

    def __init__(
        self,
        environment: ExecutionEnvironment,
        policy: SafetyPolicy | None = None,
        output_scrubber: Scrubber | None = None,
    ) -> None:
        self._environment = environment
        self._policy = policy or SafetyPolicy()
        self._scrubber = output_scrubber

    async def execute(
        self,
        code: str,
        *,
        inputs: Mapping[str, Any] | None = None,
        external_functions: Functions | None = None,
        limits: ExecutionLimits | None = None,
    ) -> ExecutionResult:
        """Run `code` if it is safe, and say how it went.

        Raises:
            ExecutionError: an input, a function or its name can't be used.
        """
        report = await asyncio.to_thread(analyze_code, code, self._policy)  # it may be long
        refusing = report.denied if getattr(self._environment, "screens", False) else report.violations
        if refusing:
            result = ExecutionResult(
                success=False,
                error="the code was refused before it ran",
                error_type="CodeSafetyError",
                violations=report.messages(),
            )
        else:
            result = await self._environment.run_code(
                code, inputs=inputs, external_functions=external_functions, limits=limits
            )
        return result if self._scrubber is None else _scrubbed(result, self._scrubber)


def toolkit_external_functions(source: Any, names: Iterable[str] | None = None) -> dict[str, Tool]:
    """The tools of a toolkit by name, or those of them that `names` lists, to hand over as functions.

    Raises:
        ExecutionError: `source` has no tools.
        KeyError: it has none of one of these names.
    """
    found = toolkit(source)
    return found if names is None else {name: found[name] for name in names}


def _scrubbed(result: ExecutionResult, scrubber: Scrubber) -> ExecutionResult:
    def clean(text: str) -> str:
        if not text:
            return text
        try:
            cleaned = scrubber(text)
        except Exception as problem:
            return f"[withheld: the scrubber raised {type(problem).__name__}]"
        return cleaned if isinstance(cleaned, str) else "[withheld: the scrubber returned no text]"

    output = contents(result.output)
    return replace(
        result,
        output=replaced(result.output, [clean(output.page[start:end]) for start, end in output.places]),
        stdout=clean(result.stdout),
        stderr=clean(result.stderr),
        error=None if result.error is None else clean(result.error),
        error_type=None if result.error_type is None else clean(result.error_type),
        violations=[clean(text) for text in result.violations],
    )
