"""What Echo claims, and what each claim leaves open.

Rules this module keeps:

- what is not named here is not enforced: files, network, sockets, other programs, privileges, the kernel;
- code has the rights of this user, so whatever it could undermine from outside its process is `partial`.
"""

from __future__ import annotations

from licet import supervise
from licet.contract import Enforcement, Level, SandboxEnforcementContract

_RIGHTS = "code has the rights of this user, and can act on what supervises it by way of other programs"


def contract() -> SandboxEnforcementContract:
    """The contract that holds on this host."""
    ending = Level.enforced if supervise.can_confine_signals() else Level.partial
    return SandboxEnforcementContract(
        timeout=_supervised("the process tree is killed at the deadline", ending),
        cancellation=_supervised("the process tree is killed at once", ending),
        process_tree_cleanup=_supervised("the keeper kills and reaps all that it left", Level.partial),
        stdout_limit=Enforcement(Level.enforced, "supervisor", "a pipe that the host drains and counts"),
        stderr_limit=Enforcement(Level.enforced, "supervisor", "a pipe that the host drains and counts"),
        environment_allowlist=_supervised("the process starts with these variables alone", Level.partial),
        fresh_state=_supervised("an interpreter for each run", Level.partial),
    )


def _supervised(mechanism: str, level: Level) -> Enforcement:
    return Enforcement(level, "supervisor", mechanism, (_RIGHTS,))
