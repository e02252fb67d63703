"""One walk over a syntax tree, without recursion, that fills `Facts`.

Rules this module keeps:

- every node is visited once, in a time that doesn't depend on nesting;
- nothing is judged here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from licet.screen.definitions import Definitions
from licet.screen.facts import Facts, Imported, Scope
from licet.screen.names import EAGER, LOOKUPS

_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def walk(tree: ast.Module) -> Facts:
    """Collect the facts of a whole program."""
    walker = _Walker(tree)
    walker.run()
    walker.facts.read.update([node.id for node, _ in walker.facts.loads])
    return walker.facts


class _Walker(Definitions):
    def __init__(self, tree: ast.Module) -> None:
        super().__init__(tree)
        self.optional: set[ast.AST] = set()

    def run(self) -> None:
        # the kinds that most nodes are of are dealt with here: a call each would double the time
        stack, facts, handlers, frequent = self.stack, self.facts, _HANDLERS, _FREQUENT
        loads, strings, attributes, bases = facts.loads, facts.strings, facts.attributes, facts.bases
        while stack:
            item = stack.pop()
            node: Any = item[0]
            kind = node.__class__
            if kind is ast.Name:
                if node.ctx.__class__ is ast.Load:
                    loads.append(item)  # type: ignore[arg-type]
                else:
                    self.target(node, None, item[1])
            elif kind is ast.Constant:
                if node.value.__class__ is str:
                    strings.append((node.value, node))
            elif kind is ast.Attribute:
                attributes.append(node)
                bases.add(node.value)
                stack.append((node.value, item[1]))
            elif (handler := handlers.get(kind)) is not None:
                handler(self, node, item[1])
            elif kind in frequent:
                one, several = frequent[kind]
                stack.extend(
                    [(getattr(node, name), item[1]) for name in one if getattr(node, name) is not None]
                )
                for name in several:
                    stack.extend([(child, item[1]) for child in getattr(node, name) if child is not None])
            else:
                self.any(node, item[1])

    def any(self, node: ast.AST, scope: Scope) -> None:
        """Go on with all children of a node of any kind, also of one that a later Python adds."""
        for name in _FIELDS[type(node)]:
            value = getattr(node, name)
            if isinstance(value, list):
                self.push([child for child in value if isinstance(child, ast.AST)], scope)
            elif isinstance(value, ast.AST):
                self.stack.append((value, scope))

    def visit_Assign(self, node: ast.Assign, scope: Scope) -> None:
        for target in node.targets:
            self.target(target, node.value, scope, node)
        self.stack.append((node.value, scope))

    def visit_AnnAssign(self, node: ast.AnnAssign, scope: Scope) -> None:
        self.annotation(node.annotation, scope)
        if scope.kind == "class" and isinstance(node.target, ast.Name):
            self.facts.fields.append((node.target.id, node.lineno))
        if node.value is not None:
            self.target(node.target, node.value, scope, node)
            self.stack.append((node.value, scope))
        elif isinstance(node.target, ast.Name):
            scope.bound.add(node.target.id)
            if scope.kind == "class":
                self.facts.members.add(node.target.id)
        else:
            self.stack.append((node.target, scope))

    def visit_AugAssign(self, node: ast.AugAssign, scope: Scope) -> None:
        if isinstance(node.op, ast.MatMult):
            self.facts.feature("matmul_assignment", node.lineno)
        if isinstance(node.target, ast.Name):
            self.facts.loads.append(
                (ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target), scope)
            )
        self.target(node.target, None, scope)
        self.stack.append((node.value, scope))

    def visit_NamedExpr(self, node: ast.NamedExpr, scope: Scope) -> None:
        self.facts.feature("assignment_expression", node.lineno)
        self.facts.walruses.append(node)
        outer = scope
        while outer.kind == "comprehension" and outer.parent is not None:
            outer = outer.parent
        self.target(node.target, node.value, outer)
        self.stack.append((node.value, scope))

    def visit_Delete(self, node: ast.Delete, scope: Scope) -> None:
        self.facts.feature("del_statement", node.lineno)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.facts.deleted.add(target.id)
                self.bind(target.id, scope, target.lineno)
            else:
                self.stack.append((target, scope))

    def visit_Global(self, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
        self.facts.feature(
            "global_statement" if isinstance(node, ast.Global) else "nonlocal_statement", node.lineno
        )
        scope.outward.update(node.names)

    visit_Nonlocal = visit_Global

    # control flow

    def visit_Import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        facts = self.facts
        facts.imports.append(Imported(node, scope, node in self.optional))
        for name in node.names:
            if name.name == "*":
                facts.feature("star_import", node.lineno)
            elif name.asname or isinstance(node, ast.ImportFrom):
                self.bind(name.asname or name.name, scope, node.lineno, node)
            else:
                self.bind(name.name.partition(".")[0], scope, node.lineno, node)
        if isinstance(node, ast.ImportFrom) and node.level:
            facts.feature("relative_import", node.lineno)

    visit_ImportFrom = visit_Import

    def visit_Try(self, node: ast.Try, scope: Scope) -> None:
        if type(node) is not ast.Try:
            self.facts.feature("except_star", node.lineno)
        if any(_catches_imports(handler) for handler in node.handlers):
            self.optional.update(node.body)
        self.block(node.body, scope)
        self.push(node.handlers, scope)
        self.block(node.orelse, scope)
        self.block(node.finalbody, scope)

    visit_TryStar = visit_Try

    def visit_ExceptHandler(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.name:
            self.bind(node.name, scope, node.lineno)
            self.facts.deleted.add(node.name)
            self.facts.exception_names.add(node.name)
        self.push([node.type, *node.body], scope)

    def visit_If(self, node: ast.If, scope: Scope) -> None:
        name = node.test.attr if isinstance(node.test, ast.Attribute) else getattr(node.test, "id", "")
        if name == "TYPE_CHECKING":
            self.optional.update(node.body)
        self.facts.compared.add(node.test)
        self.stack.append((node.test, scope))
        self.block(node.body, scope)
        self.block(node.orelse, scope)

    def visit_For(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        if isinstance(node, ast.AsyncFor):
            self.facts.feature("async_for", node.lineno)
        self.loop(node.target, node.iter, scope)
        self.stack.append((node.iter, scope))
        self.block(node.body, scope)
        self.block(node.orelse, scope)

    visit_AsyncFor = visit_For

    def visit_With(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        if isinstance(node, ast.AsyncWith):
            self.facts.feature("async_with", node.lineno)
        for item in node.items:
            self.stack.append((item.context_expr, scope))
            if item.optional_vars is not None:
                self.target(item.optional_vars, None, scope)
        self.block(node.body, scope)

    visit_AsyncWith = visit_With

    def visit_Await(self, node: ast.Await, scope: Scope) -> None:
        if not scope.in_function():
            self.facts.feature("top_level_await", node.lineno)
        self.stack.append((node.value, scope))

    def visit_Yield(self, node: ast.Yield | ast.YieldFrom, scope: Scope) -> None:
        self.facts.feature("generator", node.lineno)
        self.push([node.value], scope)

    visit_YieldFrom = visit_Yield

    # expressions

    def visit_Call(self, node: ast.Call, scope: Scope) -> None:
        facts, function, arguments = self.facts, node.func, node.args
        facts.calls.append((node, scope))
        facts.called[function] = node
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if name in EAGER:
            facts.eager.update(arguments)
        elif name in LOOKUPS:
            facts.keys += [
                key for key in arguments if isinstance(key, ast.Constant) and type(key.value) is str
            ]
        self.stack.append((function, scope))
        self.stack.extend([(argument, scope) for argument in arguments])
        for keyword in node.keywords:
            self.stack.append((keyword.value, scope))
        if isinstance(function, ast.Lambda):
            self._apply(node, function, scope)

    def _apply(self, node: ast.Call, function: ast.Lambda, scope: Scope) -> None:
        """Bind what an immediately called lambda is called with."""
        parameters = [*function.args.posonlyargs, *function.args.args]
        for parameter, value in zip(parameters, node.args, strict=False):
            self.facts.carried.add(value)
            self.alias(parameter.arg, value, scope)

    def visit_Compare(self, node: ast.Compare, scope: Scope) -> None:
        operands = [node.left, *node.comparators]
        if all(isinstance(sign, (ast.Is, ast.IsNot)) for sign in node.ops):
            self.facts.compared.update(operands)
        self.stack.extend([(operand, scope) for operand in operands])

    def visit_Expr(self, node: ast.Expr, scope: Scope) -> None:
        self.facts.compared.add(node.value)
        self.stack.append((node.value, scope))

    def visit_BinOp(self, node: ast.BinOp, scope: Scope) -> None:
        if type(node.op) is ast.Add:
            self.facts.joined.append(node)
        self.stack.append((node.left, scope))
        self.stack.append((node.right, scope))

    def visit_JoinedStr(self, node: ast.JoinedStr, scope: Scope) -> None:
        self.facts.joined.append(node)
        self.push(node.values, scope)

    def visit_Starred(self, node: ast.Starred, scope: Scope) -> None:
        self.facts.eager.add(node.value)
        self.stack.append((node.value, scope))

    def visit_Subscript(self, node: ast.Subscript, scope: Scope) -> None:
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            self.facts.keys.append(node.slice)
        self.stack.append((node.value, scope))
        self.stack.append((node.slice, scope))

    def visit_ListComp(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: Scope
    ) -> None:
        inner = Scope("comprehension", scope)
        for part in node.generators:
            if part.is_async:
                self.facts.feature("async_comprehension", node.lineno)
            self.loop(part.target, part.iter, inner)
            self.stack.append((part.iter, inner if part is not node.generators[0] else scope))
            self.push(part.ifs, inner)
        if isinstance(node, ast.DictComp):
            self.push([node.key, node.value], inner)
        else:
            self.stack.append((node.elt, inner))
        if isinstance(node, ast.GeneratorExp):
            self.facts.generators.append(node)

    visit_SetComp = visit_ListComp
    visit_DictComp = visit_ListComp
    visit_GeneratorExp = visit_ListComp

    def visit_TemplateStr(self, node: ast.AST, scope: Scope) -> None:
        self.facts.feature("template_string", node.lineno)  # type: ignore[attr-defined]
        self.push(node.values, scope)  # type: ignore[attr-defined]

    # match

    def visit_Match(self, node: ast.Match, scope: Scope) -> None:
        self.facts.feature("match_statement", node.lineno)
        subject = node.subject
        for case in node.cases:
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.pattern.name:
                self.facts.carried.add(subject)
                self.alias(case.pattern.name, subject, scope)
        self.stack.append((subject, scope))
        self.push(node.cases, scope)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar, scope: Scope) -> None:
        if node.name is not None:
            self.bind(node.name, scope, node.lineno)
        self.push([getattr(node, "pattern", None)], scope)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping, scope: Scope) -> None:
        if node.rest is not None:
            self.bind(node.rest, scope, node.lineno)
        self.facts.keys += [
            key for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
        ]
        self.push(node.keys, scope)
        self.push(node.patterns, scope)

    def visit_MatchClass(self, node: ast.MatchClass, scope: Scope) -> None:
        self.facts.pattern_names += [(name, node.lineno) for name in node.kwd_attrs]
        self.facts.bases.add(node.cls)
        self.stack.append((node.cls, scope))
        self.push(node.patterns, scope)
        self.push(node.kwd_patterns, scope)


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or getattr(kind, "id", "") in _IMPORT_ERRORS for kind in caught)


_SKIPPED = frozenset({"ctx", "op", "ops", "kind", "conversion", "type_comment"})
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: tuple(
        name
        for name in kind._fields
        if name not in _SKIPPED
        and (kind.__name__, name) not in {("keyword", "arg"), ("MatchSingleton", "value")}
    )
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
_FREQUENT: dict[type[ast.AST], tuple[tuple[str, ...], tuple[str, ...]]] = {
    ast.BoolOp: ((), ("values",)),
    ast.Break: ((), ()),
    ast.Continue: ((), ()),
    ast.Dict: ((), ("keys", "values")),
    ast.FormattedValue: (("value", "format_spec"), ()),
    ast.IfExp: (("test", "body", "orelse"), ()),
    ast.List: ((), ("elts",)),
    ast.Pass: ((), ()),
    ast.Raise: (("exc", "cause"), ()),
    ast.Return: (("value",), ()),
    ast.Set: ((), ("elts",)),
    ast.Slice: (("lower", "upper", "step"), ()),
    ast.Tuple: ((), ("elts",)),
    ast.UnaryOp: (("operand",), ()),
    ast.While: (("test",), ("body", "orelse")),
}
_HANDLERS: dict[type[ast.AST], Callable[..., None]] = {
    getattr(ast, name.removeprefix("visit_")): getattr(_Walker, name)
    for name in dir(_Walker)
    if name.startswith("visit_") and hasattr(ast, name.removeprefix("visit_"))
}
