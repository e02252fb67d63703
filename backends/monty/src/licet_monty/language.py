"""Which Python Monty runs, as data; a test probes the interpreter for each entry.

`LACKS_SYNTAX` speaks in the feature names of `licet.screen`; `MODULES`, `BUILTINS` and
`MEMBERS` speak in Python's.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from licet.backend import Language

LACKS_SYNTAX = frozenset(
    (
        "generator",
        "lazy_iterator",
        "class_inheritance",
        "class_keywords",
        "nested_class",
        "class_body_statement",
        "method_decorator",
        "del_statement",
        "except_star",
        "async_for",
        "async_with",
        "async_comprehension",
        "star_import",
        "relative_import",
        "type_alias",
        "template_string",
        "matmul_assignment",
        "exception_arguments",
        "function_attribute",
        "special_attribute",
        "type_method",
        "method:add_note",
        "method:as_integer_ratio",
        "method:bit_count",
        "method:bit_length",
        "method:denominator",
        "method:difference_update",
        "method:format_map",
        "method:intersection_update",
        "method:is_integer",
        "method:numerator",
        "method:symmetric_difference_update",
        "method:to_bytes",
        "method:translate",
        "method:with_traceback",
        "defines:__lt__",
        "defines:__le__",
        "defines:__gt__",
        "defines:__ge__",
        "defines:__ne__",
        "defines:__len__",
        "defines:__bool__",
        "defines:__format__",
        "defines:__new__",
        "defines:__getattr__",
        "defines:__getattribute__",
        "defines:__setattr__",
        "defines:__delattr__",
        "defines:__get__",
        "defines:__set__",
        "defines:__delete__",
        "defines:__set_name__",
        "defines:__class_getitem__",
        "defines:__init_subclass__",
        "defines:__reversed__",
        "defines:__complex__",
        "defines:__bytes__",
        "defines:__iadd__",
        "defines:__isub__",
        "defines:__imul__",
        "defines:__itruediv__",
        "defines:__ifloordiv__",
        "defines:__imod__",
        "defines:__ipow__",
        "defines:__iand__",
        "defines:__ior__",
        "defines:__ixor__",
        "defines:__ilshift__",
        "defines:__irshift__",
        "defines:__imatmul__",
        "defines:__length_hint__",
        "defines:__instancecheck__",
        "defines:__subclasscheck__",
        "defines:__aiter__",
        "defines:__anext__",
        "defines:__aenter__",
        "defines:__aexit__",
        "defines:__del__",
        "defines:__delitem__",
    )
)
"""What Monty refuses or does otherwise than CPython."""

MODULES = frozenset(
    (
        "asyncio",
        "base64",
        "binascii",
        "bisect",
        "collections",
        "copy",
        "csv",
        "dataclasses",
        "datetime",
        "decimal",
        "functools",
        "hashlib",
        "itertools",
        "json",
        "math",
        "os",
        "os.path",
        "pathlib",
        "posixpath",
        "random",
        "re",
        "sys",
        "time",
        "tomllib",
        "typing",
        "unicodedata",
    )
)
"""All that can be imported."""

BUILTINS = frozenset(
    (
        "ArithmeticError",
        "AssertionError",
        "AttributeError",
        "BaseException",
        "Ellipsis",
        "Exception",
        "False",
        "FileExistsError",
        "FileNotFoundError",
        "ImportError",
        "IndexError",
        "IsADirectoryError",
        "KeyError",
        "KeyboardInterrupt",
        "LookupError",
        "MemoryError",
        "ModuleNotFoundError",
        "NameError",
        "None",
        "NotADirectoryError",
        "NotImplemented",
        "NotImplementedError",
        "OSError",
        "OverflowError",
        "PermissionError",
        "RecursionError",
        "RuntimeError",
        "StopIteration",
        "SyntaxError",
        "SystemExit",
        "TimeoutError",
        "True",
        "TypeError",
        "UnboundLocalError",
        "UnicodeDecodeError",
        "UnicodeEncodeError",
        "ValueError",
        "ZeroDivisionError",
        "abs",
        "all",
        "any",
        "bin",
        "bool",
        "bytes",
        "chr",
        "complex",
        "dict",
        "divmod",
        "enumerate",
        "eval",
        "exec",
        "filter",
        "float",
        "format",
        "frozenset",
        "getattr",
        "hasattr",
        "hash",
        "hex",
        "id",
        "int",
        "isinstance",
        "iter",
        "len",
        "list",
        "locals",
        "map",
        "max",
        "min",
        "next",
        "object",
        "oct",
        "open",
        "ord",
        "pow",
        "print",
        "range",
        "repr",
        "reversed",
        "round",
        "set",
        "setattr",
        "slice",
        "sorted",
        "str",
        "sum",
        "tuple",
        "type",
        "zip",
    )
)
"""The built-in names that exist."""

_MEMBERS = {
    "asyncio": "gather run sleep",
    "base64": (
        "MAXBINSIZE MAXLINESIZE a85decode a85encode b16decode b16encode b32decode b32encode "
        "b32hexdecode b32hexencode b64decode b64encode b85decode b85encode decodebytes encodebytes "
        "standard_b64decode standard_b64encode urlsafe_b64decode urlsafe_b64encode z85decode z85encode"
    ),
    "binascii": (
        "Error Incomplete a2b_base64 a2b_hex a2b_qp a2b_uu b2a_base64 b2a_hex b2a_qp b2a_uu crc32 "
        "crc_hqx hexlify unhexlify"
    ),
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "collections": "Counter defaultdict deque namedtuple",
    "collections.Counter": "fromkeys",
    "copy": "copy deepcopy",
    "csv": (
        "Dialect DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC "
        "QUOTE_NOTNULL QUOTE_STRINGS excel excel_tab field_size_limit get_dialect list_dialects reader "
        "unix_dialect writer"
    ),
    "dataclasses": "FrozenInstanceError MISSING dataclass field is_dataclass",
    "datetime": "date datetime time timedelta timezone",
    "datetime.date": "fromisoformat max min resolution today",
    "datetime.datetime": "combine fromisoformat max min now resolution strptime",
    "datetime.time": "fromisoformat max min resolution",
    "datetime.timedelta": "max min resolution",
    "datetime.timezone": "max min utc",
    "decimal": (
        "BasicContext Clamped Context ConversionSyntax Decimal DecimalException DecimalTuple "
        "DefaultContext DivisionByZero DivisionImpossible DivisionUndefined ExtendedContext "
        "FloatOperation HAVE_CONTEXTVAR HAVE_THREADS IEEEContext IEEE_CONTEXT_MAX_BITS Inexact "
        "InvalidContext InvalidOperation MAX_EMAX MAX_PREC MIN_EMIN MIN_ETINY Overflow ROUND_05UP "
        "ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP "
        "Rounded Subnormal Underflow getcontext localcontext setcontext"
    ),
    "decimal.Decimal": "from_float from_number",
    "functools": "cache lru_cache partial reduce",
    "hashlib": (
        "algorithms_available algorithms_guaranteed blake2b blake2s md5 new pbkdf2_hmac sha1 sha224 "
        "sha256 sha384 sha3_224 sha3_256 sha3_384 sha3_512 sha512 shake_128 shake_256"
    ),
    "itertools": (
        "accumulate batched chain combinations combinations_with_replacement compress count cycle "
        "dropwhile filterfalse groupby islice pairwise permutations product repeat starmap takewhile "
        "tee zip_longest"
    ),
    "itertools.chain": "from_iterable",
    "json": "JSONDecodeError dump dumps load loads",
    "math": (
        "acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf "
        "erfc exp exp2 expm1 fabs factorial floor fma fmod frexp fsum gamma gcd hypot inf isclose "
        "isfinite isinf isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan nextafter perm pi "
        "pow prod radians remainder sin sinh sqrt sumprod tan tanh tau trunc ulp"
    ),
    "os": (
        "altsep chdir curdir defpath devnull environ extsep fspath getcwd getcwdb getenv linesep "
        "listdir makedirs mkdir name pardir path pathsep remove rename replace rmdir scandir sep stat "
        "unlink urandom walk"
    ),
    "os.path": (
        "abspath altsep basename commonpath commonprefix curdir defpath devnull dirname exists "
        "expanduser expandvars extsep getatime getctime getmtime getsize isabs isdevdrive isdir isfile "
        "isjunction islink ismount join lexists normcase normpath pardir pathsep realpath relpath "
        "samefile samestat sep split splitdrive splitext splitroot supports_unicode_filenames"
    ),
    "pathlib": "Path",
    "pathlib.Path": "cwd",
    "posixpath": (
        "abspath altsep basename commonpath commonprefix curdir defpath devnull dirname exists "
        "expanduser expandvars extsep getatime getctime getmtime getsize isabs isdevdrive isdir isfile "
        "isjunction islink ismount join lexists normcase normpath pardir pathsep realpath relpath "
        "samefile samestat sep split splitdrive splitext splitroot supports_unicode_filenames"
    ),
    "random": (
        "Random betavariate binomialvariate choice choices expovariate gammavariate gauss getrandbits "
        "getstate lognormvariate normalvariate paretovariate randbytes randint random randrange sample "
        "seed setstate shuffle triangular uniform vonmisesvariate weibullvariate"
    ),
    "random.Random": "",
    "re": (
        "A ASCII DOTALL I IGNORECASE M MULTILINE Match NOFLAG Pattern PatternError S compile error "
        "escape findall finditer fullmatch match search split sub"
    ),
    "sys": (
        "abiflags api_version argv base_exec_prefix base_prefix builtin_module_names byteorder "
        "copyright dont_write_bytecode exec_prefix executable flags float_info float_repr_style "
        "hexversion maxsize maxunicode platform platlibdir prefix pycache_prefix stderr stdout version "
        "version_info"
    ),
    "sys.stderr": "",
    "sys.stdout": "",
    "time": (
        "altzone asctime ctime daylight gmtime localtime mktime monotonic monotonic_ns perf_counter "
        "perf_counter_ns process_time process_time_ns sleep strftime strptime thread_time "
        "thread_time_ns time time_ns timezone tzname"
    ),
    "tomllib": "TOMLDecodeError load loads",
    "typing": (
        "Annotated Any Callable ClassVar Dict Final FrozenSet Generator Generic Iterable Iterator List "
        "Literal Mapping Never NoReturn Optional Protocol Self Sequence Set TYPE_CHECKING Tuple Type "
        "TypeVar Union"
    ),
    "unicodedata": "category combining is_normalized lookup name normalize unidata_version",
}

MEMBERS: Mapping[str, frozenset[str]] = MappingProxyType(
    {owner: frozenset(names.split()) for owner, names in _MEMBERS.items()}
)
"""All that can be taken from each module, and from classes and streams in them."""

LANGUAGE = Language(
    name="Monty 1.4",
    lacks_syntax=LACKS_SYNTAX,
    modules=MODULES,
    builtins=BUILTINS,
    members=MEMBERS,
    stdin=False,
)
