"""Host processes of their own for probes: each holds a secret, and may be killed in the middle.

Rules this module keeps:

- one process imports licet, once, and holds the secret in a variable; each run gets a copy of it (`fork`);
- a host answers in lines of JSON, and ends when its prober does, or hangs up;
- the backend is made anew from its class without arguments: no state of the prober's backend is needed; one
  that may not be the same then is not attacked, since what holds one instance says nothing of another;
- how long a run took is told by the clock of its own host, from the first word of the program.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from licet.backend import Access, Backend, GuestError, Reply, Target, ToolCall, execute
from licet.errors import BackendError
from licet.probe.identity import description
from licet.probe.order import Order
from licet.probe.trial import ending, raised
from licet.surroundings import RealSurroundings

_OUTPUT = 1 << 20
_CLOSE_S = 2.0


def serve(control: int) -> None:
    """Make a host for each descriptor that comes over the socket at `control`, until that ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a host ended
    orders = socket.socket(fileno=os.dup(control))
    os.dup2(os.open(os.devnull, os.O_RDONLY), control)  # a host has its standard streams
    while True:
        told, descriptors, _, _ = socket.recv_fds(orders, 1, 1)
        if not told:
            return
        [channel] = descriptors
        if os.fork() == 0:
            orders.close()
            _be_host(channel)
        os.close(channel)


def _be_host(channel: int) -> None:
    """Live as a host process and end as one, whatever happens."""
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.set_inheritable(channel, False)
        _host(channel)
    finally:
        os._exit(1)


def _host(channel: int) -> None:
    """Run what is told, say what came of it, and wait for the end."""
    told = json.loads(_line(channel))
    _tell(channel, {"host": os.getpid()})
    ending = threading.Thread(target=_end_with_prober, args=(channel,), daemon=True)
    ending.start()
    os.set_inheritable(os.open(told["holds"], os.O_RDONLY), True)
    relay = _Relay(channel)
    try:
        ended = asyncio.run(_run(_make(told), Order.from_json(told["order"]), relay))
    except Exception as problem:
        ended = raised(problem)
    _tell(channel, {"ended": ended, "took": relay.took})
    ending.join()  # the prober looks for what is left below


def _line(channel: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        data = os.read(channel, 1 << 16)
        if not data:
            os._exit(1)
        line += data
    return line


def _end_with_prober(channel: int) -> None:
    while os.read(channel, 1 << 10):
        pass
    os._exit(1)


def _make(told: Mapping[str, Any]) -> Backend:
    try:
        module = importlib.import_module(told["module"])
    except ImportError:
        module = _load(Path(told["file"]))
    kind: Any = module
    for name in told["name"].split("."):
        kind = getattr(kind, name)
    return _same(kind, told)


def _same(kind: Any, told: Mapping[str, Any]) -> Backend:
    """An instance of `kind` that is as good as the prober's.

    Raises:
        BackendError: there is none.
    """
    if not told["replaceable"]:
        raise BackendError(f"`{kind.__qualname__}` takes arguments, and `configuration` does not tell which")
    try:
        backend: Backend = kind()
    except (Exception, SystemExit) as problem:
        raise BackendError(
            f"`{kind.__qualname__}` can't be made anew without arguments: {type(problem).__name__}: {problem}"
        ) from None
    if description(backend.describe()) != told["description"]:
        raise BackendError(f"`{kind.__qualname__}` made without arguments describes itself in another way")
    return backend


def _load(file: Path) -> Any:
    """A module that is not importable by its name, from its file."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"`{file}` is no module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


async def _run(backend: Backend, order: Order, relay: _Relay) -> str:
    outcome = await execute(backend, order.plan(backend.describe()), relay)
    relay.end()
    try:
        async with asyncio.timeout(_CLOSE_S):
            await backend.close()
    except TimeoutError:
        return "raised TimeoutError: the backend did not close"
    return ending(outcome)


class _Relay(RealSurroundings):
    """A host that hands every output on and grants nothing."""

    def __init__(self, channel: int) -> None:
        self._channel = channel
        self._left = _OUTPUT
        self._began: float | None = None
        self.took = 0.0

    def write(self, stream: Literal["stdout", "stderr"], data: bytes) -> bool:
        if self._began is None:
            self._began = time.monotonic()
        self._left -= len(data)
        _tell(self._channel, {"output": data.decode("latin-1")})
        return self._left >= 0

    def end(self) -> None:
        """The run is over now."""
        if self._began is not None:
            self.took = time.monotonic() - self._began

    async def access(self, access: Access) -> bool:
        return False

    async def call(self, call: ToolCall) -> Reply:
        return Reply(error=GuestError("NameError", f"name '{call.name}' is not defined"))

    async def connect(self, target: Target) -> int:
        raise PermissionError("nothing is opened")


def _tell(channel: int, content: Mapping[str, Any]) -> None:
    data = json.dumps(content).encode() + b"\n"
    while data:
        data = data[os.write(channel, data) :]
