"""What an expression stands for, as far as that can be told without running the code.

Rules this module keeps:

- an alias counts everywhere in the code, whichever scope it was made in: this errs on the side of seeing
  a module where none is, and never the other way;
- only paths that lead to a module, to a judged name or to a known instance are followed;
- a constant counts only where the name is bound once in the whole code;
- nothing recurses deeper than `_DEPTH`; what is deeper stands for nothing;
- a name that stands for more than `_WIDTH` things is reported in `overflow`, never cut short in silence.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict, deque
from collections.abc import Iterator
from functools import cached_property

from licet.screen.facts import Binding, Facts
from licet.screen.modules import IN_MEMORY, INSTANCES, PROPERTIES, RULES
from licet.screen.rules import words
from licet.screen.stdlib import SAME_AS, SUBMODULES

_DEPTH = 24
_MAX_TEXT = 4096
_WIDTH = 64
_JOINERS = words(
    "pathlib.Path pathlib.PosixPath pathlib.PurePath pathlib.PurePosixPath os.path.join os.fspath"
)
_NOTHING: frozenset[str] = frozenset()
_PREFIXES = frozenset(
    path[:cut] for path in (*RULES, *INSTANCES, *SUBMODULES) for cut, sign in enumerate(path) if sign == "."
)
_FOLLOWED = _PREFIXES | RULES.keys() | INSTANCES.keys() | SUBMODULES | {IN_MEMORY, *INSTANCES.values()}


def canonical(path: str) -> str:
    """Give a module that has two names its first one."""
    root, dot, rest = path.partition(".")
    return f"{SAME_AS[root]}{dot}{rest}" if root in SAME_AS else path


class Resolver:
    """Aliases and constants of one program; `overflow` is set where there were too many to follow.

    `aliases` are the names that stand for something, and (as `.name`) the attributes; `sighted` says whether
    anything in the code could stand for a module at all.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.aliases: dict[str, frozenset[str]] = {}
        self._modules: set[str] = set()
        self.overflow: ast.expr | ast.stmt | None = None
        self.sighted = False
        self._texts: dict[str, tuple[str, bool]] = {}
        if facts.imports:
            self._import_all()
        self.sighted = bool(self.aliases) or "__import__" in facts.read
        if self.sighted:
            self._propagate()

    @cached_property
    def _constants(self) -> dict[str, ast.expr]:
        return _constants(self._facts)

    def is_module(self, path: str) -> bool:
        """Whether a path names a module, of the standard library or imported by the code."""
        return path in SUBMODULES or path in self._modules or path in sys.stdlib_module_names

    def is_imported(self, module: str) -> bool:
        """Whether the code imports the module by a statement."""
        return module in self._modules

    def holds_modules(self, *, as_attributes: bool) -> bool:
        """Whether a name (or an attribute) of the code stands for a module."""
        return any(
            name.startswith(".") == as_attributes and any(self.is_module(path) for path in paths)
            for name, paths in self.aliases.items()
        )

    def paths(self, node: ast.expr, depth: int = 0) -> frozenset[str]:
        """Return the paths that `node` may stand for; empty where that can't be told."""
        if not self.sighted:
            return _NOTHING  # no import is in sight, so that nothing stands for anything
        if type(node) is ast.Name:
            return self.aliases.get(node.id, _NOTHING)
        members: list[str] = []
        while isinstance(node, (ast.Attribute, ast.NamedExpr)):
            if isinstance(node, ast.Attribute):
                members.append(node.attr)
                node = node.value
            else:
                node = node.value
        found = self._root(node, depth)
        while members and (found or self.aliases):
            member = members.pop()
            found = self._members(found, member) or self.aliases.get("." + member, _NOTHING)
        return found

    def text(self, node: ast.expr | None, depth: int = 0) -> str | None:
        """Return the text that `node` evaluates to for certain (a path for `Path(...)`), or None."""
        whole, complete = self.beginning(node, depth)
        return whole if complete else None

    def beginning(self, node: ast.expr | None, depth: int = 0) -> tuple[str, bool]:
        """Return how the text that `node` evaluates to begins, and whether that is all of it."""
        if depth > _DEPTH or node is None:
            return "", False
        if isinstance(node, ast.Constant):
            text = node.value if isinstance(node.value, str) else None
            return ("", False) if text is None else (text[:_MAX_TEXT], len(text) <= _MAX_TEXT)
        if isinstance(node, ast.Name):
            if node.id not in self._texts:
                self._texts[node.id] = ("", False)  # what a name that depends on itself gets
                self._texts[node.id] = self.beginning(self._constants.get(node.id), depth + 1)
            return self._texts[node.id]
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
            return self._joined([node.left, node.right], "/" if isinstance(node.op, ast.Div) else "", depth)
        if isinstance(node, ast.JoinedStr):
            parts = [
                part.value
                if isinstance(part, ast.FormattedValue) and part.conversion < 0 and not part.format_spec
                else part
                for part in node.values
            ]
            return self._joined(parts, "", depth)
        if isinstance(node, ast.Call) and node.args and not node.keywords:
            function = self.paths(node.func, depth + 1)
            if function and function <= _JOINERS and self._surely(node.func):
                return self._joined(node.args, "/", depth)
        return "", False

    def _surely(self, node: ast.expr) -> bool:
        """Whether the first name of a dotted name is bound once, so that it means the same everywhere."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and self._facts.times_bound.get(node.id) == 1

    def _joined(self, parts: list[ast.expr], separator: str, depth: int) -> tuple[str, bool]:
        text = ""
        for index, part in enumerate(parts):
            piece, complete = self.beginning(part, depth + 1)
            if separator and piece.startswith("/"):
                text = piece
            else:
                text = f"{text.rstrip('/')}{separator}{piece}" if index and separator else text + piece
            if not complete or len(text) > _MAX_TEXT:
                return text, False
        return text, True

    def constant(self, node: ast.expr | None) -> object:
        """Return the number, text or other constant that `node` is for certain, or None."""
        if isinstance(node, ast.Name):
            node = self._constants.get(node.id)
        return node.value if isinstance(node, ast.Constant) else None

    def value(self, node: ast.expr) -> ast.expr:
        """Return the expression that `node` was bound to if it is a name bound once, else `node`."""
        return self._constants.get(node.id, node) if isinstance(node, ast.Name) else node

    def _root(self, node: ast.expr, depth: int) -> frozenset[str]:
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, _NOTHING)
        if depth > _DEPTH:
            return _NOTHING
        if isinstance(node, ast.Call):
            return self._result(node, depth + 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return self.paths(node.left, depth + 1) & {"pathlib.Path()"}
        if isinstance(node, ast.Await):
            return self.paths(node.value, depth + 1)
        return _NOTHING

    def _result(self, node: ast.Call, depth: int) -> frozenset[str]:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "getattr" and len(node.args) >= 2:
            member = self.text(node.args[1])
            if not member:
                return _NOTHING
            return self._members(self.paths(node.args[0], depth), member) or self.aliases.get(
                "." + member, _NOTHING
            )
        if name == "__import__" and node.args:
            module = self.text(node.args[0])
            return self._followed({canonical(module.partition(".")[0])}) if module else _NOTHING
        function = self.paths(node.func, depth)
        return frozenset(INSTANCES[path] for path in function if path in INSTANCES)

    def _members(self, bases: frozenset[str], member: str) -> frozenset[str]:
        found: set[str] = set()
        for base in bases:
            path = canonical(f"{base}.{member}")
            found.add(PROPERTIES.get(path, path))
            unbound = f"{INSTANCES.get(base)}.{member}"  # a method taken from its class
            if unbound in RULES:
                found.add(unbound)
        return self._followed(found)

    def _followed(self, paths: set[str]) -> frozenset[str]:
        return frozenset(path for path in paths if self._is_followed(path))

    def _is_followed(self, path: str) -> bool:
        if path in _FOLLOWED or self.is_module(path):
            return True
        parent = path.rpartition(".")[0]
        return self.is_module(parent) or parent + ".*" in RULES

    def _import_all(self) -> None:
        aliases: defaultdict[str, set[str]] = defaultdict(set)
        for imported in self._facts.imports:
            for name, path, module in _bound_by(imported.node):
                self._modules.update(_with_parents(module))
                aliases[name].add(path)
                if imported.scope.kind == "class":
                    aliases["." + name].add(path)
                if len(aliases[name]) > _WIDTH:
                    self.overflow = imported.node
                    return
        self.aliases = {name: frozenset(paths) for name, paths in aliases.items()}

    def _propagate(self) -> None:
        """Follow bindings from name to name until nothing new is found."""
        users: defaultdict[str, list[Binding]] = defaultdict(list)
        for binding in self._facts.bindings:
            for name in _sources(binding.value):
                users[name].append(binding)
        pending = deque(self._facts.bindings if users else ())
        while pending:
            binding = pending.popleft()
            known = self.aliases.get(binding.target, _NOTHING)
            found = self.paths(binding.value) - known
            if len(known | found) > _WIDTH:
                self.overflow = binding.value
            elif found:
                self.aliases[binding.target] = known | found
                pending.extend(users.get(binding.target, ()))


def _bound_by(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """The names that an import binds, what each stands for, and the module that is imported for it."""
    if isinstance(node, ast.Import):
        for name in node.names:
            path = canonical(name.name)
            root = name.name.partition(".")[0]
            yield name.asname or root, path if name.asname else canonical(root), path
    elif node.module and not node.level:
        module = canonical(node.module)
        for name in node.names:
            yield name.asname or name.name, f"{module}.{name.name}", module


def _with_parents(path: str) -> list[str]:
    return [path[:cut] for cut, sign in enumerate(path) if sign == "."] + [path]


def _constants(facts: Facts) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    if "star_import" in facts.features:
        return found
    for binding in facts.bindings:
        if facts.times_bound.get(binding.target) == 1 and binding.target not in facts.deleted:
            found[binding.target] = binding.value
    return found


def _sources(node: ast.expr) -> set[str]:
    """The names, and `.names` of attributes, that the meaning of `node` depends on."""
    found: set[str] = set()
    pending: list[ast.expr] = [node]
    while pending and len(found) < 64:
        node = pending.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add("." + node.attr)
            pending.append(node.value)
        elif isinstance(node, (ast.NamedExpr, ast.Await)):
            pending.append(node.value)
        elif isinstance(node, ast.BinOp):
            pending.append(node.left)
        elif isinstance(node, ast.Call):
            pending.append(node.func)
            pending += node.args[:2]
    return found
