"""The twin of an attack: the same program without walls, which must succeed.

Rules this module keeps:

- the program is the very text that a sandbox gets; only limits of the host's own safety are put before it;
- it is ended by its deadline at the latest, and nothing of it stays, whatever happens.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from licet.probe import traces
from licet.probe.attack import Attack, Proof, Scenario
from licet.probe.scene import Targets
from licet.probe.trial import Ear, Trial

FLAGS = ("-I", "-S", "-B")
CANARY = "LICET_CANARY"
_MARGIN = 0.1  # seconds by which a twin has to overstay
_OUTLIVE = 0.1
_BOUNDS = """\
import resource
for _kind, _most in ((resource.RLIMIT_AS, 1 << 30), (resource.RLIMIT_CPU, 10), (resource.RLIMIT_CORE, 0),
                     (resource.RLIMIT_FSIZE, 1 << 28)):
    resource.setrlimit(_kind, (_most, _most))
"""
_LAUNCHER = """\
import os, subprocess, sys
environment = dict(os.environ)
environment.pop(sys.argv[1], None)
subprocess.run([sys.executable, *sys.argv[3:], '-c', sys.argv[2]], env=environment, close_fds=False)
"""


def text(attack: Attack) -> str:
    """The program of the twin: where a run comes after another, one interpreter does both."""
    program = attack.program()
    return f"{attack.prior}\n{program}" if attack.scenario is Scenario.after_prior else program


def run(attack: Attack, targets: Targets, program: str) -> Trial:
    """Run `program`, the filled text of a twin; blocks, for ten seconds at most."""
    ear = targets.ear()
    with _started(attack, targets, program) as process:
        began = _listen(attack, process, ear)
        took = time.monotonic() - began
        process.kill()
        process.wait()
        alive = Proof.alive in attack.proofs and traces.outlived(targets.token, _OUTLIVE)
    return Trial(
        observed=ear.observed("ended"),
        answered=ear.answered,
        output=ear.output,
        took=took,
        delivered=ear.delivered,
        ready=ear.ready,
        alive=alive,
        sighted=alive,
        struck=targets.struck(),
    )


@contextmanager
def _started(attack: Attack, targets: Targets, program: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, *FLAGS, "-c", _BOUNDS + program]
    environment = {traces.VARIABLE: targets.token}
    with contextlib.ExitStack() as stack:
        held: tuple[int, ...] = ()
        if attack.host_apart:
            hidden = CANARY if attack.clean_twin else ""
            command = [sys.executable, *FLAGS, "-c", _LAUNCHER, hidden, _BOUNDS + program, *FLAGS]
            environment[CANARY] = targets.secret
            held = (stack.enter_context(targets.secret_file().open("rb")).fileno(),)
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # open and silent
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd="/",
            pass_fds=held,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.kill()
            traces.sweep(targets.token)
            with process:  # closes its pipes
                pass


def _listen(attack: Attack, process: subprocess.Popen[bytes], ear: Ear) -> float:
    """Hear the program until it has shown what it can; return since when it was not to run any more."""
    began = time.monotonic()
    waits = attack.scenario in (Scenario.cancelled, Scenario.orphaned)
    until = began + (attack.twin_shows + _MARGIN if Proof.overstayed in attack.proofs else attack.wall_time)
    if waits:
        until = began + attack.wall_time
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := until - time.monotonic()) > 0:
            if not selector.select(left):
                continue
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                break
            ear.write("stdout", data)
            if waits and ear.ready:
                waits, began = False, time.monotonic()
                until = began + _MARGIN
    return began
