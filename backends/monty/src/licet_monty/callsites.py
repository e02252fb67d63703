"""How calls of tools are written before code runs: with their lines, and as awaitables where awaited.

Rules this module keeps:

- no line moves, and code that can't be parsed, or names no tool, stays as it is;
- a tool that the code calls without `await` gives its value; where its result is awaited the call becomes one
  that runs side by side with others (see `awaited`); whatever else is awaited may be a value as well;
- a name that the code binds itself is the code's own, and is left alone;
- what stands in an f-string is written anew as a whole, since its places are not told in Python 3.11.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from licet.screen import syntax_tree

from licet_monty.awaited import awaited_calls
from licet_monty.edits import Edit, Text, closes, end_of, opens, replaces, start_of
from licet_monty.prelude import AT, GATHER, LATER, PLACE, SETTLE
from licet_monty.scopes import Scopes

_MOST_KEPT = 8 << 10
_COMMENT = re.compile(r"#[^\n]*")


def call_through(code: str, tools: tuple[str, ...]) -> str:
    """Return `code` so rewritten that its calls of `tools` go through the functions of `prelude`."""
    if not any(name in code for name in tools):
        return code
    return (_kept if len(code) <= _MOST_KEPT else _rewritten)(code, tools)


def _rewritten(code: str, tools: tuple[str, ...]) -> str:
    plain = code.replace("\r\n", "\n").replace("\r", "\n")
    tree = None if plain.startswith("\ufeff") else syntax_tree(plain)
    if tree is None:
        return code
    sites = _Sites(tree, frozenset(tools), Text(plain))
    try:
        edited = sites.text.edited(sites.edits())
    except (RecursionError, ValueError):  # an f-string that can't be written anew
        return code
    return edited if syntax_tree(edited) is not None else code


_kept = lru_cache(maxsize=256)(_rewritten)


class _Sites:
    """All places of one piece of code that have to do with tools."""

    def __init__(self, tree: ast.Module, tools: frozenset[str], text: Text) -> None:
        self.text = text
        self._scopes = Scopes(tree)
        self._tools = tools - self._scopes.bound
        self._gathers, awaiting = _of_asyncio(self._scopes.nodes)
        self._later = awaited_calls(self._scopes, self._tools, self._gathers | awaiting)
        self._within_text: set[int] = set()

    def edits(self) -> Iterator[Edit]:
        for node in self._scopes.nodes:
            if id(node) in self._within_text:
                continue
            if isinstance(node, ast.JoinedStr):
                yield from self._formatted(node)
            elif isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.Await) and self._may_be_value(node.value):
                yield opens(node.value, f"{SETTLE}(")
                yield closes(node.value, ")")

    def _call(self, node: ast.Call) -> Iterator[Edit]:
        if id(node) in self._gathers and not node.keywords:
            yield replaces(node.func, GATHER)
        if not self._calls_tool(node):
            return
        assert isinstance(node.func, ast.Name)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        generator = len(given) == 1 and not node.keywords and isinstance(given[0], ast.GeneratorExp)
        if id(node) in self._later:
            yield replaces(node.func, LATER)
            added = f'{PLACE}=("{node.func.id}", {node.lineno})'
        else:
            added = f"**{AT}({node.lineno})"
        line, column = end_of(node)
        before_end = line, column - 1
        if generator and start_of(given[0]) == end_of(node.func):  # its brackets are those of the call
            yield opens(given[0], "(")
            yield Edit("add", before_end, before_end, f"), {added}")
            return
        last = max(map(end_of, given), default=end_of(node.func))
        gap = _COMMENT.sub("", self.text.between(last, before_end))
        comma = ", " if given and "," not in gap else ""
        yield Edit("add", before_end, before_end, f"{comma}{added}")

    def _calls_tool(self, node: ast.Call) -> bool:
        return isinstance(node.func, ast.Name) and node.func.id in self._tools

    def _may_be_value(self, node: ast.expr) -> bool:
        """Whether what is awaited may be the value of a tool, as far as its text tells."""
        return not (isinstance(node, ast.Call) and (id(node) in self._later or id(node) in self._gathers))

    def _formatted(self, node: ast.JoinedStr) -> Iterator[Edit]:
        """Write an f-string anew if it has to do with tools; the nodes inside get no edits of their own."""
        inside = [*ast.walk(node)]
        self._within_text |= set(map(id, inside))
        if not any(isinstance(one, ast.Await) or self._concerns(one) for one in inside):
            return
        written = ast.unparse(ast.fix_missing_locations(_InText(self, node.lineno).visit(node)))
        rows = "\n" * ((node.end_lineno or node.lineno) - node.lineno)
        yield replaces(node, f"({written}{rows})")

    def _concerns(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and (self._calls_tool(node) or id(node) in self._gathers)


class _InText(ast.NodeTransformer):
    """Rewrites what stands in an f-string, as trees."""

    def __init__(self, sites: _Sites, line: int) -> None:
        self._sites = sites
        self._line = ast.Constant(line)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        sites, later, gathers = self._sites, id(node) in self._sites._later, id(node) in self._sites._gathers
        calls_tool = sites._calls_tool(node)
        self.generic_visit(node)
        if gathers and not node.keywords:
            node.func = ast.Name(GATHER, ast.Load())
        elif calls_tool and later:
            assert isinstance(node.func, ast.Name)
            place = ast.Tuple([ast.Constant(node.func.id), self._line], ast.Load())
            node.func = ast.Name(LATER, ast.Load())
            node.keywords.append(ast.keyword(PLACE, place))
        elif calls_tool:
            at = ast.Call(ast.Name(AT, ast.Load()), [self._line], [])
            node.keywords.append(ast.keyword(None, at))
        return node

    def visit_Await(self, node: ast.Await) -> ast.Await:
        settled = not self._sites._may_be_value(node.value)
        self.generic_visit(node)
        if not settled:
            node.value = ast.Call(ast.Name(SETTLE, ast.Load()), [node.value], [])
        return node


def _of_asyncio(nodes: list[ast.AST]) -> tuple[set[int], set[int]]:
    """The ids of the calls of `asyncio.gather`, and of `asyncio.run`, under whatever names."""
    modules: set[str] = set()
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {one.asname or one.name for one in node.names if one.name == "asyncio"}
        elif isinstance(node, ast.ImportFrom) and node.module == "asyncio":
            names |= {one.asname or one.name: one.name for one in node.names}
    found: dict[str, set[int]] = {"gather": set(), "run": set()}
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in modules:
                found.get(name, set()).add(id(node))
            case ast.Name(id=known) if known in names:
                found.get(names[known], set()).add(id(node))
    return found["gather"], found["run"]
