"""What a jail claims on this host, and why not more.

Rules this module keeps:

- a claim is `enforced` only where what it rests on stands here; what is missing is its gap, or its level;
- limits of a whole tree are control groups'; where there are none for this user, a limit of each process is
  `partial`, and says so.
"""

from __future__ import annotations

from licet.contract import Boundary, Enforcement, Level, SandboxEnforcementContract
from licet.supervise.cgroups import Resource, look
from licet.supervise.jail import Ground

_NAMESPACES = "a process namespace, ended with its first process"


def contract(here: Ground) -> SandboxEnforcementContract:
    """The contract that holds on a host where jails are made like this."""
    return SandboxEnforcementContract(
        shell_execution=_kernel("nothing can be executed: Landlock, and a list of system calls"),
        timeout=_kernel(f"at the deadline, {_NAMESPACES}"),
        cancellation=_kernel(f"at once, {_NAMESPACES}"),
        stdout_limit=_counted("stdout"),
        stderr_limit=_counted("stderr"),
        environment_allowlist=_kernel(
            "the interpreter was started with no variables, and is given exactly those of the policy; "
            "it sees no process but its own"
        ),
        working_directory=_kernel(
            "the run begins in the directory, in a root of its own", "the code may change its directory"
        ),
        process_tree_cleanup=_kernel(_NAMESPACES),
        process_count_limit=_processes(here),
        cpu_time_limit=_of_tree(
            Resource.cpu, "the supervisor reads every 20 ms", "RLIMIT_CPU, rounded up to whole seconds"
        ),
        memory_limit=_of_tree(
            Resource.memory, "the kernel bounds", "RLIMIT_AS, of addresses and not of pages"
        ),
        filesystem_read_deny=_kernel("a root that shows what is opened alone, and Landlock"),
        filesystem_write_deny=_kernel(
            "a root that is read-only, and Landlock; what is written goes to a layer that licet commits"
        ),
        network_deny=_kernel("a network namespace without a way out, and a list of system calls"),
        unix_socket_deny=_kernel("no socket can be made or connected: a list of system calls, and Landlock"),
        filesystem_bytes_limit=_kernel("storage of that size, in memory, for all that the run writes"),
        orphan_cleanup=_kernel(
            f"{_NAMESPACES}, which ends with its host: it watches it, and dies with its launcher"
        ),
        process_isolation=_kernel("a process namespace, and Landlock"),
        privilege_drop=_kernel("no capabilities, no new privileges, a user that no account has"),
        syscall_filter=_kernel("a list of the system calls that are let through"),
        handle_isolation=_kernel(
            "no descriptor is inherited but standard streams and the private channel",
            "the code can write to its own channel, and so forge its own value",
        ),
        fresh_state=_kernel(
            "a fork of an interpreter that has seen no code, with storage of its own",
            "runs of one launcher share the seed of hashes, and where its memory lies",
        ),
    )


def _processes(here: Ground) -> Enforcement:
    """A limit of tasks: of a control group, or of a user whom nobody else is."""
    threads = "threads count as well"
    if Resource.pids in look().places:
        return _kernel("a control group of the run", threads)
    if here.users:
        return _kernel("RLIMIT_NPROC, in a user namespace of the run", threads)
    return _kernel("RLIMIT_NPROC", threads, "runs of one launcher have it together", level=Level.partial)


def _of_tree(resource: Resource, who: str, of_each: str) -> Enforcement:
    """A limit of all processes of a run together, where there is a control group for it."""
    missing = look().missing.get(resource)
    if missing is None:
        return _kernel(f"a control group of the run, which {who}")
    each = "each process of the run has the whole limit for itself"
    return _kernel(of_each, each, f"no control group: {missing.reason}", level=Level.partial)


def _kernel(
    mechanism: str, *gaps: str, level: Level = Level.enforced, boundary: Boundary = "kernel"
) -> Enforcement:
    return Enforcement(level, boundary, mechanism, gaps)


def _counted(stream: str) -> Enforcement:
    return _kernel(
        f"{stream} is a pipe that the host drains, counts and keeps within the limit", boundary="supervisor"
    )
