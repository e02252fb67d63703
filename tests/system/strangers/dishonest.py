"""Twins of Echo that lie, each about one thing, and a suite for each: which tests fail is what is tested.

A twin claims nothing but its lie, so that nothing else of it is attacked.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

from licet.backend import Descriptor, Host, Outcome, Sandbox, Termination
from licet.contract import Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.plan import ExecutionPlan
from licet.testing import BackendSuite
from licet_echo import Echo

NETWORK = Enforcement(Level.enforced, "kernel", "a network of its own")


class Twin(Echo):
    """Echo with another contract."""

    claims: SandboxEnforcementContract

    def __init__(self) -> None:
        self._told = replace(super().describe(), name="twin", sandbox_enforcement_contract=self.claims)

    def describe(self) -> Descriptor:
        return self._told


class Boaster(Twin):
    """Claims to deny the network, and runs code with it."""

    claims = SandboxEnforcementContract(network_deny=NETWORK)


class Denier(Twin):
    """Claims that its language can't express a connection; it is Python."""

    claims = SandboxEnforcementContract(network_deny=replace(NETWORK, level=Level.not_applicable))


class Machine(Twin):
    """Claims a kernel of its own."""

    claims = SandboxEnforcementContract(
        separate_kernel=Enforcement(Level.enforced, "separate_kernel", "a virtual machine")
    )


class Boundary(Twin):
    """Claims no kernel of its own, and yet that one holds its directory."""

    claims = SandboxEnforcementContract(
        working_directory=Enforcement(Level.enforced, "separate_kernel", "a virtual machine")
    )


class Derived(SandboxEnforcementContract):
    """A contract that says of itself what should follow from its claims."""

    @property
    def isolation(self) -> str:
        return "separate_kernel"


class Isolated(Twin):
    """Declares its isolation."""

    claims = Derived()


class Witness(Twin):
    """Vouches for its own evidence."""

    claims = SandboxEnforcementContract(
        working_directory=Enforcement(Level.enforced, "supervisor", "chdir", evidence=Evidence.probed)
    )


class Fickle(Twin):
    """Claims more each time that it is asked."""

    claims = SandboxEnforcementContract()

    def __init__(self) -> None:
        super().__init__()
        stronger = replace(self._told, sandbox_enforcement_contract=Boaster.claims)
        self._turns = itertools.chain([self._told] * 3, itertools.repeat(stronger))

    def describe(self) -> Descriptor:
        return next(self._turns)


class Various(Twin):
    """Says something else in every instance."""

    claims = SandboxEnforcementContract()
    made = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self._told = replace(self._told, version=str(next(self.made)))


class Actor(Twin):
    """Knows a probe when it sees one, and says what is expected without running it."""

    claims = SandboxEnforcementContract(network_deny=NETWORK)

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        frame = re.search(r"print\('(\S+) allowed', (\d+) \* (\d+), flush=True\)", plan.code)
        return _Act(*frame.groups()) if frame else await super().open(plan, host)


class _Act:
    def __init__(self, say: str, factor: str, other: str) -> None:
        self._lines = f"{say} allowed {int(factor) * int(other)}\n{say} refused OSError [Errno 101] Network\n"

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        host.write("stdout", self._lines.encode())
        return Outcome(Termination.exited, exit_code=0)

    async def close(self) -> None:
        return None


class Inside(Twin):
    """Claims that something supervises code which it runs in its own process."""

    claims = SandboxEnforcementContract(
        working_directory=Enforcement(Level.enforced, "supervisor", "a process that starts there")
    )

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return _Inside()


class _Inside(_Act):
    def __init__(self) -> None:
        pass

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        names: dict[str, Any] = {"print": lambda *words, **_: host.write("stdout", _line(words))}
        *statements, last = plan.code.rstrip().split("\n")
        try:
            exec("\n".join(statements), names)
            return Outcome(Termination.exited, exit_code=0, value=eval(last, names))
        except BaseException:
            return Outcome(Termination.exited, exit_code=1)


def _line(words: tuple[object, ...]) -> bytes:
    return (" ".join(map(str, words)) + "\n").encode()


class TestBoaster(BackendSuite):
    make = Boaster


class TestDenier(BackendSuite):
    make = Denier


class TestMachine(BackendSuite):
    make = Machine


class TestBoundary(BackendSuite):
    make = Boundary


class TestIsolated(BackendSuite):
    make = Isolated


class TestWitness(BackendSuite):
    make = Witness


class TestFickle(BackendSuite):
    make = Fickle


class TestVarious(BackendSuite):
    make = Various


class TestActor(BackendSuite):
    make = Actor


class TestInside(BackendSuite):
    make = Inside
