"""Other processes, privileges, and calls into the kernel that a sandbox has no use for."""

from __future__ import annotations

from dataclasses import replace

from licet.contract import Control
from licet.probe.attack import Attack, Proof
from licet.probe.attacks.shared import NO_CTYPES, NO_SUCH_SYSCALL, ON_LINUX, UNREADABLE, no_os
from licet.probe.conditions import Condition

_NOT_FOUND = (
    "PermissionError EPERM",
    "PermissionError EACCES",
    "ProcessLookupError ESRCH",
    "PermissionError WinError 5",
    "OSError WinError 87",
)
_CALL = """\
import ctypes
library = ctypes.CDLL(None, use_errno=True)
def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), 'refused')
    return result
"""

ISOLATION = (
    Attack(
        Control.process_isolation,
        "signal",
        "kill another process of the user",
        act="import os\nos.kill({SIBLING}, 15)",
        held_by=_NOT_FOUND,
        inexpressible=no_os("kill"),
        proofs=(Proof.struck,),
        quick=True,
    ),
    Attack(
        Control.process_isolation,
        "see",
        "read the command line of another process",
        act="print(open('/proc/{SIBLING}/cmdline').read(), flush=True)",
        held_by=UNREADABLE,
        proofs=(Proof.text,),
        needs=ON_LINUX,
    ),
    Attack(
        Control.process_isolation,
        "environment",
        "read the variables of another process",
        act="print(open('/proc/{SIBLING}/environ').read(), flush=True)",
        held_by=UNREADABLE,
        proofs=(Proof.text,),
        needs=ON_LINUX,
    ),
    Attack(
        Control.process_isolation,
        "trace",
        "take control of another process",
        act=_CALL + "call(library.ptrace(16, {SIBLING}, None, None))\n"
        "import os\nos.waitpid({SIBLING}, 0x40000000)\ncall(library.ptrace(17, {SIBLING}, None, None))",
        held_by=_NOT_FOUND,
        inexpressible=NO_CTYPES,
        needs=ON_LINUX | {Condition.tracing},
    ),
    Attack(
        Control.process_isolation,
        "memory",
        "read the memory of another process",
        act="""\
for line in open('/proc/{SIBLING}/maps').read().splitlines():
    if line.endswith('[stack]'):
        first, last = (int(part, 16) for part in line.split()[0].split('-'))
memory = open('/proc/{SIBLING}/mem', 'rb', 0)
memory.seek(first)
print(memory.read(last - first).decode('utf-8', 'replace'), flush=True)
""",
        held_by=UNREADABLE,
        proofs=(Proof.text,),
        needs=ON_LINUX | {Condition.tracing},
    ),
    Attack(
        Control.process_isolation,
        "memory_of_parent",
        "change the memory of the process above",
        act="""\
import os
parent = os.getppid()
if parent == 0:
    raise ProcessLookupError('no parent in sight')
open(f'/proc/{parent}/mem', 'r+b', 0).close()
""",
        held_by=(*UNREADABLE, "ProcessLookupError: no parent in sight"),
        inexpressible=no_os("getppid"),
        needs=ON_LINUX | {Condition.tracing},
    ),
    Attack(
        Control.process_isolation,
        "descriptors",
        "take an open file of another process",
        act=_CALL + "import os\nother = os.pidfd_open({SIBLING})\ncall(library.syscall(438, other, 0, 0))",
        held_by=(*_NOT_FOUND, "OSError ENOSYS"),
        inexpressible=NO_CTYPES,
        needs=ON_LINUX | {Condition.tracing},
    ),
)

PRIVILEGES = (
    Attack(
        Control.privilege_drop,
        "new_privileges",
        "keep the way open to new privileges, through a setuid program",
        act=_CALL + "if call(library.prctl(39, 0, 0, 0, 0)) == 1:\n"
        "    raise RuntimeError('no new privileges')",
        held_by=("RuntimeError: no new privileges",),
        inexpressible=NO_CTYPES,
        needs=ON_LINUX,
        quick=True,
    ),
    Attack(
        Control.privilege_drop,
        "capabilities",
        "use a privilege of root",
        act="import os\nos.setgroups([])",
        held_by=("PermissionError EPERM", "PermissionError EACCES"),
        inexpressible=no_os("setgroups"),
        needs=ON_LINUX | {Condition.root},
        quick=True,
    ),
)


def _syscall(variant: str, goal: str, act: str, *conditions: Condition, quick: bool = False) -> Attack:
    return Attack(
        Control.syscall_filter,
        variant,
        goal,
        act=_CALL + act,
        held_by=NO_SUCH_SYSCALL,
        inexpressible=NO_CTYPES,
        needs=ON_LINUX | {*conditions},
        quick=quick,
    )


def _socket(variant: str, goal: str, kind: str, *conditions: Condition) -> Attack:
    """Make a socket of a family, type and protocol that no program of a sandbox has a use for."""
    return _syscall(variant, goal, f"call(library.socket({kind}))", *conditions)


SYSTEM_CALLS = (
    _syscall(
        "io_uring",
        "open an interface to the kernel that filters do not see into",
        "call(library.syscall(425, 1, ctypes.create_string_buffer(120)))",
        Condition.io_uring,
        quick=True,
    ),
    _syscall(
        "namespaces",
        "become root of a namespace of its own",
        "call(library.unshare(0x10000000))",
        Condition.user_namespaces,
        quick=True,
    ),
    _syscall(
        "namespaces_by_clone3",
        "become root of a namespace by a call whose flags a filter can't read",
        """\
import os, struct
flags, child_ended = 0x10000000, 17
child = library.syscall(435, struct.pack('<11Q', flags, 0, 0, 0, child_ended, 0, 0, 0, 0, 0, 0), 88)
if child == 0:
    os._exit(0)
os.waitpid(call(child), 0)
""",
        Condition.user_namespaces,
    ),
    _syscall(
        "keyring",
        "keep a key in the kernel",
        "import os\nnumber = 248 if os.uname().machine == 'x86_64' else 217\n"
        "call(library.syscall(number, b'user', b'licet probe', b'x', 1, -2))",
        Condition.keyring,
    ),
    _syscall("trace", "trace processes", "call(library.ptrace(0, 0, None, None))"),
    _syscall(
        "mount",
        "make a file system of its own to mount",
        "call(library.syscall(430, b'tmpfs', 1))",
        Condition.administrator,
    ),
    replace(
        _syscall(
            "shared_memory",
            "read memory that processes of the host share",
            "library.shmat.restype = ctypes.c_void_p\nplace = library.shmat({SHARED_MEMORY}, None, 0x1000)\n"
            "if place in (None, ctypes.c_void_p(-1).value):\n    call(-1)\n"
            "print(ctypes.string_at(place).decode(), flush=True)",
        ),
        held_by=(*NO_SUCH_SYSCALL, "OSError EINVAL"),
        proofs=(Proof.text,),
    ),
    replace(
        _syscall(
            "message_queue",
            "take a message that was sent to a process of the host",
            "room = ctypes.create_string_buffer(1000)\n"
            "call(library.msgrcv({MESSAGE_QUEUE}, room, ctypes.c_size_t(900), ctypes.c_long(0), 0x800))\n"
            "print(room.raw[8:].rstrip(b'\\0').decode(), flush=True)",
        ),
        held_by=(*NO_SUCH_SYSCALL, "OSError EINVAL"),
        proofs=(Proof.text,),
    ),
    _socket("netlink", "talk to the kernel about networks and devices", "16, 3, 0"),
    _socket("packets", "see what crosses the network", "17, 3, 768", Condition.administrator),
    _socket("hypervisor", "open a way to the hypervisor", "40, 1, 0", Condition.vsock),
    replace(
        _syscall(
            "terminal",
            "put words into a terminal as if they were typed",
            "import os\n_, terminal = os.openpty()\n"
            "call(library.ioctl(terminal, 0x5412, ctypes.c_char_p(b'x')))",
            Condition.administrator,
        ),
        held_by=(*NO_SUCH_SYSCALL, "FileNotFoundError ENOENT"),
    ),
)

SEPARATE = (
    Attack(
        Control.separate_kernel,
        "boot_id",
        "find the kernel of the host",
        act="found = open('/proc/sys/kernel/random/boot_id').read()\nprint(found, flush=True)\n"
        "if len(found) != 37:\n    raise ValueError('no identity to see')",
        held_by=("done",),
        proofs=(Proof.text,),
        text="{BOOT_ID}",
        needs=ON_LINUX,
        quick=True,
    ),
)
