"""The names that a condition's text may read, with their types, as protobuf messages for the type checker.

Rules this module keeps:

- one table says every field; the checker, the values bound at run time and the docs page follow it;
- numbers with a fraction are `dyn` to the checker, since CEL compares no double with an int; what may be
  done with them is checked on the tree instead;
- descriptors live in a pool of their own and are made when a policy needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any

from licet.policy.signatures import Signature, Type
from licet.request import Limits

PACKAGE = "licet"
FRACTIONS = frozenset(("float", "decimal"))
"""The kinds that are `dyn` to the checker."""

_TEXT, _INT, _BOOL, _FLOAT = Type("string"), Type("int"), Type("bool"), Type("float")
_TEXTS = Type("list", _TEXT)

SUBJECT: Mapping[str, Type] = {
    "type": _TEXT,
    "id": _TEXT,
    "groups": _TEXTS,
    "properties": Type("map"),
    "tenant": _TEXT,
    "session": _TEXT,
    "on_behalf_of": _TEXT,
    "asserted_by": _TEXT,
}
INTENT: Mapping[str, Type] = {
    "action": _TEXT,
    "target": _TEXT,
    "source": _TEXT,
    "when": _TEXT,
    "line": _INT,
    "path": _TEXT,
    "host": _TEXT,
    "port": _INT,
}
LIMITS: Mapping[str, Type] = {
    name: _FLOAT if name in ("wall_time", "cpu_time") else _INT for name in Limits.model_fields
}
REQUEST: Mapping[str, Type] = {
    "code_bytes": _INT,
    "workdir": _TEXT,
    "inputs": _TEXTS,
    "tools": _TEXTS,
    "metadata": Type("map", _TEXT),
    "limits": Type("Limits"),
    "intents": Type("list", Type("Intent")),
    "narrows": _BOOL,
    "modules": _TEXTS,
}
MESSAGES: Mapping[str, Mapping[str, Type]] = {
    "subject": SUBJECT,
    "request": REQUEST,
    "request.limits": LIMITS,
}
"""The fields of what can only be read field by field, by its path; `args` is one more, a tool's own."""

VARIABLES = ("subject", "request", "language", "now")
CALL_VARIABLES = ("tool", "args")

_WELL_KNOWN = {
    "decimal": "Value",
    "float": "Value",
    "any": "Value",
    "date": "Timestamp",
    "datetime": "Timestamp",
    "duration": "Duration",
    "list": "ListValue",
    "map": "Struct",
}
_SCALARS = {"string": 9, "int": 3, "bool": 8, "bytes": 12}
_NOWHERE = "no_field_has_this_name"
_MESSAGE, _OPTIONAL, _REPEATED = 11, 1, 3


def fields_of(path: str, signature: Signature | None) -> Mapping[str, Type] | None:
    """The fields of a message path, or None if it is none; a tool that is not known has none to name."""
    if path == "args":
        return signature.types if signature is not None else {}
    return MESSAGES.get(path)


@lru_cache(maxsize=256)
def environment(calls: bool, signature: Signature | None) -> Any:
    """The environment of the type checker; with `calls` for a rule about tools.

    Where the signature of the tool is not known, whatever is read of `args` passes.
    """
    cel = import_module("cel_expr_python.cel")
    variables = {
        "subject": cel.Type(f"{PACKAGE}.Subject"),
        "request": cel.Type(f"{PACKAGE}.Request"),
        "language": cel.Type.STRING,
        "now": cel.Type.TIMESTAMP,
    }
    if calls:
        known = cel.Type(f"{PACKAGE}.Args")
        variables["tool"] = cel.Type.STRING
        variables["args"] = known if signature is not None else cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    made = cel.NewEnv(pool(signature or Signature()), variables=variables)
    for path in ("subject", "request", *(("args",) if signature is not None else ())):
        _expect_refusal(made, f"{path}.{_NOWHERE} == 1")
    return made


def _expect_refusal(made: Any, text: str) -> None:
    """Make sure that the checker knows the messages: it takes a descriptor that it can't read for `dyn`."""
    try:
        made.compile(text)
    except RuntimeError:
        return
    raise AssertionError(f"the type checker accepts `{text}`")


@lru_cache(maxsize=256)
def pool(signature: Signature) -> Any:
    """The messages of all variables, in a descriptor pool of their own."""
    protobuf = import_module("google.protobuf.descriptor_pool")
    descriptors = import_module("google.protobuf.descriptor_pb2")
    made = protobuf.DescriptorPool()
    needed = ("struct", "timestamp", "duration")
    for name in needed:
        module = import_module(f"google.protobuf.{name}_pb2")
        made.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    file = descriptors.FileDescriptorProto(
        name=f"{PACKAGE}.proto",
        package=PACKAGE,
        syntax="proto2",
        dependency=[f"google/protobuf/{name}.proto" for name in needed],
    )
    readable = {name: kind for name, kind in signature.types.items() if name.isascii()}
    tables = {"Subject": SUBJECT, "Intent": INTENT, "Limits": LIMITS, "Request": REQUEST, "Args": readable}
    for name, table in tables.items():
        message = file.message_type.add(name=name)
        message.options.deprecated_legacy_json_field_conflicts = True  # parameters may be `a_b` and `aB`
        for number, (field, kind) in enumerate(table.items(), 1):
            _add_field(message, number, field, kind)
    _add_field(file.message_type.add(name="Decimal"), 1, "text", _TEXT)
    made.AddSerializedFile(file.SerializeToString())
    return made


def _add_field(message: Any, number: int, name: str, kind: Type) -> None:
    field = message.field.add(name=name, number=number, label=_OPTIONAL, json_name=f"f{number}")
    if kind.kind == "map" and kind.item is not None:
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _add_field(entry, 1, "key", _TEXT)
        _add_field(entry, 2, "value", kind.item)
        field.label, field.type = _REPEATED, _MESSAGE
        field.type_name = f".{PACKAGE}.{message.name}.{entry.name}"
        return
    if kind.kind == "list" and kind.item is not None:
        field.label, kind = _REPEATED, Type("list") if kind.item.kind == "list" else kind.item
    if kind.kind in _SCALARS:
        field.type = _SCALARS[kind.kind]
        return
    field.type = _MESSAGE
    known = _WELL_KNOWN.get(kind.kind)
    field.type_name = f".google.protobuf.{known}" if known else f".{PACKAGE}.{kind.kind}"
