"""A new process that has run nothing yet: suspended, in its job, with the handles it may have and no others.

Rules this module keeps:

- the process is in its job from its first moment, and that is looked at before anything of it runs;
- it inherits exactly the handles of the list, whatever else of this program may be inheritable;
- a process that is not as it should be is ended before it ran anything.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_size_t, c_void_p, sizeof
from dataclasses import dataclass

from licet.supervise.windows import layouts, winapi
from licet.supervise.windows.handles import Handles
from licet.supervise.windows.job import Job

_FLAGS = (
    layouts.CREATE_SUSPENDED
    | layouts.CREATE_UNICODE_ENVIRONMENT
    | layouts.EXTENDED_STARTUPINFO_PRESENT
    | layouts.CREATE_DEFAULT_ERROR_MODE
    | layouts.CREATE_NO_WINDOW
)


@dataclass(frozen=True, slots=True)
class Command:
    """What to start: an absolute path, its command line, its directory and its environment block."""

    program: str
    line: str
    directory: str
    environment: bytes


def start(
    command: Command, job: Job, stdio: tuple[int, int, int], passed: tuple[int, ...], handles: Handles
) -> int:
    """Start a process in `job` with three standard handles and those `passed`; return its handle.

    Raises:
        OSError: it can't be started, or is not in its job; nothing of it ran.
        ValueError: a text holds a NUL.
    """
    call = winapi.kernel32()
    info = layouts.STARTUPINFOEXW()
    info.StartupInfo.cb = sizeof(info)
    info.StartupInfo.dwFlags = layouts.STARTF_USESTDHANDLES
    (
        info.StartupInfo.hStdInput,
        info.StartupInfo.hStdOutput,
        info.StartupInfo.hStdError,
    ) = stdio
    started = layouts.PROCESS_INFORMATION()
    texts = winapi.wide(command.program), winapi.wide(command.line), winapi.wide(command.directory)
    with _attributes((*stdio, *passed), job.handle) as attributes:
        info.lpAttributeList = attributes
        winapi.must(
            call.CreateProcessW(
                texts[0], texts[1], None, None, True, _FLAGS, command.environment, texts[2],
                byref(info), byref(started),
            )
        )  # fmt: skip
    process = handles.own(started.hProcess)
    thread = handles.own(started.hThread)
    try:
        if not job.holds(process):
            raise OSError("the new process is not in its job")
        if call.ResumeThread(thread) == layouts.WAIT_FAILED:
            raise winapi.failure(winapi.last_error())
    except OSError:
        call.TerminateProcess(process, 1)
        raise
    handles.close(thread)
    return process


@contextmanager
def _attributes(inherited: tuple[int, ...], job: int) -> Iterator[int]:
    """A list of attributes: the handles to inherit, and the job to begin in."""
    call = winapi.kernel32()
    size = c_size_t()
    call.InitializeProcThreadAttributeList(None, 2, 0, byref(size))
    memory = ctypes.create_string_buffer(size.value)
    winapi.must(call.InitializeProcThreadAttributeList(memory, 2, 0, byref(size)))
    values = {
        layouts.PROC_THREAD_ATTRIBUTE_HANDLE_LIST: (c_void_p * len(inherited))(*inherited),
        layouts.PROC_THREAD_ATTRIBUTE_JOB_LIST: (c_void_p * 1)(job),
    }
    try:
        for attribute, value in values.items():
            winapi.must(
                call.UpdateProcThreadAttribute(memory, 0, attribute, value, sizeof(value), None, None)
            )
        yield ctypes.addressof(memory)
    finally:
        call.DeleteProcThreadAttributeList(memory)
