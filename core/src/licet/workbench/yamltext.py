"""Writing texts of policies: one value, and entries added to an `allow` with all else left as it is.

Rules this module keeps:

- comments, layout, quotation marks and line ends stay; what is added is written in the style of its
  neighbours: in a list in brackets, on lines of their own, or as a new `allow` at the end;
- a text is written plain where YAML reads it back as it is and all of it can be seen, and else in quotes;
- what comes out is not trusted here: whoever calls reads it back, and compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import yaml

from licet.errors import InvalidPolicy
from licet.policy.yaml import load

_DASH = re.compile(r"\s*-[ \t]+\Z")


class NotEditable(Exception):
    """Why a text can't be added to."""


def with_allowed(text: str, entries: Sequence[str]) -> str:
    """`text`, the text of a policy without a byte order mark, with more entries in its `allow`.

    Raises:
        NotEditable: nobody could say where they belong.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        raise NotEditable("its text can't be taken apart") from None
    if not isinstance(root, yaml.MappingNode) or not root.value:
        raise NotEditable("its text is no mapping")
    newline = "\r\n" if "\r\n" in text else "\n"
    allow = next((value for key, value in root.value if key.value == "allow"), None)
    if allow is None:
        return _with_new_list(text, root, entries, newline)
    if not isinstance(allow, yaml.SequenceNode):
        raise NotEditable("its `allow` is no list")
    if allow.flow_style:
        return _in_brackets(text, allow, [scalar(entry, flow=True) for entry in entries], newline)
    return _on_lines(text, allow, entries, newline)


def _with_new_list(text: str, root: Any, entries: Sequence[str], newline: str) -> str:
    if root.flow_style:
        inside = ", ".join(scalar(entry, flow=True) for entry in entries)
        return _in_brackets(text, root, [f"allow: [{inside}]"], newline)
    indent = " " * root.value[0][0].start_mark.column
    lines = [f"{indent}allow:", *(f"{indent}  - {scalar(entry)}" for entry in entries)]
    end = root.end_mark.index
    before = text[:end].rstrip(" ") if end < len(text) else text
    if before and not before.endswith(("\n", "\r")):
        before += newline
    return before + newline.join(lines) + newline + text[end:]


def _on_lines(text: str, allow: Any, entries: Sequence[str], newline: str) -> str:
    """Below the last item, behind a dash that stands where its own does."""
    last = allow.value[-1]
    begin = text.rfind("\n", 0, last.start_mark.index) + 1
    prefix = text[begin : last.start_mark.index]
    if not _DASH.match(prefix):
        raise NotEditable("its `allow` is written in a way of its own")
    end = text.find("\n", last.end_mark.index)
    lines = [prefix + scalar(entry) for entry in entries]
    if end < 0:
        return text + newline + newline.join(lines) + newline
    return text[: end + 1] + newline.join(lines) + newline + text[end + 1 :]


def _in_brackets(text: str, node: Any, parts: Sequence[str], newline: str) -> str:
    """Before the closing bracket; on lines of their own if the last item has one."""
    if not node.value:
        at = node.start_mark.index + 1
        return text[:at] + ", ".join(parts) + text[at:]
    last = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    first = node.value[-1][0] if isinstance(node, yaml.MappingNode) else node.value[-1]
    begin = text.rfind("\n", 0, first.start_mark.index) + 1
    indent = text[begin : first.start_mark.index]
    own_lines = begin > node.start_mark.index and not indent.strip()
    between = f"{newline}{indent}" if own_lines else " "
    end, close = last.end_mark.index, node.end_mark.index - 1
    comma = _comma(text, end, close)
    at = end if comma is None else comma + 1
    line_end = text.find(newline, at, close) if own_lines else -1
    rest = text[at:line_end] if line_end >= 0 else ""  # a comment stays with its item
    added = "".join(f",{between}{part}" for part in parts)
    if comma is None:
        return f"{text[:at]},{rest}{added[1:]}{text[at + len(rest) :]}"
    return f"{text[:at]}{rest}{added[1:]},{text[at + len(rest) :]}"


def _comma(text: str, begin: int, end: int) -> int | None:
    """Where a comma stands behind the last item, outside of comments."""
    at = begin
    while at < end:
        if text[at] == ",":
            return at
        if text[at] == "#":
            at = text.find("\n", at, end)
            if at < 0:
                return None
        at += 1
    return None


def scalar(content: str, *, flow: bool = False) -> str:
    """A text as one line of YAML, in quotes where it has to be; `flow` is for the inside of brackets."""
    plain = f"[{content}]" if flow else f"- {content}"
    try:
        if content.isprintable() and list(load(plain.encode(), "")) == [content]:
            return content
    except (InvalidPolicy, TypeError, ValueError):
        pass
    quoted = json.dumps(content, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)
