"""A program that tests start: it appends records, signs them, and says on stdout what it signed.

Arguments: the state directory, how many rounds, how many records a round, and the size of a segment in bytes.
"""

import asyncio
import sys
from pathlib import Path

from licet.record import Entry
from licet.state import open_state
from licet_audit.chain import mono_ns, now
from licet_audit.checkpointer import Notary
from licet_audit.log import DurableLog
from licet_audit.notes import Head


async def main(path: str, rounds: str, records: str, segment_bytes: str) -> None:
    state = open_state(Path(path))
    log, notary = DurableLog(state, segment_bytes=int(segment_bytes)), Notary(state)
    for _ in range(int(rounds)):
        await log.append([Entry("request", "r", {"n": n}, now(), mono_ns()) for n in range(int(records))])
        head = Head.parse(notary.checkpoint().text)
        print(head.size, head.root.hex(), flush=True)
    await log.close()


asyncio.run(main(*sys.argv[1:]))
