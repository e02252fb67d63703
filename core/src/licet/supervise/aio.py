"""The same supervised run for asyncio, on any loop, in any thread.

Rules this module keeps:

- the run has a thread of its own: a busy loop delays no deadline and blocks no pipe;
- a cancelled caller gets its `CancelledError` only after nothing of the run is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading

from licet.supervise.calls import OnOutput, run_blocking
from licet.supervise.holding import Supplier
from licet.supervise.spec import ProcessOutcome, Spec
from licet.supervise.stop import Stop


async def run(spec: Spec, on_output: OnOutput, launcher: Supplier | None = None) -> ProcessOutcome:
    """Run `spec`; see `run_blocking`. `on_output` is called in the thread of the run."""
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
                outcome = run_blocking(spec, on_output, stop, launcher)
            except BaseException as found:
                problem = found
            with contextlib.suppress(RuntimeError):  # the loop was closed, so nobody waits
                loop.call_soon_threadsafe(tell, outcome, problem)

        thread = threading.Thread(target=work, name="licet-run", daemon=True)
        thread.start()
        try:
            return await _outlast(done, stop)
        finally:
            stop.set()
            thread.join()


async def _outlast(done: asyncio.Future[ProcessOutcome], stop: Stop) -> ProcessOutcome:
    """Wait for the end of the run, whatever happens to the waiting task."""
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError as asked:
            cancelled = asked
            stop.set()
    if cancelled is not None:
        if done.exception() is None:
            done.result().drop()
        raise cancelled
    return done.result()
