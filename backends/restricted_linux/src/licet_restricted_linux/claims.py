"""What a jail claims on this host, and why not more.

Rules this module keeps:

- a claim is `enforced` only where what it rests on stands here; what is missing is its gap, or its level;
- limits of a whole tree are control groups'; where there are none for this user, a limit of each process is
  `partial`, and says so.
"""

from __future__ import annotations

from licet.contract import Boundary, Enforcement, Level, SandboxEnforcementContract
from licet.supervise.cgroups import Groups, Resource
from licet.supervise.jail import Ground
from licet.supervise.notify.standing import shortfall

_NAMESPACE = "a process namespace, ended with its first process"


def contract(here: Ground, groups: Groups) -> SandboxEnforcementContract:
    """The contract that holds on a host where jails are made like this, with these control groups."""
    landlock = ", and Landlock" if here.landlock else ""
    return SandboxEnforcementContract(
        shell_execution=_execution(here),
        timeout=_kernel(f"at the deadline, {_NAMESPACE}"),
        cancellation=_kernel(f"at once, {_NAMESPACE}"),
        stdout_limit=_counted("stdout"),
        stderr_limit=_counted("stderr"),
        environment_allowlist=_kernel(
            "the interpreter was started without the host's variables, and has exactly those of the policy; "
            "it sees no process but its own"
        ),
        working_directory=_kernel(
            "the run begins in the directory, in a root of its own", "the code may change its directory"
        ),
        process_tree_cleanup=_kernel(_NAMESPACE),
        process_count_limit=_processes(here, groups),
        cpu_time_limit=_of_tree(
            groups,
            Resource.cpu,
            "a control group of the run, whose clock the supervisor reads every 20 ms",
            "RLIMIT_CPU, rounded up to whole seconds",
        ),
        memory_limit=_of_tree(
            groups, Resource.memory, "a control group of the run", "RLIMIT_AS, of addresses and not of pages"
        ),
        filesystem_read_deny=_kernel(
            f"a root that shows what is opened alone{landlock}",
            "a path that is kept closed inside an opened one, and is made while the run goes on, is seen",
            "another name (a hard link) of a file that is kept closed, outside it, is another path",
        ),
        filesystem_write_deny=_kernel(
            f"a root that is read-only{landlock}; what is written goes to a layer that licet commits",
            *(() if here.landlock else (_PIPES,)),
        ),
        network_deny=_kernel("a network namespace without a way out"),
        network_filter=_filtered(here),
        unix_socket_deny=_listed(
            here,
            "by the list of system calls no socket can be made but pairs and, where hosts are opened, TCP; "
            "none is connected by the code itself",
        ),
        filesystem_bytes_limit=_kernel("storage of that size, in memory, for all that the run writes"),
        orphan_cleanup=_kernel(
            f"{_NAMESPACE}, which ends with its host: it watches it, and dies with its launcher"
        ),
        process_isolation=_kernel(f"a process namespace{landlock}"),
        privilege_drop=_kernel("no capabilities, no new privileges, a user that no account has"),
        syscall_filter=_listed(here, "a list of the system calls that are let through"),
        handle_isolation=_kernel(
            "no descriptor is inherited but standard streams and the private channel",
            "the code can write to its own channel, and so forge its own value",
        ),
        fresh_state=_kernel(
            "a fork of an interpreter that has seen no code, with storage of its own",
            "runs of one launcher share the seed of hashes, and where its memory lies",
        ),
    )


def _execution(here: Ground) -> Enforcement:
    """What keeps the code from starting programs."""
    walls = {"Landlock": bool(here.landlock), "a list of system calls": here.filters}
    standing = [wall for wall, stands in walls.items() if stands]
    if not standing:
        return Enforcement(gaps=("this kernel has neither Landlock nor filters of system calls",))
    return _kernel(f"nothing can be executed: {' and '.join(standing)}")


def unconnected(here: Ground) -> str | None:
    """Why no connection can be made for the code on this host; None if one can."""
    return shortfall() if here.filters else "this kernel filters no system calls"


def _filtered(here: Ground) -> Enforcement:
    """What keeps the code to the hosts that are opened."""
    missing = unconnected(here)
    if missing is not None:
        return Enforcement(gaps=(missing,))
    return _kernel(
        "a network namespace without a way out; the kernel asks the host about each `connect` and never "
        "executes it: licet decides, resolves, connects, and hands in the socket",
        "the code sees the addresses of both ends of its connections",
        boundary="supervisor",
    )


def _listed(here: Ground, mechanism: str) -> Enforcement:
    """What rests on the list of system calls alone."""
    return _kernel(mechanism) if here.filters else Enforcement(gaps=("this kernel filters no system calls",))


def _processes(here: Ground, groups: Groups) -> Enforcement:
    """A limit of tasks: of a control group, or of a user whom nobody else is."""
    threads = "threads count as well"
    if Resource.pids in groups.places:
        return _kernel("a control group of the run", threads)
    if here.users:
        return _kernel("RLIMIT_NPROC, in a user namespace of the run", threads)
    return _kernel("RLIMIT_NPROC", threads, "runs of one launcher have it together", level=Level.partial)


def _of_tree(groups: Groups, resource: Resource, mechanism: str, of_each: str) -> Enforcement:
    """A limit of all processes of a run together, where there is a control group for it."""
    missing = groups.missing.get(resource)
    if missing is None:
        return _kernel(mechanism)
    each = "each process of the run has the whole limit for itself"
    return _kernel(of_each, each, f"no control group: {missing.reason}", level=Level.partial)


_PIPES = "without Landlock, a named pipe of the host in an opened folder takes what is written to it"


def _kernel(
    mechanism: str, *gaps: str, level: Level = Level.enforced, boundary: Boundary = "kernel"
) -> Enforcement:
    return Enforcement(level, boundary, mechanism, gaps)


def _counted(stream: str) -> Enforcement:
    return _kernel(
        f"{stream} is a pipe that the host drains, counts and keeps within the limit", boundary="supervisor"
    )
