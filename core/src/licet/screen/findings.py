"""Where judgements are gathered: refusals and intents, in the order of the code, bounded in number.

Rules this module keeps:

- the same refusal is reported once a line, the same intent once at its first line;
- what importing a module suggests is dropped where a use of the module says the same more exactly;
- intents are never cut short in silence: too many of them are a refusal.
"""

from __future__ import annotations

import ast
import re

from licet.request import Action, Intent, Violation
from licet.screen.codes import violation

MAX_VIOLATIONS = 100
MAX_INTENTS = 200
_EXCERPT = 80
_LINE_END = re.compile(r"\r\n|\r|\n")


class Findings:
    """A growing report on one piece of code."""

    def __init__(self, code: str) -> None:
        self._code = code
        self._lines: list[str] = []
        self._violations: dict[tuple[str, int | None, str], Violation] = {}
        self._wanted: dict[tuple[Action, str | None], ast.AST] = {}
        self._imports: dict[tuple[Action, str], ast.AST] = {}
        self._used: set[tuple[Action, str]] = set()

    def refuse(self, code: str, line: int | None, subject: str) -> None:
        """Add the violation `code`."""
        self.add(violation(code, line, subject))

    def add(self, found: Violation) -> None:
        """Add a violation."""
        if len(self._violations) < MAX_VIOLATIONS:
            self._violations.setdefault((found.code, found.line, found.message), found)

    def used(self, action: Action, path: str) -> None:
        """Note that a use of `path` was judged for `action`, so that its import says nothing more."""
        self._used.add((action, path.partition(".")[0]))

    def want(self, action: Action, target: str | None, node: ast.AST) -> None:
        """Add an intent that the code shows at `node`."""
        earlier = self._wanted.get((action, target))
        if earlier is None or _line(node) < _line(earlier):
            self._wanted[action, target] = node

    def want_import(self, action: Action, node: ast.AST, path: str) -> None:
        """Add an intent that importing `path` suggests, if no use of the module shows it."""
        self._imports.setdefault((action, path), node)

    def violations(self) -> tuple[Violation, ...]:
        """The refusals, by line."""
        if len(self._wanted) > MAX_INTENTS:
            self.add(violation("too_complex", None, f"more than {MAX_INTENTS} different intents"))
        return tuple(sorted(self._violations.values(), key=lambda found: (found.line or 0, found.code)))

    def intents(self) -> tuple[Intent, ...]:
        """The intents, by line."""
        if not self._wanted and not self._imports:
            return ()
        for (action, path), node in self._imports.items():
            if (action, path.partition(".")[0]) not in self._used:
                self._wanted.setdefault((action, None), node)
        wanted = sorted(self._wanted.items(), key=lambda item: (_line(item[1]), item[0][0], item[0][1] or ""))
        return tuple(
            Intent(action, target, "inferred", _line(node), excerpt=self._excerpt(node))
            for (action, target), node in wanted[:MAX_INTENTS]
        )

    def _excerpt(self, node: ast.AST) -> str:
        """The code of a node, as far as it stands on the first line, at most 80 characters."""
        if not self._lines:
            self._lines = _LINE_END.split(self._code.removeprefix("\ufeff"))
        number = _line(node)
        line = self._lines[number - 1] if 0 < number <= len(self._lines) else ""
        start: int = getattr(node, "col_offset", 0)
        stop: int | None = (
            getattr(node, "end_col_offset", None) if getattr(node, "end_lineno", 0) == number else None
        )
        if not line.isascii():
            return line.encode()[start:stop].decode(errors="replace")[:_EXCERPT]
        return line[start:stop][:_EXCERPT]


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 1)
