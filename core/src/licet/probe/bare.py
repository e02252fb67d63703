"""The twin of an attack: the same program without walls, which must succeed.

Rules this module keeps:

- the program is the very text that a sandbox gets; only limits of the host's own safety are put before it;
- it is ended by its deadline at the latest, and nothing of it stays, whatever happens.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from licet.probe import traces
from licet.probe.attack import ENDS_EARLY, Attack, Proof, Scenario
from licet.probe.listening import listen
from licet.probe.targets import Targets
from licet.probe.trial import START_S, Ear, Trial

FLAGS = ("-I", "-S", "-B")
_MARGIN = 0.1  # seconds by which a twin has to overstay
_OUTLIVE = 0.1
_POSIX = os.name == "posix"
_HOSTS: Mapping[str, str] = {} if _POSIX else dict(os.environ)
"""Variables of the host that a twin gets: nothing starts without some of them on Windows."""
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
    """Run `program`, the filled text of a twin; blocks, for a minute at most."""
    heard, ready, over = threading.Event(), threading.Event(), threading.Event()
    ear = targets.ear(on_first=heard.set, on_ready=ready.set)
    with _started(attack, targets, program) as process:
        assert process.stdout is not None
        listen(process.stdout.fileno(), lambda data: ear.write("stdout", data), heard, ready, over)
        took = _wait(attack, ear, heard, ready, over)
        process.kill()
        process.wait()
        time.sleep(attack.aftermath)
        alive = Proof.alive in attack.proofs and traces.outlived(targets.token, _OUTLIVE)
    return ear.trial(attack, targets.struck, "ended", took=took, alive=alive, sighted=alive)


def _wait(
    attack: Attack, ear: Ear, heard: threading.Event, ready: threading.Event, over: threading.Event
) -> float:
    """Wait until the program has shown what it can; return for how long it ran on after it was to end."""
    heard.wait(START_S)
    if attack.scenario in ENDS_EARLY:
        ready.wait(attack.wall_time)
        began = time.monotonic()
        over.wait(_MARGIN)
        return time.monotonic() - began
    over.wait(attack.twin_shows + _MARGIN if Proof.overstayed in attack.proofs else attack.wall_time)
    return ear.lasting


@contextmanager
def _started(attack: Attack, targets: Targets, program: str) -> Iterator[subprocess.Popen[bytes]]:
    bounded = _BOUNDS + program if _POSIX else program
    command = [sys.executable, *FLAGS, "-c", bounded]
    environment = {**_HOSTS, traces.VARIABLE: targets.token}
    with contextlib.ExitStack() as stack:
        held: tuple[int, ...] = ()
        if attack.host_apart:
            hidden = targets.variable if attack.clean_twin else ""
            command = [sys.executable, *FLAGS, "-c", _LAUNCHER, hidden, bounded, *FLAGS]
            environment[targets.variable] = targets.secret
            held = (stack.enter_context(targets.secret_file().open("rb")).fileno(),)
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # open and silent
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd="/",
            pass_fds=held if _POSIX else (),
            start_new_session=_POSIX,
        )
        try:
            yield process
        finally:
            process.kill()
            if Proof.alive in attack.proofs:  # others end by themselves, or with the scene
                traces.sweep(targets.token)
            with process:  # closes its pipes
                pass
