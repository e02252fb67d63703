"""What the controlled process claims on Windows, and why not more.

Rules this module keeps:

- code runs as the same user as its supervisor, which it can open, rob of its handles or end: what rests on
  the supervisor is `partial`, and the gap says so;
- a limit is claimed only where a job of this host reads back with it; one that is taken and forgotten is
  not enforced, whatever the call that set it returned.
"""

from __future__ import annotations

from licet.contract import Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.supervise.windows.job import kept_limits

_OPEN = "code can open its supervisor, which runs as the same user, and end it or take its handles"
_DELEGATION = "what another program of this user does at the code's request is not of this run"


def contract() -> SandboxEnforcementContract:
    """The contract that holds on this host."""
    limits = kept_limits()
    return SandboxEnforcementContract(
        timeout=_kept("the supervisor terminates the job at the deadline"),
        cancellation=_kept("the supervisor terminates the job at once"),
        stdout_limit=_counted("stdout"),
        stderr_limit=_counted("stderr"),
        environment_allowlist=_kept(
            "the process starts with exactly the variables given", "`SystemRoot` is always added", _DELEGATION
        ),
        working_directory=Enforcement(
            Level.enforced,
            "supervisor",
            "the process starts in the directory, or not at all",
            ("the code may change its directory",),
        ),
        process_tree_cleanup=_kept(
            "a Job Object that nothing may break away from is terminated", _DELEGATION
        ),
        orphan_cleanup=_kept("the job ends with its last handle, which the host has", _DELEGATION),
        handle_isolation=_kept(
            "no handle is inherited but standard streams and the private channel",
            "the code can write to its own channel, and so forge its own value",
        ),
        cpu_time_limit=_limit(
            limits.cpu_time, "JOB_OBJECT_LIMIT_JOB_TIME", "counts time outside the kernel alone, at intervals"
        ),
        memory_limit=_limit(
            limits.memory, "JOB_OBJECT_LIMIT_JOB_MEMORY", "counts committed memory, of the whole tree"
        ),
        fresh_state=Enforcement(
            Level.partial,
            "supervisor",
            "a new interpreter for each run",
            ("files that the code may write outlive it, the interpreter's own among them",),
        ),
    )


def _kept(mechanism: str, *others: str) -> Enforcement:
    return Enforcement(Level.partial, "supervisor", mechanism, (*others, _OPEN))


def _counted(stream: str) -> Enforcement:
    return Enforcement(
        Level.enforced,
        "supervisor",
        f"{stream} is a pipe that the host drains, counts and keeps within the limit",
    )


def _limit(kept: float | None, mechanism: str, gap: str) -> Enforcement:
    if kept is None:
        return Enforcement(gaps=("this host takes the limit and forgets it: the job reads back without it",))
    return Enforcement(Level.partial, "kernel", mechanism, (gap, _OPEN), Evidence.read_back)
