"""What one walk over the syntax tree collects, before anything is judged.

Rules this module keeps: scopes follow Python's; a name is *shadowed* only where the language guarantees that
the built-in of that name can't be meant.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

_LIST = re.compile(r"\w+")
_LIST_ONLY = re.compile(r"[\w ,-]*+")

Place = tuple[int, int]
"""Line and column."""


@dataclass(slots=True, eq=False)
class Scope:
    """A scope and the names bound in it; `outward` are those declared global or nonlocal."""

    kind: Literal["module", "class", "function", "comprehension"]
    parent: Scope | None = None
    bound: set[str] = field(default_factory=set)
    outward: set[str] = field(default_factory=set)

    def in_function(self) -> bool:
        """Whether code in this scope runs as part of a function."""
        scope: Scope | None = self
        while scope is not None and scope.kind != "function":
            scope = scope.parent
        return scope is not None


class Binding(NamedTuple):
    """A value bound to a name, or (`.name`) to an attribute of that name on any object."""

    target: str
    value: ast.expr


@dataclass(frozen=True, slots=True)
class Imported:
    """An import statement; `optional` where its failure is caught or it is for type checkers only."""

    node: ast.Import | ast.ImportFrom
    scope: Scope
    optional: bool


def _listed(text: str) -> list[str]:
    """The names in a text that lists nothing else, as `namedtuple` and options of a command do."""
    return _LIST.findall(text) if len(text) < 200 and _LIST_ONLY.fullmatch(text) else []


@dataclass(slots=True, eq=False)
class Facts:
    """The parts of the tree that are judged, each list in no particular order."""

    loads: list[tuple[ast.Name, Scope]] = field(default_factory=list)
    read: set[str] = field(default_factory=set)  # the names in `loads`
    attributes: list[ast.Attribute] = field(default_factory=list)
    calls: list[tuple[ast.Call, Scope]] = field(default_factory=list)
    imports: list[Imported] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    walruses: list[ast.NamedExpr] = field(default_factory=list)
    generators: list[ast.GeneratorExp] = field(default_factory=list)
    strings: list[tuple[str, ast.Constant]] = field(default_factory=list)
    joined: list[ast.expr] = field(default_factory=list)  # sums and f-strings
    keys: list[ast.Constant] = field(default_factory=list)
    pattern_names: list[tuple[str, int]] = field(default_factory=list)
    match_args: list[tuple[ast.expr, int]] = field(default_factory=list)
    fields: list[tuple[str, int]] = field(default_factory=list)  # of a class, annotated
    replaced: list[tuple[str, int]] = field(default_factory=list)
    members: set[str] = field(default_factory=set)  # names bound in the body of a class
    exception_names: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    times_bound: dict[str, int] = field(default_factory=dict)
    certain: dict[str, Place] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    features: dict[str, int] = field(default_factory=dict)
    bases: set[ast.expr] = field(default_factory=set)
    called: dict[ast.expr, ast.Call] = field(default_factory=dict)
    carried: set[ast.expr] = field(default_factory=set)
    compared: set[ast.expr] = field(default_factory=set)  # by identity, or as a truth value
    eager: set[ast.expr] = field(default_factory=set)
    _made: dict[str, bool] = field(default_factory=dict)

    def feature(self, name: str, line: int) -> None:
        """Note the first line of a feature."""
        if line < self.features.get(name, line + 1):
            self.features[name] = line

    def makes(self, name: str) -> bool:
        """Whether the code itself gives some object an attribute of that name, as far as its text shows."""
        if name not in self._made:
            asked = self._asked()
            self._made[name] = (
                name in self.members
                or any(node.attr == name and isinstance(node.ctx, ast.Store) for node in self.attributes)
                or any(item.arg == name for call, _ in self.calls for item in call.keywords)
                or any(name in _listed(text) for text, node in self.strings if node not in asked)
            )
        return self._made[name]

    def _asked(self) -> set[ast.expr]:
        """The arguments that name an attribute to be read."""
        readers = ("getattr", "hasattr", "attrgetter", "methodcaller")
        return {
            value
            for call, _ in self.calls
            for value in call.args
            if (call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", ""))
            in readers
        }

    def shadowed(self, name: str, scope: Scope, place: Place) -> bool:
        """Whether `name`, read in `scope` at `place`, surely isn't the built-in of that name.

        Sure are the locals of a function, which are unbound rather than looked up further, and what the
        module binds in a statement of its own before the place, if it is never deleted.
        """
        inner: Scope | None = scope
        while inner is not None and inner.kind != "module":
            if inner.kind != "class" and name in inner.bound and name not in inner.outward:
                return True
            inner = inner.parent
        first = self.certain.get(name)
        return first is not None and first <= place and name not in self.deleted
