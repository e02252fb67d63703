"""A program that tests start: it appends runs to a log and says on stdout what is durable.

Arguments: the state directory, a name for its runs, how many runs, the size of a segment in bytes, and the
file that its effects go to: a line for each run that began.
"""

import asyncio
import os
import sys
from pathlib import Path

from licet.record import Entry
from licet.state import open_state
from licet_audit.chain import mono_ns, now
from licet_audit.log import DurableLog


def entry(kind: str, run_id: str, phase: str | None = None, **body: object) -> Entry:
    return Entry(kind, run_id, body, now(), mono_ns(), phase=phase)  # type: ignore[arg-type]


async def main(path: str, name: str, runs: str, segment_bytes: str, effects: str) -> None:
    log = DurableLog(open_state(Path(path)), segment_bytes=int(segment_bytes))
    effect = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in range(int(runs)):
        run = f"{name}-{number}"
        before = await log.append(
            [entry("decision", run, effect="allow"), entry("execution", run, "before", backend="x")]
        )
        os.write(effect, f"{run}\n".encode())
        print("began", run, before[-1].seq, flush=True)
        call = {"sequence": 1, "tool": "refund", "call_digest": "d"}
        await log.append([entry("tool_call", run, "before", **call)])
        await log.append([entry("tool_call", run, "after", sequence=1)])
        (after,) = await log.append([entry("result", run, "after", termination="exited")])
        print("ended", run, after.seq, flush=True)
    await log.close()


asyncio.run(main(*sys.argv[1:]))
