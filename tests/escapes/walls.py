"""Pairs of backends that differ in one protection: `Plain` has none, and each other class puts up one wall.

All run the code in an interpreter of its own, feed its output to the host, and end that one process at the
deadline. The walls are those of the kernel, but for `AnotherKernel`, which only looks like one. A probe may
make a backend anew in a process of its own, so each is made without arguments.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from licet.backend import Descriptor, Host, Language, Outcome, Sandbox, Termination
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.plan import ExecutionPlan

EVERYTHING = SandboxEnforcementContract(
    **{control.value: Enforcement(Level.enforced, "kernel", "promises") for control in Control}
)
KERNEL = Path(__file__).with_name("kernel.py").read_text()


class Plain:
    """No wall at all."""

    inherits = False

    def wall(self, plan: ExecutionPlan) -> str:
        """The call that puts up the wall, from inside."""
        return "None"

    def describe(self) -> Descriptor:
        return Descriptor(
            type(self).__name__,
            "1",
            EVERYTHING,
            Language("CPython"),
            opens=frozenset({"read", "write", "network", "shell"}),
        )

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return _Run(f"{KERNEL}\n{self.wall(plan)}\n", self.inherits)

    async def close(self) -> None:
        return None


class _Run:
    def __init__(self, before: str, inherits: bool) -> None:
        self._before = before
        self._inherits = inherits

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-B", "-c", self._before + plan.code),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(plan.environment),
            cwd=plan.workdir,
            close_fds=not self._inherits,
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(plan.limits.wall_time):
                while data := await process.stdout.read(1 << 16):
                    host.write("stdout", data)
                return Outcome(Termination.exited, exit_code=await process.wait())
        except TimeoutError:
            return Outcome(Termination.timeout)
        finally:
            if process.returncode is None:
                process.kill()
            process._transport.close()  # type: ignore[attr-defined]  # whoever else holds the pipe

    async def close(self) -> None:
        return None


class Inheriting(Plain):
    """Code gets the open files of its host."""

    inherits = True


class NoPrograms(Plain):
    def wall(self, plan: ExecutionPlan) -> str:
        return "no_programs()"


class NoSocketsOfTheHost(Plain):
    def wall(self, plan: ExecutionPlan) -> str:
        return "no_sockets_of_the_host()"


class NoRiskyCalls(Plain):
    def wall(self, plan: ExecutionPlan) -> str:
        return "no_risky_calls()"


class NoNewPrivileges(Plain):
    def wall(self, plan: ExecutionPlan) -> str:
        return "no_new_privileges()"


class FewProcesses(Plain):
    def wall(self, plan: ExecutionPlan) -> str:
        return f"few_processes({plan.limits.processes})"


class OwnNetwork(Plain):
    def wall(self, plan: ExecutionPlan) -> str:
        return "own_network()"


class LeadingOut(Plain):
    """Another loopback than the host's, and no wall beside."""

    def wall(self, plan: ExecutionPlan) -> str:
        return "network_that_leads_out()"


class Relayed(Plain):
    def wall(self, plan: ExecutionPlan) -> str:
        return f"network_that_leads_to({_ports(plan)!r})"


class SmallDisk(Plain):
    def wall(self, plan: ExecutionPlan) -> str:
        return f"small_disk({plan.workdir!r}, {plan.limits.files})"


class OwnTemporaryFolder(Plain):
    """No wall but round `/tmp`."""

    def wall(self, plan: ExecutionPlan) -> str:
        return f"own_temporary_folder({plan.workdir!r})"


class AnotherKernel(Plain):
    def wall(self, plan: ExecutionPlan) -> str:
        return f"another_boot_id({plan.workdir!r})"


class Files(Plain):
    def wall(self, plan: ExecutionPlan) -> str:
        runtime = [path for path in (sys.base_prefix, "/usr", "/lib", "/lib64") if Path(path).exists()]
        return f"files({[*runtime, *plan.opened.read]!r}, {list(plan.opened.write)!r})"


class Ports(Plain):
    """No other TCP port, but these of every host, and all of UDP."""

    def wall(self, plan: ExecutionPlan) -> str:
        return f"ports({_ports(plan)!r})"


def _ports(plan: ExecutionPlan) -> list[int]:
    return [int(target.rpartition(":")[2]) for target in plan.opened.network]
