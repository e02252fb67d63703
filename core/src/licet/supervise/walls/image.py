"""A program that makes a list of system calls, one after the other, and ends at the first that fails.

It is the smallest thing that can stand between a spawner and a program in one and the same process. Its code
is the loop below, which is the same for every list; what is done is said by the list, which is data.

Rules this module keeps:

- a call whose result is not within its bounds ends the process with its place in the list as the exit code,
  `FIRST` for the first: what stands behind it is never reached;
- the program has no stack of its own, writes to no memory, and takes nothing from its arguments, nor from
  its environment.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from licet.supervise.walls.calls import number

MOST = (1 << 31) - 1
"""The upper bound of a result where any success will do."""

FIRST = 64
"""The exit code that tells that the first call failed; programs themselves seldom use those from here on."""

FAILURES = -4095
"""The lower bound of a result where a failure does no harm."""

_BASE = 0x200000
_HEADERS = 64 + 2 * 56
_LOADED, _STACK, _READ_EXECUTE, _READ_WRITE = 1, 0x6474E551, 5, 6
_ELF_MACHINES = {"x86_64": 62, "aarch64": 183}

# again:  load the number and six arguments of the entry, call the system
#         a result below the entry's least, or above its most: exit_group(place)
#         else go to the next entry, again
_CODE = {
    # r12: the entry, r13: its exit code; the table follows the code
    "x86_64": bytes.fromhex(
        "4c8d2551000000"  # lea r12, [rip + table]
        "41bd40000000"  # mov r13d, 64
        "498b0424"  # again: mov rax, [r12]
        "498b7c2408"  # mov rdi, [r12 + 8]
        "498b742410"  # mov rsi, [r12 + 16]
        "498b542418"  # mov rdx, [r12 + 24]
        "4d8b542420"  # mov r10, [r12 + 32]
        "4d8b442428"  # mov r8, [r12 + 40]
        "4d8b4c2430"  # mov r9, [r12 + 48]
        "0f05"  # syscall
        "493b442438"  # cmp rax, [r12 + 56]
        "7c10"  # jl fail
        "493b442440"  # cmp rax, [r12 + 64]
        "7f09"  # jg fail
        "4983c448"  # add r12, 72
        "41ffc5"  # inc r13d
        "ebc5"  # jmp again
        "4489ef"  # fail: mov edi, r13d
        "b8e7000000"  # mov eax, 231 (exit_group)
        "0f05"  # syscall
        "660f1f440000"  # nop, up to a multiple of 8
    ),
    # x19: the entry, x20: its exit code
    "aarch64": bytes.fromhex(
        "53020010"  # adr x19, table
        "140880d2"  # mov x20, 64
        "680240f9"  # again: ldr x8, [x19]
        "608640a9"  # ldp x0, x1, [x19, 8]
        "628e41a9"  # ldp x2, x3, [x19, 24]
        "649642a9"  # ldp x4, x5, [x19, 40]
        "010000d4"  # svc 0
        "69aa43a9"  # ldp x9, x10, [x19, 56]
        "1f0009eb"  # cmp x0, x9
        "cb000054"  # b.lt fail
        "1f000aeb"  # cmp x0, x10
        "8c000054"  # b.gt fail
        "73220191"  # add x19, x19, 72
        "94060091"  # add x20, x20, 1
        "f4ffff17"  # b again
        "e00314aa"  # fail: mov x0, x20
        "c80b80d2"  # mov x8, 94 (exit_group)
        "010000d4"  # svc 0
    ),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a piece of data lies, counted from the first."""

    offset: int


Word = int | Place


class Image:
    """The program for `machine`, to which calls and their data are added.

    Raises:
        KeyError: the machine is not known here.
    """

    def __init__(self, machine: str) -> None:
        self._machine = machine
        self._code = _CODE[machine]
        self._entries: list[tuple[Word, ...]] = []
        self._data: list[Word | bytes] = []
        self._size = 0
        self._names: list[str] = []

    def data(self, content: bytes) -> Place:
        """Keep bytes in the image, and say where."""
        padded = content + bytes(-len(content) % 8)
        return self._keep(padded, len(padded))

    def text(self, content: str | bytes) -> Place:
        """Keep a text in the image, ended by a NUL."""
        return self.data((content.encode() if isinstance(content, str) else content) + b"\0")

    def words(self, *content: Word) -> Place:
        """Keep numbers of 64 bits, and addresses, in the image."""
        place = Place(self._size)
        for word in content:
            self._keep(word, 8)
        return place

    def _keep(self, content: Word | bytes, size: int) -> Place:
        place = Place(self._size)
        self._data.append(content)
        self._size += size
        return place

    def call(
        self, name: str, *arguments: Word, least: int = 0, most: int = MOST, what: str | None = None
    ) -> None:
        """Make the call `name` next; its result has to lie between `least` and `most`.

        `what` is what it is for, in words that go on from `could not`.

        Raises:
            KeyError: this machine has no such call.
        """
        found = number(name, self._machine)
        if found is None:
            raise KeyError(name)
        filled = (*arguments, *(0 for _ in range(6 - len(arguments))))
        self._entries.append((found, *filled, least, most))
        self._names.append(what or name)

    def failed_at(self, exit_code: int) -> str | None:
        """What the call was for that ended the process with this code; None if it was none of these calls."""
        place = exit_code - FIRST
        return self._names[place] if 0 <= place < len(self._names) else None

    def content(self) -> bytes:
        """The program as a file."""
        start = _BASE + _HEADERS + len(self._code) + 72 * len(self._entries)

        def spelled(words: Sequence[Word | bytes]) -> bytes:
            return b"".join(
                word
                if isinstance(word, bytes)
                else struct.pack("<Q", (start + word.offset if isinstance(word, Place) else word) % (1 << 64))
                for word in words
            )

        table = b"".join(map(spelled, self._entries))
        rest = self._code + table + spelled(self._data)
        return _headers(_ELF_MACHINES[self._machine], len(rest)) + rest


def _headers(machine: int, rest: int) -> bytes:
    """What makes a file of it: one part, which is read and executed, and a stack, which is not executed."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    entry, size = _BASE + _HEADERS, _HEADERS + rest
    return (
        ident
        + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, entry, 64, 0, 0, 64, 56, 2, 0, 0, 0)
        + struct.pack("<IIQQQQQQ", _LOADED, _READ_EXECUTE, 0, _BASE, _BASE, size, size, 0x10000)
        + struct.pack("<IIQQQQQQ", _STACK, _READ_WRITE, 0, 0, 0, 0, 0, 16)
    )
