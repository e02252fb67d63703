"""A host process of its own for a probe: it holds a secret, and it may be killed in the middle.

Rules this module keeps:

- the prober starts it with `start`, which sends one line: which backend to make, and what to run;
- it answers in lines of JSON, and ends when its standard input does, so that it never outlives the prober;
- the backend is made anew from its class without arguments: no state of the prober's backend is needed.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from licet.backend import Access, Backend, GuestError, Reply, Target, ToolCall, execute
from licet.probe.bare import CANARY
from licet.probe.order import Order

_START = """\
import json, sys
told = json.loads(sys.stdin.readline())
sys.path[:] = told['path']
from licet.probe.victim import main
main(told)
"""
_OUTPUT = 1 << 20
_CLOSE_S = 2.0


def start(backend: Backend, order: Order, secret: str, held: int) -> subprocess.Popen[bytes]:
    """Start a host process that runs `order`, with `secret` in a variable and the descriptor `held`."""
    kind = type(backend)
    told = {
        "path": sys.path,
        "module": kind.__module__,
        "file": getattr(sys.modules.get(kind.__module__), "__file__", None),
        "name": kind.__qualname__,
        "order": order.as_json(),
    }
    process = subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", _START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, CANARY: secret},
        pass_fds=(held,),
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(told).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass  # it is dead, and the end of its output says so
    return process


def main(told: Mapping[str, Any]) -> None:
    """Run what was told, say what came of it, and wait for the end."""
    channel = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever a backend prints is none of an answer
    ending = threading.Thread(target=_end_with_prober, daemon=True)
    ending.start()
    try:
        ended = asyncio.run(_run(_make(told), Order.from_json(told["order"]), channel))
    except Exception as problem:
        ended = f"raised {type(problem).__name__}: {problem}"
    _tell(channel, {"ended": ended})
    ending.join()  # the prober looks for what is left below


def _end_with_prober() -> None:
    while os.read(0, 1 << 10):
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
    backend: Backend = kind()
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


async def _run(backend: Backend, order: Order, channel: int) -> str:
    outcome = await execute(backend, order.plan(backend.describe()), _Relay(channel))
    try:
        async with asyncio.timeout(_CLOSE_S):
            await backend.close()
    except TimeoutError:
        return "raised TimeoutError: the backend did not close"
    code = outcome.exit_code
    return outcome.termination.value if code is None else f"{outcome.termination.value} {code}"


class _Relay:
    """A host that hands every output on and grants nothing."""

    def __init__(self, channel: int) -> None:
        self._channel = channel
        self._left = _OUTPUT

    def write(self, stream: Literal["stdout", "stderr"], data: bytes) -> bool:
        self._left -= len(data)
        _tell(self._channel, {"output": data.decode("latin-1")})
        return self._left >= 0

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
