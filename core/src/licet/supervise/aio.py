"""The same supervised run for asyncio, on any loop, in any thread.

Rules this module keeps:

- the run has a thread of its own: a busy loop delays no deadline and blocks no pipe;
- a cancelled caller gets its `CancelledError` only after nothing of the run is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

from licet.supervise.asking import Asking, Connect, OnCall
from licet.supervise.calls import OnOutput, run_blocking
from licet.supervise.courier import Courier
from licet.supervise.holding import Supplier
from licet.supervise.spec import ProcessOutcome, Spec
from licet.supervise.stop import Stop


async def run(
    spec: Spec,
    on_output: OnOutput,
    launcher: Supplier | None = None,
    on_call: OnCall | None = None,
    connect: Connect | None = None,
) -> ProcessOutcome:
    """Run `spec`; see `run_blocking`. `on_output` is called in the thread of the run.

    `on_call` answers the calls of tools, and `connect` makes the connections of code in a jail with a
    `network`, both on this loop; what of it is under way at the end is cancelled.
    """
    asks = (on_call is not None and spec.tools) or (connect is not None and spec.jail and spec.jail.network)
    if not asks:
        return await _run(spec, on_output, launcher, None)
    with Courier() as courier:
        return await _run(spec, on_output, launcher, Asking(courier, on_call, connect))


async def _run(
    spec: Spec, on_output: OnOutput, launcher: Supplier | None, asking: Asking | None
) -> ProcessOutcome:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[ProcessOutcome] = loop.create_future()
    with Stop() as stop:

        def tell(outcome: ProcessOutcome | None, problem: BaseException | None) -> None:
            if problem is not None:
                done.set_exception(problem)
            elif outcome is not None:
                done.set_result(outcome)

        def work() -> None:
            outcome, problem = None, None
            try:
                outcome = run_blocking(spec, on_output, stop, launcher, asking)
            except BaseException as found:
                problem = found
            with contextlib.suppress(RuntimeError):  # the loop was closed, so nobody waits
                loop.call_soon_threadsafe(tell, outcome, problem)

        thread = threading.Thread(target=work, name="licet-run", daemon=True)
        thread.start()
        try:
            cancelled = await _outlast(done, stop)
            if asking is not None:
                cancelled = await _outlast(loop.create_task(asking.courier.end()), stop) or cancelled
        finally:
            stop.set()
            thread.join()
    if cancelled is not None:
        if done.exception() is None:
            done.result().drop()
        raise cancelled
    return done.result()


async def _outlast(what: asyncio.Future[Any], stop: Stop) -> asyncio.CancelledError | None:
    """Wait for the end of something, whatever happens to the waiting task, which is returned."""
    cancelled: asyncio.CancelledError | None = None
    while not what.done():
        try:
            await asyncio.wait([what])
        except asyncio.CancelledError as asked:
            cancelled = asked
            stop.set()
    return cancelled
