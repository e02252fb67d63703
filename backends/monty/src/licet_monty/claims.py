"""What Monty enforces, control by control, with what each claim leaves open.

Rules this module keeps:

- where the language has no way to express an act the level is `not_applicable`, not `enforced`: the wall is
  the interpreter, and a memory error in it would open the worker, which runs as the host's user;
- where the kernel has a wall behind the language the level is `enforced` and the boundary `kernel`, and what
  the wall leaves open is the gap: the claim is attacked at that wall too, as if the interpreter were broken;
- a control that is not named here is not enforced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from licet.contract import Boundary, Control, Enforcement, Level, SandboxEnforcementContract
from licet.supervise.walls import Wall, Walls

_LANGUAGE_ONLY = (
    "a language sandbox: an exploitable bug of the interpreter reaches all that the host's user may do"
)
_SAME_USER = "the worker runs with the uid, capabilities and network of the host; no system call is filtered"


def _inexpressible(mechanism: str) -> Enforcement:
    return Enforcement(Level.not_applicable, "language", mechanism, (_LANGUAGE_ONLY, _SAME_USER))


def _enforced(boundary: Boundary, mechanism: str, *gaps: str) -> Enforcement:
    return Enforcement(Level.enforced, boundary, mechanism, gaps)


def _absent(why: str) -> Enforcement:
    return Enforcement(Level.not_enforced, "none", "", (why,))


CONTRACT = SandboxEnforcementContract(
    shell_execution=_inexpressible("no module and no function of the language starts a program"),
    process_count_limit=_inexpressible(
        "no module and no function of the language starts a process or thread"
    ),
    network_deny=_inexpressible("no module and no function of the language opens a connection"),
    unix_socket_deny=_inexpressible("no module and no function of the language opens a socket"),
    handle_isolation=_inexpressible("files have paths only; no function takes or yields a descriptor"),
    network_filter=_absent("no connection can be opened at all"),
    filesystem_read_deny=_enforced(
        "language",
        "every file access surfaces before it happens; the host reads what the plan opens, by descriptors",
        _LANGUAGE_ONLY,
    ),
    filesystem_write_deny=_enforced(
        "language",
        "every file access surfaces before it happens; writes stay in an overlay until the run ended well",
        _LANGUAGE_ONLY,
    ),
    filesystem_bytes_limit=_enforced(
        "supervisor", "the overlay counts what it holds; the worker is killed at the limit `files`"
    ),
    environment_allowlist=_enforced(
        "language",
        "os.environ and os.getenv are answered from the plan; the worker's own environment is empty",
    ),
    working_directory=_enforced(
        "language", "relative paths resolve against the plan's workdir, which the code can't leave"
    ),
    timeout=_enforced("supervisor", "a watchdog thread kills the worker at the wall-clock deadline"),
    cancellation=_enforced("supervisor", "the worker is killed, its thread and its tools are joined"),
    stdout_limit=_enforced("supervisor", "counted as it arrives; the worker is killed at the limit `output`"),
    stderr_limit=_enforced("supervisor", "counted as it arrives; the worker is killed at the limit `output`"),
    process_tree_cleanup=_enforced(
        "supervisor", "a worker starts no process, and is killed as the one it is"
    ),
    cpu_time_limit=_enforced(
        "supervisor",
        "a watchdog thread reads the processor time of the worker, and kills it at the limit",
        "where the kernel does not tell that time (not Linux), the interpreter's own clock counts instead",
    ),
    memory_limit=_enforced(
        "language",
        "the interpreter's allocator, with a hard ceiling a few MiB above at which the worker ends",
        "counts what the interpreter allocates for the code, not the resident memory of the worker",
    ),
    fresh_state=_enforced(
        "language",
        "a new session for each sandbox; workers are shared only within a tenant and policy class",
        "memory of a worker is not wiped between runs: a bug of the interpreter could show an earlier one",
    ),
    orphan_cleanup=Enforcement(
        Level.partial,
        "supervisor",
        "a worker whose host is gone ends at its next message to it",
        ("code that computes in silence goes on until its time limit",),
    ),
    process_isolation=Enforcement(
        Level.partial,
        "kernel",
        "code runs in a worker process of its own, never in the host's",
        (_SAME_USER, "the worker shares the session, the namespaces and the working directory of the host"),
    ),
)


@dataclass(frozen=True, slots=True)
class _Behind:
    """What the kernel holds behind the language, by which walls, and what it leaves open."""

    walls: frozenset[Wall]
    mechanism: str
    gaps: tuple[str, ...] = ()


_STAT = "it can be asked of any file whether it is there, how large it is and whose"
_LIBRARIES = "files in the folders of the system's libraries can be read"
_SAME_UID = "the worker runs as the user of the host, in its namespaces"
_CALLS = frozenset({Wall.calls})
_FILES = frozenset({Wall.calls, Wall.files})

BEHIND: Mapping[Control, _Behind] = {
    Control.shell_execution: _Behind(
        _FILES, "the worker can start no process, and execute no file but its own binary and its loader"
    ),
    Control.process_count_limit: _Behind(_CALLS, "the worker can start threads, and no process"),
    Control.network_deny: _Behind(_CALLS, "the worker can make no socket"),
    Control.unix_socket_deny: _Behind(_CALLS, "the worker can make no socket"),
    Control.handle_isolation: _Behind(
        frozenset({Wall.apart}), "the worker has two pipes to its host, and no other descriptor of it"
    ),
    Control.filesystem_read_deny: _Behind(
        _FILES, "Landlock lets the worker open its own binary and the system's libraries", (_LIBRARIES, _STAT)
    ),
    Control.filesystem_write_deny: _Behind(
        _FILES, "Landlock lets the worker write nowhere, and calls that change names or modes are refused"
    ),
    Control.orphan_cleanup: _Behind(
        frozenset({Wall.apart}), "the kernel kills the worker with the thread of the host that started it"
    ),
    Control.process_isolation: _Behind(
        _FILES,
        "it has a session of its own, and can neither signal, nor trace, nor look into another process",
        (_SAME_UID,),
    ),
    Control.privilege_drop: _Behind(
        frozenset({Wall.privileges}), "the worker has no capability, and can't gain one", (_SAME_UID,)
    ),
    Control.syscall_filter: _Behind(
        _CALLS, "a filter lets through what a program needs that computes, and refuses all else"
    ),
}


_LANGUAGE_ALONE = (
    "held by the language alone: a bug of the interpreter could open it, behind the kernel's walls"
)


def contract(digest: str | None, walls: Walls) -> SandboxEnforcementContract:
    """What Monty enforces here, with the binary of this SHA-256 and behind these walls."""
    claims = {control.value: _fortified(control, claim, walls) for control, claim in CONTRACT.items()}
    if digest is not None:
        isolation = claims["process_isolation"]
        which = f"{isolation.mechanism}; the binary is sha256:{digest}"
        claims["process_isolation"] = replace(isolation, mechanism=which)
    return SandboxEnforcementContract(**claims)


def _fortified(control: Control, claim: Enforcement, walls: Walls) -> Enforcement:
    """The claim with the kernel behind it; or with the reason, where one of its walls can't stand."""
    behind = BEHIND.get(control)
    if behind is None:
        open_gaps = [gap for gap in claim.gaps if gap not in (_LANGUAGE_ONLY, _SAME_USER)]
        if not walls.standing >= _FILES or len(open_gaps) == len(claim.gaps):
            return claim
        return replace(claim, gaps=(*open_gaps, _LANGUAGE_ALONE))
    lacking = sorted({walls.missing.get(wall, "not put up") for wall in behind.walls - walls.standing})
    if lacking:
        return replace(claim, gaps=(*claim.gaps, *(f"no wall of the kernel: {why}" for why in lacking)))
    mechanism = f"{claim.mechanism}; behind it, {behind.mechanism}" if claim.mechanism else behind.mechanism
    return Enforcement(Level.enforced, "kernel", mechanism, behind.gaps)
