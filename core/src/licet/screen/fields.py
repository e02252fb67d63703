"""Format strings, which read attributes by the text of their fields.

Rules this module keeps:

- texts count only where something in the code formats by them;
- a field that the text leaves open, or that is filled in by `%`, reads a name that doesn't show;
- nothing here is worse than linear in the length of the texts.
"""

from __future__ import annotations

import ast
import re

from licet.screen.exemptions import leads_out, readable
from licet.screen.facts import Facts
from licet.screen.findings import Findings
from licet.screen.names import FORMATTERS, INTERNAL_KEYS
from licet.screen.resolve import Resolver

_FIELD = re.compile(r"\{[^{}]*[.\[][^{}]*")
_FIELD_NAMES = re.compile(r"\.\s*(\w+)|\[\s*(\w+)\s*\]")
_FIELD_FILLED = re.compile(r"\{[\w.\[\]]*[.\[]_*%")
_FIELD_OPEN = re.compile(r"\{(?:\w*\.|\w+\[)[\w.\[\]]*\Z")


def judge_fields(facts: Facts, known: Resolver, findings: Findings, *, logs: bool) -> None:
    """Judge the format strings of a program; `logs` says whether it imports `logging`, which formats too."""
    if any("{" in text for text, _ in facts.strings):
        fields = _Fields(facts, known, findings, logs)
        if fields.in_use():
            fields.judge()


class _Fields:
    def __init__(self, facts: Facts, known: Resolver, findings: Findings, logs: bool) -> None:
        self.facts = facts
        self.known = known
        self.findings = findings
        self.logs = logs

    def in_use(self) -> bool:
        """Whether a method that formats by the text of fields is in sight."""
        return (
            any(node.attr in FORMATTERS for node in self.facts.attributes)
            or any(name in FORMATTERS for name, _ in self.facts.pattern_names)
            or any(text in FORMATTERS for text, _ in self.facts.strings)
            or (self.logs and any(text == "{" for text, _ in self.facts.strings))
        )

    def judge(self) -> None:
        """Judge every text that could be a format string, whole or put together."""
        for text, node in self.facts.strings:
            self._fields(text, node)
            self._cut(text, node, alone=True)
        inner = {node.left for node in self.facts.joined if isinstance(node, ast.BinOp)}
        for joined in self.facts.joined:
            if joined not in inner:
                self._joined_fields(joined)

    def _joined_fields(self, joined: ast.expr) -> None:
        """Judge what shows of a text that is put together; a part that doesn't show may hold anything."""
        text = ""
        for part in _terms(joined):
            piece, complete = self.known.beginning(part)
            text += piece
            if not complete:
                self._fields(text, joined)
                self._cut(text, joined, alone=False)
                text = ""
        self._fields(text, joined)

    def _cut(self, text: str, node: ast.expr, *, alone: bool) -> None:
        """Judge a field that a text leaves open: what follows may be the rest of a name that doesn't show.

        Of a text that stands `alone` nobody knows that something follows, so that its beginning has to tell.
        """
        found = _FIELD_OPEN.search(text) if "{" in text else None
        if found:
            last = found[0][max(found[0].rfind("."), found[0].rfind("[")) + 1 :]
            if not alone or last.startswith("__") or not last.strip("_"):
                self._filled_in(found[0], node)

    def _filled_in(self, field: str, node: ast.expr) -> None:
        self.findings.refuse("format_field", node.lineno, f"field `{field[:60]}`, filled in later")

    def _fields(self, text: str, node: ast.expr) -> None:
        """Judge the fields of a format string."""
        if "{" not in text:
            return
        for field in _FIELD.finditer(text):
            for attribute, key in _FIELD_NAMES.findall(field[0]):
                if (
                    (attribute and not readable(attribute))
                    or key in INTERNAL_KEYS
                    or leads_out(attribute, self.facts)
                ):
                    self.findings.refuse("format_field", node.lineno, f"field `{field[0][:60]}}}`")
        filled = _FIELD_FILLED.search(text)
        if filled:
            self._filled_in(filled[0], node)


def _terms(node: ast.expr) -> list[ast.expr]:
    """What is added up, from left to right; an f-string is one term."""
    found: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]
