"""The static screen: what a piece of code intends, what it tries, and what it needs.

It reads the syntax tree and runs nothing. It is a first line of defence and an explanation, not a wall:
Python can hide from any reader, so what the screen lets through is contained by the sandbox.

Rules this package keeps:

- `screen` answers for any text, without IO, in bounded time and memory;
- three outputs stay apart: *intents* (what policy decides), *violations* (what no policy entry could make
  sense of) and *needs* (what an interpreter must have);
- what the tables know is data (`modules`, `names`, `features`, `codes`); the walk knows no names.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from licet.request import ScreenReport, Violation
from licet.screen import source
from licet.screen.codes import VIOLATIONS
from licet.screen.features import FEATURES
from licet.screen.findings import Findings
from licet.screen.judge import judge
from licet.screen.needs import needs
from licet.screen.resolve import Resolver
from licet.screen.walk import walk

__all__ = ["FEATURES", "VERSION", "VIOLATIONS", "screen", "syntax_tree"]

VERSION = "2"
"""Changes whenever the same code could get another report."""


_MOST_KEPT = 8 << 10
"""Characters of code whose report is kept: what runs again and again, with other inputs, is read once."""


def screen(code: str, *, denied_modules: frozenset[str] = frozenset()) -> ScreenReport:
    """Screen `code`; `denied_modules` are dotted names whose import policy denies.

    Never raises. Code that can't be parsed safely gets the violation `too_complex`. Code that is no Python
    gets a `syntax_error`, and neither intents nor needs: nothing is known about it.
    """
    return (_kept if len(code) <= _MOST_KEPT else _report)(code, denied_modules)


def _report(code: str, denied_modules: frozenset[str]) -> ScreenReport:
    obstacle = source.unparsable(code) or source.complexity(code)
    if obstacle is not None:
        return ScreenReport(violations=(obstacle,))
    hidden = source.deception(code)
    tree = source.parse(code)
    if isinstance(tree, Violation):
        if tree.code == "syntax_error":
            return ScreenReport(violations=tuple(hidden), syntax_error=tree)
        return ScreenReport(violations=(*hidden, tree))
    findings = Findings(code)
    for found in hidden:
        findings.add(found)
    facts = walk(tree)
    known = Resolver(facts)
    imports = judge(facts, known, denied_modules, findings)
    return ScreenReport(findings.violations(), findings.intents(), needs(facts, known), imports=imports)


_kept = lru_cache(maxsize=256)(_report)


def syntax_tree(code: str) -> ast.Module | None:
    """The tree of code that is safe to parse; None for all other. Nobody hears the parser's warnings."""
    if source.unparsable(code) or source.complexity(code):
        return None
    tree = source.parse(code)
    return tree if isinstance(tree, ast.Module) else None
