"""What the screen says that code needs of an interpreter."""

from __future__ import annotations

import sys

import pytest
from licet.screen import FEATURES, screen

SYNTAX: list[tuple[str, dict[str, int]]] = [
    ("x = 1", {}),
    ("def f():\n    yield 1", {"generator": 2}),
    ("sum(x for x in y)", {}),
    ("','.join(str(x) for x in y)", {}),
    ("g = (x for x in y)", {"lazy_iterator": 1}),
    ("next(x for x in y)", {"lazy_iterator": 1}),
    ("next(iter(y))", {}),
    ("m = map(f, y)\nnext(m)", {"lazy_iterator": 2}),
    ("class A:\n    '''doc'''\n    x = 1\n    y: int\n    def f(self): ...", {}),
    ("class A(B): pass", {"class_inheritance": 1}),
    ("class A(metaclass=M): pass", {"class_keywords": 1}),
    ("class A:\n    class B: pass", {"nested_class": 2}),
    ("class A:\n    for x in y: pass", {"class_body_statement": 2}),
    ("class A:\n    x, y = 1, 2", {"class_body_statement": 2}),
    ("class A:\n    x = y = 1", {"class_body_statement": 2}),
    (
        "class A:\n    @property\n    def x(self): pass",
        {"method_decorator": 3},
    ),
    ("@d\nclass A: pass", {"class_decorator": 2}),
    ("@d\ndef f(): pass", {"function_decorator": 2}),
    ("class A:\n    def __len__(self): return 1", {"defines:__len__": 2}),
    ("class A:\n    def f(self): pass\n    __add__ = f", {"defines:__add__": 3}),
    ("del x[0]", {"del_statement": 1}),
    ("try: pass\nexcept* E: pass", {"except_star": 1}),
    ("async def f():\n    async for x in y: pass", {"async_function": 1, "async_for": 2}),
    ("async def f():\n    async with x: pass", {"async_function": 1, "async_with": 2}),
    ("async def f():\n    return [x async for x in y]", {"async_function": 1, "async_comprehension": 2}),
    ("await x", {"top_level_await": 1}),
    ("from m import *", {"star_import": 1}),
    ("from . import x", {"relative_import": 1}),
    ("x @= y", {"matmul_assignment": 1}),
    ("match x:\n    case 1: pass", {"match_statement": 1}),
    ("(x := 1)", {"assignment_expression": 1}),
    ("def f():\n    global x", {"global_statement": 2}),
    ("def f():\n    x = 1\n    def g():\n        nonlocal x", {"nonlocal_statement": 4}),
    ("raise ValueError('a', 'b')", {"exception_arguments": 1}),
    ("raise ValueError(1)", {"exception_arguments": 1}),
    ("raise ValueError(f'{x}')", {}),
    ("def f(): pass\nf.calls = 0", {"function_attribute": 2}),
    ("def f(g): return g.__name__", {"function_attribute": 1}),
    ("type(x).__name__", {}),
    ("class A:\n    def f(self): return self.__class__.__name__", {}),
    ("f(*(x for x in y))", {}),
    ("map(str.strip, y)", {"type_method": 1}),
    ("int.from_bytes(b'', 'big')", {"type_method": 1}),
    ("dict.fromkeys(y)", {}),
    ("def f(str): return str.strip", {}),
    ("x.__doc__", {"special_attribute": 1}),
    ("y.__getitem__", {"special_attribute": 1}),
]


@pytest.mark.parametrize(("code", "syntax"), SYNTAX, ids=[code for code, _ in SYNTAX])
def test_syntax(code: str, syntax: dict[str, int]) -> None:
    report = screen(code)
    assert report.syntax_error is None
    assert dict(report.needs.syntax) == syntax
    assert set(syntax) <= set(FEATURES)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is new in Python 3.12")
@pytest.mark.parametrize(
    ("code", "syntax"),
    [
        ("type X = int", {"type_alias": 1}),
        ("class A[T]: pass", {"type_parameters": 1}),
        ("def f[T](x: T) -> T: return x", {"type_parameters": 1}),
    ],
)
def test_syntax_of_python_3_12(code: str, syntax: dict[str, int]) -> None:
    assert dict(screen(code).needs.syntax) == syntax


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is new in Python 3.12")
def test_a_type_parameter_hides_a_builtin_only_from_its_own_definition() -> None:
    report = screen("def g():\n    def f[eval](x: eval): pass\n    return eval('1')")
    assert [(item.code, item.line) for item in report.violations] == [("dynamic_code", 3)]


MODULES: list[tuple[str, dict[str, int]]] = [
    ("import a, b.c", {"a": 1, "b": 1, "b.c": 1}),
    ("import a.b as c", {"a": 1, "a.b": 1}),
    ("from a import b", {"a": 1}),
    ("\nfrom a.b import c", {"a": 2, "a.b": 2}),
    ("from os import path", {"os": 1, "os.path": 1}),
    ("from collections import abc, deque", {"collections": 1, "collections.abc": 1}),
    ("def f():\n    import a", {"a": 2}),
    ("from __future__ import annotations", {}),
    ("try:\n    import a\nexcept ImportError:\n    a = None", {}),
    ("try:\n    import a\nexcept (KeyError, ModuleNotFoundError):\n    a = None", {}),
    ("try:\n    import a\nexcept KeyError:\n    a = None", {"a": 2}),
    ("try:\n    import a\nfinally:\n    pass", {"a": 2}),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a", {"typing": 1}),
]


@pytest.mark.parametrize(("code", "modules"), MODULES, ids=[code for code, _ in MODULES])
def test_modules(code: str, modules: dict[str, int]) -> None:
    assert dict(screen(code).needs.modules) == modules


def test_builtins_are_needs_unless_bound_anywhere() -> None:
    code = "x = sorted(len)\nprint(x, sum)\ndef sum(): pass\nid = 1\nid\nmax.real\nnope"
    assert dict(screen(code).needs.builtins) == {"len": 1, "sorted": 1, "print": 2, "max": 6}


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ("input()", True),
        ("list(map(int, input().split()))", True),
        ("def input(): pass\ninput()", False),
        ("import sys\nfor line in sys.stdin: pass", True),
        ("from sys import stdin\nstdin.read()", True),
        ("import sys as s\nr = s.stdin.readline", True),
        ("import sys\nsys.stdout.write('')", False),
        ("import fileinput", True),
        ("open(0).read()", True),
        ("open(False).read()", False),
        ("x.stdin", False),
    ],
)
def test_stdin(code: str, reads: bool) -> None:
    assert screen(code).needs.stdin is reads


def test_needs_come_in_the_order_of_lines() -> None:
    needs = screen("import b\nimport a\nyield_ = 1\nclass A(b.B): pass\ndel a").needs
    assert list(needs.modules) == ["b", "a"]
    assert list(needs.syntax) == ["class_inheritance", "del_statement"]


MEMBERS: list[tuple[str, dict[str, int]]] = [
    ("import math\nmath.sqrt(4)", {"math.sqrt": 2}),
    ("from math import sqrt, pi as p", {"math.sqrt": 1, "math.pi": 1}),
    ("import datetime as d\nd.datetime.now().year", {"datetime.datetime.now": 2}),
    ("from datetime import datetime\ndatetime.now()", {"datetime.datetime": 1, "datetime.datetime.now": 2}),
    ("import functools as f\n@f.wraps(x)\ndef g(): pass", {"functools.wraps": 2}),
    ("import os\nos.path.join(a, b)", {"os.path.join": 2}),
    ("from os import path", {}),
    ("import a.b\na.b.c.d.e.f", {"a.b.c.d": 2}),
    ("import math\nm = math\nm.sqrt(4)", {"math.sqrt": 3}),
    ("from datetime import date\nfor date in days:\n    date.year", {"datetime.date": 1}),
    ("try:\n    from functools import cache\nexcept ImportError:\n    pass", {}),
    ("from __future__ import annotations\nfrom . import x\nfrom math import *", {}),
    ("class math: pi = 3\nmath.pi", {}),
]


@pytest.mark.parametrize(("code", "members"), MEMBERS, ids=[code for code, _ in MEMBERS])
def test_members(code: str, members: dict[str, int]) -> None:
    assert dict(screen(code).needs.members) == members


@pytest.mark.parametrize(
    ("code", "syntax"),
    [
        ("s.translate(table)", {"method:translate": 1}),
        ("class A:\n    def translate(self): pass\nA().translate()", {}),
        ("self.numerator = 1\nself.numerator", {}),
        ("import gettext\ngettext.translate('x')", {}),
    ],
)
def test_rare_methods_of_built_in_types(code: str, syntax: dict[str, int]) -> None:
    assert dict(screen(code).needs.syntax) == syntax
