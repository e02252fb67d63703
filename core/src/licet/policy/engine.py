"""What a rule asks of a language for conditions, and where in a policy a text stands.

Rules this module keeps:

- a text is compiled and type-checked once, when the policy is loaded, and never fails to be read later;
- an engine answers with a truth and the reason; it never raises for what a request holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from licet.errors import Position
from licet.policy.facts import Facts
from licet.policy.signatures import Signature
from licet.policy.truth import Truth


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Where a text stands in a file, so that a place inside it can be found.

    `style` is the YAML style of the scalar: "" for a plain one, a quotation mark, `|` or `>`.
    """

    file: str
    line: int = 0
    column: int = 0
    style: str = ""

    @property
    def start(self) -> Position:
        """Where it begins."""
        return Position(self.file, self.line, self.column)

    def at(self, line: int, column: int) -> Position:
        """The place of a line and column of the text, 1-based; at least the line, if the style hides more."""
        if not self.line:
            return Position(self.file)
        if self.style == "|":
            return Position(self.file, self.line + line)
        if self.style == ">" or line > 1:
            return Position(self.file, self.line)
        shift = 1 if self.style in ("'", '"') else 0
        return Position(self.file, self.line, self.column + column - 1 + shift)


class Compiled(Protocol):
    """A text, ready to be asked."""

    @property
    def reads_call(self) -> bool:
        """Whether it reads what is only known when a tool is called."""

    @property
    def engine(self) -> ConditionEngine:
        """What compiled it."""

    def evaluate(self, facts: Facts) -> tuple[Truth, str]:
        """Its truth, and for what is unknown, why; worked out once for the same facts."""

    def check(self, tool: str, signature: Signature) -> None:
        """Check it against the signature of a tool.

        Raises:
            InvalidPolicy: it does not fit; with the place inside the text.
        """


class ConditionEngine(Protocol):
    """A language for conditions."""

    def compile(self, text: str, place: TextPlace, *, calls: bool) -> Compiled:
        """Read and type-check a text; with `calls`, it may read the call of a tool beside the request.

        Raises:
            InvalidPolicy: it is no condition; with the place inside the text.
        """

    def together(self, texts: Sequence[Any]) -> Callable[[Facts], None]:
        """What works out several texts of this engine that read no call in one step, for the same facts.

        `evaluate` then has the answer of each; where there is none, it works out its text alone.
        """
