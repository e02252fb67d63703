"""The judgement: every name, member, call and key of a program against the tables.

Rules this module keeps:

- one mechanism for built-ins, imported names and members of modules: each has a path, each path a rule;
- a thing whose use is judged by the way it is called is refused where it is not called but handed on;
- what one part of the judgement can't see is left to another or to the sandbox, never guessed to be well.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from functools import cached_property

from licet.screen.exemptions import CHECKS, leads_out, readable, storable
from licet.screen.facts import Facts, Scope
from licet.screen.fields import judge_fields
from licet.screen.findings import Findings
from licet.screen.modules import RULES
from licet.screen.names import (
    DOORS,
    INERT,
    INERT_FIRST,
    INTERNAL,
    INTERNAL_KEYS,
    METHODS,
    OWN_CLASS_ONLY,
)
from licet.screen.resolve import Resolver, canonical
from licet.screen.rules import HARMLESS, Rule, nearest
from licet.screen.stdlib import MEMBERS_NAMED_LIKE_MODULES, SUBMODULES
from licet.screen.targets import wishes

_JUDGED_BUILTINS = frozenset(path.partition(".")[2] for path in RULES if path.startswith("builtins."))
_JUDGED_CALLS = frozenset({"getattr", "setattr", "delattr", "type"})
_SUSPECT = INTERNAL | DOORS
_FUTURE = "__future__"
_NO_DOOR = Rule(violation="indirect_module")


def judge(facts: Facts, known: Resolver, denied: frozenset[str], findings: Findings) -> tuple[str, ...]:
    """Judge all facts of a program and report to `findings`.

    Returns the dotted names that `denied` was held against: all imports, and modules reached as members.
    """
    judgement = _Judgement(facts, known, denied, findings)
    judgement.imports()
    judgement.names()
    judgement.members()
    judgement.calls()
    judgement.handed_on()
    judgement.literals()
    if known.overflow is not None:
        findings.refuse("too_complex", known.overflow.lineno, "a name that stands for too many things")
    return tuple(sorted(judgement.imported))


def is_denied(path: str, denied: frozenset[str]) -> bool:
    """Whether `denied` holds a dotted name, or a module that it is in."""
    while path:
        if path in denied:
            return True
        path = path.rpartition(".")[0]
    return False


class _Judgement:
    def __init__(self, facts: Facts, known: Resolver, denied: frozenset[str], findings: Findings) -> None:
        self.facts = facts
        self.known = known
        self.denied = denied
        self.findings = findings
        self.roots: set[str] = set()
        self.imported: set[str] = set()
        self.standing: list[tuple[ast.expr, frozenset[str]]] = []

    @cached_property
    def exceptions(self) -> set[str]:
        """The names that an exception which the code caught may bear."""
        targets: defaultdict[str, list[str]] = defaultdict(list)
        for one in self.facts.bindings if self.facts.exception_names else ():
            targets[_rooted(one.value)].append(one.target)
        found: set[str] = set()
        pending = list(self.facts.exception_names)
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += targets.get(name, ())
        return found

    # imports

    def imports(self) -> None:
        for imported in self.facts.imports:
            node = imported.node
            if isinstance(node, ast.Import):
                for name in node.names:
                    self.module(canonical(name.name), node)
            elif node.level:
                self.findings.refuse("import_machinery", node.lineno, "a relative import")
            elif node.module != _FUTURE:
                self._import_from(canonical(node.module or ""), node)

    def _import_from(self, module: str, node: ast.ImportFrom) -> None:
        self.module(module, node)
        self.imported.update(f"{module}.{name.name}" for name in node.names if name.name != "*")
        for name in node.names:
            path = f"{module}.{name.name}"
            if name.name == "*":
                self._import_star(module, node)
            elif path in SUBMODULES:
                self.module(path, node)
            elif path in self.denied:
                self.findings.refuse("module_denied", node.lineno, f"`{path[:80]}`")
            elif not RULES.get(module, HARMLESS).violation:
                self.imported_member(path, node)

    def _import_star(self, module: str, node: ast.ImportFrom) -> None:
        if any(path.startswith(module + ".") for path in RULES):
            self.findings.refuse("indirect_module", node.lineno, f"`from {module} import *`")

    def imported_member(self, path: str, node: ast.ImportFrom) -> None:
        """Judge `from module import name`; what may be called in a harmless way is left to its uses."""
        rule = self.rule(path)
        if rule.violation and not rule.unless:
            self.findings.refuse(rule.violation, node.lineno, f"`{path[:80]}`")
        elif not readable(path.rpartition(".")[2]):
            self.findings.refuse("internal_attribute", node.lineno, f"`{path[:80]}`")
        for effect in rule.effects:
            self.findings.want_import(effect.action, node, path)

    def module(self, path: str, node: ast.stmt) -> None:
        """Judge the import of a module, with its parents, which are imported too."""
        self.roots.add(path.partition(".")[0])
        self.imported.add(path)
        if is_denied(path, self.denied):
            self.findings.refuse("module_denied", node.lineno, f"`{path[:80]}`")
        parts = path.split(".")
        for count in range(1, len(parts) + 1):
            parent = ".".join(parts[:count])
            rule = RULES.get(parent)
            if rule is None:
                continue
            if rule.violation:
                self.findings.refuse(rule.violation, node.lineno, f"module `{parent}`")
            for effect in rule.effects:
                self.findings.want_import(effect.action, node, parent)
        root = parts[0]
        if root.startswith("_") and root != _FUTURE and root not in RULES and root in sys.stdlib_module_names:
            self.findings.refuse("indirect_module", node.lineno, f"private module `{root}`")

    # names and members

    def rule(self, path: str) -> Rule:
        """The rule of a path: its own, else what the form of a module's member says, else its ancestor's."""
        own = RULES.get(path)
        if own is not None:
            return own
        module, _, member = path.rpartition(".")
        if not self.known.is_module(module):
            return nearest(RULES, path) or HARMLESS
        if module.partition(".")[0] not in sys.stdlib_module_names:
            return _NO_DOOR if member in DOORS else nearest(RULES, path) or HARMLESS
        if not self.known.is_module(path):
            special = member.startswith("__") and member.endswith("__")
            if member.startswith("_") and not special:
                return _NO_DOOR
            if member in sys.stdlib_module_names and path not in MEMBERS_NAMED_LIKE_MODULES:
                return _NO_DOOR
        return nearest(RULES, path) or HARMLESS

    def names(self) -> None:
        known, facts = self.known, self.facts
        if not known.aliases and facts.read.isdisjoint(_JUDGED_BUILTINS):
            return
        for node, scope in facts.loads:
            name = node.id
            if name in known.aliases:
                paths = known.aliases[name]
                self.standing.append((node, paths))
                for path in paths:
                    self.use(path, node, scope)
            if name in _JUDGED_BUILTINS and not facts.shadowed(name, scope, (node.lineno, node.col_offset)):
                self.use(f"builtins.{name}", node, scope)

    def members(self) -> None:
        sighted = self.known.sighted
        for node in self.facts.attributes:
            name = node.attr
            stored = type(node.ctx) is not ast.Load
            if not (stored or sighted or name in _SUSPECT or name.startswith("__")):
                continue
            paths = self.known.paths(node)
            if paths:
                if not stored:
                    self.standing.append((node, paths))
                for path in paths:
                    self.use(path, node, None)
            if stored:
                self._replaced(node)
            if self._leads_inside(node):
                self.findings.refuse("internal_attribute", _end_line(node), f"`.{name[:80]}`")
            elif stored and not storable(name):
                self.findings.refuse("tampering", _end_line(node), f"`.{name[:80]} = ...`")
            elif name in DOORS and not paths and not stored and leads_out(name, self.facts):
                self.findings.refuse("indirect_module", _end_line(node), f"`.{name}`")
            if self.roots and name in METHODS and METHODS[name][0] & self.roots and not paths:
                self.apply(METHODS[name][1], name, node, None)

    def _leads_inside(self, node: ast.Attribute) -> bool:
        name, base = node.attr, node.value
        if name == "obj":
            return _rooted(base) in self.exceptions
        if readable(name):
            return False
        if not isinstance(base, ast.Name) or self.known.paths(base):
            return True
        if name == "__dict__":
            return base.id not in ("self", "other")
        return not (name in OWN_CLASS_ONLY and base.id in self.facts.classes)

    def _replaced(self, node: ast.Attribute) -> None:
        for path in self.known.paths(node.value):
            if self.known.is_module(path):
                self.findings.refuse("tampering", _end_line(node), f"`{path}.{node.attr[:80]} = ...`")

    def use(self, path: str, node: ast.expr, scope: Scope | None) -> None:
        """Judge one use of the thing that `path` names."""
        if self.known.is_module(path):
            if type(node) is not ast.Name and not self.known.is_imported(path):
                self._reached(path, node)
            return  # judged where it was imported, and by its members
        if RULES.get(path.partition(".")[0], HARMLESS).violation and not path.startswith("builtins."):
            return  # refused where it was imported
        self.apply(self.rule(path), path, node, scope)

    def _reached(self, path: str, node: ast.expr) -> None:
        """Judge a module that is no statement's import, but a member of one that is."""
        self.imported.add(path)
        if is_denied(path, self.denied):
            self.findings.refuse("module_denied", _end_line(node), f"`{path[:80]}`")
        rule = RULES.get(path, HARMLESS)
        if rule.violation:
            self.findings.refuse(rule.violation, _end_line(node), f"module `{path}`")

    def apply(self, rule: Rule, path: str, node: ast.expr, scope: Scope | None) -> None:
        call = self.facts.called.get(node)
        if rule.violation:
            harmless = (
                call is not None and rule.unless and CHECKS[rule.unless](call, scope, self.facts, self.known)
            )
            if not harmless:
                shown = path.removeprefix("builtins.").replace("()", "")
                self.findings.refuse(rule.violation, _end_line(node), f"`{shown[:80]}`")
        for effect in rule.effects:
            self.findings.used(effect.action, path)
            for action, target in wishes(effect, call, self.known):
                self.findings.want(action, target, call or node)

    # calls

    def calls(self) -> None:
        if self.facts.read.isdisjoint(_JUDGED_CALLS):
            return
        for node, _ in self.facts.calls:
            function = node.func
            name = function.id if isinstance(function, ast.Name) else ""
            if name == "getattr":
                self._literal_getattr(node)
            elif name == "setattr" or name == "delattr":
                self._module_changed(node)
            elif name == "type" and len(node.args) == 3:
                self._made_class(node)

    def _literal_getattr(self, node: ast.Call) -> None:
        """`getattr(module, "member")` is the member."""
        for path in self.known.paths(node):
            self.use(path, node, None)

    def _module_changed(self, node: ast.Call) -> None:
        for path in self.known.paths(node.args[0]) if node.args else ():
            if self.known.is_module(path):
                self.findings.refuse("tampering", node.lineno, f"`{path}`")

    def _made_class(self, node: ast.Call) -> None:
        """`type(name, bases, members)` with members whose names show."""
        members = self.known.value(node.args[2])
        keys = members.keys if isinstance(members, ast.Dict) else [None]
        names = [self.known.text(key) for key in keys]
        if any(name is None or not storable(name) for name in names):
            self.findings.refuse(
                "computed_attribute", node.lineno, "a class made by `type` with computed members"
            )

    # modules handed on as values

    @cached_property
    def inert(self) -> set[ast.expr]:
        """Expressions whose value goes nowhere: arguments of `print` and the like, and comparisons."""
        found: set[ast.expr] = set()
        for node, _ in self.facts.calls:
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name in self.facts.times_bound:
                continue
            if name in INERT:
                found.update(node.args)
            elif name in INERT_FIRST:
                found.update(node.args[:1])
        return found | self.facts.compared

    def handed_on(self) -> None:
        facts = self.facts
        if not facts.imports:
            return
        walruses = [(node, self.known.paths(node)) for node in facts.walruses]
        for node, paths in (*self.standing, *walruses):
            if node in facts.bases or node in facts.carried or node in self.inert or node in facts.called:
                continue
            for path in paths:
                if self.known.is_module(path) and path.partition(".")[0] in sys.stdlib_module_names:
                    self.findings.refuse("module_value", node.lineno, f"module `{path}`")

    # literals

    def literals(self) -> None:
        for key in self.facts.keys:
            if key.value in INTERNAL_KEYS:
                self.findings.refuse("internal_attribute", key.lineno, f"key `{key.value}`")
        for name, line in self.facts.pattern_names:
            if not readable(name) or leads_out(name, self.facts):
                self.findings.refuse("internal_attribute", line, f"pattern on `{name[:80]}`")
        for value, line in self.facts.match_args:
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
            names = [self.known.text(part) for part in parts]
            if any(name is None or not readable(name) for name in names):
                self.findings.refuse("internal_attribute", line, "`__match_args__`")
        for name, line in self.facts.replaced:
            self.findings.refuse("tampering", line, f"`{name} = ...`")
        for name, line in self.facts.fields:
            if "match_statement" in self.facts.features and not readable(name):
                self.findings.refuse("internal_attribute", line, f"field `{name[:80]}`")
        judge_fields(self.facts, self.known, self.findings, logs="logging" in self.roots)


def _rooted(node: ast.expr) -> str:
    """The name that an expression begins with, or nothing."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _end_line(node: ast.expr) -> int:
    """The line of the last part of an expression: of the member in a chain over several lines."""
    return node.end_lineno or node.lineno
