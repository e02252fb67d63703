"""The structures and numbers of the Windows API that supervision uses.

Rules this module keeps: every field has an explicit width or is a pointer, so that layouts are the same
wherever this is imported, and can be asserted on any 64-bit system. Names are those of the Windows headers.
"""

from __future__ import annotations

from ctypes import Structure, c_int32, c_int64, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p

ERROR_INSUFFICIENT_BUFFER = 122
ERROR_BROKEN_PIPE = 109
ERROR_IO_INCOMPLETE = 996
ERROR_IO_PENDING = 997
WAIT_FAILED = 0xFFFFFFFF
WAIT_TIMEOUT = 258
INFINITE = 0xFFFFFFFF
INVALID_HANDLE_VALUE = -1

GENERIC_READ = 0x80000000
GENERIC_WRITE = 0x40000000
OPEN_EXISTING = 3
FILE_FLAG_OVERLAPPED = 0x40000000
FILE_FLAG_FIRST_PIPE_INSTANCE = 0x00080000
PIPE_ACCESS_INBOUND = 1
PIPE_ACCESS_OUTBOUND = 2
PIPE_ACCESS_DUPLEX = 3
PIPE_REJECT_REMOTE_CLIENTS = 8

CREATE_SUSPENDED = 0x00000004
CREATE_UNICODE_ENVIRONMENT = 0x00000400
EXTENDED_STARTUPINFO_PRESENT = 0x00080000
CREATE_DEFAULT_ERROR_MODE = 0x04000000
CREATE_NO_WINDOW = 0x08000000
STARTF_USESTDHANDLES = 0x00000100
PROC_THREAD_ATTRIBUTE_HANDLE_LIST = 0x00020002
PROC_THREAD_ATTRIBUTE_JOB_LIST = 0x0002000D

JOB_OBJECT_LIMIT_JOB_TIME = 0x00000004
JOB_OBJECT_LIMIT_JOB_MEMORY = 0x00000200
JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION = 0x00000400
JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE = 0x00002000
JobObjectBasicAccountingInformation = 1
JobObjectAssociateCompletionPortInformation = 7
JobObjectExtendedLimitInformation = 9

ERROR_NOT_ENOUGH_QUOTA = 1816
"""The exit code of a process that its job ended for the time it used."""


class SECURITY_ATTRIBUTES(Structure):
    """How a new handle may be used."""

    _fields_ = [("nLength", c_uint32), ("lpSecurityDescriptor", c_void_p), ("bInheritHandle", c_int32)]


class OVERLAPPED(Structure):
    """One operation under way."""

    _fields_ = [
        ("Internal", c_size_t),
        ("InternalHigh", c_size_t),
        ("Offset", c_uint32),
        ("OffsetHigh", c_uint32),
        ("hEvent", c_void_p),
    ]


class STARTUPINFOW(Structure):
    """How a new process begins."""

    _fields_ = [
        ("cb", c_uint32),
        ("lpReserved", c_void_p),
        ("lpDesktop", c_void_p),
        ("lpTitle", c_void_p),
        ("dwX", c_uint32),
        ("dwY", c_uint32),
        ("dwXSize", c_uint32),
        ("dwYSize", c_uint32),
        ("dwXCountChars", c_uint32),
        ("dwYCountChars", c_uint32),
        ("dwFillAttribute", c_uint32),
        ("dwFlags", c_uint32),
        ("wShowWindow", c_uint16),
        ("cbReserved2", c_uint16),
        ("lpReserved2", c_void_p),
        ("hStdInput", c_void_p),
        ("hStdOutput", c_void_p),
        ("hStdError", c_void_p),
    ]


class STARTUPINFOEXW(Structure):
    """The same, with a list of attributes."""

    _fields_ = [("StartupInfo", STARTUPINFOW), ("lpAttributeList", c_void_p)]


class PROCESS_INFORMATION(Structure):
    """A new process and its first thread."""

    _fields_ = [
        ("hProcess", c_void_p),
        ("hThread", c_void_p),
        ("dwProcessId", c_uint32),
        ("dwThreadId", c_uint32),
    ]


class JOBOBJECT_BASIC_LIMIT_INFORMATION(Structure):
    """Limits of a job; times count hundreds of nanoseconds."""

    _fields_ = [
        ("PerProcessUserTimeLimit", c_int64),
        ("PerJobUserTimeLimit", c_int64),
        ("LimitFlags", c_uint32),
        ("MinimumWorkingSetSize", c_size_t),
        ("MaximumWorkingSetSize", c_size_t),
        ("ActiveProcessLimit", c_uint32),
        ("Affinity", c_size_t),
        ("PriorityClass", c_uint32),
        ("SchedulingClass", c_uint32),
    ]


class IO_COUNTERS(Structure):
    """What was read and written."""

    _fields_ = [
        ("ReadOperationCount", c_uint64),
        ("WriteOperationCount", c_uint64),
        ("OtherOperationCount", c_uint64),
        ("ReadTransferCount", c_uint64),
        ("WriteTransferCount", c_uint64),
        ("OtherTransferCount", c_uint64),
    ]


class JOBOBJECT_EXTENDED_LIMIT_INFORMATION(Structure):
    """All limits of a job, and the peaks of its memory."""

    _fields_ = [
        ("BasicLimitInformation", JOBOBJECT_BASIC_LIMIT_INFORMATION),
        ("IoInfo", IO_COUNTERS),
        ("ProcessMemoryLimit", c_size_t),
        ("JobMemoryLimit", c_size_t),
        ("PeakProcessMemoryUsed", c_size_t),
        ("PeakJobMemoryUsed", c_size_t),
    ]


class JOBOBJECT_BASIC_ACCOUNTING_INFORMATION(Structure):
    """What the processes of a job used, and how many live."""

    _fields_ = [
        ("TotalUserTime", c_int64),
        ("TotalKernelTime", c_int64),
        ("ThisPeriodTotalUserTime", c_int64),
        ("ThisPeriodTotalKernelTime", c_int64),
        ("TotalPageFaultCount", c_uint32),
        ("TotalProcesses", c_uint32),
        ("ActiveProcesses", c_uint32),
        ("TotalTerminatedProcesses", c_uint32),
    ]


class JOBOBJECT_ASSOCIATE_COMPLETION_PORT(Structure):
    """Where a job tells what happens in it."""

    _fields_ = [("CompletionKey", c_void_p), ("CompletionPort", c_void_p)]
