"""The syntax tree of a text, and its form for evaluation.

The library reads the names of a request as fields of messages. Messages have a value for every field, so a
missing identity would read as an empty text. Therefore a tree is checked in that form and evaluated in
another one.

Rules this module keeps:

- every field of the request is a variable of its own, which is bound only if it is known: `subject.tenant`
  becomes the variable of that name, `has(subject.tenant)` the variable `has subject.tenant`;
- a comparison of a number that may have a fraction goes through `order`, which is exact;
- what the evaluation could not say truly is refused: a message as a whole, arithmetic with decimals, a
  variable that hides a name of the request, a message built in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any

from licet.policy.cel.schema import CALL_VARIABLES, FRACTIONS, MESSAGES, VARIABLES, fields_of
from licet.policy.signatures import Signature

ORDER = "order"
"""The function that compares two numbers: below, equal or above zero."""

COMPARISONS = frozenset(("_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"))
_CONVERSIONS = frozenset(("double", "int", "string"))
_MAY_VARY = frozenset(("timestamp", "duration"))
_NUMBERS = frozenset((2, 3, 4))

# the parts of cel/expr/syntax.proto and checked.proto that are read here; all others are kept as they are,
# and so is a zero that is stated, for which fields need presence (proto2)
_TREE: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Any": {"type_url": (1, "string"), "value": (2, "bytes")},
    "Parsed": {"expr": (2, "Expr"), "source": (3, "Source")},
    "Checked": {"types": (3, "*TypeEntry"), "expr": (4, "Expr"), "source": (5, "Source")},
    "TypeEntry": {"key": (1, "int"), "value": (2, "Kind")},
    "Kind": {
        "dyn": (1, "Empty"), "null": (2, "int"), "primitive": (3, "int"), "wrapper": (4, "int"),
        "well_known": (5, "int"), "list": (6, "Empty"), "map": (7, "Empty"), "message": (9, "string"),
    },
    "Empty": {},
    "Source": {"positions": (4, "*Place")},
    "Place": {"key": (1, "int"), "value": (2, "int")},
    "Expr": {
        "id": (2, "int"), "const": (3, "Const"), "ident": (4, "Ident"), "select": (5, "Select"),
        "call": (6, "Call"), "list": (7, "List"), "struct": (8, "Struct"), "loop": (9, "Loop"),
    },
    "Const": {"int": (3, "int"), "string": (6, "string")},
    "Ident": {"name": (1, "string")},
    "Select": {"operand": (1, "Expr"), "field": (2, "string"), "test_only": (3, "bool")},
    "Call": {"target": (1, "Expr"), "function": (2, "string"), "args": (3, "*Expr")},
    "List": {"elements": (1, "*Expr")},
    "Struct": {"name": (1, "string"), "entries": (2, "*Entry")},
    "Entry": {"id": (1, "int"), "map_key": (3, "Expr"), "value": (4, "Expr")},
    "Loop": {
        "variable": (1, "string"), "range": (2, "Expr"), "accu": (3, "string"), "start": (4, "Expr"),
        "condition": (5, "Expr"), "step": (6, "Expr"), "result": (7, "Expr"), "second": (8, "string"),
    },
}  # fmt: skip
_TYPES = {"int": 3, "bool": 8, "string": 9, "bytes": 12}


class Refused(Exception):
    """A text can't be a condition; `node` is the id of the part that is wrong."""

    def __init__(self, message: str, node: int, advice: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.advice = advice


@lru_cache(maxsize=1)
def _classes() -> Mapping[str, Any]:
    descriptors = import_module("google.protobuf.descriptor_pb2")
    factory = import_module("google.protobuf.message_factory")
    pool = import_module("google.protobuf.descriptor_pool").DescriptorPool()
    file = descriptors.FileDescriptorProto(name="licet/tree.proto", package="licet.tree", syntax="proto2")
    for name, table in _TREE.items():
        message = file.message_type.add(name=name)
        for field_name, (number, kind) in table.items():
            made = message.field.add(name=field_name, number=number, label=3 if kind[0] == "*" else 1)
            made.json_name = f"f{number}"
            if (plain := kind.removeprefix("*")) in _TYPES:
                made.type = _TYPES[plain]
            else:
                made.type, made.type_name = 11, f".licet.tree.{plain}"
    pool.AddSerializedFile(file.SerializeToString())
    return {name: factory.GetMessageClass(pool.FindMessageTypeByName(f"licet.tree.{name}")) for name in _TREE}


def read(serialized: bytes) -> Any:
    """The checked tree that the library serialized.

    Raises:
        Refused: it is nested too deep to be read.
    """
    classes = _classes()
    try:
        return classes["Checked"].FromString(classes["Any"].FromString(serialized).value)
    except Exception:  # the decode error of protobuf, whose class depends on its implementation
        raise Refused("it is nested too deep", 0, "split it into a list of shorter texts") from None


def write(tree: Any) -> bytes:
    """A tree as the library reads one that is not checked: what the checker found of it no longer holds."""
    parsed = _classes()["Parsed"](expr=tree.expr, source=tree.source)
    whole = _classes()["Any"](
        type_url="type.googleapis.com/cel.expr.ParsedExpr", value=parsed.SerializeToString()
    )
    serialized: bytes = whole.SerializeToString()
    return serialized


def joined(forms: Sequence[bytes]) -> bytes:
    """The list of what several texts say, as `write` gave them."""
    classes = _classes()
    whole = classes["Parsed"]()
    for form in forms:
        parsed = classes["Parsed"].FromString(classes["Any"].FromString(form).value)
        whole.expr.list.elements.append(parsed.expr)
    for number, node in enumerate(walk(whole.expr), 1):  # each text counts its own nodes from one
        node.id = number
    return write(whole)


def kinds(checked: Any) -> dict[int, Any]:
    """What the checker found of each node."""
    return {entry.key: entry.value for entry in checked.types}


def places(tree: Any) -> dict[int, int]:
    """Where each node stands, as an offset in characters."""
    return {entry.key: entry.value for entry in tree.source.positions}


def walk(node: Any) -> Iterator[Any]:
    """A node and all below it."""
    stack = [node]
    while stack:
        one = stack.pop()
        yield one
        stack.extend(_children(one))


def _children(node: Any) -> list[Any]:
    kind = kind_of(node)
    if kind == "select":
        return [node.select.operand]
    if kind == "call":
        target = [node.call.target] if node.call.HasField("target") else []
        return [*target, *node.call.args]
    if kind == "list":
        return list(node.list.elements)
    if kind == "struct":
        return [part for entry in node.struct.entries for part in (entry.map_key, entry.value)]
    if kind == "loop":
        loop = node.loop
        return [loop.range, loop.start, loop.condition, loop.step, loop.result]
    return []


_KINDS = ("const", "ident", "select", "call", "list", "struct", "loop")


def kind_of(node: Any) -> str:
    """Which of its forms a node has: `const`, `ident`, `select`, `call`, `list`, `struct` or `loop`."""
    return next((kind for kind in _KINDS if node.HasField(kind)), "")


@dataclass(slots=True)
class Flattening:
    """One pass over a tree that gives every node its form for evaluation.

    `reads` gathers the variables that the tree then reads.
    """

    signature: Signature | None
    kinds: Mapping[int, Any]
    reads: set[str] = field(default_factory=set)

    def run(self, tree: Any) -> None:
        """Change a checked tree in place.

        Raises:
            Refused: some part has no true form.
        """
        self._visit(tree.expr)

    def _visit(self, node: Any) -> None:
        kind = kind_of(node)
        if kind in ("ident", "select") and self._read(node):
            return
        if kind == "call" and node.call.function in COMPARISONS and self._compare(node):
            return
        if kind == "call" and node.call.function in _CONVERSIONS and len(node.call.args) == 1:
            path = self._path(node.call.args[0])
            if path is not None and self._kind_of(path) == "float":
                self._bind(node.call.args[0], path)
                return
        if kind == "struct" and node.struct.name:
            raise Refused(f"a `{node.struct.name}` can't be built in a condition", node.id)
        if kind == "loop" and {node.loop.variable, node.loop.second} & {*VARIABLES, *CALL_VARIABLES}:
            raise Refused(
                f"`{node.loop.variable}` is a name of the request, and can't stand for an item",
                node.id,
                "write another letter",
            )
        for child in _children(node):
            self._visit(child)

    def _read(self, node: Any) -> bool:
        """Turn a field of the request into a variable; False if the node is no such field."""
        path = self._path(node)
        if path is None:
            return False
        if path == "args" or path in MESSAGES:
            known = fields_of(path, self.signature) or {}
            advice = f"name a field, such as `{path}.{next(iter(known), 'amount')}`"
            raise Refused(f"`{path}` can't be read as a whole", node.id, advice)
        kind = self._kind_of(path)
        if kind in FRACTIONS and not node.select.test_only:
            how = "compare it, or write `double({})`" if kind == "float" else "compare `{}` with a number"
            raise Refused(f"`{path}` is a {kind}, and can only be compared", node.id, how.format(path))
        self._bind(node, path)
        return True

    def _bind(self, node: Any, path: str) -> None:
        name = f"has {path}" if self._tests_presence(node) else path
        node.ClearField("select")
        node.ident.name = name
        self.reads.add(name)

    def _compare(self, node: Any) -> bool:
        """Send a comparison of fractions through `order`; False if it is none."""
        sides = list(node.call.args)
        paths = [None if self._tests_presence(side) else self._path(side) for side in sides]
        fractions = [path for path in paths if path is not None and self._kind_of(path) in FRACTIONS]
        if not fractions:
            return False
        for side, path in zip(sides, paths, strict=True):
            if path in fractions and path is not None:
                self._bind(side, path)
                continue
            found = self.kinds.get(side.id)
            if found is not None and not (found.HasField("dyn") or found.primitive in _NUMBERS):
                raise Refused(f"`{fractions[0]}` is a number, and is compared with what is none", node.id)
            self._visit(side)
        inner = _classes()["Expr"](id=node.id)
        inner.call.function = ORDER
        inner.call.args.extend(sides)
        zero = _classes()["Expr"](id=node.id)
        zero.const.int = 0
        del node.call.args[:]
        node.call.args.extend([inner, zero])
        return True

    def _tests_presence(self, node: Any) -> bool:
        return bool(node.HasField("select") and node.select.test_only)

    def _path(self, node: Any) -> str | None:
        """`args.amount` for a node that reads a name of the request, and no further than its fields."""
        if node.HasField("ident"):
            name: str = node.ident.name.removeprefix(".")
            return name if name in (*VARIABLES, *CALL_VARIABLES) else None
        if not node.HasField("select"):
            return None
        above = self._path(node.select.operand)
        if above is None or (above != "args" and above not in MESSAGES):
            return None
        return f"{above}.{node.select.field}"

    def _kind_of(self, path: str) -> str:
        above, _, name = path.rpartition(".")
        found = (fields_of(above, self.signature) or {}).get(name)
        return found.kind if found is not None else ""


def constants(tree: Any, functions: Mapping[str, Callable[[str], str | None]]) -> None:
    """Check the texts that are given to certain functions; each check answers what is wrong, or None.

    Raises:
        Refused: a check does not pass, or the argument is no literal.
    """
    for node in walk(tree.expr):
        if not node.HasField("call") or node.call.function not in functions or not node.call.args:
            continue
        last = node.call.args[-1]
        if last.HasField("const"):
            if last.const.HasField("string") and (
                problem := functions[node.call.function](last.const.string)
            ):
                raise Refused(problem, last.id)
        elif node.call.function not in _MAY_VARY:
            raise Refused(f"`{node.call.function}` needs a literal text here", last.id)
