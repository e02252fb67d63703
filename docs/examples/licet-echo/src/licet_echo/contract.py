"""What Echo claims, and what each claim leaves open.

Rules this module keeps:

- what is not named here is not enforced: files, network, sockets, other programs, privileges, the kernel;
- code has the rights of this user, so whatever it could undermine from outside its process is `partial`.
"""

from __future__ import annotations

from licet import supervise
from licet.contract import Enforcement, Level, SandboxEnforcementContract

_RIGHTS = "code has the rights of this user: another program can be asked to do what it may not do itself"


def contract() -> SandboxEnforcementContract:
    """The contract that holds on this host."""
    ending = Level.enforced if supervise.can_confine_signals() else Level.partial
    return SandboxEnforcementContract(
        timeout=_supervised(ending, "the process tree is killed at the deadline", _RIGHTS),
        cancellation=_supervised(ending, "the process tree is killed at once", _RIGHTS),
        process_tree_cleanup=_supervised(Level.partial, "its keeper kills and reaps what is left", _RIGHTS),
        stdout_limit=_supervised(Level.enforced, "a pipe that the host drains and counts"),
        stderr_limit=_supervised(Level.enforced, "a pipe that the host drains and counts"),
        environment_allowlist=_supervised(
            Level.partial,
            "the process starts with these variables alone",
            "the variables of processes above it can be read from /proc",
        ),
        fresh_state=_supervised(
            Level.partial, "an interpreter for each run", "files that code has written outlive its run"
        ),
    )


def _supervised(level: Level, mechanism: str, *gaps: str) -> Enforcement:
    return Enforcement(level, "supervisor", mechanism, gaps)
