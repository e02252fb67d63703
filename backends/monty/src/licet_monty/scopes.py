"""Which function a name of some code belongs to, and what is bound to names.

Rules this module keeps:

- iterative: no depth of code can overflow the walk;
- comprehensions count as part of the function around them, which is near enough for what this is used for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Variable = tuple[int, str]
"""A name, with the function that binds it (0 for the module)."""


class Scopes:
    """All nodes of `tree` in the order of the text, each with the function it stands in."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes: list[ast.AST] = []
        self.bound: set[str] = set()
        self._scope: dict[int, int] = {}
        self._outer: dict[int, int] = {}
        self._names: dict[int, set[str]] = {0: set()}
        self._elsewhere: set[Variable] = set()
        self._walk(tree)

    def variable(self, node: ast.AST, name: str) -> Variable:
        """The variable that `name` means where `node` stands."""
        scope = self._scope[id(node)]
        while scope and (name not in self._names[scope] or (scope, name) in self._elsewhere):
            scope = self._outer[scope]
        return scope, name

    def function(self, node: ast.AST) -> int:
        """The id of the function that `node` stands in, 0 for the module."""
        return self._scope[id(node)]

    def _walk(self, tree: ast.Module) -> None:
        pending: list[tuple[ast.AST, int]] = [(tree, 0)]
        while pending:
            node, scope = pending.pop()
            self._scope[id(node)] = scope
            self.nodes.append(node)
            for name in names_bound(node):
                self.bound.add(name)
                self._names[scope].add(name)
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                self._elsewhere |= {(scope, name) for name in node.names}
            inside = scope
            if isinstance(node, _FUNCTIONS):
                inside = id(node)
                self._outer[inside] = scope
                self._names[inside] = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
                self.bound |= self._names[inside]
            pending.extend((child, inside) for child in reversed([*ast.iter_child_nodes(node)]))


def names_bound(node: ast.AST) -> Iterator[str]:
    """The names that this one node binds."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
