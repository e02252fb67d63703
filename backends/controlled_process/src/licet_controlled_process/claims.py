"""What the controlled process claims on this host, and why not more.

Rules this module keeps:

- a claim is `enforced` only where code with the rights of this very user, attacking its supervisor directly,
  does not get past it; where it does, the claim is `partial` and the gap names the way;
- whether code can attack its supervisor is measured (`licet.supervise`), not assumed; Windows has claims of
  its own (`windows`);
- files, network, sockets and other programs are stopped by nothing here, and nothing here says so.
"""

from __future__ import annotations

import os
import sys

from licet import supervise
from licet.contract import Enforcement, Level, SandboxEnforcementContract

_DELEGATION = "what another program of this user does at the code's request is not of this run"


def contract() -> SandboxEnforcementContract:
    """The contract that holds on this host, for this user."""
    if os.name == "nt":
        from licet_controlled_process import windows

        return windows.contract()
    confined = supervise.can_confine_signals()
    return claimed(confined, _ways_past_the_supervisor(confined))


def claimed(confined: bool, gaps: tuple[str, ...]) -> SandboxEnforcementContract:
    """The contract of a host where Landlock confines signals or not; `gaps` are ways past the supervisor."""
    untouchable = not gaps
    wall = "; Landlock keeps the code from signalling or tracing it" if confined else ""

    def kept(mechanism: str, *others: str, condition: bool = True) -> Enforcement:
        level = Level.enforced if condition else Level.partial
        return Enforcement(level, "supervisor", mechanism + wall, (*others, *gaps))

    return SandboxEnforcementContract(
        timeout=kept("the supervisor ends the process tree at the deadline", condition=confined),
        cancellation=kept("the supervisor ends the process tree at once", condition=confined),
        stdout_limit=_counted("stdout"),
        stderr_limit=_counted("stderr"),
        environment_allowlist=kept(
            "the process starts with exactly the variables given, its keeper with these or none",
            _DELEGATION,
            condition=untouchable,
        ),
        working_directory=Enforcement(
            Level.enforced,
            "supervisor",
            "the process starts in the directory that was opened beforehand, or not at all",
            ("the code may change its directory",),
        ),
        process_tree_cleanup=kept(
            "a keeper that every orphan of the tree falls to kills and reaps until none is left",
            _DELEGATION,
            condition=untouchable,
        ),
        orphan_cleanup=kept(
            "the keeper ends the tree when its host dies",
            _DELEGATION,
            condition=untouchable,
        ),
        handle_isolation=kept(
            "no descriptor is inherited but standard streams and the private channel",
            "the code can write to its own channel, and so forge its own value",
            condition=untouchable,
        ),
        cpu_time_limit=_per_process("RLIMIT_CPU", "rounded up to whole seconds"),
        memory_limit=_per_process("RLIMIT_AS", "bounds addresses, not pages in use"),
        fresh_state=Enforcement(
            Level.partial,
            "supervisor",
            "a new interpreter for each run",
            ("files that the code may write outlive it, the interpreter's own among them",),
        ),
    )


def _counted(stream: str) -> Enforcement:
    return Enforcement(
        Level.enforced,
        "supervisor",
        f"{stream} is a pipe that the host drains, counts and keeps within the limit",
    )


def _per_process(mechanism: str, gap: str) -> Enforcement:
    each = "each process of the run has the whole limit for itself"
    return Enforcement(Level.partial, "kernel", mechanism, (each, gap))


def _ways_past_the_supervisor(confined: bool) -> tuple[str, ...]:
    """How code could strike its keeper or its host from inside, on this host and as this user."""
    gaps: list[str] = []
    if sys.platform != "linux":
        gaps.append("a descendant that opens a session of its own outlives the run: no subreaper here")
    if not confined:
        gaps.append(
            "code can signal and trace its supervisor: this kernel has no Landlock scopes (Linux 6.12)"
        )
    if os.geteuid() == 0:
        gaps.append("code that runs as root can strike from within the kernel (control groups, core_pattern)")
    elif supervise.can_move_cgroups():
        gaps.append("this user manages control groups, through which code can kill or freeze its supervisor")
    return tuple(gaps)
