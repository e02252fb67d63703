"""One run of an attack from a host process of its own, seen from the prober.

Rules this module keeps: the host process and everything below it are gone at the end; a run that is not over
when its time is up is late, and is ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading

from licet.backend import Backend
from licet.probe import traces
from licet.probe.attack import Attack, Proof, Scenario
from licet.probe.hosts import Hosts
from licet.probe.listening import listen
from licet.probe.order import Order
from licet.probe.targets import Targets
from licet.probe.trial import LEAVE_AFTER_S, OUTLIVE_S, START_S, Ear, Trial


def run(hosts: Hosts, backend: Backend, attack: Attack, order: Order, targets: Targets) -> Trial:
    """Run `order` from a process of its own; blocks."""
    with contextlib.ExitStack() as stack:
        channel = stack.enter_context(hosts.ask(backend, order, targets.secret_file()))
        hearing = _Hearing(attack, targets, channel)
        stack.callback(hearing.end)
        return hearing.trial()


class _Hearing:
    """What the host process says, until it is over or late."""

    def __init__(self, attack: Attack, targets: Targets, channel: socket.socket) -> None:
        self._attack = attack
        self._targets = targets
        self._host = 0
        self._watched: list[traces.Watched] = []
        self._ended = "host died"
        self._took: float | None = None
        self._rest = b""
        self._sighted = False
        self._heard = threading.Event()
        self._ready = threading.Event()
        self._told = threading.Event()
        self._over = threading.Event()
        self._ear: Ear = targets.ear(on_first=self._heard.set, on_ready=self._on_ready)
        self._channel = channel
        listen(channel.fileno(), self._take, self._heard, self._ready, self._told, self._over)

    def trial(self) -> Trial:
        """Hear it to its end, or until its time is up."""
        self._heard.wait(START_S)
        alive = False
        if self._attack.scenario in (Scenario.orphaned, Scenario.terminated):
            self._ready.wait(self._attack.wall_time + LEAVE_AFTER_S)
            if self._ear.ready and not self._told.is_set():
                alive = self._end_host()
        elif not self._told.wait(max(self._attack.patience, self._attack.wall_time) + LEAVE_AFTER_S):
            self._ended = "left behind"
        took = self._ear.lasting if self._took is None else self._took
        if Proof.alive in self._attack.proofs and not alive:
            alive = self._left() or traces.outlived(self._targets.token, OUTLIVE_S)
        return self._ear.trial(
            self._attack,
            self._targets.struck,
            self._ended,
            took=took,
            alive=alive,
            sighted=self._sighted,
        )

    def end(self) -> None:
        """End the host and everything that was ever seen below it."""
        self._watch(traces.descendants(self._host) if self._host else [])
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._over.wait()  # nothing is watched any more than is watched now
        for group in self._watched:
            group.kill()
            group.close()

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            content = json.loads(line)
            if "host" in content:
                self._host = content["host"]
                self._watch([self._host])
            elif "output" in content:
                self._ear.write("stdout", content["output"].encode("latin-1"))
            else:
                self._ended, self._took = content["ended"], content["took"]
                for event in (self._told, self._ready, self._heard):
                    event.set()

    def _on_ready(self) -> None:
        pids = sorted({*traces.descendants(self._host), *traces.living(self._targets.token)})
        self._sighted = bool(pids)
        self._watch(pids)
        self._ready.set()

    def _watch(self, pids: list[int]) -> traces.Watched:
        watched = traces.Watched(pids)
        self._watched.append(watched)
        return watched

    def _left(self) -> bool:
        """Whether anything lives on below the host, which has closed its backend."""
        return self._watch(traces.descendants(self._host)).outlive(OUTLIVE_S)

    def _end_host(self) -> bool:
        """End the host; whether something outlives it of what was seen below it."""
        below = self._watched[-1]
        if self._attack.scenario is Scenario.terminated:
            os.killpg(self._host, signal.SIGTERM)  # as a terminal or a service manager does
        else:
            os.kill(self._host, signal.SIGKILL)
        self._ended = "host killed"
        return below.outlive(OUTLIVE_S)
