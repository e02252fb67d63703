"""Attributes, keys and method names that mean something wherever they stand.

Rules this module keeps:

- a special attribute (`__x__`) that is not listed as harmless is refused;
- a name here needs no knowledge of the object it is read from.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from types import MappingProxyType

from licet.screen.features import SPECIAL_METHODS
from licet.screen.rules import Effect, Rule, words

BUILTINS: frozenset[str] = frozenset(name for name in dir(builtins) if not name.startswith("_")) | words(
    "exit quit copyright credits license help __import__ __build_class__"
)
"""The built-in names that count as a need of the code."""

_HOOKS = "getattribute getattr get set delete reduce reduce_ex instancecheck subclasscheck"

HARMLESS_SPECIAL: frozenset[str] = (
    SPECIAL_METHODS - frozenset(f"__{name}__" for name in _HOOKS.split())
) | words(
    "__name__ __qualname__ __module__ __doc__ __class__ __version__ __author__ __annotations__ __slots__ "
    "__members__ __match_args__ __all__ __file__ __wrapped__ __cause__ __context__ __suppress_context__ "
    "__notes__ "
    "__dataclass_fields__ __dataclass_params__ __args__ __origin__ __parameters__ __orig_bases__ __total__ "
    "__required_keys__ __optional_keys__ __abstractmethods__ __type_params__ __bound__ __defaults__ "
    "__kwdefaults__ __prepare__ __fspath__ __getnewargs__ __dir__ __sizeof__"
)
"""Special attributes that are read in ordinary code and lead nowhere."""

UNSTORABLE: frozenset[str] = words("__class__ __bases__ __defaults__ __kwdefaults__ __match_args__")
"""Special attributes that may be read and not replaced."""

OWN_CLASS_ONLY: frozenset[str] = words("__mro__ __bases__ __base__")
"""Special attributes that may be read from a class which the code defines itself."""

INTERNAL: frozenset[str] = words(
    "gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await cr_origin ag_frame ag_code ag_await "
    "tb_frame tb_next tb_lasti tb_lineno f_back f_builtins f_globals f_locals f_code f_trace f_lasti "
    "f_lineno "
    "f_generator co_code co_consts co_names co_varnames co_freevars co_cellvars co_filename co_positions "
    "func_globals func_code func_closure func_dict im_func im_self im_class cell_contents exc_traceback"
)
"""Attributes of frames, code, tracebacks and cells."""

INTERNAL_PREFIXES: tuple[str, ...] = (
    "_",
    "gi_",
    "cr_",
    "ag_",
    "tb_",
    "f_",
    "co_",
    "func_",
    "im_",
    "cell",
    "exc_",
)
"""How the name of an internal attribute begins, for names of which only the beginning is known."""

INTERNAL_KEYS: frozenset[str] = words(
    "__builtins__ __import__ __globals__ __subclasses__ __code__ __loader__ __spec__ __closure__ "
    "__reduce__ "
    "__reduce_ex__ __getattribute__ __self__ __func__ __base__ __bases__ __mro__ __dict__ f_builtins "
    "f_globals"
)
"""Keys that only the tables of the interpreter have."""

LOOKUPS: frozenset[str] = words("get pop setdefault getitem itemgetter __getitem__")
"""Callables that look a key up."""

DOORS: frozenset[str] = words("os sys builtins posix subprocess importlib ctypes socket shutil obj")
"""Attributes through which objects of the standard library lead to a module, or to the object that an
exception is about; on what the code itself gives an attribute of that name they are nothing special."""

FORMATTERS: frozenset[str] = words("format format_map vformat get_field")
"""Methods that read attributes by the text of a format string."""

INERT: frozenset[str] = words("print repr str id dir callable type bool len hash")
"""Built-in functions from whose result a module that is passed can't be got back."""

INERT_FIRST: frozenset[str] = words("getattr setattr delattr hasattr")
"""Built-in functions that are judged by what they do with a module passed first."""

EAGER: frozenset[str] = words(
    "all any bytearray bytes dict frozenset list max min set sorted sum tuple join extend update "
    "Counter deque OrderedDict fsum prod mean median stdev gather from_iterable union"
)
"""Callables that use up an iterable before they return."""

TYPES: frozenset[str] = words(
    "bool bytearray bytes complex dict float frozenset int list memoryview object range set slice str "
    "tuple type"
)
"""Built-in types."""

CONSTRUCTORS: frozenset[str] = words("dict.fromkeys bytes.fromhex")
"""Methods of built-in types that are called on the type in any Python."""

LAZY: frozenset[str] = words("map zip filter enumerate reversed")
"""Built-in functions that return an iterator."""

_DRY_READ, _DRY_WRITE = Rule((Effect("read"),)), Rule((Effect("write"),))
_NETWORK, _SHELL = Rule((Effect("network"),)), Rule((Effect("shell"),))
_EXTRACT = Rule((Effect("write", "directory", 0, "path"),))
_CONNECT = Rule((Effect("network", "address", 0, "address"),))

METHODS: Mapping[str, tuple[frozenset[str], Rule]] = MappingProxyType(
    {
        name: (frozenset(modules.split()), rule)
        for names, modules, rule in (
            ("read_text read_bytes iterdir rglob", "pathlib importlib zipfile", _DRY_READ),
            ("write_text write_bytes unlink rmdir touch symlink_to hardlink_to", "pathlib", _DRY_WRITE),
            (
                "extractall extract",
                "tarfile zipfile shutil",
                Rule((Effect("write", "directory", 0, "path"),)),
            ),
            ("connect connect_ex", "socket ssl", _CONNECT),
            ("sendto", "socket", Rule((Effect("network", "address", 1, "address"),))),
            ("create_connection create_server create_datagram_endpoint", "asyncio", _NETWORK),
            ("create_unix_connection create_unix_server sock_connect", "asyncio", _NETWORK),
            ("subprocess_exec subprocess_shell", "asyncio", _SHELL),
            ("run_in_executor", "asyncio", Rule(violation="background_work")),
            ("add_signal_handler", "asyncio", Rule(violation="process_control")),
            ("get_field", "string", Rule(violation="computed_attribute")),
        )
        for name in names.split()
    }
)
"""Methods that are known by their name alone, once one of the modules is imported."""
