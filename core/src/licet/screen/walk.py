"""One walk over a syntax tree, without recursion, that fills `Facts`.

Rules this module keeps:

- every node is visited once, in a time that doesn't depend on nesting;
- nothing is judged here; annotations written as text are parsed and walked like the rest;
- a name bound in a class body is also bound as an attribute, since that is how it is reached from outside.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from licet.screen import source
from licet.screen.facts import Binding, Facts, Imported, Place, Scope
from licet.screen.features import SPECIAL_METHODS
from licet.screen.names import EAGER

_PLAIN_ANNOTATION = re.compile(r"[\w\s.,|\[\]]*", re.ASCII)
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def walk(tree: ast.Module) -> Facts:
    """Collect the facts of a whole program."""
    walker = _Walker(tree)
    walker.run()
    return walker.facts


class _Walker:
    def __init__(self, tree: ast.Module) -> None:
        self.facts = Facts()
        self.module = Scope("module")
        self.stack: list[tuple[ast.AST, Scope]] = [(node, self.module) for node in reversed(tree.body)]
        self.top = set(tree.body)
        self.optional: set[ast.AST] = set()

    def run(self) -> None:
        stack, facts, handlers, fields = self.stack, self.facts, _HANDLERS, _FIELDS
        loads, strings = facts.loads, facts.strings
        while stack:
            item = stack.pop()
            node, scope = item
            kind = type(node)
            if kind is ast.Name:
                if type(node.ctx) is ast.Load:  # type: ignore[attr-defined]
                    loads.append(item)  # type: ignore[arg-type]
                else:
                    self.target(node, None, scope)  # type: ignore[arg-type]
                continue
            if kind is ast.Constant:
                if type(node.value) is str:  # type: ignore[attr-defined]
                    strings.append(node)  # type: ignore[arg-type]
                continue
            handler = handlers.get(kind)
            if handler is not None:
                handler(self, node, scope)
                continue
            for name in fields[kind]:
                value = getattr(node, name)
                if type(value) is list:
                    stack.extend([(child, scope) for child in value if isinstance(child, ast.AST)])
                elif isinstance(value, ast.AST):
                    stack.append((value, scope))

    def push(self, nodes: Iterable[ast.AST | None], scope: Scope) -> None:
        self.stack.extend([(node, scope) for node in nodes if node is not None])

    # binding

    def bind(self, name: str, scope: Scope, statement: ast.stmt | None = None) -> None:
        """Note that `name` is bound in `scope`, for certain if `statement` is one of the module's own."""
        facts = self.facts
        scope.bound.add(name)
        facts.times_bound[name] = facts.times_bound.get(name, 0) + 1
        if scope is self.module and statement in self.top:
            place = _bound_from(statement)
            facts.certain[name] = min(place, facts.certain.get(name, place))

    def alias(self, name: str, value: ast.expr, scope: Scope) -> None:
        self.facts.bindings.append(Binding(name, value))
        if scope.kind == "class":
            self.facts.bindings.append(Binding("." + name, value))

    def target(
        self, target: ast.expr, value: ast.expr | None, scope: Scope, statement: ast.stmt | None = None
    ) -> None:
        """Bind an assignment target, element by element where target and value are both sequences."""
        pending: list[tuple[ast.expr, ast.expr | None]] = [(target, value)]
        while pending:
            target, value = pending.pop()
            if isinstance(target, ast.Name):
                self.bind(target.id, scope, statement)
                if target.id in _GUARDED:
                    self._guarded(target, value, scope)
                if value is not None:
                    self.facts.carried.add(value)
                    self.alias(target.id, value, scope)
            elif isinstance(target, ast.Starred):
                pending.append((target.value, None))
            elif isinstance(target, (ast.Tuple, ast.List)):
                pending += zip(target.elts, _elements(value, target.elts), strict=True)
            else:
                if isinstance(target, ast.Attribute) and value is not None:
                    self.facts.carried.add(value)
                    self.facts.bindings.append(Binding("." + target.attr, value))
                self.stack.append((target, scope))

    def _guarded(self, target: ast.Name, value: ast.expr | None, scope: Scope) -> None:
        if target.id == "__match_args__" and value is not None:
            self.facts.match_args.append((value, target.lineno))
        elif target.id == "__match_args__" or target.id == "__builtins__":
            self.facts.replaced.append((target.id, target.lineno))

    def assign(self, node: ast.Assign, scope: Scope) -> None:
        for target in node.targets:
            self.target(target, node.value, scope, node)
        self.stack.append((node.value, scope))

    def ann_assign(self, node: ast.AnnAssign, scope: Scope) -> None:
        self.annotation(node.annotation, scope)
        if node.value is not None:
            self.target(node.target, node.value, scope, node)
            self.stack.append((node.value, scope))
        elif isinstance(node.target, ast.Name):
            scope.bound.add(node.target.id)
        else:
            self.stack.append((node.target, scope))

    def aug_assign(self, node: ast.AugAssign, scope: Scope) -> None:
        if isinstance(node.op, ast.MatMult):
            self.facts.feature("matmul_assignment", node.lineno)
        if isinstance(node.target, ast.Name):
            self.facts.loads.append(
                (ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target), scope)
            )
        self.target(node.target, None, scope)
        self.stack.append((node.value, scope))

    def named(self, node: ast.NamedExpr, scope: Scope) -> None:
        self.facts.feature("assignment_expression", node.lineno)
        self.facts.walruses.append(node)
        outer = scope
        while outer.kind == "comprehension" and outer.parent is not None:
            outer = outer.parent
        self.target(node.target, node.value, outer)
        self.stack.append((node.value, scope))

    def delete(self, node: ast.Delete, scope: Scope) -> None:
        self.facts.feature("del_statement", node.lineno)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.facts.deleted.add(target.id)
                self.bind(target.id, scope)
            else:
                self.stack.append((target, scope))

    def declare(self, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
        self.facts.feature(
            "global_statement" if isinstance(node, ast.Global) else "nonlocal_statement", node.lineno
        )
        scope.outward.update(node.names)

    # definitions

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        facts = self.facts
        facts.functions.add(node.name)
        if isinstance(node, ast.AsyncFunctionDef):
            facts.feature("async_function", node.lineno)
        if node.decorator_list:
            facts.feature("method_decorator" if scope.kind == "class" else "function_decorator", node.lineno)
        if scope.kind == "class" and node.name in SPECIAL_METHODS:
            facts.feature(f"defines:{node.name}", node.lineno)
        self.bind(node.name, scope, node)
        self.push(node.decorator_list, scope)
        self.type_parameters(node, scope)
        inner = self.parameters(node, scope)
        if node.returns is not None:
            self.annotation(node.returns, scope)
        self.push(node.body, inner)

    def lambda_(self, node: ast.Lambda, scope: Scope) -> None:
        self.stack.append((node.body, self.parameters(node, scope)))

    def parameters(self, node: _Function, scope: Scope) -> Scope:
        """Bind the parameters in a new scope, with their defaults and annotated classes as values."""
        inner = Scope("function", scope)
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(named) - len(arguments.defaults)) + list(
            arguments.defaults
        )
        named += arguments.kwonlyargs
        defaults += arguments.kw_defaults
        for parameter, default in zip(named, defaults, strict=True):
            self.target(ast.copy_location(ast.Name(parameter.arg, ast.Store()), parameter), default, inner)
            self.bind(parameter.arg, inner)  # a second time: what a caller passes is another value
            if isinstance(parameter.annotation, (ast.Name, ast.Attribute)):
                instance = ast.Call(parameter.annotation, [], [])
                self.facts.bindings.append(Binding(parameter.arg, ast.copy_location(instance, parameter)))
        extra = [parameter for parameter in (arguments.vararg, arguments.kwarg) if parameter is not None]
        for parameter in extra:
            self.bind(parameter.arg, inner)
        self.push(defaults, scope)
        for parameter in named + extra:
            if parameter.annotation is not None:
                self.annotation(parameter.annotation, scope)
        return inner

    def class_(self, node: ast.ClassDef, scope: Scope) -> None:
        facts = self.facts
        facts.classes.add(node.name)
        self.bind(node.name, scope, node)
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
        self.type_parameters(node, scope)
        self.push(node.decorator_list, scope)
        self.push(node.bases, scope)
        self.push(node.keywords, scope)
        self.push(node.body, Scope("class", scope))

    def type_parameters(self, node: ast.AST, scope: Scope) -> None:
        parameters: list[ast.AST] = getattr(node, "type_params", [])
        for parameter in parameters:
            self.facts.feature("type_parameters", node.lineno)  # type: ignore[attr-defined]
            self.bind(parameter.name, scope)  # type: ignore[attr-defined]
        self.push(parameters, scope)

    def type_alias(self, node: ast.AST, scope: Scope) -> None:
        self.facts.feature("type_alias", node.lineno)  # type: ignore[attr-defined]
        self.type_parameters(node, scope)
        self.target(node.name, None, scope)  # type: ignore[attr-defined]
        self.stack.append((node.value, scope))  # type: ignore[attr-defined]

    def annotation(self, node: ast.expr, scope: Scope) -> None:
        """Walk an annotation; text inside it is code, and is parsed at the place where it stands."""
        self.stack.append((node, scope))
        for part in ast.walk(node):
            if not isinstance(part, ast.Constant) or not isinstance(part.value, str):
                continue
            if "__" not in part.value and _PLAIN_ANNOTATION.fullmatch(part.value):
                continue
            if source.complexity(part.value) or source.unparsable(part.value):
                continue
            tree = source.parse(part.value.strip())
            if isinstance(tree, ast.Module):
                for inner in ast.walk(tree):
                    if isinstance(inner, (ast.expr, ast.stmt)):
                        ast.copy_location(inner, part)
                self.push(tree.body, scope)

    # control flow

    def import_(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        facts = self.facts
        facts.imports.append(Imported(node, scope, node in self.optional))
        for name in node.names:
            if name.name == "*":
                facts.feature("star_import", node.lineno)
            elif name.asname or isinstance(node, ast.ImportFrom):
                self.bind(name.asname or name.name, scope, node)
            else:
                self.bind(name.name.partition(".")[0], scope, node)
        if isinstance(node, ast.ImportFrom) and node.level:
            facts.feature("relative_import", node.lineno)

    def try_(self, node: ast.Try, scope: Scope) -> None:
        if type(node) is not ast.Try:
            self.facts.feature("except_star", node.lineno)
        if any(_catches_imports(handler) for handler in node.handlers):
            self.optional.update(node.body)
        self.push(node.body, scope)
        self.push(node.handlers, scope)
        self.push(node.orelse, scope)
        self.push(node.finalbody, scope)

    def handler(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.name:
            self.bind(node.name, scope)
            self.facts.deleted.add(node.name)
            self.facts.exception_names.add(node.name)
        self.push([node.type, *node.body], scope)

    def if_(self, node: ast.If, scope: Scope) -> None:
        name = node.test.attr if isinstance(node.test, ast.Attribute) else getattr(node.test, "id", "")
        if name == "TYPE_CHECKING":
            self.optional.update(node.body)
        self.facts.compared.add(node.test)
        self.stack.append((node.test, scope))
        self.push(node.body, scope)
        self.push(node.orelse, scope)

    def for_(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        if isinstance(node, ast.AsyncFor):
            self.facts.feature("async_for", node.lineno)
        self.loop(node.target, node.iter, scope)
        self.stack.append((node.iter, scope))
        self.push(node.body, scope)
        self.push(node.orelse, scope)

    def loop(self, target: ast.expr, iterated: ast.expr, scope: Scope) -> None:
        values = iterated.elts if isinstance(iterated, (ast.Tuple, ast.List, ast.Set)) else []
        for value in values:
            self.target(target, value, scope)
        if not values:
            self.target(target, None, scope)

    def with_(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        if isinstance(node, ast.AsyncWith):
            self.facts.feature("async_with", node.lineno)
        for item in node.items:
            self.stack.append((item.context_expr, scope))
            if item.optional_vars is not None:
                self.target(item.optional_vars, None, scope)
        self.push(node.body, scope)

    def await_(self, node: ast.Await, scope: Scope) -> None:
        if not scope.in_function():
            self.facts.feature("top_level_await", node.lineno)
        self.stack.append((node.value, scope))

    def yield_(self, node: ast.Yield | ast.YieldFrom, scope: Scope) -> None:
        self.facts.feature("generator", node.lineno)
        self.push([node.value], scope)

    # expressions

    def attribute(self, node: ast.Attribute, scope: Scope) -> None:
        self.facts.attributes.append(node)
        self.facts.bases.add(node.value)
        self.stack.append((node.value, scope))

    def call(self, node: ast.Call, scope: Scope) -> None:
        facts, function = self.facts, node.func
        facts.calls.append((node, scope))
        facts.called[function] = node
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if name in EAGER:
            facts.eager.update(node.args)
        self.stack.append((function, scope))
        self.push(node.args, scope)
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

    def compare(self, node: ast.Compare, scope: Scope) -> None:
        operands = [node.left, *node.comparators]
        if all(isinstance(sign, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) for sign in node.ops):
            self.facts.compared.update(operands)
        self.push(operands, scope)

    def statement(self, node: ast.Expr, scope: Scope) -> None:
        self.facts.compared.add(node.value)
        self.stack.append((node.value, scope))

    def subscript(self, node: ast.Subscript, scope: Scope) -> None:
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            self.facts.keys.append(node.slice)
        self.stack.append((node.value, scope))
        self.stack.append((node.slice, scope))

    def comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: Scope
    ) -> None:
        inner = Scope("comprehension", scope)
        for part in node.generators:
            if part.is_async:
                self.facts.feature("async_comprehension", node.lineno)
            self.loop(part.target, part.iter, inner)
            self.push([part.iter, *part.ifs], inner)
        if isinstance(node, ast.DictComp):
            self.push([node.key, node.value], inner)
        else:
            self.stack.append((node.elt, inner))
        if isinstance(node, ast.GeneratorExp):
            self.facts.generators.append(node)

    def template(self, node: ast.AST, scope: Scope) -> None:
        self.facts.feature("template_string", node.lineno)  # type: ignore[attr-defined]
        self.push(node.values, scope)  # type: ignore[attr-defined]

    # match

    def match(self, node: ast.Match, scope: Scope) -> None:
        self.facts.feature("match_statement", node.lineno)
        subject = node.subject
        for case in node.cases:
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.pattern.name:
                self.facts.carried.add(subject)
                self.alias(case.pattern.name, subject, scope)
        self.stack.append((subject, scope))
        self.push(node.cases, scope)

    def capture(self, node: ast.MatchAs | ast.MatchStar, scope: Scope) -> None:
        if node.name is not None:
            self.bind(node.name, scope)
        self.push([getattr(node, "pattern", None)], scope)

    def match_mapping(self, node: ast.MatchMapping, scope: Scope) -> None:
        if node.rest is not None:
            self.bind(node.rest, scope)
        self.facts.keys += [
            key for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
        ]
        self.push(node.keys, scope)
        self.push(node.patterns, scope)

    def match_class(self, node: ast.MatchClass, scope: Scope) -> None:
        self.facts.pattern_names += [(name, node.lineno) for name in node.kwd_attrs]
        self.facts.bases.add(node.cls)
        self.stack.append((node.cls, scope))
        self.push(node.patterns, scope)
        self.push(node.kwd_patterns, scope)


def _bound_from(statement: ast.stmt) -> Place:
    """From where on the names of a statement are bound: its end, or the body of an undecorated function.

    Such a body can't run before the name is bound, so a recursive function may bear a built-in's name.
    """
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and not statement.decorator_list:
        return (statement.body[0].lineno, statement.body[0].col_offset)
    return (statement.end_lineno or 0, statement.end_col_offset or 0)


def _elements(value: ast.expr | None, targets: list[ast.expr]) -> list[ast.expr | None]:
    """The values for each of several targets, None where they can't be told."""
    if isinstance(value, (ast.Tuple, ast.List)):
        starred = any(isinstance(part, ast.Starred) for part in [*targets, *value.elts])
        if not starred and len(value.elts) == len(targets):
            return list(value.elts)
    return [None] * len(targets)


def _simple_member(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.target, ast.Name)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Pass))


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or getattr(kind, "id", "") in _IMPORT_ERRORS for kind in caught)


_GUARDED = frozenset({"__match_args__", "__builtins__"})
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
_HANDLER_OF: dict[str, Callable[..., None]] = {
    "Assign": _Walker.assign,
    "AnnAssign": _Walker.ann_assign,
    "AugAssign": _Walker.aug_assign,
    "NamedExpr": _Walker.named,
    "Delete": _Walker.delete,
    "Global": _Walker.declare,
    "Nonlocal": _Walker.declare,
    "FunctionDef": _Walker.function,
    "AsyncFunctionDef": _Walker.function,
    "Lambda": _Walker.lambda_,
    "ClassDef": _Walker.class_,
    "TypeAlias": _Walker.type_alias,
    "Import": _Walker.import_,
    "ImportFrom": _Walker.import_,
    "Try": _Walker.try_,
    "TryStar": _Walker.try_,
    "ExceptHandler": _Walker.handler,
    "If": _Walker.if_,
    "For": _Walker.for_,
    "AsyncFor": _Walker.for_,
    "With": _Walker.with_,
    "AsyncWith": _Walker.with_,
    "Await": _Walker.await_,
    "Yield": _Walker.yield_,
    "YieldFrom": _Walker.yield_,
    "Attribute": _Walker.attribute,
    "Call": _Walker.call,
    "Subscript": _Walker.subscript,
    "Compare": _Walker.compare,
    "Expr": _Walker.statement,
    "ListComp": _Walker.comprehension,
    "SetComp": _Walker.comprehension,
    "DictComp": _Walker.comprehension,
    "GeneratorExp": _Walker.comprehension,
    "TemplateStr": _Walker.template,
    "Match": _Walker.match,
    "MatchAs": _Walker.capture,
    "MatchStar": _Walker.capture,
    "MatchMapping": _Walker.match_mapping,
    "MatchClass": _Walker.match_class,
}
_HANDLERS: dict[type[ast.AST], Callable[..., None]] = {
    getattr(ast, name): handler for name, handler in _HANDLER_OF.items() if hasattr(ast, name)
}
