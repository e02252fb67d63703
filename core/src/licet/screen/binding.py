"""Names and the values bound to them, in every position where Python binds.

Rules this module keeps:

- a value is noted where the text pairs it with its target, also inside tuples and literal loops;
- a name bound in a class body is also bound as an attribute, since that is how it is reached from outside;
- a module bound to a plain name or attribute is *carried*: its uses are judged through that name;
- a name that Python itself looks up (`__builtins__`, `__match_args__`) is noted wherever it is bound.
"""

from __future__ import annotations

import ast

from licet.screen.facts import Binding, Facts, Place, Scope

_GUARDED = frozenset({"__match_args__", "__builtins__"})


class Binder:
    """Collects bindings into `facts`; expressions that are left to walk go onto `stack`."""

    def __init__(self, tree: ast.Module) -> None:
        self.facts = Facts()
        self.module = Scope("module")
        self.stack: list[tuple[ast.AST, Scope]] = [(node, self.module) for node in reversed(tree.body)]
        self.top = set(tree.body)

    def bind(
        self, name: str, scope: Scope, line: int, statement: ast.stmt | None = None, *, paired: bool = False
    ) -> None:
        """Note that `name` is bound in `scope`, for certain if `statement` is one of the module's own.

        `paired` says that the value is shown, and judged where the name is one that Python itself looks up.
        """
        facts = self.facts
        scope.bound.add(name)
        facts.times_bound[name] = facts.times_bound.get(name, 0) + 1
        if scope.kind == "class":
            facts.members.add(name)
        if name in _GUARDED and not paired:
            facts.replaced.append((name, line))
        if statement is not None and scope is self.module and statement in self.top:
            place = _bound_from(statement)
            facts.certain[name] = min(place, facts.certain.get(name, place))

    def alias(self, name: str, value: ast.expr, scope: Scope) -> None:
        """Note that `name`, bound in `scope`, may stand for `value`."""
        self.facts.bindings.append(Binding(name, value))
        if scope.kind == "class":
            self.facts.bindings.append(Binding("." + name, value))

    def target(
        self, target: ast.expr, value: ast.expr | None, scope: Scope, statement: ast.stmt | None = None
    ) -> None:
        """Bind an assignment target, element by element where target and value are both sequences."""
        if isinstance(target, ast.Name):
            self._name(target, value, scope, statement)
            return
        pending: list[tuple[ast.expr, ast.expr | None]] = [(target, value)]
        while pending:
            target, value = pending.pop()
            if isinstance(target, ast.Name):
                self._name(target, value, scope, statement)
            elif isinstance(target, ast.Starred):
                pending.append((target.value, None))
            elif isinstance(target, (ast.Tuple, ast.List)):
                pending += zip(target.elts, _elements(value, target.elts), strict=True)
            else:
                if isinstance(target, ast.Attribute) and value is not None:
                    self.facts.carried.add(value)
                    self.facts.bindings.append(Binding("." + target.attr, value))
                self.stack.append((target, scope))

    def _name(
        self, target: ast.Name, value: ast.expr | None, scope: Scope, statement: ast.stmt | None
    ) -> None:
        name = target.id
        paired = value is not None and name == "__match_args__"
        self.bind(name, scope, target.lineno, statement, paired=paired)
        if value is not None:
            if paired:
                self.facts.match_args.append((value, target.lineno))
            self.facts.carried.add(value)
            self.alias(name, value, scope)

    def loop(self, target: ast.expr, iterated: ast.expr, scope: Scope) -> None:
        """Bind the target of a loop, to each element where a literal is looped over."""
        values = iterated.elts if isinstance(iterated, (ast.Tuple, ast.List, ast.Set)) else []
        for value in values:
            self.target(target, value, scope)
        if not values:
            self.target(target, None, scope)


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
