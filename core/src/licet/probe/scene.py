"""Where attacks take place on the host: a folder, threads, hosts of their own, and a watch on the pace.

Rules this module keeps:

- each run has targets of its own, so that concurrent runs never take one's blow for another's;
- whatever was made or started is gone when the scene is left;
- no variable and no descriptor of this process changes: what a host holds is held by a process made for it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

from licet.probe import traces
from licet.probe.hosts import Hosts
from licet.probe.pace import Pace
from licet.probe.targets import Targets

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 24


class Scene:
    """A folder on the host in which the targets of each run are set up."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._token = secrets.token_hex(8)
        self.hosts = Hosts()
        self.pace = Pace()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="licet-probe")

    async def __aenter__(self) -> Scene:
        self._root = _folder()  # in one step: a cancellation in between would leave it behind
        self.pace.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pace.__exit__(kind, error, trace)
        clearing = self._threads.submit(self._clear)  # which goes on, whatever becomes of this task
        self._threads.shutdown(wait=False)
        await asyncio.shield(asyncio.wrap_future(clearing))

    async def thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call what blocks, on a thread of the scene."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(function, *args, **kwargs))

    def _clear(self) -> None:
        self.hosts.close()
        traces.sweep(self._token)
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None

    @asynccontextmanager
    async def targets(self, secret: str | None = None) -> AsyncIterator[Targets]:
        """Set up targets for one run, and clear them away; a `secret` is given where a host holds it."""
        if self._root is None:
            raise RuntimeError("the scene is not open")
        run = secrets.token_hex(4)
        targets = Targets(self._root / run, f"{self._token}-{run}", self.hosts.variable, secret)
        try:
            yield targets
        finally:
            targets.close()


def _folder() -> Path:
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="licet-probe-")))
    folder.chmod(0o755)
    return folder
