"""Processes that put themselves into a control group, and hosts whose groups are left behind, for tests."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from licet.supervise.cgroups import Group, Groups, Home, Resource, look

here = pytest.mark.skipif(
    set(Resource) - look().places.keys() != set(),
    reason="; ".join(f"no group for {name}: {why.reason}" for name, why in look().missing.items()),
)
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can hand groups to another user"
)

NOBODY = 65534
SOURCE = Path(__file__).parents[1] / "src"
ENTER = """\
import os, sys
for number in sys.argv[1].split(","):
    os.write(int(number), b"0")
    os.close(int(number))
"""


def start(group: Group, code: str) -> subprocess.Popen[str]:
    """Start `code` in `group`: it enters by itself, before anything else."""
    entrances = group.descriptors
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", ENTER + code, ",".join(map(str, entrances))],
        pass_fds=entrances,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(group: Group, code: str) -> tuple[int, str]:
    """The exit code of `code` in `group`, and what it printed."""
    process = start(group, code)
    printed, _ = process.communicate(timeout=60)
    return process.returncode, printed


def apart(act: Callable[[], str]) -> str:
    """What `act` says in a fork of this process, which may change itself as it likes."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = act()
        except BaseException as problem:
            said = f"{type(problem).__name__}: {problem}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return said


def drop() -> None:
    """Become an ordinary user for good."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def told(groups: Groups) -> str:
    """What was found out, a line for each resource."""
    lines = [f"{name}: v{place.version} {place.folder}" for name, place in groups.places.items()]
    lines += [f"{name}: {why.reason}; {why.advice}" for name, why in groups.missing.items()]
    return "\n".join(lines)


def own_folders(groups: Groups) -> list[str]:
    """The folders of ours that are there now, of whichever process."""
    return sorted(
        os.path.join(base, name)
        for base in groups.bases()
        for name in os.listdir(base)
        if name.startswith("licet-")
    )


def folders_of(home: Home) -> list[str]:
    """Where a home has its folders."""
    return [os.path.join(place.folder, folder.name) for place, _, folder in home._rooms]


def call(name: str, *arguments: object) -> int:
    """Call a function of the C library.

    Raises:
        OSError: it failed.
    """
    library = ctypes.CDLL(None, use_errno=True)
    result: int = getattr(library, name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
