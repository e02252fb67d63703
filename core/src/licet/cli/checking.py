"""What a type checker says of code, on a card and as JSON.

Rules this module keeps: what was not checked is said to be unchecked, and never looks like a clean bill.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from licet.cli import refusals
from licet.errors import LaunchFailed, TypesUnchecked
from licet.type_checker import TypeFinding

if TYPE_CHECKING:
    from licet.request import ExecutionRequest
    from licet.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings, or why there are none to be had."""

    findings: tuple[TypeFinding, ...] = ()
    unchecked: str | None = None

    def rows(self, *, everything: bool) -> Iterator[tuple[str, str]]:
        """The rows of a card."""
        if self.unchecked is not None:
            yield "types", f"not checked: {self.unchecked}"
        elif not self.findings:
            yield "types", "nothing to object to"
        shown = self.findings if everything else self.findings[: refusals.SHOWN]
        for one in shown:
            yield f"line {one.line}", f"{one.message}   {one.code}"
        if len(shown) < len(self.findings):
            yield "", f"and {len(self.findings) - len(shown)} more, see `--all`"

    def as_json(self) -> dict[str, Any]:
        """The fields `types` (null if it was not checked) and `types_unchecked` (why not, or null)."""
        findings = None if self.unchecked is not None else [asdict(one) for one in self.findings]
        return {"types": findings, "types_unchecked": self.unchecked}


def checked(runtime: Runtime, request: ExecutionRequest) -> Checked:
    """Check the types of the code of a request; the runtime is closed then."""

    async def main() -> Checked:
        async with runtime:
            try:
                return Checked(await runtime.check_types(request))
            except (TypesUnchecked, LaunchFailed) as problem:
                return Checked(unchecked=problem.message)

    return asyncio.run(main())
