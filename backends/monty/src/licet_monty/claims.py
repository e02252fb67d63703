"""What Monty enforces, control by control, with what each claim leaves open.

Rules this module keeps:

- where the language has no way to express an act the level is `not_applicable`, not `enforced`: the wall is
  the interpreter, and a memory error in it would open the worker, which runs as the host's user;
- a control that is not named here is not enforced.
"""

from __future__ import annotations

from licet.contract import Boundary, Enforcement, Level, SandboxEnforcementContract

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
