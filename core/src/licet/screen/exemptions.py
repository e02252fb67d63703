"""When a name that is refused in general is harmless in the way that it is called.

Rules this module keeps: each check looks at one call only, answers True where it is sure, and is named in the
tables of `licet.screen.modules`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import MappingProxyType

from licet.screen.facts import Facts, Scope
from licet.screen.names import DOORS, HARMLESS_SPECIAL, INTERNAL, INTERNAL_PREFIXES, UNSTORABLE
from licet.screen.resolve import Resolver

Check = Callable[[ast.Call, Scope | None, Facts, Resolver], bool]


def readable(name: str) -> bool:
    """Whether an attribute of that name may be read from any object."""
    if name in INTERNAL:
        return False
    special = name.startswith("__") and name.endswith("__") and len(name) > 4
    return not special or name in HARMLESS_SPECIAL


def leads_out(name: str, facts: Facts) -> bool:
    """Whether an attribute of that name leads from an object that the code got to a module or beyond."""
    return name in DOORS and not facts.makes(name)


def storable(name: str) -> bool:
    """Whether an attribute of that name may be set on any object that isn't a module."""
    return readable(name) and name not in UNSTORABLE


def _name_argument(call: ast.Call) -> ast.expr | None:
    plain = len(call.args) >= 2 and not any(isinstance(value, ast.Starred) for value in call.args)
    return call.args[1] if plain else None


def _named_attribute(call: ast.Call, scope: Scope | None, facts: Facts, known: Resolver) -> bool:
    """A literal harmless name, or a computed one whose visible beginning rules internals out."""
    beginning, complete = known.beginning(_name_argument(call))
    if complete:
        return readable(beginning) and not leads_out(beginning, facts) and "." not in beginning
    if any(known.is_module(path) for path in known.paths(call.args[0])) if call.args else True:
        return False
    first = beginning[:1]
    return first.isalpha() and not any(
        beginning.startswith(prefix) or prefix.startswith(beginning) for prefix in INTERNAL_PREFIXES
    )


def _stored_attribute(call: ast.Call, scope: Scope | None, facts: Facts, known: Resolver) -> bool:
    """A literal name that may be set, or any name on `self`."""
    name = known.text(_name_argument(call))
    if name is not None:
        return storable(name)
    target = call.args[0] if call.args else None
    return isinstance(target, ast.Name) and target.id == "self" and not known.paths(target)


def _named_getters(call: ast.Call, scope: Scope | None, facts: Facts, known: Resolver) -> bool:
    """`attrgetter` and `methodcaller` with literal harmless names."""
    names = call.args[:1] if known.paths(call.func) == {"operator.methodcaller"} else call.args
    texts = [None if isinstance(value, ast.Starred) else known.text(value) for value in names]
    return bool(texts) and all(
        text is not None and all(readable(part) and not leads_out(part, facts) for part in text.split("."))
        for text in texts
    )


def _vars_of_object(call: ast.Call, scope: Scope | None, facts: Facts, known: Resolver) -> bool:
    """`vars(name)` of an object that the code made, or `vars()` inside a function."""
    if not call.args and not call.keywords:
        return _inside_function(call, scope, facts, known)
    target = call.args[0] if len(call.args) == 1 else None
    if not isinstance(target, ast.Name) or target.id not in facts.times_bound or known.paths(target):
        return False
    value = known.value(target)
    maker = value.func if isinstance(value, ast.Call) else value
    of_builtin = isinstance(maker, ast.Name) and maker.id not in facts.times_bound
    return not of_builtin and not known.holds_modules(as_attributes=True)


def _inside_function(call: ast.Call, scope: Scope | None, facts: Facts, known: Resolver) -> bool:
    """`locals()` where it holds the names of a function, none of them a module."""
    in_function = not call.args and scope is not None and scope.in_function()
    return in_function and not known.holds_modules(as_attributes=False)


def _plain_exit(call: ast.Call, scope: Scope | None, facts: Facts, known: Resolver) -> bool:
    """`exit()` called, in place of `sys.exit()`."""
    return True


def _plain_signature(call: ast.Call, scope: Scope | None, facts: Facts, known: Resolver) -> bool:
    """A signature whose annotations aren't evaluated."""
    return len(call.args) <= 1 and not any(item.arg in (None, "eval_str") for item in call.keywords)


def _callable_statement(call: ast.Call, scope: Scope | None, facts: Facts, known: Resolver) -> bool:
    """`timeit` of a function or lambda in place of text, with no text as set-up."""
    statement = call.args[0] if call.args else None
    function = isinstance(statement, ast.Lambda) or (
        isinstance(statement, ast.Name) and statement.id in facts.functions
    )
    return (
        function and len(call.args) == 1 and all(item.arg in ("number", "repeat") for item in call.keywords)
    )


CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "named_attribute": _named_attribute,
        "stored_attribute": _stored_attribute,
        "named_getters": _named_getters,
        "vars_of_object": _vars_of_object,
        "inside_function": _inside_function,
        "plain_exit": _plain_exit,
        "plain_signature": _plain_signature,
        "callable_statement": _callable_statement,
    }
)
"""The check for each value of `Rule.unless`."""
