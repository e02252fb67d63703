"""Filters of system calls, in the kernel's own form, compiled from a profile of what is let through.

Rules this module keeps:

- a list of what is let through: all else is refused, so that a call is never forgotten;
- a refused call fails with EPERM; one that this list is too old to know, and `clone3`, whose flags no filter
  can read, with ENOSYS, so that programs take the older way;
- a call by another calling convention than the machine's own ends the process;
- what a filter can't read, it does not judge: it looks at numbers, and never at what an address leads to.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from licet.supervise.walls.calls import LAST, number

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_THREAD, _NAMESPACES = 0x00010000, 0x7E020080
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_LOAD, _MASK, _IF_EQUAL, _IF_ABOVE, _IF_ANY, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x45, 0x06
_ALLOW, _KILL, _REFUSE, _ASK = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
_EPERM, _ENOSYS = 1, 38

_Line = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class OneOf:
    """The argument at a place, as far as `mask` covers its lower half, has one of these values."""

    place: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Zero:
    """The argument at a place is nothing, in all of its 64 bits."""

    place: int


Tests = tuple[OneOf | Zero, ...]
"""All of them have to hold."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What is let through.

    `permitted` is, whatever its arguments are; `tested` where all tests hold. `threads` says what `clone` may
    make: threads alone, or processes as well, in the namespaces that there are. `asked` waits for an answer
    of whoever has the filter's listener.
    """

    permitted: tuple[str, ...]
    tested: Mapping[str, Tests] = field(default_factory=dict)
    threads: bool = True
    asked: tuple[str, ...] = ()


def program(machine: str, profile: Profile) -> tuple[int, bytes]:
    """The filter for `machine`: how many instructions, and what they are.

    Raises:
        KeyError: the machine is not known here.
    """
    lines: list[_Line] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, ARCHITECTURES[machine]),
        _answer(_KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_IF_ABOVE, 0, 1, LAST),
        _answer(_REFUSE | _ENOSYS),
    ]
    for name in profile.permitted:
        lines += _block(name, machine, [_answer(_ALLOW)])
    for name, tests in profile.tested.items():
        lines += _block(name, machine, _all_of(tests))
    for name in profile.asked:
        lines += _block(name, machine, [_answer(_ASK)])
    lines += _block("clone", machine, _made(threads=profile.threads))
    lines += _block("clone3", machine, [_answer(_REFUSE | _ENOSYS)])
    lines.append(_answer(_REFUSE | _EPERM))
    return len(lines), b"".join(struct.pack("<HBBI", *line) for line in lines)


def _block(name: str, machine: str, lines: list[_Line]) -> list[_Line]:
    """What is done at the call `name`: nothing goes on past its end."""
    found = number(name, machine)
    return [] if found is None else [(_IF_EQUAL, 0, len(lines), found), *lines]


def _answer(what: int) -> _Line:
    return _RETURN, 0, 0, what


def _low(place: int) -> int:
    return _ARGUMENTS + 8 * place


def _all_of(tests: Tests) -> list[_Line]:
    """Each test goes on to the next where it holds, and refuses where it does not."""
    lines: list[_Line] = []
    for test in tests:
        lines += _zero(test.place) if isinstance(test, Zero) else _one_of(test)
    return [*lines, _answer(_ALLOW)]


def _one_of(test: OneOf) -> list[_Line]:
    masked = [] if test.mask == 0xFFFFFFFF else [(_MASK, 0, 0, test.mask)]
    count = len(test.values)
    equals = [(_IF_EQUAL, count - n, 0, value) for n, value in enumerate(test.values)]
    return [(_LOAD, 0, 0, _low(test.place)), *masked, *equals, _answer(_REFUSE | _EPERM)]


def _zero(place: int) -> list[_Line]:
    return [
        (_LOAD, 0, 0, _low(place)),
        (_IF_EQUAL, 0, 2, 0),
        (_LOAD, 0, 0, _low(place) + 4),
        (_IF_EQUAL, 1, 0, 0),
        _answer(_REFUSE | _EPERM),
    ]


def _made(*, threads: bool) -> list[_Line]:
    """A thread of this process, or without `threads` a process as well, in the namespaces that it has."""
    thread = [(_IF_ANY, 0, 1, _THREAD)] if threads else []
    return [
        (_LOAD, 0, 0, _low(0)),
        *thread,
        (_IF_ANY, 0, 1, _NAMESPACES),
        _answer(_REFUSE | _EPERM),
        _answer(_ALLOW),
    ]
