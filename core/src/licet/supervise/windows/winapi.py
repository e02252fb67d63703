"""The Windows calls that supervision uses, each as a function that raises `OSError`.

Rules this module keeps:

- nothing is loaded before the first call, so that this can be imported on any system;
- texts cross as UTF-16LE bytes made here, never as `wchar_t`, which is wider elsewhere;
- handles are plain integers; who gets one owns it.
"""

from __future__ import annotations

import ctypes
import math
import sys
from ctypes import POINTER, Structure, byref, c_int32, c_size_t, c_uint32, c_void_p, sizeof
from functools import cache
from typing import Any

from licet.supervise.windows import layouts

_ADDRESS, _WORD, _TRUTH = c_void_p, c_uint32, c_int32
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "AssignProcessToJobObject": (_TRUTH, (_ADDRESS, _ADDRESS)),
    "CancelIoEx": (_TRUTH, (_ADDRESS, _ADDRESS)),
    "CloseHandle": (_TRUTH, (_ADDRESS,)),
    "CreateEventW": (_ADDRESS, (_ADDRESS, _TRUTH, _TRUTH, _ADDRESS)),
    "CreateFileW": (_ADDRESS, (_ADDRESS, _WORD, _WORD, _ADDRESS, _WORD, _WORD, _ADDRESS)),
    "CreateIoCompletionPort": (_ADDRESS, (_ADDRESS, _ADDRESS, _ADDRESS, _WORD)),
    "CreateJobObjectW": (_ADDRESS, (_ADDRESS, _ADDRESS)),
    "CreateNamedPipeW": (_ADDRESS, (_ADDRESS, *(_WORD,) * 6, _ADDRESS)),
    "CreateProcessW": (
        _TRUTH,
        (
            *(_ADDRESS,) * 4,
            _TRUTH,
            _WORD,
            *(_ADDRESS,) * 3,
            POINTER(layouts.PROCESS_INFORMATION),
        ),
    ),
    "DeleteProcThreadAttributeList": (None, (_ADDRESS,)),
    "GetExitCodeProcess": (_TRUTH, (_ADDRESS, POINTER(_WORD))),
    "GetOverlappedResult": (_TRUTH, (_ADDRESS, _ADDRESS, POINTER(_WORD), _TRUTH)),
    "GetQueuedCompletionStatus": (
        _TRUTH,
        (_ADDRESS, POINTER(_WORD), POINTER(_ADDRESS), POINTER(_ADDRESS), _WORD),
    ),
    "InitializeProcThreadAttributeList": (_TRUTH, (_ADDRESS, _WORD, _WORD, POINTER(c_size_t))),
    "IsProcessInJob": (_TRUTH, (_ADDRESS, _ADDRESS, POINTER(_TRUTH))),
    "QueryInformationJobObject": (_TRUTH, (_ADDRESS, _TRUTH, _ADDRESS, _WORD, _ADDRESS)),
    "ReadFile": (_TRUTH, (_ADDRESS, _ADDRESS, _WORD, _ADDRESS, _ADDRESS)),
    "ResumeThread": (_WORD, (_ADDRESS,)),
    "SetEvent": (_TRUTH, (_ADDRESS,)),
    "SetInformationJobObject": (_TRUTH, (_ADDRESS, _TRUTH, _ADDRESS, _WORD)),
    "TerminateJobObject": (_TRUTH, (_ADDRESS, _WORD)),
    "TerminateProcess": (_TRUTH, (_ADDRESS, _WORD)),
    "UpdateProcThreadAttribute": (
        _TRUTH,
        (_ADDRESS, _WORD, c_size_t, _ADDRESS, c_size_t, _ADDRESS, _ADDRESS),
    ),
    "WaitForMultipleObjects": (_WORD, (_WORD, _ADDRESS, _TRUTH, _WORD)),
    "WriteFile": (_TRUTH, (_ADDRESS, _ADDRESS, _WORD, _ADDRESS, _ADDRESS)),
}


@cache
def kernel32() -> Any:
    """The library, with the prototypes of all that is called in it.

    Raises:
        OSError: this is no Windows.
    """
    if sys.platform != "win32":
        raise OSError("expected Windows, found another system")
    library = ctypes.WinDLL("kernel32", use_last_error=True)
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def last_error() -> int:
    """The number of what went wrong in the last call of this thread."""
    if sys.platform != "win32":
        return 0
    return ctypes.get_last_error()


def failure(number: int) -> OSError:
    """The error of that number, of the subclass of `OSError` that it belongs to."""
    if sys.platform != "win32":
        return OSError(number)
    return ctypes.WinError(number)


def must(result: Any) -> Any:
    """Pass on a result that is neither zero nor an invalid handle.

    Raises:
        OSError: it is one of these.
    """
    if not result or result == c_void_p(layouts.INVALID_HANDLE_VALUE).value:
        raise failure(last_error())
    return result


def wide(text: str) -> ctypes.Array[ctypes.c_char]:
    """A text as Windows wants it, ended by a NUL, in memory that may be written to.

    Raises:
        ValueError: it holds a NUL.
    """
    if "\0" in text:
        raise ValueError("embedded null character")
    return ctypes.create_string_buffer(text.encode("utf-16-le", "surrogatepass") + b"\0")


def close(handle: int) -> None:
    """Give a handle back."""
    kernel32().CloseHandle(handle)


def create_event() -> int:
    """Return a new event that stays set once it is set, and is inherited by nobody."""
    handle: int = must(kernel32().CreateEventW(None, True, False, None))
    return handle


def set_event(handle: int) -> None:
    """Set an event."""
    must(kernel32().SetEvent(handle))


def wait(handles: list[int], seconds: float | None) -> int | None:
    """Wait for the first of at most 64 handles; its place in the list, or None if the time is over.

    Raises:
        OSError: one of them can't be waited for.
    """
    array = (c_void_p * len(handles))(*handles)
    result: int = kernel32().WaitForMultipleObjects(len(handles), array, False, milliseconds(seconds))
    if result == layouts.WAIT_TIMEOUT:
        return None
    if result == layouts.WAIT_FAILED:
        raise failure(last_error())
    return result


def milliseconds(seconds: float | None) -> int:
    """A time to wait as Windows counts it: rounded up, None is for ever."""
    if seconds is None:
        return layouts.INFINITE
    return min(math.ceil(max(seconds, 0.0) * 1000), layouts.INFINITE - 1)


def exit_code(process: int) -> int:
    """The exit code of a process that has ended."""
    code = c_uint32()
    must(kernel32().GetExitCodeProcess(process, byref(code)))
    return code.value


def query_job(job: int, kind: int, into: Structure) -> None:
    """Read what Windows says of a job."""
    must(kernel32().QueryInformationJobObject(job, kind, byref(into), sizeof(into), None))


def set_job(job: int, kind: int, value: Structure) -> None:
    """Set a property of a job."""
    must(kernel32().SetInformationJobObject(job, kind, byref(value), sizeof(value)))
