"""Restricted Linux with one wall taken down, or with those together of which each stands in for the other.

A wall is taken down in what is sent to the launcher: a setting, or a piece of the text that runs there; or in
what the host does. A probe may make a backend anew in a process of its own, so each is made without
arguments.
"""

from __future__ import annotations

import marshal
import os
import struct
import subprocess
from collections.abc import Callable, Mapping
from importlib import resources
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

from licet.supervise.jail import launcher, message, sight
from licet.supervise.jail.room import Room
from licet_restricted_linux.backend import RestrictedLinux

Edit = tuple[str, str, str]
"""A module that is sent, a text that it has exactly once, and what stands there instead."""

Settings = Mapping[str, Callable[[Any], Any]]


def reworked(edits: tuple[Edit, ...], settings: Settings) -> Callable[..., bytes]:
    """What makes an interpreter a launcher, with `edits` in its modules and other `settings`."""

    def make(*given: Any, **named: Any) -> bytes:
        packed, told = marshal.loads(message.launcher_message(*given, **named)[8:])
        assert {*settings} <= {*told}
        told |= {name: change(told[name]) for name, change in settings.items()}
        modules = [(name, _edited(name, code, edits)) for name, code in marshal.loads(packed)]
        data = marshal.dumps((marshal.dumps(modules), told))
        return len(data).to_bytes(8, "big") + data

    return make


def _edited(name: str, code: Any, edits: tuple[Edit, ...]) -> Any:
    wanted = [(old, new) for module, old, new in edits if module == name]
    if not wanted:
        return code
    package, file = next((package, file) for module, package, file in message._MODULES if module == name)
    text = (resources.files(package) / file).read_text("utf-8")
    for old, new in wanted:
        assert text.count(old) == 1, f"{name} has {text.count(old)} times {old!r}"
        text = text.replace(old, new)
    return compile(text, f"<weakened {name}>", "exec")


UNSEEN = (
    (sight, "look", lambda pid, how, environment, **named: {}),
    (sight, "grouped", lambda pid, group: {}),
)


class Weakened(RestrictedLinux):
    """As it is; others take something down.

    `patches` are what the host does otherwise: the object, its attribute, and what stands there instead. It
    does not look what the system shows of a run, since it would begin none where it sees a wall missing.
    """

    edits: ClassVar[tuple[Edit, ...]] = ()
    settings: ClassVar[Settings] = {}
    patches: ClassVar[tuple[tuple[Any, str, Any], ...]] = ()

    def __init__(self) -> None:
        reworking = (launcher, "launcher_message", reworked(self.edits, self.settings))
        self._patches = [mock.patch.object(*patch) for patch in (reworking, *UNSEEN, *self.patches)]
        for patch in self._patches:
            patch.start()

    async def close(self) -> None:
        await super().close()
        while self._patches:
            self._patches.pop().stop()


def _passing(*calls: int) -> Callable[[Any], Any]:
    """A filter that lets these system calls through as well, whatever their arguments."""

    def change(program: tuple[int, bytes]) -> tuple[int, bytes]:
        count, lines = program
        more = b"".join(struct.pack("<HBBIHBBI", 0x15, 0, 1, call, 6, 0, 0, 0x7FFF0000) for call in calls)
        begin = 6 * 8  # after the checks of machine and number
        return count + 2 * len(calls), lines[:begin] + more + lines[begin:]

    return change


X86 = os.uname().machine == "x86_64"
OFF: Settings = {"filter": lambda _: None}
NO_LANDLOCK: Settings = {"ruleset": lambda _: None, "scopes": lambda _: None}
_SHARED_NETWORK: tuple[Edit, ...] = (("main", "NEW_APART = 0x40000000 | 0x8000000", "NEW_APART = 0x8000000"),)
_SHARED_IPC: tuple[Edit, ...] = (("main", "| 0x8000000 | 0x4000000", "| 0x4000000"),)
_RIGHTS_KEPT: tuple[Edit, ...] = (
    ("room", 'call("renounce a capability", "prctl", DROP_BOUND, capability, 0, 0, 0)', "break"),
    ("room", 'call("give up its capabilities", "capset", header, bytes(24))', "pass"),
)
_PRIVILEGES_KEPT: tuple[Edit, ...] = (
    ("room", 'call("renounce new privileges", "prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)', "pass"),
    ("main", 'call("renounce new privileges", "prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)', "pass"),
)
_NO_PARENT: tuple[Edit, ...] = (("room", "DROP_BOUND = 1, 4, 38, 24", "DROP_BOUND = 36, 4, 38, 24"),)
_UNWATCHED: tuple[Edit, ...] = (
    ("room", "for fd in (control.fileno(), death, *host):", "for fd in (death,):"),
)
_NOTHING_PRIVATE: Settings = {
    "covers": lambda covers: [each for each in covers if each[1] not in (b"/tmp", b"/dev/shm")]
}
_UNSEALED: tuple[Edit, ...] = (
    (
        "room",
        '_overlay(launcher, system, lowers, place, path, sealed=kind == "seal")',
        'system["bind"](LOWER + b"/%d" % lowers, path) if kind == "seal" else '
        "_overlay(launcher, system, lowers, place, path, sealed=False)",
    ),
)
_WHOLE_ROOT: Settings = {"shown": lambda shown: [(b"/", b"/"), *shown]}


class Unfiltered(Weakened):
    """No list of system calls; folders to read are shown as they are, with sockets that lead out."""

    edits = _UNSEALED
    settings = OFF


class Uring(Weakened):
    settings: ClassVar[Settings] = {"filter": _passing(425)}


class NestedUsers(Weakened):
    settings: ClassVar[Settings] = {"filter": _passing(272 if X86 else 97)}


class UnreadableFlags(Weakened):
    settings: ClassVar[Settings] = {"filter": _passing(435)}


class Keys(Weakened):
    settings: ClassVar[Settings] = {"filter": _passing(248 if X86 else 217)}


class Tracing(Weakened):
    settings: ClassVar[Settings] = {"filter": _passing(101 if X86 else 117)}


class Sockets(Weakened):
    """Sockets can be made and connected, of any family, and lead out of folders to read."""

    edits = _UNSEALED
    settings: ClassVar[Settings] = {"filter": _passing(*((41, 42, 44) if X86 else (198, 203, 206)))}


class SharedNetwork(Weakened):
    """The host's network, and no filter."""

    edits = _SHARED_NETWORK
    settings = OFF


class SharedNetworkUnconfined(Weakened):
    """The host's network, no filter, and no Landlock, which knows ports of TCP and abstract names."""

    edits = _SHARED_NETWORK
    settings = OFF | NO_LANDLOCK


class SharedIPC(Weakened):
    """The host's memory and queues by number, and no filter."""

    edits = _SHARED_IPC
    settings = OFF


class WholeRoot(Weakened):
    """All files of the host, read-only, and no Landlock."""

    settings = _WHOLE_ROOT | NO_LANDLOCK


class SharedTemporary(Weakened):
    """All files of the host, its temporary ones as well, and no Landlock."""

    settings = _WHOLE_ROOT | NO_LANDLOCK | _NOTHING_PRIVATE


class WritableRoot(Weakened):
    """All files of the host, as they are, and no Landlock; root of the host is the code's own user."""

    edits: ClassVar[tuple[Edit, ...]] = (
        ("root", "    closed = 1 | NO_SUID | NO_DEVICES", "    closed = NO_SUID | NO_DEVICES"),
    )
    settings = _WHOLE_ROOT | NO_LANDLOCK


class Programs(Weakened):
    """No Landlock, and a filter that lets programs be started."""

    settings = NO_LANDLOCK | {"filter": _passing(59 if X86 else 221)}


class ProcessesOfTheHost(Weakened):
    """The room mounts no /proc of its own, and has the one that its launcher was made with."""

    edits: ClassVar[tuple[Edit, ...]] = (
        ("room", 'system["mount"](b"proc", b"/proc", NOTHING_ODD, b"subset=pid")', "pass"),
    )


class OpenFirstProcess(Weakened):
    """The first process of the room can be looked into, and no Landlock, which forbids it too."""

    edits: ClassVar[tuple[Edit, ...]] = (
        ("room", 'modules["system"]["call"]("be untouchable", "prctl", DUMPABLE, 0, 0, 0, 0)', "pass"),
    )
    settings = NO_LANDLOCK


class RightsKept(Weakened):
    """All capabilities in its own user namespace, and no filter."""

    edits = _RIGHTS_KEPT
    settings = OFF


class PrivilegesToGain(Weakened):
    """New privileges are possible; then nobody without rights can have Landlock, or a filter."""

    edits = _PRIVILEGES_KEPT
    settings = OFF | NO_LANDLOCK


def _started_with_all_files(command: list[str], **named: Any) -> subprocess.Popen[bytes]:
    for fd in named.pop("pass_fds"):
        os.set_inheritable(fd, True)
    return subprocess.Popen(command, **{**named, "close_fds": False})


class Inheriting(Weakened):
    """A launcher that has the host's open files."""

    patches = (
        (
            launcher,
            "subprocess",
            SimpleNamespace(Popen=_started_with_all_files, DEVNULL=subprocess.DEVNULL),
        ),
    )


class HandingOn(Weakened):
    """A launcher that has the host's variables, and runs that have those of their launcher."""

    edits: ClassVar[tuple[Edit, ...]] = (
        (
            "room",
            '_feel_at_home(order["environment"], call)',
            "__import__('os').environb.update(order['environment'])",
        ),
    )
    patches = ((launcher, "ROOM", dict(os.environ)),)


class Ungrouped(Weakened):
    """Runs that are in no control group, though their host believes them to be."""

    patches = ((Room, "groups", lambda room: []),)


class UnboundedStorage(Weakened):
    settings: ClassVar[Settings] = {"storage": lambda _: b"mode=711"}


class Lingering(Weakened):
    """Rooms that neither die with their launcher nor watch their host."""

    edits = _NO_PARENT + _UNWATCHED
