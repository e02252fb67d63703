"""The guest's side: runs the code, and has its value or its error reported over the private channel.

It runs in the child, sent by the host. Rules this module keeps:

- the code runs in a `__main__` of its own, compiled from text, so that an encoding cookie means nothing; it
  is made after what was there is frozen, else nothing of the code would be finalised at exit;
- where it can, it is compiled by `exec`, which inherits the `from __future__` features of this module: there
  are none. The first use of `compile` costs a fifth of an interpreter's start;
- what only reports need is loaded when there is something to report, and with the built-in functions as they
  were before the code could replace any;
- an uncaught exception is printed to standard error as CPython prints it, and the exit code is 1;
- `SystemExit` ends it as in CPython, but a number that is not 0 is never taken for success;
- after that the interpreter shuts down as usual: threads are joined, exit handlers run, files are flushed.
  Only a fork that `leaves` keeps what it was born with as it is.
"""

import _thread
import gc
import sys

if sys.platform == "win32":
    import nt as posix
else:
    import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

CODE_NAME = "<string>"
ONLY_AST = 0x400
FAILED = 255
UNFLUSHED = 120  # what CPython ends with then


def main(settings: "dict[str, Any]", modules: "dict[str, dict[str, Any]]") -> None:
    """Do what `settings` asks for, in a process that is walled in already."""
    channel, unpack = modules["loader"]["orders"], modules["loader"]["unpack"]
    posix.set_inheritable(channel, False)
    _send(channel, settings["hello"])
    _feel_at_home(settings["locale"])
    inputs, process = {}, posix.getpid()
    if settings["inputs"]:
        inputs = unpack(settings["decode"])["decode"]["decode"](settings["inputs"], tuple, tuple)

    sending, line = _thread.allocate_lock(), None
    if settings["tools"] is not None:
        make = unpack(settings["tools"])["tools"]["Line"]
        line = make(channel, process, settings, unpack, sending)

    def report(what: str, *facts: object) -> None:
        try:
            loaded = unpack(settings["report"])
            reporter = loaded["report"]["Reporter"](channel, process, settings, loaded, sending)
        except MemoryError:
            if posix.getpid() == process:
                _send(channel, settings["no_memory"][what])
        else:
            getattr(reporter, what)(*facts)

    if not settings["leaves"]:
        run(settings, inputs, report, line)
        return
    try:
        run(settings, inputs, report, line)
        status: object = 0
    except SystemExit as leaving:
        status = leaving.code
    _leave(status)


def _leave(status: object) -> None:
    """End this process as its interpreter would, but for taking apart what was there before the code.

    In a fork, each of those pages would be copied to be given back.
    """
    if status is not None and not isinstance(status, int):
        try:
            print(status, file=sys.stderr)
        finally:
            status = 1
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        import atexit

        atexit._run_exitfuncs()
        _flush()
        del sys.modules["__main__"]  # what the code made is finalised while its names still mean something
        gc.collect()
        flushed = _flush()
    except BaseException:
        flushed = False
    posix._exit(int(status or 0) & 0xFF or (0 if flushed else UNFLUSHED))


def _flush() -> bool:
    """Write out what was printed; whether all of it is."""
    flushed = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            flushed = False
    return flushed


def _send(channel: int, frame: bytes) -> None:
    try:  # noqa: SIM105 - contextlib is not there
        posix.write(channel, frame)
    except OSError:
        pass  # the code has closed it, or nobody is there to hear it


def _feel_at_home(given: "bytes | None") -> None:
    """Undo what CPython does to LC_CTYPE where the locale is `C` or unset, and on Windows to line ends."""
    if sys.platform == "win32":
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(newline="\n")
    elif given is None:
        posix.unsetenv(b"LC_CTYPE")
        posix.environ.pop(b"LC_CTYPE", None)
    else:
        posix.putenv(b"LC_CTYPE", given)
        posix.environ[b"LC_CTYPE"] = given


def run(
    settings: "dict[str, Any]", inputs: "dict[str, Any]", report: "Callable[..., None]", line: "Any" = None
) -> None:
    """Run the code of `settings`; ends by returning or by `SystemExit`."""
    code, result = settings["code"], settings["result"]
    gc.freeze()  # a collector has nothing to find in what stays until the end
    main = sys.modules["__main__"] = type(sys)("__main__")
    names = main.__dict__
    names["__builtins__"] = sys.modules["builtins"]
    names.update(inputs)
    if line is not None:
        names.update(line.tools(names))
    sys.argv = [CODE_NAME]
    sys.path += settings["packages"]
    if settings["recursion"] is not None:
        sys.setrecursionlimit(settings["recursion"])
    try:
        exec(_keep_result(code, result) if settings["undecided"] else code, names)
    except SystemExit as leaving:
        raise SystemExit(_status(leaving.code)) from None
    except BaseException as problem:
        report("error", problem, code, names)
        raise SystemExit(1) from None
    value = names.pop(result, None)
    if value is not None:
        report("value", value)


def _status(code: "Any") -> "Any":
    """What the code asked to exit with; the system keeps the low byte alone, and 256 would be a success."""
    return FAILED if isinstance(code, int) and code and not code & 0xFF else code


def _keep_result(code: str, result: str) -> "CodeType":
    """Compile the code so that the value of its final expression statement, if there is one, gets a name."""
    import _ast

    tree = compile(code, CODE_NAME, "exec", ONLY_AST, dont_inherit=True)
    last = tree.body[-1] if tree.body else None
    if type(last) is _ast.Expr:
        place = {name: getattr(last, name) for name in last._attributes}
        tree.body[-1] = _ast.Assign([_ast.Name(result, _ast.Store(), **place)], last.value, **place)
    return compile(tree, CODE_NAME, "exec", dont_inherit=True)
