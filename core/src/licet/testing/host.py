"""What the code of a test talks to: a host that keeps what it hears and grants what it was told to.

Rules this module keeps: output is kept whole up to its limit, since tests compare bytes; what comes after the
run was over is counted apart, since nothing may.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from licet.backend import Access, GuestError, Reply, Target, ToolCall
from licet.plan import Opened
from licet.surroundings import RealSurroundings


@dataclass
class RecordingHost(RealSurroundings):
    """A `Host` for tests.

    `output` is the limit after which `write` says False, in bytes. `on_write` hears of each write, from the
    thread that writes, before it is counted. `over` is set when the run has ended. `total` counts the bytes
    of both streams, `late` those that came when the run was over.
    """

    output: int = 16 << 20
    opened: Opened = field(default_factory=Opened)
    on_write: Callable[[bytes], None] = lambda data: None
    over: bool = False
    late: int = 0
    total: int = 0
    _kept: dict[str, bytearray] = field(
        default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()}
    )
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def write(self, stream: Literal["stdout", "stderr"], data: bytes) -> bool:
        """Keep output; False once the limit is passed."""
        self.on_write(data)
        with self._guard:
            self.total += len(data)
            if self.over:
                self.late += len(data)
            if self.total <= self.output:
                self._kept[stream] += data
            return self.total <= self.output

    async def call(self, call: ToolCall) -> Reply:
        """No tool is passed."""
        return Reply(error=GuestError("NameError", f"name '{call.name}' is not defined"))

    async def access(self, access: Access) -> bool:
        """Say whether the plan opens this."""
        return self.opened.opens(access.action, access.target)

    async def connect(self, target: Target) -> int:
        """Refuse.

        Raises:
            PermissionError: always.
        """
        raise PermissionError(f"`{target.host}:{target.port}` is not opened")

    @property
    def stdout(self) -> bytes:
        """What was kept of it."""
        return bytes(self._kept["stdout"])

    @property
    def stderr(self) -> bytes:
        """What was kept of it."""
        return bytes(self._kept["stderr"])
