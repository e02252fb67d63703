"""What each control means, and what it leaves open even where it is enforced: said once, here.

Rules this module keeps:

- every control has a meaning, in words that finish the sentence "where this is enforced, …";
- what a control does not cover is told beside it; what one backend leaves open is a gap of its claim.

`licet backends show`, `licet doctor` and `docs/reference/controls.md` all take their words from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from licet.contract import Control


@dataclass(frozen=True, slots=True)
class Meaning:
    """What holds where a control is enforced (`means`), and what it does not cover (`leaves`)."""

    means: str
    leaves: tuple[str, ...]


MEANINGS: Mapping[Control, Meaning] = {
    Control.shell_execution: Meaning(
        "the code can't start other programs",
        ("a host function (`tools`) that starts one for it", "what the code computes by itself"),
    ),
    Control.timeout: Meaning(
        "the run ends at `wall_time`, whatever the code does",
        ("the time that starting and ending take: a run may be late by what the machine is busy with",),
    ),
    Control.cancellation: Meaning(
        "a cancelled run stops, and leaves nothing running",
        ("effects that were made before it was cancelled",),
    ),
    Control.stdout_limit: Meaning(
        "what is kept of standard output is bounded, and the rest is drained and counted",
        ("what the output says: it is data of untrusted code",),
    ),
    Control.stderr_limit: Meaning(
        "what is kept of standard error is bounded, and the rest is drained and counted",
        ("what the output says: it is data of untrusted code",),
    ),
    Control.environment_allowlist: Meaning(
        "the code sees the variables of its policy and no others",
        ("secrets that the policy or the request hands on by itself",),
    ),
    Control.working_directory: Meaning(
        "the code runs in the directory it was given",
        ("it grants nothing: what may be read and written there is for the `filesystem` controls",),
    ),
    Control.process_tree_cleanup: Meaning(
        "everything the run started ends with it",
        ("work that another program took over: a service that the code asked to start something",),
    ),
    Control.process_count_limit: Meaning(
        "no more than `processes` at once",
        ("threads, where the backend says so",),
    ),
    Control.cpu_time_limit: Meaning(
        "the run ends at `cpu_time`",
        ("a share of the processor: until then a run may keep every processor busy",),
    ),
    Control.memory_limit: Meaning(
        "the run can't use more than `memory`",
        ("memory of the kernel and of the host on behalf of the run, such as buffers of pipes",),
    ),
    Control.filesystem_read_deny: Meaning(
        "what is not opened can't be read",
        (
            "the files of the interpreter itself, which every program may read",
            "whether a path exists, where the mechanism lets its attributes be asked for",
        ),
    ),
    Control.filesystem_write_deny: Meaning(
        "what is not opened can't be written",
        ("devices and services that change files for the code",),
    ),
    Control.network_deny: Meaning(
        "no connection leaves the run",
        ("host functions (`tools`) that connect for it", "what a file that is opened to others carries out"),
    ),
    Control.network_filter: Meaning(
        "only opened hosts can be reached",
        ("what is sent to a host that is opened: no filter looks inside",),
    ),
    Control.unix_socket_deny: Meaning(
        "no socket of the host's other programs can be reached",
        ("pipes and shared memory: a handle of the host is for `handle_isolation`",),
    ),
    Control.filesystem_bytes_limit: Meaning(
        "no more than `files` bytes can be written in all",
        ("the number of files, where the backend says so",),
    ),
    Control.orphan_cleanup: Meaning(
        "nothing survives the death of the host process",
        ("a crash of the machine or of its kernel",),
    ),
    Control.process_isolation: Meaning(
        "other processes can't be seen, signalled or traced",
        ("what shared hardware tells: caches, timing, load",),
    ),
    Control.privilege_drop: Meaning(
        "the run has fewer rights than the user",
        ("which rights are left: what matters has a control of its own",),
    ),
    Control.syscall_filter: Meaning(
        "the kernel answers only the system calls that code needs",
        ("a bug of the kernel behind a call that is let through",),
    ),
    Control.handle_isolation: Meaning(
        "no descriptor or handle of the host is inherited",
        ("standard streams, and the private channel for the value",),
    ),
    Control.fresh_state: Meaning(
        "nothing of an earlier run is visible",
        ("what an earlier run was allowed to change, such as files that its policy opened for writing",),
    ),
    Control.separate_kernel: Meaning(
        "the run has a kernel of its own",
        ("the hypervisor below it, and the devices that it lends",),
    ),
}
