"""Why a run ended, from what was seen of it. Pure.

Rules this module keeps:

- the first cause that ended it is the one that is told;
- a limit is told where the kernel counted that it was reached, and it is what ended the code; where nothing
  counts, where the code ended as the limit of a process ends it;
- where the kernel has killed a process of the run for its memory, that ended it, whatever the others did
  until somebody looked;
- what the code says of itself only tells which of these it was.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Container

from licet.supervise.spec import Fault, Reason, Snippet, Spec

Verdict = tuple[Reason, int | None, int | None]
"""The reason, and for `exited` an exit code or the number of a signal."""

_SIGNS = {
    Reason.process_limit: ("BlockingIOError", "RuntimeError"),
    Reason.file_limit: ("OSError",),
}
"""How code ends, by the type of its error, that did not expect the limit."""


def verdict(
    spec: Spec,
    status: int | None,
    cause: Reason | None,
    error: Fault | None,
    *,
    begun: bool,
    reached: Container[Reason],
    cpu_time: float | None,
) -> Verdict:
    """Say why a run ended that had this `status`, None if nobody saw one.

    `cause` ended it, if something did from outside. `begun` says that the code was about to run, `reached`
    what limits were in its way, `cpu_time` how many seconds it used.
    """
    if cause is not None or status is None:
        lost = Reason.memory_limit if Reason.memory_limit in reached else Reason.backend_lost
        return lost if cause in (None, Reason.backend_lost) else cause, None, None
    if isinstance(spec.work, Snippet) and not begun:
        too_small = spec.memory is not None
        return Reason.memory_limit if too_small else Reason.launch_failed, None, None
    code = os.waitstatus_to_exitcode(status)
    limit = _limit(spec, code, error, reached, cpu_time)
    if limit is not None:
        return limit, None, None
    return (Reason.exited, code, None) if code >= 0 else (Reason.exited, None, -code)


def _limit(
    spec: Spec, code: int, error: Fault | None, reached: Container[Reason], cpu_time: float | None
) -> Reason | None:
    if Reason.memory_limit in reached:
        return Reason.memory_limit
    if code == 0:
        return None
    if code > 0:
        if spec.memory is not None and code == 1 and error is not None and error.type == "MemoryError":
            return Reason.memory_limit
        told = (
            limit for limit, types in _SIGNS.items() if limit in reached and error and error.type in types
        )
        return next(told, None)
    used_up = spec.cpu_time is not None and (cpu_time or 0.0) >= spec.cpu_time
    of_processor = code == -signal.SIGXCPU or (code == -signal.SIGKILL and used_up)
    return Reason.cpu_limit if spec.cpu_time is not None and of_processor else None
