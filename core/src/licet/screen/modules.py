"""What the modules of the standard library and of well known packages are for, member by member.

Rules this module keeps:

- a rule on a module's own name speaks about importing it; members are judged by their own rules;
- of `os` and `sys`, which have harmless and harmful members, what is not listed as harmless is refused;
- everywhere else what is not listed is harmless: the sandbox is the boundary, this table is advice.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from licet.request import Action
from licet.screen.rules import HARMLESS, Effect, Reader, Rule, words

_rules: dict[str, Rule] = {}


def _state(rule: Rule, *paths: str) -> None:
    """Give every path the rule; `a.{b c}` stands for `a.b` and `a.c`."""
    for entry in paths:
        head, brace, tail = entry.partition("{")
        for name in tail.rstrip("}").split() if brace else entry.split():
            _rules[head + name if brace else name] = rule


def _does(action: Action, reader: Reader = "none", position: int = 0, keyword: str = "") -> Rule:
    return Rule((Effect(action, reader, position, keyword),))


def _refused(code: str, unless: str = "") -> Rule:
    return Rule(violation=code, unless=unless)


def _both(*rules: Rule) -> Rule:
    return Rule(tuple(effect for rule in rules for effect in rule.effects))


_SHELL, _NETWORK, _READ, _WRITE = _does("shell"), _does("network"), _does("read"), _does("write")
_READ_WRITE = _both(_READ, _WRITE)

# os and its path functions
_state(_refused("ambient_state"), "os.*")
_state(
    HARMLESS,
    "os.{path sep linesep pathsep curdir pardir extsep altsep devnull defpath name error PathLike fspath}",
    "os.{fsencode fsdecode strerror urandom cpu_count getcwd getcwdb get_terminal_size terminal_size}",
    "os.{SEEK_SET SEEK_CUR SEEK_END F_OK R_OK W_OK X_OK O_RDONLY O_WRONLY O_RDWR O_CREAT O_EXCL O_TRUNC}",
    "os.{O_APPEND stat_result DirEntry supports_follow_symlinks}",
    "os.path.*",
)
_state(_refused("ambient_state"), "os.path.{expanduser expandvars}")
_state(_does("read", "directory", 0, "path"), "os.{listdir scandir walk fwalk}")
_state(
    _does("read", "path"),
    "os.{stat lstat access readlink statvfs getxattr listxattr pathconf chdir}",
    "os.path.{exists lexists isfile isdir islink ismount isjunction getsize getmtime getatime getctime}",
    "os.path.{realpath}",
)
_state(_both(_does("read", "path"), _does("read", "path", 1)), "os.path.samefile")
_state(
    _does("write", "path"),
    "os.{remove unlink rmdir removedirs mkdir makedirs mkfifo mknod truncate chmod chown lchown lchmod}",
    "os.{chflags lchflags utime setxattr removexattr}",
)
_state(_both(_does("write", "path"), _does("write", "path", 1)), "os.{rename renames replace link symlink}")
_state(_both(_does("read", "path"), _does("write", "path")), "os.open")
_state(
    _SHELL,
    "os.{system popen fork forkpty startfile posix_spawn posix_spawnp execl execle execlp execlpe execv}",
    "os.{execve}",
    "os.{execvp execvpe spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe}",
)
_state(
    _refused("process_control"),
    "os.{kill killpg _exit abort setsid setpgid setpgrp setuid setgid seteuid setegid setreuid setregid}",
    "os.{setresuid setresgid setgroups initgroups nice wait wait3 wait4 waitpid waitid dup dup2 pipe}",
    "os.{pipe2}",
    "os.{read write pread pwrite readv writev preadv pwritev sendfile splice copy_file_range close}",
    "os.{closerange}",
    "os.{fdopen fchdir fchmod fchown fsync ftruncate lseek lockf isatty ttyname tcgetpgrp tcsetpgrp}",
    "os.{openpty}",
    "os.{login_tty memfd_create eventfd pidfd_open sched_setaffinity sched_setscheduler sched_setparam}",
    "os.{setpriority register_at_fork unshare setns chroot set_inheritable set_blocking umask mlock}",
)

# sys
_state(_refused("interpreter_state"), "sys.*")
_state(
    HARMLESS,
    "sys.{argv byteorder copyright exit exc_info exception float_info float_repr_style flags}",
    "sys.{getdefaultencoding}",
    "sys.{getfilesystemencoding getrecursionlimit getrefcount getsizeof hash_info hexversion}",
    "sys.{implementation}",
    "sys.{int_info intern maxsize maxunicode platform set_int_max_str_digits get_int_max_str_digits}",
    "sys.{setrecursionlimit stderr stdin stdout version version_info thread_info warnoptions}",
    "sys.{stdlib_module_names}",
    "sys.{api_version builtin_module_names getswitchinterval}",
    "sys.stdin.*",
    "sys.stdout.{write writelines flush isatty encoding errors newlines line_buffering reconfigure closed}",
    "sys.stderr.{write writelines flush isatty encoding errors newlines line_buffering reconfigure closed}",
)
_state(_refused("interpreter_state"), "sys.stdout.*", "sys.stderr.*", "sys.stdin.{fileno detach}")
_state(
    _refused("import_machinery"),
    "sys.{modules meta_path path path_hooks path_importer_cache}",
)
_state(
    _refused("introspection"),
    "sys.{_getframe _current_frames _current_exceptions _getframemodulename settrace setprofile gettrace}",
    "sys.{getprofile call_tracing last_traceback last_exc monitoring addaudithook audit}",
)
_state(
    _refused("ambient_state"),
    "sys.{executable prefix base_prefix exec_prefix base_exec_prefix getwindowsversion}",
)

# files
_open = _does("read", "mode", 0, "file")
_state(_open, "builtins.open", "io.{open FileIO}", "codecs.open", "tokenize.open")
_state(_does("read", "path", 0, "path"), "io.open_code")
_state(
    _does("read", "mode", 0, "filename"), "gzip.{open GzipFile}", "bz2.{open BZ2File}", "lzma.{open LZMAFile}"
)
_state(_does("read", "mode", 0, "name"), "tarfile.open", "tarfile.TarFile", "tarfile.TarFile.open")
_state(_does("read", "mode", 0, "file"), "zipfile.{ZipFile PyZipFile}")
_state(_does("read", "mode", 0, "f"), "wave.open", "aifc.open", "sunau.open")
_state(_does("read", "path", 0, "file"), "zipfile.is_zipfile", "imghdr.what", "sndhdr.what")
_state(_does("read", "pattern", 0, "pathname"), "glob.{glob iglob glob0 glob1}")
_state(_does("read", "path", 0, "filename"), "linecache.{getline getlines updatecache checkcache}")
_state(_READ, "fileinput.{input FileInput}", "filecmp.{cmp cmpfiles dircmp}", "tabnanny.check")
_state(_READ, "mimetypes.{init read_mime_types}", "netrc.netrc", "gettext.{translation install find}")
_state(_does("read", "path"), "configparser.ConfigParser().read", "configparser.RawConfigParser().read")
_state(_does("read", "path"), "configparser.SafeConfigParser().read")
_state(_WRITE, "tempfile.*")
_state(HARMLESS, "tempfile.{gettempdir gettempdirb gettempprefix tempdir}")
_state(
    _both(_does("read", "path", 0, "src"), _does("write", "path", 1, "dst")),
    "shutil.{copy copy2 copyfile copytree copymode copystat}",
)
_state(_both(_does("write", "path", 0, "src"), _does("write", "path", 1, "dst")), "shutil.move")
_state(_does("write", "path", 0, "path"), "shutil.{rmtree chown}")
_state(_READ_WRITE, "shutil.{make_archive unpack_archive}", "mailbox.{Maildir mbox MH Babyl MMDF}")
_state(_does("read", "path", 0, "path"), "shutil.disk_usage")
_state(_READ, "shutil.which")
_state(_READ_WRITE, "sqlite3.connect", "sqlite3.dbapi2.connect", "dbm", "dbm.gnu", "dbm.ndbm", "dbm.dumb")
_state(_READ_WRITE, "http.cookiejar.{MozillaCookieJar LWPCookieJar FileCookieJar}")
_xml_read = _does("read", "path", 0, "source")
_state(_xml_read, "xml.etree.ElementTree.{parse iterparse}", "xml.etree.cElementTree.{parse iterparse}")
_state(_does("read", "path", 1, "file"), "xml.etree.ElementTree.ElementTree")
_state(_does("read", "path"), "xml.sax.parse", "xml.dom.minidom.parse", "xml.dom.pulldom.parse")
_state(_READ, "xml.sax.{make_parser}", "xml.sax.saxutils.prepare_input_source", "plistlib.readPlist")
_state(_READ, "argparse.FileType", "zoneinfo.{reset_tzpath}")

# pathlib
_state(_refused("ambient_state"), "pathlib.Path.home", "pathlib.Path().{expanduser owner group}")
_self_read, _self_write = _does("read", "self"), _does("write", "self")
_state(
    _self_read,
    "pathlib.Path().{read_text read_bytes exists is_file is_dir is_symlink is_mount is_socket is_fifo}",
    "pathlib.Path().{is_block_device}",
    "pathlib.Path().{is_char_device is_junction stat lstat iterdir glob rglob walk readlink samefile}",
    "pathlib.Path().{resolve}",
)
_state(_self_write, "pathlib.Path().{write_text write_bytes touch mkdir unlink rmdir chmod lchmod}")
_state(
    _both(_self_write, _does("write", "path", 0, "target")),
    "pathlib.Path().{rename replace symlink_to hardlink_to link_to}",
)
_state(_does("read", "self_mode", 0, "mode"), "pathlib.Path().open")

# programs and processes
_state(
    _SHELL,
    "subprocess pty multiprocessing distutils venv ensurepip webbrowser antigravity pip",
    "subprocess.{run call check_call check_output Popen getoutput getstatusoutput}",
    "pty.{spawn fork}",
    "multiprocessing.{Process Pool get_context Manager Queue Pipe}",
    "concurrent.futures.ProcessPoolExecutor",
    "asyncio.{create_subprocess_exec create_subprocess_shell}",
    "asyncio.subprocess.{create_subprocess_exec create_subprocess_shell}",
    "webbrowser.{open open_new open_new_tab get}",
)
_state(
    _refused("process_control"),
    "signal resource fcntl termios tty syslog msvcrt _winapi winsound",
)
_state(_refused("ambient_state"), "winreg pwd grp spwd nis getpass sysconfig platform.*")
_state(
    HARMLESS,
    "platform.{python_version python_version_tuple python_implementation system python_build}",
    "platform.{python_compiler}",
)
_state(_refused("ambient_state"), "uuid.{uuid1 getnode}", "locale.{getdefaultlocale}", "time.tzset")
_state(_refused("background_work"), "atexit _thread", "threading.{Thread Timer _start_new_thread}")
_state(
    _refused("background_work"),
    "concurrent.futures.ThreadPoolExecutor",
    "asyncio.to_thread",
    "weakref.finalize",
)
_state(
    _refused("introspection"), "threading.{settrace setprofile settrace_all_threads setprofile_all_threads}"
)

# network
_url = _does("network", "url", 0, "url")
_state(
    _NETWORK,
    "socket ssl socketserver select selectors ftplib smtplib imaplib poplib nntplib telnetlib smtpd",
    "asyncore asynchat",
    "urllib.request urllib.robotparser http.client http.server xmlrpc.client xmlrpc.server",
    "wsgiref.simple_server",
    "socket.{socket socketpair fromfd create_server getaddrinfo gethostbyname gethostbyname_ex}",
    "socket.{gethostbyaddr}",
    "urllib.request.{build_opener install_opener URLopener FancyURLopener OpenerDirector}",
    "http.server.{HTTPServer ThreadingHTTPServer test}",
    "asyncio.{open_unix_connection start_server start_unix_server}",
    "logging.handlers.{SocketHandler DatagramHandler SysLogHandler SMTPHandler HTTPHandler}",
    "logging.handlers.{NTEventLogHandler}",
)
_state(_url, "urllib.request.urlopen", "xmlrpc.client.ServerProxy")
_state(_both(_url, _does("write", "path", 1, "filename")), "urllib.request.urlretrieve")
_state(_does("network", "address", 0, "address"), "socket.create_connection")
_state(
    _does("network", "host", 0, "host"),
    "http.client.{HTTPConnection HTTPSConnection}",
    "asyncio.open_connection",
)
_state(_does("network", "host", 0, "host"), "ftplib.{FTP FTP_TLS}", "smtplib.{SMTP SMTP_SSL}")
_state(_does("network", "host", 0, "host"), "imaplib.{IMAP4 IMAP4_SSL}", "poplib.{POP3 POP3_SSL}")

# logging writes files and, through its configuration, calls anything
_state(_does("write", "path", 0, "filename"), "logging.FileHandler", "logging.handlers.WatchedFileHandler")
_state(
    _does("write", "path", 0, "filename"),
    "logging.handlers.{RotatingFileHandler TimedRotatingFileHandler BaseRotatingHandler}",
)
_state(_refused("dynamic_code"), "logging.config")

# code from text, and code about code
_state(
    _refused("dynamic_code"), "code codeop doctest cProfile profile _codeop", "builtins.{eval exec compile}"
)
_state(_refused("dynamic_code", "callable_statement"), "timeit.{timeit repeat Timer}")
_state(
    _refused("dynamic_code"),
    "timeit.main",
    "typing.{get_type_hints ForwardRef}",
    "types.{FunctionType CodeType LambdaType}",
)
_state(_refused("dynamic_code"), "builtins.__build_class__")
_state(
    _refused("import_machinery"),
    "importlib pkgutil runpy zipimport modulefinder imp site pydoc pyclbr py_compile compileall zipapp",
    "usercustomize",
    "sitecustomize unittest.mock.patch builtins.__import__ builtins.__loader__ builtins.__spec__",
    "types.ModuleType",
    "typing.io unittest.loader",
)
_state(
    _refused("introspection"),
    "gc dis trace tracemalloc faulthandler bytecode",
    "traceback.{walk_stack walk_tb}",
)
_state(_refused("introspection"), "inspect.*", "inspect.{_empty}")
_state(
    HARMLESS,
    "inspect.{isfunction isclass ismethod isgenerator isgeneratorfunction iscoroutine}",
    "inspect.{iscoroutinefunction isawaitable}",
    "inspect.{isbuiltin ismodule isroutine isabstract Parameter cleandoc getdoc}",
)
_state(_refused("dynamic_code", "plain_signature"), "inspect.{signature Signature get_annotations}")
_state(
    _refused("interactive"),
    "pdb bdb readline rlcompleter idlelib cmd",
    "builtins.{breakpoint help license credits}",
)
_state(_refused("interactive"), "builtins.copyright")
_state(
    _refused("native_code"),
    "ctypes _ctypes mmap _testcapi _xxsubinterpreters _interpreters _winapi cffi _cffi_backend",
)
_state(
    _refused("unsafe_deserialization"),
    "pickle _pickle cPickle marshal shelve copyreg pstats dill cloudpickle jsonpickle",
)
_state(_refused("interpreter_state"), "codecs.{register register_error lookup_error unregister}")
_state(
    _refused("indirect_module"),
    "posix nt _posixsubprocess _io _socket _ssl _sqlite3 _imp _frozen_importlib",
    "_frozen_importlib_external _bootlocale",
    "_signal _warnings _weakref _operator _string _ast _codecs _collections _functools _locale _stat",
    "_sre _abc _tracemalloc",
)

# built-in names
_state(_refused("builtins_access"), "builtins __main__ builtins.__builtins__ builtins.globals")
_state(_refused("builtins_access", "plain_exit"), "builtins.{exit quit}")
_state(_refused("builtins_access", "inside_function"), "builtins.locals")
_state(_refused("builtins_access", "vars_of_object"), "builtins.vars")
_state(_refused("computed_attribute", "named_attribute"), "builtins.{getattr delattr}")
_state(_refused("computed_attribute", "stored_attribute"), "builtins.setattr")
_state(_refused("computed_attribute", "named_getters"), "operator.{attrgetter methodcaller}")
_state(_refused("computed_attribute"), "string.Formatter().get_field", "string.Formatter.get_field")

# packages that are not part of the standard library
_state(
    _NETWORK,
    "requests httpx aiohttp urllib3 websockets websocket paramiko pycurl boto3 botocore redis pymongo",
    "psycopg psycopg2",
    "asyncpg pymysql grpc zmq pika kafka openai anthropic httplib2 tornado selenium playwright",
)
_state(
    _url,
    "requests.{get post put patch delete head options}",
    "httpx.{get post put patch delete head options stream}",
)
_state(_does("network", "url", 1, "url"), "requests.request", "httpx.request")
_state(_SHELL, "sh pexpect plumbum fabric invoke delegator")
_state(_refused("ambient_state"), "psutil")
_state(_refused("import_machinery"), "pkg_resources")
_state(_refused("native_code"), "pyximport cython numba llvmlite")
_state(
    _refused("unsafe_deserialization"),
    "yaml.{unsafe_load unsafe_load_all UnsafeLoader Loader full_load FullLoader}",
)
_state(_refused("unsafe_deserialization"), "joblib", "pandas.read_pickle", "torch.load")
_state(
    _does("read", "path"), "pandas.{read_csv read_json read_excel read_parquet read_table read_html read_xml}"
)
_state(_does("read", "path"), "numpy.{load loadtxt genfromtxt fromfile memmap}")
_state(_does("write", "path"), "numpy.{save savez savetxt savez_compressed}")

RULES: Mapping[str, Rule] = MappingProxyType(_rules)
"""The rule of every path that has one of its own."""

INSTANCES: Mapping[str, str] = MappingProxyType(
    {
        "pathlib.Path": "pathlib.Path()",
        "pathlib.PosixPath": "pathlib.Path()",
        "pathlib.WindowsPath": "pathlib.Path()",
        "pathlib.Path.cwd": "pathlib.Path()",
        **{
            f"pathlib.Path().{name}": "pathlib.Path()"
            for name in words("joinpath with_name with_suffix with_stem absolute resolve relative_to")
        },
        "io.BytesIO": "io.BytesIO()",
        "io.StringIO": "io.BytesIO()",
        "configparser.ConfigParser": "configparser.ConfigParser()",
        "configparser.RawConfigParser": "configparser.RawConfigParser()",
        "configparser.SafeConfigParser": "configparser.SafeConfigParser()",
        "string.Formatter": "string.Formatter()",
    }
)
"""Calls whose result is known: the class or method called, and the instance that comes out."""

PROPERTIES: Mapping[str, str] = MappingProxyType({"pathlib.Path().parent": "pathlib.Path()"})
"""Attributes of instances that are instances themselves."""

IN_MEMORY = "io.BytesIO()"
"""The instance that stands where a file could be, and is none."""
