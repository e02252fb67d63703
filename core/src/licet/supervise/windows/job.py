"""A Job Object: the tree of one run, which nothing that was started in it can leave.

Rules this module keeps:

- nothing may break away, and the job dies with its last handle, that is with the host;
- it is empty only when Windows counts no process in it; the messages of its port say when to look.
"""

from __future__ import annotations

import time
from ctypes import byref, c_int32, c_uint32, c_void_p
from functools import cache

from licet.supervise.windows import layouts, winapi
from licet.supervise.windows.handles import Handles
from licet.supervise.windows.limits import TICKS, JobLimits, kept

_LOOK = 0.05
"""Seconds after which to look without a message: Windows does not promise to deliver each."""


class Job:
    """A new job with `limits`; `kept` tells those that it reads back with."""

    def __init__(self, handles: Handles, limits: JobLimits) -> None:
        call = winapi.kernel32()
        self.handle = handles.own(winapi.must(call.CreateJobObjectW(None, None)))
        invalid = layouts.INVALID_HANDLE_VALUE
        self._port = handles.own(winapi.must(call.CreateIoCompletionPort(invalid, None, None, 1)))
        port = layouts.JOBOBJECT_ASSOCIATE_COMPLETION_PORT(None, self._port)
        winapi.set_job(self.handle, layouts.JobObjectAssociateCompletionPortInformation, port)
        winapi.set_job(self.handle, layouts.JobObjectExtendedLimitInformation, limits.information())
        self.kept = kept(limits, self._limits())

    def holds(self, process: int) -> bool:
        """Whether a process is in this job."""
        found = c_int32()
        winapi.must(winapi.kernel32().IsProcessInJob(process, self.handle, byref(found)))
        return bool(found.value)

    def terminate(self) -> None:
        """End every process of it."""
        winapi.must(winapi.kernel32().TerminateJobObject(self.handle, 1))

    def wait_empty(self, seconds: float) -> bool:
        """Wait until no process is left in it; False if one still is after so many seconds."""
        until = time.monotonic() + seconds
        while self._accounting().ActiveProcesses:
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._await_message(min(left, _LOOK))
        return True

    def _await_message(self, seconds: float) -> None:
        message, key, detail = c_uint32(), c_void_p(), c_void_p()
        winapi.kernel32().GetQueuedCompletionStatus(
            self._port, byref(message), byref(key), byref(detail), winapi.milliseconds(seconds)
        )

    def cpu_time(self) -> float | None:
        """Seconds of processor time of all its processes; None where Windows counts none."""
        counted = self._accounting()
        return (counted.TotalUserTime + counted.TotalKernelTime) / TICKS or None

    def user_time(self) -> float:
        """Seconds of it outside the kernel, which is what its limit counts."""
        return float(self._accounting().TotalUserTime / TICKS)

    def peak_memory(self) -> int | None:
        """Bytes that its largest process had committed; None where Windows does not say."""
        return self._limits().PeakProcessMemoryUsed or None

    def _limits(self) -> layouts.JOBOBJECT_EXTENDED_LIMIT_INFORMATION:
        found = layouts.JOBOBJECT_EXTENDED_LIMIT_INFORMATION()
        winapi.query_job(self.handle, layouts.JobObjectExtendedLimitInformation, found)
        return found

    def _accounting(self) -> layouts.JOBOBJECT_BASIC_ACCOUNTING_INFORMATION:
        found = layouts.JOBOBJECT_BASIC_ACCOUNTING_INFORMATION()
        winapi.query_job(self.handle, layouts.JobObjectBasicAccountingInformation, found)
        return found


@cache
def kept_limits() -> JobLimits:
    """Limits that a job of this host reads back with, of an hour and a gibibyte; nothing is started."""
    with Handles() as handles:
        return Job(handles, JobLimits(3600.0, 1 << 30)).kept
