"""Overlays of the kernel as a sandbox makes them, for tests: code changes a tree, its layers are collected.

A guest is a forked process in namespaces of its own: a sized tmpfs, over each root an overlay with
`userxattr` or an empty directory, no capabilities. It hands its layers over by descriptor and is gone.
"""

from __future__ import annotations

import array
import ctypes
import os
import socket
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from licet.plan import Opened
from licet.supervise.moments import Moment, await_coarse
from licet.writes.layer import Layer, staged
from licet.writes.staged import Staged

Tree = dict[str, object]
Code = Callable[..., None]

_NEW_NS, _NEW_USER = 0x20000, 0x10000000
_NOSUID_NODEV, _REC_PRIVATE, _BIND = 2 | 4, 0x4000 | 1 << 18, 4096
_LIBRARY = ctypes.CDLL(None, use_errno=True)


@dataclass
class Root:
    """A root that code may write to: an overlay, or `bare`."""

    path: Path
    bare: bool = False


@dataclass
class Guest:
    """What a guest left: its layers."""

    layers: list[Layer]
    began: Moment

    def staged(self, opened: Opened, most_bytes: int = 1 << 20) -> Staged:
        return staged(self.layers, opened, self.began, most_bytes)


def run(roots: Sequence[Root], code: Code, *, user: bool = True, size: str = "8m") -> Guest:
    """Run `code` in a guest with its paths as they are on the host; in a user namespace if `user`."""
    began = Moment.now()
    lowers = [_lower(root.path) for root in roots]
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        _guest(theirs, roots, code, began, user=user, size=size)
    theirs.close()
    with ours:
        told, uppers = _received(ours)
    _, status = os.waitpid(child, 0)
    assert told == b"done" and status == 0, f"{told.decode()} {status}"
    layers = [
        Layer.over(str(root.path), lower, upper, bare=root.bare)
        for root, lower, upper in zip(roots, lowers, uppers, strict=True)
    ]
    for lower in lowers:
        if lower is not None:
            os.close(lower)
    return Guest(layers, began)


def aside(code: Callable[[], None]) -> None:
    """Run code as a guest runs it, without capabilities, but on the host."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            drop_capabilities()
            code()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0


def drop_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _check(_LIBRARY.capset(header, (ctypes.c_uint32 * 6)()))


def _lower(path: Path) -> int | None:
    try:
        return os.open(path, os.O_PATH | os.O_DIRECTORY)
    except FileNotFoundError:
        return None


def _received(ours: socket.socket) -> tuple[bytes, list[int]]:
    told, ancillary, _, _ = ours.recvmsg(100_000, socket.CMSG_SPACE(4 * 16))
    found = array.array("i")
    for _, _, data in ancillary:
        found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return told, list(found)


def _guest(
    theirs: socket.socket, roots: Sequence[Root], code: Code, began: Moment, *, user: bool, size: str
) -> None:
    told, uppers = b"", []
    try:
        try:
            _unshare(user=user)
            uppers = _mounted(roots, size)
            drop_capabilities()
            await_coarse(began.settled_ns)
            code()
            told = b"done"
        except BaseException:
            told = traceback.format_exc().encode()
        theirs.sendmsg([told], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", uppers))])
    finally:
        os._exit(0)


def _unshare(*, user: bool) -> None:
    uid, gid = os.geteuid(), os.getegid()
    _check(_LIBRARY.unshare(_NEW_NS | (_NEW_USER if user else 0)))
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    _mount("none", "/", "", _REC_PRIVATE, "")


def _mounted(roots: Sequence[Root], size: str) -> list[int]:
    storage = "/run"  # any directory that holds no root
    _mount("tmpfs", storage, "tmpfs", _NOSUID_NODEV, f"size={size},nr_inodes=40000,mode=700")
    uppers = []
    for number, root in enumerate(roots):
        upper, work = f"{storage}/u{number}", f"{storage}/w{number}"
        os.mkdir(upper)
        if root.path.is_dir() and not root.bare:
            os.mkdir(work)
            layers = f"lowerdir={root.path},upperdir={upper},workdir={work},userxattr"
            _mount("overlay", str(root.path), "overlay", _NOSUID_NODEV, layers)
        else:
            if (
                not root.path.is_dir()
            ):  # made in a directory of the guest's own, in the place of the one around
                _mount("tmpfs", str(root.path.parent), "tmpfs", _NOSUID_NODEV, "mode=700")
                os.mkdir(root.path)
            _mount(upper, str(root.path), "", _BIND, "")
        uppers.append(os.open(upper, os.O_PATH | os.O_DIRECTORY))
    return uppers


def _mount(source: str, target: str, kind: str, flags: int, data: str) -> None:
    _check(_LIBRARY.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode()), target)


def _check(result: int, what: str = "") -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
