"""What this host offers to attack: without it an attack means nothing here, and is not run."""

from __future__ import annotations

import os
import re
import socket
import sys
from enum import StrEnum
from functools import cache
from pathlib import Path

from licet.probe import places

_VSOCK = 40
_ADMINISTRATOR = 1 << 21 | 1 << 13


class Condition(StrEnum):
    """Something of a host that an attack needs."""

    posix = "posix"
    windows = "windows"
    linux = "linux"
    root = "root"
    ipv6 = "ipv6"
    folders = "folders"
    """The user may write elsewhere than to the folder for temporary files."""
    address = "address"
    """It has an address beside its loopback; looked for on Linux."""
    io_uring = "io_uring"
    user_namespaces = "user_namespaces"
    keyring = "keyring"
    multipath = "multipath"
    tracing = "tracing"
    vsock = "vsock"
    administrator = "administrator"
    """The user may administer the system: mount, look at networks, type into terminals of others."""


@cache
def present() -> frozenset[Condition]:
    """The conditions that hold here, for this user."""
    found = {Condition.folders} if places.folders() else set()
    if os.name != "posix":
        return frozenset({*found, Condition.windows} if os.name == "nt" else found)
    found.add(Condition.posix)
    root = os.geteuid() == 0
    if root:
        found.add(Condition.root)
    if sys.platform != "linux":
        return frozenset(found)
    found.add(Condition.linux)
    if places.addresses():
        found.add(Condition.address)
    if _read("/proc/net/if_inet6"):
        found.add(Condition.ipv6)
    if _read("/proc/sys/kernel/io_uring_disabled") in ({"", "0", "1"} if root else {"", "0"}):
        found.add(Condition.io_uring)
    if _read("/proc/sys/user/max_user_namespaces") not in {"", "0"} and (root or not _userns_restricted()):
        found.add(Condition.user_namespaces)
    if _read("/proc/sys/net/mptcp/enabled") == "1":
        found.add(Condition.multipath)
    if Path("/proc/keys").exists():
        found.add(Condition.keyring)
    if root or _read("/proc/sys/kernel/yama/ptrace_scope") in {"", "0"}:
        found.add(Condition.tracing)
    if _administers():
        found.add(Condition.administrator)
    if _makes_sockets(_VSOCK):
        found.add(Condition.vsock)
    return frozenset(found)


def _userns_restricted() -> bool:
    return (
        _read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1"
        or _read("/proc/sys/kernel/unprivileged_userns_clone") == "0"
    )


def _administers() -> bool:
    """Whether this process has the capabilities `CAP_SYS_ADMIN` and `CAP_NET_RAW`."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", _read("/proc/self/status"), re.MULTILINE)
    return found is not None and int(found[1], 16) & _ADMINISTRATOR == _ADMINISTRATOR


def _makes_sockets(family: int) -> bool:
    try:
        socket.socket(family, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return ""
