"""The names of syntax that an interpreter may lack.

Rules this module keeps:

- a name stands for something that shows in the text of code, never for behaviour at run time;
- `method:x` names a method or attribute `x` of the built-in types;
- `defines:__x__` names a class that defines the special method `__x__`, since an interpreter that ignores
  the method would run the code and give a wrong answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from licet.screen.rules import words

SPECIAL_METHODS: frozenset[str] = frozenset(
    f"__{name}__"
    for name in words(
        "lt le gt ge eq ne hash len length_hint bool format str repr bytes int float complex index "
        "new init del post_init call getattr getattribute setattr delattr get set delete set_name "
        "class_getitem init_subclass instancecheck subclasscheck "
        "getitem setitem delitem missing contains iter next reversed enter exit "
        "aiter anext aenter aexit await copy deepcopy round trunc floor ceil neg pos invert abs "
        "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift "
        "radd rsub rmul rtruediv rfloordiv rmod rdivmod rpow rmatmul rand ror rxor rlshift rrshift "
        "iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift"
    )
)

RARE_METHODS: frozenset[str] = words(
    "add_note as_integer_ratio bit_count bit_length denominator difference_update format_map "
    "intersection_update is_integer numerator symmetric_difference_update to_bytes translate "
    "with_traceback"
)
"""Methods and attributes of built-in types that an interpreter may lack, and few other types have."""

FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "generator": "a function that yields",
        "lazy_iterator": "a generator expression, or `map`, `zip` and the like, that is advanced later",
        "class_inheritance": "a class with bases",
        "class_keywords": "a class with keywords, such as `metaclass=`",
        "nested_class": "a class inside the body of a class",
        "class_body_statement": "a class body with more than methods and `name = value`",
        "class_decorator": "a decorated class",
        "method_decorator": "a decorated method, such as a property or a class method",
        "function_decorator": "a decorated function outside of a class",
        "del_statement": "`del`",
        "except_star": "`except*`",
        "async_function": "`async def` and `await`",
        "async_for": "`async for`",
        "async_with": "`async with`",
        "async_comprehension": "`async for` inside a comprehension",
        "top_level_await": "`await` outside of a function",
        "star_import": "`from module import *`",
        "relative_import": "`from . import name`",
        "type_alias": "`type X = ...`",
        "type_parameters": "a function or class with type parameters in brackets",
        "template_string": "a template string `t'...'`",
        "matmul_assignment": "`@=`",
        "match_statement": "`match`",
        "assignment_expression": "`:=`",
        "global_statement": "`global`",
        "nonlocal_statement": "`nonlocal`",
        "exception_arguments": "an exception made with several arguments, or with one that is no text",
        "function_attribute": "an attribute set on a function, or a name read from one, such as `f.__name__`",
        "type_method": "a method taken from a built-in type, such as `str.strip` or `int.from_bytes`",
        "special_attribute": "a special attribute read from an object, such as `f.__doc__`",
        **{
            f"defines:{name}": f"a class that defines the special method `{name}`"
            for name in sorted(SPECIAL_METHODS)
        },
        **{
            f"method:{name}": f"`.{name}` of a built-in type, on an object that the code did not define"
            for name in sorted(RARE_METHODS)
        },
    }
)
"""What each name in `CodeNeeds.syntax` stands for."""
