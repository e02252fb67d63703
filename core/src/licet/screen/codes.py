"""The refusals of the screen: a stable code each, what it stands for, and what to do instead.

Rules this module keeps: a code is never renamed or given another meaning; each has one sentence of
meaning and one of advice.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from licet.request import Violation

_TABLE: dict[str, tuple[str, str]] = {
    "too_complex": (
        "the code is too large or too deeply nested to be screened safely",
        "split the expression, and pass data as inputs instead of writing it into the code",
    ),
    "deceptive_source": (
        "the text does not show a reader what an interpreter would run",
        "write the code in plain characters, and use escapes such as `\\u202e` inside strings",
    ),
    "dynamic_code": (
        "text or an object is turned into code at run time",
        "write the code itself; `ast.literal_eval` or `json.loads` read data",
    ),
    "import_machinery": (
        "a module is loaded by a computed name or through the loader",
        "write `import NAME` at the top of the code",
    ),
    "builtins_access": (
        "the table of built-in names or of global names is reached or passed around",
        "use the names directly",
    ),
    "internal_attribute": (
        "an attribute leads from an object into the interpreter's internals",
        "use the object's public attributes",
    ),
    "computed_attribute": (
        "an attribute is looked up by a name that the text does not show",
        "name the attribute in the code, or keep the values in a dict",
    ),
    "format_field": (
        "a format string reads an internal attribute",
        "read the value first and format it by name",
    ),
    "indirect_module": (
        "a module is reached through another one, or is a private one",
        "import the public module that you need by its name",
    ),
    "module_value": (
        "a module is passed around as a value, so that its use can't be seen",
        "use the module's members where they are needed, or bind it to one plain name",
    ),
    "introspection": (
        "frames, traces or the objects of the running interpreter are inspected",
        "pass what the code needs as arguments",
    ),
    "interpreter_state": (
        "hooks, streams or settings of the running interpreter are reached",
        "print results, and leave the interpreter's own state alone",
    ),
    "tampering": (
        "a module, a built-in or a special attribute is replaced",
        "write a function or class of your own and call that",
    ),
    "native_code": (
        "native code or raw memory is reached, where no rule of the language holds",
        "use pure Python or a module made for the purpose",
    ),
    "unsafe_deserialization": (
        "reading this format can run any code",
        "use `json`",
    ),
    "process_control": (
        "signals, descriptors or limits of processes are changed",
        "leave these to the sandbox; limits are part of the policy",
    ),
    "background_work": (
        "work is started that can outlive the code",
        "do the work in order, or with `asyncio`",
    ),
    "ambient_state": (
        "the environment, users or identity of the host are read",
        "pass the value as an input",
    ),
    "interactive": (
        "a debugger, console or pager is started",
        "print what you want to see",
    ),
    "module_denied": (
        "the policy denies the module",
        "do without the module, or ask for a policy that allows it",
    ),
}

VIOLATIONS: Mapping[str, str] = MappingProxyType({code: meaning for code, (meaning, _) in _TABLE.items()})
"""What each code of a violation stands for, one sentence a code."""


def violation(code: str, line: int | None, subject: str) -> Violation:
    """Make the violation `code` at `line`; `subject` says in a few words what was seen there."""
    meaning, advice = _TABLE[code]
    return Violation(code, line, f"{subject}: {meaning}", advice)
