"""Where else a host can be hit: at addresses beside its loopback, in folders beside its temporary one.

A sandbox may replace just those (a network namespace has a loopback of its own, a mount namespace a `/tmp`)
and leave all the rest open.

Rules this module keeps: nothing is sent and nothing is made; what the user can't use is left out.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_MOST = 3  # addresses: a filter that swallows what is sent costs a second for each
_GET_ADDRESS = 0x8915  # SIOCGIFADDR
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # a folder of its own is made in each
_ELSEWHERE = ("192.0.2.1", 9)  # an address for documentation; a route to it is looked up, and nothing sent


def addresses() -> tuple[str, ...]:
    """IPv4 addresses of this host beside its loopback, the one that faces the internet first; Linux alone."""
    if sys.platform != "linux":
        return ()  # elsewhere the system may ask the user whether this is meant
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        found = [*_of_interfaces(probe), *_facing_out(probe)]
    ordered = dict.fromkeys(address for address in reversed(found) if not address.startswith("127."))
    return tuple(ordered)[:_MOST]


def folders() -> tuple[Path, ...]:
    """Folders that the user may write to, outside of that for temporary files: the home, and some for all."""
    usual = Path(tempfile.gettempdir()).resolve()
    candidates = [Path(path) for path in _TEMPORARY if os.name == "posix"]
    with contextlib.suppress(RuntimeError):  # this user has no home
        candidates.insert(0, Path.home())
    found = dict.fromkeys(path.resolve() for path in candidates if _usable(path))
    return tuple(path for path in found if not path.is_relative_to(usual))


def _of_interfaces(probe: socket.socket) -> Iterator[str]:
    if sys.platform == "linux":
        import fcntl

        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no address
                answer = fcntl.ioctl(probe, _GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
                yield socket.inet_ntoa(answer[20:24])


def _facing_out(probe: socket.socket) -> Iterator[str]:
    with contextlib.suppress(OSError):  # no route leads out
        probe.connect(_ELSEWHERE)
        yield str(probe.getsockname()[0])


def _usable(path: Path) -> bool:
    return path.is_dir() and os.access(path, os.W_OK | os.X_OK)
