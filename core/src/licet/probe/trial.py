"""What one run of an attack's program did, behind walls or without: seen the same way, judged the same way.

Rules this module keeps:

- whatever the program prints is bounded; only lines of stdout that begin with the marker of this very run are
  heard;
- `observed` is exact: an exception with its errno or its message, `done`, or how the run ended;
- an attack got through, or its twin did, by one and the same test.
"""

from __future__ import annotations

import errno
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from licet.backend import Access, GuestError, Outcome, Reply, Target, ToolCall
from licet.output import BoundedSink, bounded
from licet.plan import Opened
from licet.probe.attack import Attack, Proof
from licet.surroundings import RealSurroundings

KEPT = 1 << 17
NOT_RUN = ("raised ", "not tried: ", "host died")
"""How `observed` begins where the fault is that of the backend, or of the host: nothing is said of a wall."""
START_S = 15.0
"""Seconds that a program may take to say its first word."""
SLACK = 2.0
"""Seconds that a run may be late: what a host may need to end it."""
LEAVE_AFTER_S = 4.0
"""Seconds after which a run that is late is left behind: what stays has said so by then."""
OUTLIVE_S = 3.0
"""Seconds for which a process that outlives its run is given time to go."""
MOST_GROWTH = 64 << 20
"""Bytes that the host's memory may grow by while a run floods it."""

_FLOOD = 4 << 20
_ERRNO = re.compile(r"\[Errno (\d{1,3})\]")
_WINDOWS = re.compile(r"\[(WinError \d{1,5})\]")


def ending(outcome: Outcome) -> str:
    """How a run ended that said nothing itself: its termination, and the exit code if there is one."""
    code = outcome.exit_code
    return outcome.termination.value if code is None else f"{outcome.termination.value} {code}"


def raised(problem: BaseException) -> str:
    """How a run ended whose backend failed."""
    return f"raised {type(problem).__name__}: {problem}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a program.

    `answered`: the allowed act worked. `took`: seconds since the program was first heard, or cancelled, by
    the clock of the run's own host. `pressed`: the machine did not keep pace meanwhile.
    `delivered`: bytes of output that arrived. `growth`: bytes by which the host's memory grew. `ready`: the
    program said that it is. `alive`: a process of the run outlived it. `sighted`: the host can see processes
    of the run. `struck`: a target shows the blow.
    """

    observed: str
    answered: bool = False
    output: str = ""
    took: float = 0.0
    delivered: int = 0
    growth: int = 0
    ready: bool = False
    alive: bool = False
    sighted: bool = False
    struck: bool = False
    pressed: bool = False


def got_through(attack: Attack, trial: Trial, text: str, patience: float) -> bool:
    """Whether a trial shows what the attack wants: its `text`, or a run longer than `patience`, or …

    On a machine that did not keep pace, time shows nothing: neither how long a run took, nor how much more it
    wrote before it was stopped.
    """
    stopped_late = trial.pressed and trial.observed in attack.held_by
    tests = {
        Proof.done: trial.observed == "done",
        Proof.text: bool(text) and text in trial.output,
        Proof.struck: trial.struck,
        Proof.alive: trial.alive,
        Proof.overstayed: trial.took > patience and not trial.pressed,
        Proof.flooded: trial.growth > MOST_GROWTH
        or (trial.delivered > attack.limits.get("output", 0) + _FLOOD and not stopped_late),
    }
    return any(tests[proof] for proof in attack.proofs)


class Ear(RealSurroundings):
    """The host of a probe: hears what the program says, and grants what the plan opens and no more.

    `began` is when the program was first heard, on the monotonic clock: what a run waited for before that, a
    free worker for instance, is not its own.
    """

    def __init__(
        self,
        say: str,
        *,
        answer: int,
        opened: Opened | None = None,
        output: int | None = None,
        on_first: Callable[[], None] = lambda: None,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self._say = say
        self._answer = answer
        self._opened = opened or Opened()
        self._output = output
        self._on_first = on_first
        self._on_ready = on_ready
        self._sinks = {"stdout": BoundedSink(KEPT), "stderr": BoundedSink(KEPT)}
        self._line = b""
        self._guard = threading.Lock()
        self.ready = False
        self.began: float | None = None

    def write(self, stream: Literal["stdout", "stderr"], data: bytes) -> bool:
        """Take output, from any thread; False once the limit `output` is passed."""
        with self._guard:
            if self.began is None:
                self.began = time.monotonic()
                self._on_first()
            self._sinks[stream].write(data)
            if stream == "stdout":
                self._listen(data)
            return self._output is None or self.delivered <= self._output

    def _listen(self, data: bytes) -> None:
        if not self.ready and f"{self._say} ready".encode() in self._line + data:
            self.ready = True
            self._on_ready()
        self._line = data[-100:]

    async def access(self, access: Access) -> bool:
        """Say whether the plan opens this."""
        return self._opened.opens(access.action, access.target)

    async def call(self, call: ToolCall) -> Reply:
        """No tool is passed to a probe."""
        return Reply(error=GuestError("NameError", f"name '{call.name}' is not defined"))

    async def connect(self, target: Target) -> int:
        """Connect where the plan says so.

        Raises:
            PermissionError: the plan does not open the target.
        """
        import asyncio
        import socket

        if not self._opened.opens("network", f"{target.host}:{target.port}"):
            raise PermissionError(f"`{target.host}:{target.port}` is not opened")
        connection = await asyncio.to_thread(socket.create_connection, (target.host, target.port), 2)
        return connection.detach()

    @property
    def delivered(self) -> int:
        """Bytes of output so far."""
        return sum(sink.total for sink in self._sinks.values())

    @property
    def output(self) -> str:
        """What was kept of the output."""
        return "\n".join(sink.text() for sink in self._sinks.values())

    @property
    def lasting(self) -> float:
        """Seconds since the first word."""
        return 0.0 if self.began is None else time.monotonic() - self.began

    @property
    def answered(self) -> bool:
        """Whether the allowed act worked: only code that ran can know the answer."""
        return f"allowed {self._answer}" in self._said()

    def observed(self, ended: str) -> str:
        """What stopped the program, or `done`; where it said nothing, how its run `ended`."""
        for line in self._said():
            word, _, rest = line.partition(" ")
            if word == "done":
                return "done"
            if word == "refused":
                return _exact(rest)
        return ended

    def trial(
        self,
        attack: Attack,
        struck: Callable[..., bool],
        ended: str,
        *,
        took: float,
        growth: int = 0,
        alive: bool = False,
        sighted: bool = False,
    ) -> Trial:
        """What was heard, and seen beside it, of a run that `ended` so; `struck` looks at its targets."""
        observed = self.observed(ended)
        return Trial(
            observed=observed,
            answered=self.answered,
            output=self.output,
            took=took,
            delivered=self.delivered,
            growth=growth,
            ready=self.ready,
            alive=alive,
            sighted=sighted,
            struck=struck(expected=observed == "done" and Proof.struck in attack.proofs),
        )

    def _said(self) -> list[str]:
        lines = self._sinks["stdout"].text().splitlines()
        return [line.removeprefix(self._say).strip() for line in lines if line.startswith(self._say)]


def _exact(told: str) -> str:
    """`Type ERRNO` or `Type WinError N` for an error of the system, else `Type: message`."""
    kind, _, message = told.partition(" ")
    of_windows = _WINDOWS.match(message)
    if of_windows is not None:
        return f"{kind} {of_windows[1]}"
    number = _ERRNO.match(message)
    if number is not None:
        return f"{kind} {errno.errorcode.get(int(number[1]), number[1])}"
    return bounded(f"{kind}: {message.strip()}" if message.strip() else kind, 200)
