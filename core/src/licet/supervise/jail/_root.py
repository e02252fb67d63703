"""The root of a jail: built once by a launcher, from what the host's root has, and never changed after.

It runs in the launcher, sent by the host. Rules this module keeps:

- what is shown is opened before anything is covered, and shown read-only, without devices, and without
  rights that a program would give;
- the root that was there is gone before anything else happens.
"""

from __future__ import annotations

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PRIVATE, NO_SUID, NO_DEVICES, NO_PROGRAMS = 0x44000, 2, 4, 8
SMALL = b"size=1m,nr_inodes=4k,mode=755"
DEVICES = (b"null", b"zero", b"full", b"random", b"urandom")
LINKS = {b"fd": b"/proc/self/fd", b"stdin": b"fd/0", b"stdout": b"fd/1", b"stderr": b"fd/2"}
STORAGE, LOWER = b"/dev/.storage", b"/dev/.lower"
SEALED = 0x1021 | 2 | 4 | 8  # mounted again, as it is seen here, read-only
NOTHING, TEXTS = b"/dev/.nothing", b"/dev/.texts"
STAGE = b"/proc"


def build(settings: dict[str, Any], system: dict[str, Any], users: int | None) -> None:
    """Make this process's root the one that `settings` describe; `users` is a map of owners to show it by."""
    system["call"]("keep mounts to itself", "mount", b"none", b"/", b"", PRIVATE, b"")
    shown = [(_open(system, source, users), target) for source, target in settings["shown"]]
    lowers = [_open(system, path, users, below=False) for path in settings["lowers"]]
    process = system["tree"](b"/proc")
    devices = [(system["tree"](b"/dev/" + name), b"/dev/" + name) for name in DEVICES]
    for fd, _ in devices:
        system["restrict"](fd, NO_SUID | NO_PROGRAMS)
    base = [fd for fd, target in shown if target == b"/"]
    if base:
        system["attach"](base[0], STAGE)
    else:
        system["mount"](b"tmpfs", STAGE, NO_SUID | NO_DEVICES, SMALL)
    _move_in(system, settings["pivot_root"])
    for name in (b"/proc", b"/dev", b"/tmp"):
        _folder(name)
    system["attach"](process, b"/proc")
    _devices(system, devices, lowers)
    steps: list[tuple[bytes, int | None, tuple[str, bytes] | None]]
    steps = [(target, fd, None) for fd, target in shown if target != b"/"]
    steps += [(target, None, action) for target, action in settings["made"]]
    covers = []
    for target, mount, action in sorted(steps, key=lambda step: step[0].count(b"/")):
        if _make(system, target, mount, action):
            covers.append(target)
    for path in (*covers, b"/dev", *(() if base else (b"/",))):
        system["call"]("close its root", "mount", b"none", path, b"", SEALED, b"")


def _open(system: dict[str, Any], source: bytes, users: int | None, *, below: bool = True) -> int:
    """Open what is to be shown, by its owner's rights where the file system can do that."""
    fd: int = system["tree"](source, below=below)
    closed = 1 | NO_SUID | NO_DEVICES
    if users is not None:
        for all_of_it in (True, False):
            try:
                system["restrict"](fd, closed | system["ID_MAPPED"], users, below=all_of_it)
                break
            except OSError:
                pass  # a file system that knows no such maps shows its owners as they are
    system["restrict"](fd, closed)
    return fd


def _move_in(system: dict[str, Any], pivot_root: int) -> None:
    """Make the stage the root, and leave the old one for good."""
    posix.chdir(STAGE)
    system["call"]("change its root", "syscall", pivot_root, b".", b".")
    system["unmount"](b".")
    posix.chdir("/")


def _devices(system: dict[str, Any], devices: list[tuple[int, bytes]], lowers: list[int]) -> None:
    """Make the few devices that a program needs, and the places that each run mounts something at."""
    system["mount"](b"tmpfs", b"/dev", NO_SUID, SMALL)
    for fd, target in devices:
        _file(target, b"")
        system["attach"](fd, target)
    for number, fd in enumerate(lowers):
        _folder(LOWER + b"/%d" % number)
        system["attach"](fd, LOWER + b"/%d" % number)
    for name, goal in LINKS.items():
        posix.symlink(goal, b"/dev/" + name)
    for folder in (b"/dev/shm", STORAGE, LOWER):
        _folder(folder)
    _file(NOTHING, b"", 0)


def _make(system: dict[str, Any], target: bytes, mount: int | None, action: tuple[str, bytes] | None) -> bool:
    """Show or make what is to be at `target`; True if it covers what is shown there."""
    kind, content = action or ("show", b"")
    if mount is not None:
        _place(target, mount)
        system["attach"](mount, target)
    elif kind == "link":
        _folder(_above(target))
        try:  # noqa: SIM105 - contextlib is not there
            posix.symlink(content, target)
        except OSError:
            pass  # it is shown already, though where it leads may come later; or what needs it will tell
    elif kind == "text":
        return _text(system, target, content)
    elif kind == "folder":
        _folder(target)
    elif kind == "hide":
        return _hide(system, target)
    return False


def _hide(system: dict[str, Any], target: bytes) -> bool:
    """Cover what stands there with nothing that can be opened."""
    if _is_folder(target):
        system["mount"](b"tmpfs", target, NO_SUID | NO_DEVICES | NO_PROGRAMS, b"size=1m,mode=111")
    elif _exists(target):
        system["bind"](NOTHING, target)
    else:
        return False
    return True


def _text(system: dict[str, Any], target: bytes, content: bytes) -> bool:
    """Make a small file, or cover the one that stands there with it."""
    if not content or not _exists(target):
        _file(target, content)
        return False
    _file(TEXTS + target, content)
    system["bind"](TEXTS + target, target)
    return True


def _is_folder(path: bytes | int) -> bool:
    return _exists(path) and posix.stat(path).st_mode & 0o170000 == 0o040000


def _exists(path: bytes | int) -> bool:
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


def _place(target: bytes, mount: int) -> None:
    """Make sure that there is something to attach a mount to."""
    if _is_folder(mount):
        _folder(target)
    else:
        _folder(_above(target))
        _file(target, b"")


def _folder(path: bytes) -> None:
    if not path or path == b"/":
        return
    _folder(_above(path))
    if not _exists(path):
        posix.mkdir(path, 0o755)


def _file(path: bytes, content: bytes, mode: int = 0o644) -> None:
    if _exists(path) and not content:
        return
    _folder(_above(path))
    fd = posix.open(path, posix.O_WRONLY | posix.O_CREAT | 0x80000, mode)
    posix.write(fd, content)
    posix.close(fd)


def _above(path: bytes) -> bytes:
    """What is above a path."""
    return path.rpartition(b"/")[0]
