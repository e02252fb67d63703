"""Calls into the kernel from a child of the host, with the reason where one fails.

It runs in the launcher and what it forks, sent by the host. Rules this module keeps:

- numbers of system calls come from the host, which knows them by machine;
- a call that fails is an `OSError` with its number, and says what it was for.
"""

from __future__ import annotations

import _ctypes
import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE, O_CLOEXEC = 1, 0x80000
MOVE_FROM_FD = 4  # MOVE_MOUNT_F_EMPTY_PATH
READ_ONLY, NO_SUID, NO_DEVICES, NO_PROGRAMS, ID_MAPPED = 1, 2, 4, 8, 0x100000
DETACH = 2
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442  # the same on every machine


class _Long(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "l"


class _Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = _Long


_library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]
_known: dict[str, Any] = {}


def call(what: str, name: str, *arguments: int | bytes) -> int:
    """Call a function of the C library; `what` goes on from `could not`."""
    function = _known.get(name)
    if function is None:
        function = _known[name] = _Function(_ctypes.dlsym(_library, name))
    result: int = function(*[_Long(each) if type(each) is int else each for each in arguments])
    if result < 0:
        number = _ctypes.get_errno()
        raise OSError(number, f"could not {what}: {posix.strerror(number).lower()}")
    return result


def block(content: bytes) -> Any:
    """The bytes, where they stay; their place is told by `address`."""
    kind: Any = type("Byte", (_ctypes._SimpleCData,), {"_type_": "c"})
    array: Any = type("Bytes", (_ctypes.Array,), {"_type_": kind, "_length_": len(content)})
    return array.from_buffer_copy(content)


address = _ctypes.addressof


def tree(path: bytes, *, below: bool = True) -> int:
    """A copy of what is mounted at `path`, and with `below` of all in it, not attached anywhere."""
    flags = OPEN_TREE_CLONE | O_CLOEXEC | (AT_RECURSIVE if below else 0)
    return call(f"open `{_shown(path)}`", "syscall", OPEN_TREE, AT_FDCWD, path, flags)


def attach(mount: int, path: bytes) -> None:
    """Put a copy at `path`, and close it."""
    call(f"show `{_shown(path)}`", "syscall", MOVE_MOUNT, mount, b"", AT_FDCWD, path, MOVE_FROM_FD)
    posix.close(mount)


def restrict(mount: int, attributes: int, users: int = 0, *, below: bool = True) -> None:
    """Set attributes of a copy, and with `below` of all that is mounted in it."""
    words = b"".join(each.to_bytes(8, "little") for each in (attributes, 0, 0, users))
    flags = AT_EMPTY_PATH | (AT_RECURSIVE if below else 0)
    call("restrict a mount", "syscall", MOUNT_SETATTR, mount, b"", flags, words, len(words))


def mount(kind: bytes, path: bytes, flags: int, options: bytes = b"") -> None:
    """Mount a file system of its own."""
    call(f"mount {_shown(kind)} at `{_shown(path)}`", "mount", kind, path, kind, flags, options)


def bind(source: bytes, path: bytes) -> None:
    """Show a folder or file at another place as well."""
    call(f"show `{_shown(path)}`", "mount", source, path, b"", 0x1000, b"")


def unmount(path: bytes) -> None:
    """Take a mount away, once nobody uses it any more."""
    call(f"leave `{_shown(path)}`", "umount2", path, DETACH)


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "replace")
