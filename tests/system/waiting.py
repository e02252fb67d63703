"""Runs that wait for an approval, as whoever keeps approvals makes them wait and go on; also as a program.

    python waiting.py begin CODE FOLDER           run it until a call of `refund` waits; FOLDER keeps it
    python waiting.py approve|deny CODE FOLDER    go on with it

Rules this module keeps: nothing of the first half reaches the second but the sealed bytes, what is known of
the call that waits, and the id of the run.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from licet import Runtime, rerun, suspending
from licet.backend import Backend, GuestError, Outcome, Reply, Termination, ToolCall
from licet.digests import HostDigest
from licet.executing import execute
from licet.host import RunHost
from licet.logbook import Gaps
from licet.output import text_of
from licet.plan import ExecutionPlan
from licet.prepare import Prepared, plan_of, prepare
from licet.record import MemoryLog
from licet.request import ExecutionRequest
from licet.trail import Trail
from licet.waiting import WaitingCall

POLICY = """\
licet: 1
allow: [tool find]
ask: [tool refund]
clock: frozen
random: seeded
sandbox: {evidence: declared, only: [monty]}
"""
RUN = "01JD7K0000000000000000000R"
AT = datetime(2026, 1, 1, 12, 0, 0, 250_000, UTC)
LATER = AT + timedelta(days=3)
DENIED = GuestError("PermissionError", "a person said no")


def refund(order: str, amount: int = 1) -> str:
    """Pay back."""
    return f"refunded {amount} for {order}"


def find(name: str) -> list[str]:
    """Look up."""
    return [name, name.upper()]


class Instant(RunHost):
    """A host whose calls wait by their numbers: any other is settled at once, some by refusing them."""

    refusing: frozenset[int] = frozenset()
    waiting_for: frozenset[int] = frozenset()

    async def call(self, call: ToolCall) -> Reply:
        """Decide, record and perform one call, approved or denied on the spot."""
        reply = await super().call(call)
        waiting = self.waiting
        if reply.fatal is not Termination.approval_pending or waiting is None:
            return reply
        if waiting.sequence in self.waiting_for:
            return reply
        return await self.settle(DENIED if waiting.sequence in self.refusing else None)


@dataclass(frozen=True)
class Half:
    """What one process saw of a run: how it ended, its host, and its records."""

    prepared: Prepared
    plan: ExecutionPlan
    host: RunHost
    outcome: Outcome
    log: MemoryLog

    def told(self) -> dict[str, Any]:
        """All that has to be the same whether or not it waited: calls at one time may end in any order."""
        out, err = self.host.written()
        calls = sorted(self.host.tool_calls, key=lambda one: one.sequence)
        made = [asdict(replace(one, duration=0.0, call_digest="")) for one in calls]
        outcome = self.outcome
        return {
            "ended": [outcome.termination.value, outcome.exit_code, outcome.detail],
            "value": outcome.value_repr,
            "error": outcome.error and asdict(outcome.error),
            "stdout": text_of(out),
            "stderr": text_of(err),
            "calls": made,
            "counts": self.host.counts(),
        }


class Desk:
    """Prepares one request, and runs it as a whole or in halves."""

    def __init__(self, runtime: Runtime, backend: Backend, code: str, **fields: Any) -> None:
        self.runtime, self.backend = runtime, backend
        self.digest = HostDigest()
        self.request = ExecutionRequest(code=code, tools={"refund": refund, "find": find}, **fields)

    def prepared(self, at: datetime = LATER) -> Prepared:
        """The request under the policy in force, decided at this instant."""
        return prepare(
            self.request,
            self.runtime.stack,
            self.runtime.offers(),
            at=at,
            directory=os.getcwd(),
            host_environment={},
            digest=self.digest,
        )

    async def begin(self, waits: frozenset[int], refusing: frozenset[int] = frozenset()) -> Half:
        """Run until one of the calls of these numbers waits."""
        prepared, run_id = self.prepared(AT), RUN
        plan = self._plan(prepared, run_id)
        seen = rerun.surroundings(self.digest, prepared.stack, plan, prepared.facts.at.timestamp())
        return await self._half(prepared, plan, seen, waits, refusing)

    def suspend(self, half: Half) -> tuple[bytes, WaitingCall]:
        """The sealed run, and the call that waits as an approval store keeps it."""
        assert half.host.waiting is not None
        sealed = suspending.suspend(
            half.prepared, half.plan.run_id, half.host, half.outcome, self.digest.key()
        )
        return sealed, half.host.waiting

    async def go_on(
        self,
        sealed: bytes,
        call: WaitingCall,
        waits: frozenset[int] = frozenset(),
        refusing: frozenset[int] = frozenset(),
        run_id: str = RUN,
        tamper: Callable[[bytes], bytes] = bytes,
    ) -> Half:
        """Go on with a run, the call that waited settled."""
        prepared = self.prepared()
        reopened = suspending.reopen(sealed, prepared, run_id, call, self.digest.key())
        reopened = replace(reopened, snapshot=tamper(reopened.snapshot))
        plan = self._plan(prepared, run_id)
        seen = suspending.surroundings(reopened, self.digest, prepared, plan)
        return await self._half(prepared, plan, seen, waits, refusing, reopened)

    def _plan(self, prepared: Prepared, run_id: str) -> ExecutionPlan:
        assert prepared.selection.chosen is not None
        return plan_of(prepared, prepared.selection.chosen, run_id)

    async def _half(
        self,
        prepared: Prepared,
        plan: ExecutionPlan,
        seen: Any,
        waits: frozenset[int],
        refusing: frozenset[int],
        reopened: suspending.Reopened | None = None,
    ) -> Half:
        log = MemoryLog()
        with Trail(log, plan.run_id, best_effort=False, gaps=Gaps(None)) as trail:
            past = reopened.state if reopened is not None else None
            host = Instant(
                plan, prepared, trail, self.digest, None, seen, obstacle=lambda demands: None, past=past
            )
            host.waiting_for, host.refusing = waits, refusing
            if reopened is not None:
                denied = reopened.call.sequence in refusing
                plan = suspending.resumed(plan, reopened, await host.settle(DENIED if denied else None))
            outcome = await execute(self.backend, plan, host)
            return Half(prepared, plan, host, outcome, log)


def main(act: str, code: str, folder: Path) -> None:
    """One half of a run, in a process of its own."""
    from licet_monty.backend import MontyBackend

    with Runtime(folder / "policy.yaml", backends=[backend := MontyBackend()]) as runtime:
        desk = Desk(runtime, backend, code)
        if act == "begin":
            half = asyncio.run(desk.begin(frozenset({2})))
            sealed, call = desk.suspend(half)
            (folder / "sealed").write_bytes(sealed)
            (folder / "call.json").write_text(json.dumps(asdict(call)))
        else:
            call = WaitingCall(**json.loads((folder / "call.json").read_text()))
            refusing = frozenset({call.sequence} if act == "deny" else ())
            sealed = (folder / "sealed").read_bytes()
            half = asyncio.run(desk.go_on(sealed, call, refusing=refusing))
        print(json.dumps({**half.told(), "pid": os.getpid()}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
