"""The modules of the standard library: which dotted names are modules, and which only look like one.

Rules this module keeps: the lists are those of all Pythons from 3.11 on; a name too many does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from licet.screen.rules import words

SAME_AS: Mapping[str, str] = MappingProxyType(
    {"posixpath": "os.path", "ntpath": "os.path", "macpath": "os.path"}
)
"""Modules that are another one under a second name."""

_INSIDE: Mapping[str, str] = {
    "asyncio": (
        "base_events base_futures base_subprocess base_tasks constants coroutines events exceptions "
        "format_helpers futures graph locks log mixins proactor_events protocols queues runners "
        "selector_events sslproto staggered streams subprocess taskgroups tasks threads timeouts tools "
        "transports trsock unix_events windows_events windows_utils"
    ),
    "collections": "abc",
    "compression": "bz2 gzip lzma zlib zstd",
    "concurrent": "futures interpreters",
    "concurrent.futures": "interpreter process thread",
    "ctypes": "macholib util wintypes",
    "curses": "ascii has_key panel textpad",
    "dbm": "dumb gnu ndbm sqlite3",
    "distutils": "core",
    "email": (
        "base64mime charset contentmanager encoders errors feedparser generator header headerregistry "
        "iterators message mime parser policy quoprimime utils"
    ),
    "email.mime": "application audio base image message multipart nonmultipart text",
    "encodings": "aliases idna",
    "html": "entities parser",
    "http": "client cookiejar cookies server",
    "importlib": "abc machinery metadata readers resources simple util",
    "importlib.resources": "abc readers simple",
    "json": "decoder encoder scanner tool",
    "logging": "config handlers",
    "multiprocessing": (
        "connection context dummy heap managers pool process queues reduction resource_tracker "
        "shared_memory sharedctypes spawn synchronize util"
    ),
    "os": "path",
    "pathlib": "types",
    "pydoc_data": "topics",
    "sqlite3": "dbapi2 dump",
    "string": "templatelib",
    "tkinter": "ttk",
    "unittest": "async_case case loader mock result runner signals suite util",
    "urllib": "error parse request response robotparser",
    "wsgiref": "handlers headers simple_server types util validate",
    "xml": "dom etree parsers sax",
    "xml.dom": "NodeFilter domreg expatbuilder minicompat minidom pulldom xmlbuilder",
    "xml.etree": "ElementInclude ElementPath ElementTree cElementTree",
    "xml.parsers": "expat",
    "xml.sax": "expatreader handler saxutils xmlreader",
    "xmlrpc": "client server",
}

SUBMODULES: frozenset[str] = frozenset(
    f"{package}.{name}" for package, names in _INSIDE.items() for name in words(names)
)
"""Dotted names that are modules, among those a reader could take for a member."""

MEMBERS_NAMED_LIKE_MODULES: frozenset[str] = words(
    "array.array ast.keyword ast.operator bisect.bisect calendar.calendar copy.copy datetime.datetime "
    "datetime.time fnmatch.fnmatch getopt.getopt getpass.getpass gettext.gettext glob.glob locale.gettext "
    "os.stat pprint.pprint platform.platform random.random select.select shlex.shlex shutil.copy "
    "signal.signal socket.socket symtable.symtable sys.platform sys.copyright time.time timeit.timeit "
    "tokenize.tokenize unicodedata.decimal decimal.decimal html.html string.string netrc.netrc mmap.mmap "
    "dis.dis inspect.trace fcntl.fcntl syslog.syslog crypt.crypt copyreg.pickle statistics.statistics "
    "numbers.numbers pickletools.dis cgitb.html"
)
"""Public members that bear the name of some module and are no door to it."""
