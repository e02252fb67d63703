"""What code needs of an interpreter, so that one is chosen that can run it.

Rules this module keeps:

- a need is what the text shows, run or not; a need too many only leads to a fuller interpreter;
- `import a.b` needs `a` and `a.b`; `from a import b` needs `a`, and `a.b` where that is known to be a module;
- an import whose failure the code catches, or that only type checkers follow, is no need;
- a built-in name is a need unless the code binds that name anywhere;
- a member is a need where the name of its module stands for nothing else in the whole code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from licet.request import CodeNeeds
from licet.screen.facts import Facts
from licet.screen.features import RARE_METHODS
from licet.screen.names import BUILTINS, CONSTRUCTORS, HARMLESS_SPECIAL, LAZY, TYPES
from licet.screen.resolve import Resolver
from licet.screen.stdlib import SUBMODULES

_EXCEPTION_ENDINGS = ("Error", "Exception", "Exit", "Interrupt", "Warning", "StopIteration")
_CLASS_NAMES = frozenset({"cls", "klass"})
_FUTURE = "__future__"
_DOTTED = 3


def needs(facts: Facts, known: Resolver) -> CodeNeeds:
    """Collect the needs of a program."""
    builtins: dict[str, int] = {}
    names = (facts.read & BUILTINS).difference(facts.times_bound)
    for node, _ in facts.loads:
        if node.id in names:
            _note(builtins, node.id, node.lineno)
    modules: dict[str, int] = {}
    for name, line in _imported(facts):
        _note(modules, name, line)
    _iterators(facts, known)
    _exceptions(facts)
    _attributes(facts, known)
    members: dict[str, int] = {}
    for name, line in _members(facts, known) if modules else ():
        _note(members, name, line)
    return CodeNeeds(
        syntax=_by_line(facts.features),
        modules=_by_line(modules),
        builtins=_by_line(builtins),
        members=_by_line(members),
        stdin=_reads_stdin(facts, known, builtins),
    )


def _note(lines: dict[str, int], name: str, line: int) -> None:
    if line < lines.get(name, line + 1):
        lines[name] = line


def _by_line(lines: dict[str, int]) -> dict[str, int]:
    return dict(sorted(lines.items(), key=lambda item: (item[1], item[0]))) if len(lines) > 1 else lines


def _imported(facts: Facts) -> Iterator[tuple[str, int]]:
    for imported in facts.imports:
        node = imported.node
        if imported.optional:
            continue
        if isinstance(node, ast.Import):
            for name in node.names:
                yield from _with_parents(name.name, node.lineno)
        elif node.module and not node.level and node.module != _FUTURE:
            yield from _with_parents(node.module, node.lineno)
            for name in node.names:
                if f"{node.module}.{name.name}" in SUBMODULES:
                    yield f"{node.module}.{name.name}", node.lineno


def _with_parents(path: str, line: int) -> Iterator[tuple[str, int]]:
    for cut, sign in enumerate(path):
        if sign == ".":
            yield path[:cut], line
    yield path, line


def _members(facts: Facts, known: Resolver) -> Iterator[tuple[str, int]]:
    """What is taken from modules: by `from a import b`, and as attributes, each as far as it is dotted."""
    for imported in facts.imports:
        node = imported.node
        if isinstance(node, ast.ImportFrom) and not (
            imported.optional or node.level or node.module == _FUTURE
        ):
            for name in node.names:
                if name.name != "*" and f"{node.module}.{name.name}" not in SUBMODULES:
                    yield f"{node.module}.{name.name}", node.lineno
    for attribute in facts.attributes:
        if attribute in facts.bases:
            continue  # the longest says all
        names: list[str] = []
        base: ast.expr = attribute
        while isinstance(base, ast.Attribute):
            names.append(base.attr)
            base = base.value
        if isinstance(base, ast.Name) and facts.times_bound.get(base.id) == 1:
            for path in known.aliases.get(base.id, ()):
                if known.is_imported(path) or known.is_imported(path.rpartition(".")[0]):
                    yield ".".join((path, *names[: -_DOTTED - 1 : -1])), attribute.lineno


def _reads_stdin(facts: Facts, known: Resolver, builtins: dict[str, int]) -> bool:
    if "input" in builtins or known.is_imported("fileinput"):
        return True
    if known.is_imported("sys"):
        reads: list[ast.expr] = [node for node in facts.attributes if node.attr == "stdin"]
        reads += [node for node, _ in facts.loads]
        if any("sys.stdin" in known.paths(node) for node in reads):
            return True
    return "open" in facts.read and any(
        isinstance(call.func, ast.Name) and call.func.id == "open" and _is_zero(call.args[0])
        for call, _ in facts.calls
        if call.args
    )


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0


def _iterators(facts: Facts, known: Resolver) -> None:
    for node in facts.generators:
        if node not in facts.eager:
            facts.feature("lazy_iterator", node.lineno)
    for call, _ in facts.calls if "next" in facts.read else ():
        if isinstance(call.func, ast.Name) and call.func.id == "next" and call.args:
            source = known.value(call.args[0])
            maker = source.func if isinstance(source, ast.Call) else None
            if isinstance(maker, ast.Name) and maker.id in LAZY:
                facts.feature("lazy_iterator", call.lineno)


def _exceptions(facts: Facts) -> None:
    raised = {name for name in facts.read if name.endswith(_EXCEPTION_ENDINGS)} & BUILTINS
    for call, _ in facts.calls if raised else ():
        if not isinstance(call.func, ast.Name) or call.func.id not in raised:
            continue
        if call.func.id in facts.times_bound:
            continue
        odd = any(isinstance(value, ast.Constant) and not isinstance(value.value, str) for value in call.args)
        if odd or len(call.args) > 1 or call.keywords:
            facts.feature("exception_arguments", call.lineno)


def _attributes(facts: Facts, known: Resolver) -> None:
    """Note attributes of functions, and special attributes beyond the class name of an object."""
    for node in facts.attributes:
        name, base = node.attr, node.value
        owner = base.id if isinstance(base, ast.Name) else ""
        if owner in TYPES and owner not in facts.times_bound and not name.startswith("__"):
            if node not in facts.called or f"{owner}.{name}" not in CONSTRUCTORS:
                facts.feature("type_method", node.lineno)
        elif owner in facts.functions and owner not in facts.classes:
            facts.feature("function_attribute", node.lineno)
        elif name == "__name__":
            of_class = owner in facts.classes or owner in _CLASS_NAMES or not owner
            if not of_class and facts.times_bound.get(owner):
                facts.feature("function_attribute", node.lineno)
        elif name == "__class__":
            if owner != "self":
                facts.feature("special_attribute", node.lineno)
        elif name in RARE_METHODS and not facts.makes(name) and not known.paths(base):
            facts.feature(f"method:{name}", node.lineno)
        elif name in HARMLESS_SPECIAL and name not in ("__init__", "__post_init__"):
            facts.feature("special_attribute", node.lineno)
