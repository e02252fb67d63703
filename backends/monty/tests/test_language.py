"""Monty is what `licet_monty.language` says: each entry is tried in it, and its twin on CPython."""

from __future__ import annotations

import builtins
import importlib
import sys
from typing import Any

import pytest
from licet.screen import FEATURES
from licet_monty.language import BUILTINS, LACKS_SYNTAX, LANGUAGE, MEMBERS, MODULES

_ASYNC = "import asyncio\nasync def main():\n{body}\nanswer = asyncio.run(main())\n"

PROGRAMS: dict[str, str] = {
    "generator": "def f():\n    yield 1\nanswer = list(f()) == [1]",
    "lazy_iterator": "seen = []\ng = (seen.append(i) for i in [1, 2])\nanswer = seen == []",
    "class_inheritance": "class A(Exception): pass\nanswer = True",
    "class_keywords": "class A(metaclass=type): pass\nanswer = True",
    "nested_class": "class A:\n    class B: pass\nanswer = True",
    "class_body_statement": "class A:\n    for i in [1]: pass\nanswer = True",
    "method_decorator": "class A:\n    @property\n    def x(self): return 1\nanswer = A().x == 1",
    "del_statement": "x = 1\ndel x\nanswer = True",
    "except_star": "try:\n    pass\nexcept* ValueError:\n    pass\nanswer = True",
    "async_for": _ASYNC.format(
        body="""    class N:
        def __aiter__(self): return self
        async def __anext__(self): raise StopAsyncIteration
    async for _ in N(): pass
    return True"""
    ),
    "async_with": _ASYNC.format(
        body="""    class N:
        async def __aenter__(self): return self
        async def __aexit__(self, *a): return None
    async with N(): pass
    return True"""
    ),
    "async_comprehension": _ASYNC.format(
        body="""    class N:
        def __aiter__(self): return self
        async def __anext__(self): raise StopAsyncIteration
    return [x async for x in N()] == []"""
    ),
    "star_import": "from math import *\nanswer = pi > 3",
    "relative_import": "",
    "type_alias": "type X = int\nanswer = True",
    "template_string": "answer = t'{1}' is not None",
    "matmul_assignment": "class A:\n    def __matmul__(self, o): return 1\nx = A()\nx @= 1\nanswer = x == 1",
    "exception_arguments": "answer = ValueError('a', 1).args == ('a', 1)",
    "function_attribute": "def f(): pass\nf.x = 1\nanswer = f.x == 1",
    "special_attribute": "answer = (1).__class__ is int",
    "type_method": "answer = list(map(str.strip, [' a '])) == ['a']",
}
_METHOD = "class A:\n    def {name}(self{args}): return {value}\nanswer = {test}"
_METHODS: dict[str, tuple[str, str, str]] = {
    "__lt__": (", o", "True", "A() < 1"),
    "__le__": (", o", "True", "A() <= 1"),
    "__gt__": (", o", "True", "A() > 1"),
    "__ge__": (", o", "True", "A() >= 1"),
    "__ne__": (", o", "False", "not (A() != 1)"),
    "__len__": ("", "3", "len(A()) == 3"),
    "__bool__": ("", "False", "not A()"),
    "__format__": (", spec", "'x'", "f'{A()}' == 'x'"),
    "__getattr__": (", name", "1", "A().y == 1"),
    "__getattribute__": (", name", "1", "A().y == 1"),
    "__reversed__": ("", "[2]", "list(reversed(A())) == [2]"),
    "__complex__": ("", "1j", "complex(A()) == 1j"),
    "__bytes__": ("", "b'x'", "bytes(A()) == b'x'"),
    "__length_hint__": ("", "1", "__import__('operator').length_hint(A()) == 1"),
}
for _name, _sign in {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "matmul": "@",
}.items():  # fmt: skip
    PROGRAMS[f"defines:__i{_name}__"] = (
        f"class A:\n    def __i{_name}__(self, o): return 7\nx = A()\nx {_sign}= 1\nanswer = x == 7"
    )
for _name, (_args, _value, _test) in _METHODS.items():
    PROGRAMS[f"defines:{_name}"] = _METHOD.format(name=_name, args=_args, value=_value, test=_test)
PROGRAMS |= {
    "defines:__setattr__": """\
class A:
    def __setattr__(self, n, v): pass
a = A()
a.x = 1
answer = not hasattr(a, 'x')""",
    "defines:__delattr__": """\
class A:
    def __delattr__(self, n): pass
a = A()
a.x = 1
del a.x
answer = a.x == 1""",
    "defines:__delitem__": """\
class A:
    def __delitem__(self, n): pass
a = A()
del a[0]
answer = True""",
    "defines:__del__": """\
seen = []
class A:
    def __del__(self): seen.append(1)
a = A()
a = None
answer = seen == [1]""",
    "defines:__new__": "class A:\n    def __new__(cls): return 5\nanswer = A() == 5",
    "defines:__get__": """\
class D:
    def __get__(self, o, t): return 5
class A:
    x = D()
answer = A().x == 5""",
    "defines:__set__": """\
class D:
    def __set__(self, o, v): pass
class A:
    x = D()
a = A()
d = a.x
a.x = 1
answer = a.x is d""",
    "defines:__delete__": """\
class D:
    def __delete__(self, o): pass
class A:
    x = D()
a = A()
del a.x
answer = True""",
    "defines:__set_name__": """\
seen = []
class D:
    def __set_name__(self, o, n): seen.append(n)
class A:
    x = D()
answer = seen == ['x']""",
    "defines:__class_getitem__": """\
class A:
    def __class_getitem__(cls, k): return k
answer = A[5] == 5""",
    "defines:__init_subclass__": """\
seen = []
class A:
    def __init_subclass__(cls): seen.append(1)
class B(A): pass
answer = seen == [1]""",
    "defines:__instancecheck__": """\
class M(type):
    def __instancecheck__(cls, o): return True
class A(metaclass=M): pass
answer = isinstance(1, A)""",
    "defines:__subclasscheck__": """\
class M(type):
    def __subclasscheck__(cls, o): return True
class A(metaclass=M): pass
answer = issubclass(int, A)""",
    "defines:__aiter__": PROGRAMS["async_for"],
    "defines:__anext__": PROGRAMS["async_for"],
    "defines:__aenter__": PROGRAMS["async_with"],
    "defines:__aexit__": PROGRAMS["async_with"],
    "relative_import": "from . import x\nanswer = True",
}
for _name, _test in {
    "add_note": "ValueError('a').add_note('b') is None",
    "as_integer_ratio": "(0.5).as_integer_ratio() == (1, 2)",
    "bit_count": "(5).bit_count() == 2",
    "bit_length": "(5).bit_length() == 3",
    "denominator": "(5).denominator == 1",
    "difference_update": "{1}.difference_update({1}) is None",
    "format_map": "'{x}'.format_map({'x': 1}) == '1'",
    "intersection_update": "{1}.intersection_update({1}) is None",
    "is_integer": "(1.0).is_integer()",
    "numerator": "(5).numerator == 5",
    "symmetric_difference_update": "{1}.symmetric_difference_update({1}) is None",
    "to_bytes": "(5).to_bytes(1, 'big') == b'\\x05'",
    "translate": "'a'.translate({97: 'b'}) == 'b'",
    "with_traceback": "str(ValueError('a').with_traceback(None)) == 'a'",
}.items():
    PROGRAMS[f"method:{_name}"] = f"answer = {_test}"
_NOT_HERE = {
    "relative_import": "code has no package on CPython either",
    "type_alias": "" if sys.version_info >= (3, 12) else "new in Python 3.12",
    "template_string": "" if sys.version_info >= (3, 14) else "new in Python 3.14",
}


def test_every_feature_has_a_name_that_the_screen_knows_and_a_program() -> None:
    assert set(FEATURES) >= LACKS_SYNTAX
    assert set(PROGRAMS) == LACKS_SYNTAX


@pytest.mark.parametrize("feature", sorted(LACKS_SYNTAX))
def test_what_is_lacking_fails(feature: str, run: Any) -> None:
    outcome = run(f"{PROGRAMS[feature]}\nanswer")
    assert outcome.termination == "exited"
    assert outcome.value is not True, "Monty has it by now"


@pytest.mark.parametrize("feature", sorted(LACKS_SYNTAX - {name for name, why in _NOT_HERE.items() if why}))
def test_the_twin_runs_on_cpython(feature: str) -> None:
    names: dict[str, Any] = {"__name__": "twin"}
    exec(PROGRAMS[feature], names)
    assert names["answer"] is True


def test_every_module_imports_and_no_other(run: Any) -> None:
    others = sorted(set(sys.stdlib_module_names) - MODULES - {"__future__", "antigravity", "this"})
    code = """
found = []
for name in names:
    try:
        exec(f"import {name}")
        found.append(name)
    except ModuleNotFoundError as problem:
        if str(problem) != f"No module named '{name}'":
            found.append(str(problem))
found"""
    assert run(code, inputs={"names": sorted(MODULES)}).value == sorted(MODULES)
    assert run(code, inputs={"names": others}).value == []


def test_every_built_in_name_exists_and_no_other(run: Any) -> None:
    code = """
found = []
for name in names:
    try:
        eval(name)
        found.append(name)
    except NameError as problem:
        pass
found"""
    missing = set(dir(builtins)) - BUILTINS - {"property"}  # a name without use: Monty has no descriptors
    others = sorted(name for name in missing if not name.startswith("_"))
    assert run(code, inputs={"names": sorted(BUILTINS)}).value == sorted(BUILTINS)
    assert run(code, inputs={"names": others}).value == []


def _reachable(owner: str) -> list[str]:
    """What CPython has of a module, class or stream, without names that begin with an underscore."""
    path, names = owner, []
    while path not in sys.modules:
        path, _, name = path.rpartition(".")
        names.insert(0, name)
    found = sys.modules[path]
    for name in names:
        found = getattr(found, name)
    return sorted(name for name in dir(found) if not name.startswith("_"))


_TAKEN = """
import {module}
found = []
for name in names:
    try:
        eval("{owner}." + name + "{called}")
        found.append(name)
    except AttributeError as problem:
        if not str(problem).endswith("attribute '" + name + "'"):
            found.append(name)
    except Exception:
        found.append(name)
found"""


@pytest.mark.parametrize("owner", sorted(MEMBERS))
def test_every_member_is_there_and_no_other(owner: str, run: Any) -> None:
    module = next(m for m in sorted(MODULES, key=len, reverse=True) if f"{owner}.".startswith(f"{m}."))
    importlib.import_module(module)
    names = sorted({*_reachable(owner), *MEMBERS[owner]})
    called = "" if owner == module else "()"  # methods of a class are there only to be called
    code = _TAKEN.format(module=module, owner=owner, called=called)
    assert run(code, inputs={"names": names}).value == sorted(MEMBERS[owner])


def test_every_module_has_its_members() -> None:
    assert {owner for owner in MEMBERS if owner in MODULES} == MODULES
    assert {f"{owner}.{name}" for owner, names in MEMBERS.items() for name in names} >= {
        owner for owner in MEMBERS if owner not in MODULES
    }


def test_there_is_no_standard_input() -> None:
    assert LANGUAGE.stdin is False
    assert "input" not in BUILTINS
