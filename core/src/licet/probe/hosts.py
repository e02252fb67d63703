"""Where host processes of their own come from, seen from the prober; POSIX.

Rules this module keeps: one process makes all hosts, and ends with the scene; a host that is asked for while
it still starts waits in its queue.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from pathlib import Path

from licet.backend import Backend
from licet.probe.identity import description, replaceable
from licet.probe.order import Order

_WORDS = ("STORE", "REGION", "STAGE", "CLUSTER", "BATCH", "LEDGER", "QUEUE", "DEPOT")
_START = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from licet.probe.victim import serve
serve(0)
"""


class Hosts:
    """Makes host processes, all of which hold `secret` in `variable`, whose name no filter can know."""

    def __init__(self) -> None:
        self.secret = f"secret-{secrets.token_hex(8)}"
        self.variable = f"{secrets.choice(_WORDS)}_{secrets.choice(_WORDS)}_{secrets.token_hex(2).upper()}"
        self._guard = threading.Lock()
        self._orders: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._closed = False

    def start(self) -> None:
        """Have the process that makes hosts start now, so that nobody waits for it later."""
        with self._guard:
            self._started()

    def ask(self, backend: Backend, order: Order, holds: Path) -> socket.socket:
        """Have a host run `order`, with the file `holds` open; it speaks over the socket and ends with it.

        Raises:
            OSError: no host can be made, or none is made any more.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs, self._guard:
                socket.send_fds(self._started(), [b"x"], [theirs.fileno()])
            ours.sendall(json.dumps(_told(backend, order, holds)).encode() + b"\n")
        except BaseException:
            ours.close()
            raise
        return ours

    def close(self) -> None:
        """End the process that makes hosts; each host ends with its own socket."""
        with self._guard:
            self._closed = True
            self._end()

    def _started(self) -> socket.socket:
        if self._closed:
            raise ConnectionAbortedError("no host is made any more")
        if self._orders is None or self._server is None or self._server.poll() is not None:
            self._end()
            self._orders, theirs = socket.socketpair()
            with theirs:
                self._server = subprocess.Popen(
                    [sys.executable, "-I", "-B", "-c", _START, json.dumps([*map(str, sys.path)])],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,  # whatever a backend prints is none of an answer
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, self.variable: self.secret},
                    start_new_session=True,
                )
        return self._orders

    def _end(self) -> None:
        if self._orders is not None:
            self._orders.close()
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        self._orders = self._server = None


def _told(backend: Backend, order: Order, holds: Path) -> dict[str, object]:
    kind = type(backend)
    descriptor = backend.describe()
    return {
        "description": description(descriptor),
        "replaceable": replaceable(kind, descriptor),
        "module": kind.__module__,
        "file": getattr(sys.modules.get(kind.__module__), "__file__", None),
        "name": kind.__qualname__,
        "order": order.as_json(),
        "holds": str(holds),
    }
