"""The judgement: every name, member, call and key of a program against the tables.

Rules this module keeps:

- one mechanism for built-ins, imported names and members of modules: each has a path, each path a rule;
- a thing whose use is judged by the way it is called is refused where it is not called but handed on;
- what one part of the judgement can't see is left to another or to the sandbox, never guessed to be well.
"""

from __future__ import annotations

import ast
import re
import sys

from licet.screen.exemptions import CHECKS, readable, storable
from licet.screen.facts import Facts, Scope
from licet.screen.findings import Findings
from licet.screen.modules import MEMBERS_NAMED_LIKE_MODULES, RULES, SUBMODULES
from licet.screen.names import FORMATTERS, INERT, INERT_FIRST, INTERNAL_KEYS, METHODS, OWN_CLASS_ONLY
from licet.screen.resolve import Resolver, canonical
from licet.screen.rules import HARMLESS, Rule, nearest
from licet.screen.targets import wishes

_JUDGED_BUILTINS = frozenset(path.partition(".")[2] for path in RULES if path.startswith("builtins."))
_FIELD = re.compile(r"\{[^{}]*[.\[][^{}]*")
_FIELD_NAMES = re.compile(r"\.\s*(\w+)|\[\s*(\w+)\s*\]")
_FUTURE = "__future__"


def judge(facts: Facts, known: Resolver, denied: frozenset[str], findings: Findings) -> None:
    """Judge all facts of a program and report to `findings`."""
    judgement = _Judgement(facts, known, denied, findings)
    judgement.imports()
    judgement.names()
    judgement.members()
    judgement.calls()
    judgement.handed_on()
    judgement.literals()
    if known.overflow is not None:
        findings.refuse("too_complex", known.overflow.lineno, "a name that stands for too many things")


def imported(facts: Facts) -> tuple[str, ...]:
    """The dotted names that `screen.modules.deny` is held against: all imports, and members of modules."""
    found: set[str] = set()
    for one in facts.imports:
        node = one.node
        if isinstance(node, ast.Import):
            found |= {canonical(name.name) for name in node.names}
        elif not node.level and node.module != _FUTURE:
            module = canonical(node.module or "")
            found |= {module, *(f"{module}.{name.name}" for name in node.names if name.name != "*")}
    return tuple(sorted(found))


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
        self.inert = self._inert()

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
        for effect in rule.effects:
            self.findings.want_import(effect.action, node, path)

    def module(self, path: str, node: ast.stmt) -> None:
        """Judge the import of a module, with its parents, which are imported too."""
        self.roots.add(path.partition(".")[0])
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
        if module.partition(".")[0] in sys.stdlib_module_names and self.known.is_module(module):
            special = member.startswith("__") and member.endswith("__")
            if member.startswith("_") and not special:
                return Rule(violation="indirect_module")
            named_like_module = member in sys.stdlib_module_names and path not in MEMBERS_NAMED_LIKE_MODULES
            if named_like_module and not self.known.is_module(path):
                return Rule(violation="indirect_module")
        return nearest(RULES, path) or HARMLESS

    def names(self) -> None:
        for node, scope in self.facts.loads:
            for path in self.known.paths(node):
                self.use(path, node, scope)
            if node.id in _JUDGED_BUILTINS and not self.facts.shadowed(
                node.id, scope, (node.lineno, node.col_offset)
            ):
                self.use(f"builtins.{node.id}", node, scope)

    def members(self) -> None:
        for node in self.facts.attributes:
            name = node.attr
            stored = not isinstance(node.ctx, ast.Load)
            for path in self.known.paths(node):
                self.use(path, node, None)
            if stored:
                self._replaced(node)
            if self._leads_inside(node):
                self.findings.refuse("internal_attribute", _end_line(node), f"`.{name[:80]}`")
            elif stored and not storable(name):
                self.findings.refuse("tampering", _end_line(node), f"`.{name[:80]} = ...`")
            method = METHODS.get(name)
            if method is not None and method[0] & self.roots and not self.known.paths(node):
                self.apply(method[1], name, node, None)

    def _leads_inside(self, node: ast.Attribute) -> bool:
        name, base = node.attr, node.value
        if name == "obj":
            return isinstance(base, ast.Name) and base.id in self.facts.exception_names
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
            return  # judged where it was imported, and by its members
        if RULES.get(path.partition(".")[0], HARMLESS).violation and not path.startswith("builtins."):
            return  # refused where it was imported
        self.apply(self.rule(path), path, node, scope)

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

    def _inert(self) -> set[ast.expr]:
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
        values: list[ast.expr] = [node for node, _ in facts.loads]
        values += [node for node in facts.attributes if isinstance(node.ctx, ast.Load)]
        values += facts.walruses
        for node in values:
            if node in facts.bases or node in facts.carried or node in self.inert or node in facts.called:
                continue
            for path in self.known.paths(node):
                if self.known.is_module(path) and path.partition(".")[0] in sys.stdlib_module_names:
                    self.findings.refuse("module_value", node.lineno, f"module `{path}`")

    # literals

    def literals(self) -> None:
        for key in self.facts.keys:
            if key.value in INTERNAL_KEYS:
                self.findings.refuse("internal_attribute", key.lineno, f"key `{key.value}`")
        for name, line in self.facts.pattern_names:
            if not readable(name):
                self.findings.refuse("internal_attribute", line, f"pattern on `{name[:80]}`")
        for value, line in self.facts.match_args:
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
            names = [self.known.text(part) for part in parts]
            if any(name is None or not readable(name) for name in names):
                self.findings.refuse("internal_attribute", line, "`__match_args__`")
        for name, line in self.facts.replaced:
            self.findings.refuse("tampering", line, f"`{name} = ...`")
        if any(node.attr in FORMATTERS for node in self.facts.attributes):
            self._format_fields()

    def _format_fields(self) -> None:
        for node in self.facts.strings:
            text = node.value
            if not isinstance(text, str) or "{" not in text:
                continue
            for field in _FIELD.finditer(text):
                for attribute, key in _FIELD_NAMES.findall(field[0]):
                    if (attribute and not readable(attribute)) or key in INTERNAL_KEYS:
                        self.findings.refuse("format_field", node.lineno, f"field `{field[0][:60]}}}`")


def _end_line(node: ast.expr) -> int:
    """The line of the last part of an expression: of the member in a chain over several lines."""
    return node.end_lineno or node.lineno
