"""Which calls of tools yield something that the code awaits, told from its text.

A call of a tool gives its value at once, and code that writes `await f(1)` or `gather(*[f(i) for i in x])`
wants calls that run side by side. Which is meant can't be told when the call happens, so it is told here.
Rules this module keeps:

- what is missed still works, one call after the other (see `SETTLE` in `prelude`): this is about speed alone;
- followed are names, their elements, and what functions of the code's own return; never attributes;
- iterative, and linear but for chains of names that feed each other.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable

from licet_monty.scopes import Scopes, Variable

_GROWS = frozenset({"append", "add", "insert", "extend", "appendleft", "update", "setdefault"})
_COPIES = frozenset({"list", "tuple", "set", "deque", "dict", "reversed", "enumerate", "zip"})


def awaited_calls(scopes: Scopes, tools: frozenset[str], gathers: set[int]) -> set[int]:
    """Return the ids of the calls of `tools` whose result is awaited; `gathers` are calls that await."""
    return _Flow(scopes, tools).run(gathers)


class _Flow:
    """Marks expressions whose value, or whose elements, are awaited, backwards from where that happens."""

    def __init__(self, scopes: Scopes, tools: frozenset[str]) -> None:
        self._scopes = scopes
        self._tools = tools
        self._sources: dict[Variable, list[ast.expr]] = defaultdict(list)
        self._returns: dict[Variable, list[ast.expr]] = defaultdict(list)
        self._within: dict[int, Variable] = {}
        for node in scopes.nodes:
            self._note(node)

    def run(self, gathers: set[int]) -> set[int]:
        pending: list[ast.expr] = []
        for node in self._scopes.nodes:
            if isinstance(node, ast.Await):
                pending.append(node.value)
            elif isinstance(node, ast.Call) and id(node) in gathers:
                pending += node.args
        found: set[int] = set()
        seen: set[int] = set()
        while pending:
            node = pending.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._tools:
                found.add(id(node))
            else:
                pending += self._behind(node)
        return found

    def _behind(self, node: ast.expr) -> Iterable[ast.expr]:
        """The expressions from which the value of `node`, or its elements, come."""
        match node:
            case ast.Name():
                return self._sources.pop(self._scopes.variable(node, node.id), ())
            case ast.Starred(value=value) | ast.Subscript(value=value) | ast.NamedExpr(value=value):
                return (value,)
            case (
                ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.BoolOp(values=parts)
            ):
                return parts
            case ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.GeneratorExp(elt=part):
                return (part,)
            case ast.Dict(values=parts):
                return parts
            case ast.DictComp(value=value):
                return (value,)
            case ast.IfExp(body=body, orelse=other):
                return (body, other)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return (left, right)
            case ast.Call(func=ast.Name(id=name), args=args) if name in _COPIES:
                return args
            case ast.Call(func=ast.Attribute(value=value, attr="values" | "items" | "copy" | "pop" | "get")):
                return (value,)
            case ast.Call(func=ast.Name(id=name) as called):
                return self._returns.pop(self._scopes.variable(called, name), ())
        return ()

    def _note(self, node: ast.AST) -> None:
        """Note what a node puts into which variable, or returns from which function."""
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, value)
            case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                self._bind(target, value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                self._bind(target, value)
            case ast.Call(func=ast.Attribute(value=ast.Name() as target, attr=name), args=args) if (
                name in _GROWS
            ):
                for arg in args:
                    self._bind(target, arg)
            case ast.FunctionDef(name=name):
                owner = self._scopes.variable(node, name)
                self._within[id(node)] = owner
            case ast.Return(value=ast.expr() as value):
                owner_id = self._scopes.function(node)
                if owner_id in self._within:
                    self._returns[self._within[owner_id]].append(value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case (
                (ast.Tuple(elts=targets) | ast.List(elts=targets)),
                (ast.Tuple(elts=values) | ast.List(elts=values)),
            ) if len(targets) == len(values):
                for one, given in zip(targets, values, strict=True):
                    self._bind(one, given)
            case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), _):
                for one in targets:
                    self._bind(one, value)
            case ast.Name(id=name), _:
                if isinstance(value, ast.Lambda):
                    self._returns[self._scopes.variable(target, name)].append(value.body)
                self._sources[self._scopes.variable(target, name)].append(value)
            case ((ast.Subscript(value=ast.Name() as base) | ast.Starred(value=ast.Name() as base)), _):
                self._bind(base, value)
