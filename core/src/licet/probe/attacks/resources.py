"""Processor time, memory and disk beyond a stated limit: dropped limits show here."""

from __future__ import annotations

from licet.contract import Control
from licet.plan import Opened
from licet.probe.attack import Attack, Proof
from licet.probe.attacks.shared import ON_LINUX, ON_POSIX, STAYED, STAYED_TEXT, no_os

CPU = (
    Attack(
        Control.cpu_time_limit,
        "busy",
        "use more than a second of processor time where half a second is permitted",
        act=f"""\
import time
end = time.monotonic() + 15  # for a language that does not tell how much it has used
while time.process_time() < 1.2 and time.monotonic() < end:
    pass
if time.process_time() >= 1.2:
    {STAYED}""",
        held_by=("cpu_limit",),
        proofs=(Proof.text, Proof.overstayed),
        text=STAYED_TEXT,
        limits={"cpu_time": 0.5, "wall_time": 20.0},
        patience=10.0,
        quick=True,
    ),
    Attack(
        Control.cpu_time_limit,
        "tree",
        "use the whole limit in each of two processes, one after the other",
        act="""\
import os
fork = os.fork
import time
for _ in range(2):
    child = fork()
    if child == 0:
        while time.process_time() < 0.6:
            pass
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError('a child was ended')
""",
        held_by=("cpu_limit", "RuntimeError: a child was ended"),
        inexpressible=no_os("fork"),
        limits={"cpu_time": 1.0, "wall_time": 20.0},
        needs=ON_POSIX,
        partial_may_leak=True,
    ),
)

_MEMORY = {"memory": 128 << 20}

MEMORY = (
    Attack(
        Control.memory_limit,
        "single",
        "use 256 MiB where 128 MiB are permitted",
        act="blocks = []\nfor _ in range(256):\n    blocks.append(b'x' * 1048576)",
        held_by=("memory_limit", "MemoryError"),
        limits=_MEMORY,
        quick=True,
    ),
    Attack(
        Control.memory_limit,
        "mapped",
        "map 256 MiB past the allocator of the language",
        act="""\
import os
fork = os.fork
import mmap
room = mmap.mmap(-1, 268435456)
for place in range(0, 268435456, 4096):
    room[place] = 1
""",
        held_by=("memory_limit", "MemoryError", "OSError ENOMEM"),
        inexpressible=no_os("fork"),
        limits=_MEMORY,
        needs=ON_POSIX,
    ),
    Attack(
        Control.memory_limit,
        "file_in_memory",
        "keep 192 MiB in a file that is in memory alone",
        act="""\
import os
make = os.memfd_create
file = make('large')
for _ in range(192):
    os.write(file, b'x' * 1048576)
""",
        held_by=("memory_limit", "OSError ENOMEM", "OSError EFBIG", "file_limit"),
        inexpressible=no_os("memfd_create"),
        limits=_MEMORY,
        needs=ON_LINUX,
        partial_may_leak=True,
    ),
    Attack(
        Control.memory_limit,
        "tree",
        "use 64 MiB in each of four processes where 128 MiB are permitted",
        act="""\
import os
fork = os.fork
ready, told = os.pipe()
go, release = os.pipe()
children = []
for _ in range(4):
    child = fork()
    if child == 0:
        os.close(release)
        block = b'x' * 67108864
        os.write(told, b'x')
        os.read(go, 1)
        os._exit(0)
    children.append(child)
os.close(told)
count = 0
while count < 4:
    piece = os.read(ready, 4)
    if not piece:
        raise RuntimeError('a child was ended')
    count += len(piece)
os.close(release)
for child in children:
    os.waitpid(child, 0)
""",
        held_by=("memory_limit", "RuntimeError: a child was ended"),
        inexpressible=no_os("fork"),
        limits=_MEMORY,
        needs=ON_POSIX,
        partial_may_leak=True,
    ),
)

_DISK = {"files": 1 << 20}
_FULL = ("OSError ENOSPC", "OSError EFBIG", "OSError EDQUOT", "file_limit")
_UNOPENED = ("PermissionError EACCES",)
_WORK = Opened(read=("{WORK}",), write=("{WORK}",))

DISK = (
    Attack(
        Control.filesystem_bytes_limit,
        "one_file",
        "write 8 MiB into one file where 1 MiB is permitted",
        act="""\
file = open('{WORK}/large', 'w')
for _ in range(128):
    file.write('x' * 65536)
file.close()
""",
        held_by=_FULL,
        inexpressible=_UNOPENED,
        limits=_DISK,
        opens=_WORK,
        quick=True,
    ),
    Attack(
        Control.filesystem_bytes_limit,
        "many_files",
        "write 8 MiB into 64 files where 1 MiB is permitted",
        act="""\
for number in range(64):
    file = open('{WORK}/part' + str(number), 'w')
    file.write('x' * 131072)
    file.close()
""",
        held_by=_FULL,
        inexpressible=_UNOPENED,
        limits=_DISK,
        opens=_WORK,
    ),
    Attack(
        Control.filesystem_bytes_limit,
        "reserved",
        "reserve 8 MiB without writing them where 1 MiB is permitted",
        act="""\
import os
reserve = os.posix_fallocate
file = open('{WORK}/reserved', 'wb')
reserve(file.fileno(), 0, 8388608)
file.close()
""",
        held_by=_FULL,
        inexpressible=(*_UNOPENED, *no_os("posix_fallocate")),
        limits=_DISK,
        opens=_WORK,
        needs=ON_LINUX,
    ),
)
