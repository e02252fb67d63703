"""Stated limits as the limits of a job, and the comparison of what was asked with what the host keeps.

Rules this module keeps: a limit counts only where the job reads back with it; a host that takes a limit and
forgets it keeps none.
"""

from __future__ import annotations

from dataclasses import dataclass

from licet.supervise.windows.layouts import (
    JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
    JOB_OBJECT_LIMIT_JOB_MEMORY,
    JOB_OBJECT_LIMIT_JOB_TIME,
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
)

TICKS = 10_000_000
"""Units of time of a job in a second."""

ALWAYS = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION


@dataclass(frozen=True, slots=True)
class JobLimits:
    """Limits of all processes of a job together: user time in seconds, committed memory in bytes."""

    cpu_time: float | None = None
    memory: int | None = None

    def information(self) -> JOBOBJECT_EXTENDED_LIMIT_INFORMATION:
        """What to set on the job; it dies with its last handle, and a crash in it asks nobody."""
        wanted = JOBOBJECT_EXTENDED_LIMIT_INFORMATION()
        basic = wanted.BasicLimitInformation
        basic.LimitFlags = ALWAYS
        if self.cpu_time is not None:
            basic.LimitFlags |= JOB_OBJECT_LIMIT_JOB_TIME
            basic.PerJobUserTimeLimit = max(round(self.cpu_time * TICKS), 1)
        if self.memory is not None:
            basic.LimitFlags |= JOB_OBJECT_LIMIT_JOB_MEMORY
            wanted.JobMemoryLimit = self.memory
        return wanted


def kept(limits: JobLimits, read_back: JOBOBJECT_EXTENDED_LIMIT_INFORMATION) -> JobLimits:
    """The limits among `limits` that the job really has, as it says itself."""
    basic = read_back.BasicLimitInformation
    wanted = limits.information()
    timed = basic.LimitFlags & JOB_OBJECT_LIMIT_JOB_TIME and (
        0 < basic.PerJobUserTimeLimit <= wanted.BasicLimitInformation.PerJobUserTimeLimit
    )
    # the system may round a limit of memory down to whole pages
    bounded = basic.LimitFlags & JOB_OBJECT_LIMIT_JOB_MEMORY and (
        0 < read_back.JobMemoryLimit <= wanted.JobMemoryLimit
    )
    return JobLimits(limits.cpu_time if timed else None, limits.memory if bounded else None)
