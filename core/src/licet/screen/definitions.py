"""What definitions add to the facts: functions, classes, type parameters and annotations.

Rules this module keeps:

- defaults, decorators and bases belong to the scope around a definition, the body to one of its own;
- annotations written as text are parsed and walked like the rest.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from licet.screen import source
from licet.screen.binding import Binder
from licet.screen.facts import Binding, Scope
from licet.screen.features import SPECIAL_METHODS

_PLAIN_ANNOTATION = re.compile(r"[\w\s.,|\[\]]*", re.ASCII)
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Definitions(Binder):
    """The part of the walk that enters definitions."""

    def push(self, nodes: Iterable[ast.AST | None], scope: Scope) -> None:
        """Walk these nodes in `scope`, later."""
        self.stack.extend([(node, scope) for node in nodes if node is not None])

    def block(self, statements: list[ast.stmt], scope: Scope) -> None:
        """Walk a block in `scope`, later."""
        self.stack.extend([(statement, scope) for statement in statements])

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        """Enter a function."""
        facts = self.facts
        facts.functions.add(node.name)
        if isinstance(node, ast.AsyncFunctionDef):
            facts.feature("async_function", node.lineno)
        if node.decorator_list:
            facts.feature("method_decorator" if scope.kind == "class" else "function_decorator", node.lineno)
        if scope.kind == "class" and node.name in SPECIAL_METHODS:
            facts.feature(f"defines:{node.name}", node.lineno)
        self.bind(node.name, scope, node.lineno, node)
        self.push(node.decorator_list, scope)
        scope = self.type_parameters(node, scope)
        inner = self.parameters(node, scope)
        if node.returns is not None:
            self.annotation(node.returns, scope)
        self.block(node.body, inner)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda, scope: Scope) -> None:
        """Enter a lambda."""
        self.stack.append((node.body, self.parameters(node, scope)))

    def parameters(self, node: _Function, scope: Scope) -> Scope:
        """Bind the parameters in a new scope, with their defaults and annotated classes as values."""
        inner = Scope("function", scope)
        facts, arguments = self.facts, node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        for parameter in (*positional, *arguments.kwonlyargs):
            self.bind(parameter.arg, inner, parameter.lineno)
            facts.times_bound[parameter.arg] += 1  # what a caller passes is another value
            if isinstance(parameter.annotation, (ast.Name, ast.Attribute)):
                instance = ast.Call(parameter.annotation, [], [])
                facts.bindings.append(Binding(parameter.arg, ast.copy_location(instance, parameter)))
            if parameter.annotation is not None:
                self.annotation(parameter.annotation, scope)
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                self.bind(extra.arg, inner, extra.lineno)
                if extra.annotation is not None:
                    self.annotation(extra.annotation, scope)
        if arguments.defaults:
            self._defaults(positional[-len(arguments.defaults) :], arguments.defaults, inner, scope)
        if arguments.kwonlyargs:
            self._defaults(arguments.kwonlyargs, arguments.kw_defaults, inner, scope)
        return inner

    def _defaults(
        self, parameters: list[ast.arg], values: Sequence[ast.expr | None], inner: Scope, outer: Scope
    ) -> None:
        for parameter, value in zip(parameters, values, strict=True):
            if value is not None:
                self.facts.carried.add(value)
                self.alias(parameter.arg, value, inner)
                self.stack.append((value, outer))

    def visit_ClassDef(self, node: ast.ClassDef, scope: Scope) -> None:
        """Enter a class."""
        facts = self.facts
        facts.classes.add(node.name)
        self.bind(node.name, scope, node.lineno, node)
        for present, feature in (
            (node.bases, "class_inheritance"),
            (node.keywords, "class_keywords"),
            (node.decorator_list, "class_decorator"),
        ):
            if present:
                facts.feature(feature, node.lineno)
        for statement in node.body:
            if isinstance(statement, ast.ClassDef):
                facts.feature("nested_class", statement.lineno)
            elif not _simple_member(statement):
                facts.feature("class_body_statement", statement.lineno)
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name) and target.id in SPECIAL_METHODS:
                        facts.feature(f"defines:{target.id}", target.lineno)
        self.push(node.decorator_list, scope)
        scope = self.type_parameters(node, scope)
        self.push(node.bases, scope)
        self.push(node.keywords, scope)
        self.push(node.body, Scope("class", scope))

    def type_parameters(self, node: ast.AST, scope: Scope) -> Scope:
        """Bind type parameters in a scope of their own, in which the rest of the definition stands."""
        parameters: list[ast.AST] = getattr(node, "type_params", [])
        if not parameters:
            return scope
        inner = Scope("comprehension", scope)
        for parameter in parameters:
            self.facts.feature("type_parameters", node.lineno)  # type: ignore[attr-defined]
            self.bind(parameter.name, inner, node.lineno)  # type: ignore[attr-defined]
        self.push(parameters, inner)
        return inner

    def visit_TypeAlias(self, node: ast.AST, scope: Scope) -> None:
        """Enter a `type` statement."""
        self.facts.feature("type_alias", node.lineno)  # type: ignore[attr-defined]
        self.target(node.name, None, scope)  # type: ignore[attr-defined]
        scope = self.type_parameters(node, scope)
        self.stack.append((node.value, scope))  # type: ignore[attr-defined]

    def annotation(self, node: ast.expr, scope: Scope) -> None:
        """Walk an annotation; text inside it is code, and so is text inside that."""
        self.stack.append((node, scope))
        if type(node) is ast.Name:
            return
        pending: list[ast.AST] = [node]
        while pending:
            part = pending.pop()
            if isinstance(part, ast.Constant):
                written = _written(part)
                self.push(written, scope)
                pending += written
            elif not isinstance(part, ast.Name):
                pending.extend(ast.iter_child_nodes(part))


def _written(annotation: ast.Constant) -> list[ast.stmt]:
    """The code in an annotation that is text, as if it stood where the text stands."""
    text = annotation.value
    if not isinstance(text, str) or ("__" not in text and _PLAIN_ANNOTATION.fullmatch(text)):
        return []
    if source.complexity(text) or source.unparsable(text):
        return []
    tree = source.parse(text.strip())
    if not isinstance(tree, ast.Module):
        return []
    for inner in ast.walk(tree):
        if isinstance(inner, (ast.expr, ast.stmt)):
            ast.copy_location(inner, annotation)
    return tree.body


def _simple_member(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.target, ast.Name)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Pass))
