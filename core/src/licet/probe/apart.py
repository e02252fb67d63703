"""One run of an attack from a host process of its own, seen from the prober.

Rules this module keeps: the host process and everything below it are gone at the end; a run that is not over
when its time is up is late, and is ended.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time

from licet.backend import Backend
from licet.probe import traces, victim
from licet.probe.attack import Attack, Proof, Scenario
from licet.probe.order import Order
from licet.probe.scene import Targets
from licet.probe.trial import Ear, Trial

SLACK = 2.0
"""Seconds that a run may be late: what a host may need to end it, on a busy machine."""

_START_S = 10.0
_OUTLIVE_S = 1.5


def run(backend: Backend, attack: Attack, order: Order, targets: Targets) -> Trial:
    """Run `order` from a process of its own; blocks."""
    held = os.open(targets.secret_file(), os.O_RDONLY)
    try:
        process = victim.start(backend, order, targets.secret, held)
    finally:
        os.close(held)
    watched: list[traces.Watched] = []
    try:
        return _Hearing(attack, targets, process, watched).trial()
    finally:
        watched.append(traces.Watched(traces.descendants(process.pid)))
        process.kill()
        for group in watched:
            group.kill()
            group.close()
        with process:
            pass


class _Hearing:
    """What the host process says, until it is over or late."""

    def __init__(
        self,
        attack: Attack,
        targets: Targets,
        process: subprocess.Popen[bytes],
        watched: list[traces.Watched],
    ) -> None:
        self._attack = attack
        self._targets = targets
        self._process = process
        self._watched = watched
        self._ear: Ear = targets.ear()
        self._ended = "host died"
        self._rest = b""
        self._sighted = False
        self._began = time.monotonic()

    def trial(self) -> Trial:
        alive = self._hear()
        took = time.monotonic() - self._began
        if Proof.alive in self._attack.proofs and not alive:
            alive = self._left() or traces.outlived(self._targets.token, _OUTLIVE_S)
        ear = self._ear
        observed = self._ended if self._ended == "host killed" else ear.observed(self._ended)
        return Trial(
            observed=observed,
            answered=ear.answered,
            output=ear.output,
            took=took,
            delivered=ear.delivered,
            ready=ear.ready,
            alive=alive,
            sighted=self._sighted,
            struck=self._targets.struck(),
        )

    def _hear(self) -> bool:
        """Listen to the end; whether something outlived the host, if it was killed."""
        assert self._process.stdout is not None
        until = self._began + _START_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            started = False
            while (left := until - time.monotonic()) > 0:
                if not selector.select(left):
                    break
                data = os.read(self._process.stdout.fileno(), 1 << 16)
                if not data or self._over(data):
                    return False
                if not started and self._ear.delivered:
                    started, self._began = True, time.monotonic()
                    until = self._began + max(self._attack.patience, self._attack.wall_time) + SLACK + 0.5
                if self._ear.ready and not self._sighted:
                    self._sight()
                    if self._attack.scenario is Scenario.orphaned:
                        return self._kill_host()
        self._ended = "left behind"
        return False

    def _over(self, data: bytes) -> bool:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            content = json.loads(line)
            if "ended" in content:
                self._ended = content["ended"]
                return True
            self._ear.write("stdout", content["output"].encode("latin-1"))
        return False

    def _sight(self) -> None:
        pids = sorted({*traces.descendants(self._process.pid), *traces.living(self._targets.token)})
        self._sighted = bool(pids)
        self._watched.append(traces.Watched(pids))

    def _left(self) -> bool:
        """Whether anything lives on below the host, which has closed its backend."""
        below = traces.Watched(traces.descendants(self._process.pid))
        self._watched.append(below)
        return below.outlive(_OUTLIVE_S)

    def _kill_host(self) -> bool:
        self._process.kill()
        self._process.wait()
        self._ended = "host killed"
        return self._watched[-1].outlive(_OUTLIVE_S)
