"""Kills hosts of jails at random moments, and looks what they have left. Run by itself: it reaps orphans.

`python killed.py FOLDER FIRST LAST PATIENCE [careless]`: for each seed a host that has runs in jails is
started and killed; what it has started is inherited by this process, which waits for the end of it, for so
many seconds. Prints what was left, by seed. A `careless` host starts a process and makes a folder that
nothing ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from licet.supervise.cgroups import look, sweep
from licet.supervise.cgroups.folder import PREFIX

SUBREAPER = 36
HOST = """\
import itertools, sys, threading
from licet import supervise
from licet.supervise.jail import Jail, JailLauncher, needs

CODE = '''
import os, time
open('/tmp/file', 'w').write('x' * 10000)
open('kept', 'w').write('x' * 10000)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
os.wait()
time.sleep(0.002)
'''
folder, launcher = sys.argv[1], JailLauncher()
jail = Jail(needs=needs(), workdir=folder, read=(folder,), write=(folder,))

def work(turns):
    for turn in turns:
        spec = supervise.Spec(
            supervise.Snippet(CODE), workdir=folder, interpreter=needs().program, jail=jail,
            wall_time=20.0, warm=turn % 3 != 0,
        )
        supervise.run_blocking(spec, lambda stream, data: True, None, launcher).drop()

print('begun', flush=True)
for _ in range(2):
    threading.Thread(target=work, args=(itertools.count(),)).start()
"""


CARELESS = """\
import subprocess, tempfile
subprocess.Popen(['sleep', '60'], start_new_session=True)
tempfile.mkdtemp()
"""


def one(folder: Path, seed: int, patience: int, *, careless: bool) -> list[str]:
    """What a host left that was killed at the moment which `seed` says."""
    before = Path("/proc/self/mountinfo").read_text(), sorted(os.listdir(folder / "temporary"))
    environment = {**os.environ, "TMPDIR": str(folder / "temporary")}
    command = [sys.executable, "-c", (CARELESS if careless else "") + HOST, str(folder / "opened")]
    host = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    assert host.stdout is not None
    host.stdout.readline()
    time.sleep(random.Random(seed).uniform(0, 0.4))  # a random moment: there is nothing to wait for
    running = host.poll() is None
    host.kill()
    host.wait()
    host.stdout.close()
    left = [] if running else ["the host ended by itself"]
    left += [f"the process {process}" for process in _inherited(patience)]
    sweep()
    for base in look().bases():
        left += [f"{base}/{name}" for name in os.listdir(base) if name.startswith(f"{PREFIX}{host.pid}-")]
    if Path("/proc/self/mountinfo").read_text() != before[0]:
        left.append("a mount")
    if sorted(os.listdir(folder / "temporary")) != before[1]:
        left.append("temporary files")
    return left


def _inherited(patience: int) -> list[str]:
    """Wait until what was inherited is gone; say what is not in good time."""
    signal.alarm(patience)
    try:
        while True:
            os.wait()
    except ChildProcessError:
        return []
    except TimeoutError:
        return _end_children()
    finally:
        signal.alarm(0)


def _end_children() -> list[str]:
    """End what is still there, and say what it is."""
    found = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
    names = [Path("/proc", process, "comm").read_text().strip() for process in found]
    for process in found:
        os.kill(int(process), signal.SIGKILL)
        os.waitpid(int(process), 0)
    return names


def _late(number: int, frame: object) -> None:
    raise TimeoutError


def main() -> None:
    folder, (first, last, patience) = Path(sys.argv[1]), map(int, sys.argv[2:5])
    careless = sys.argv[5:] == ["careless"]
    assert ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0) == 0
    signal.signal(signal.SIGALRM, _late)
    for name in ("opened", "temporary"):
        (folder / name).mkdir(exist_ok=True)
    found = {seed: one(folder, seed, patience, careless=careless) for seed in range(first, last)}
    print(json.dumps({"killed": len(found), "left": {seed: left for seed, left in found.items() if left}}))


if __name__ == "__main__":
    main()
