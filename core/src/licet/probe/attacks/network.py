"""Leaving the sandbox by network: internet sockets, name look-ups, and sockets of the host itself.

A sandbox with a network of its own has another 127.0.0.1 than the host, whatever else it reaches: so
`outside` attacks dial the host's other addresses. Nobody else's host is ever dialled.
"""

from __future__ import annotations

from functools import partial

from licet.contract import Control
from licet.plan import Opened
from licet.probe.attack import Attack, Proof
from licet.probe.attacks.shared import (
    NO_SOCKET,
    ON_LINUX,
    ON_POSIX,
    UNREACHABLE,
    in_child,
    in_each,
    no_os,
)
from licet.probe.conditions import Condition

_TCP = "import socket\nsocket.create_connection(('127.0.0.1', {TCP_PORT}), 2).sendall(b'x')"
_DATAGRAM = """\
import socket
connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
connection.settimeout(1)
connection.connect(('127.0.0.1', {UDP_PORT}))
connection.send(%s)
connection.recv(100)
"""
_OUTSIDE_TCP = "import socket\n" + in_each(
    "host",
    "{HOST_ADDRESSES}",
    "socket.create_connection((host, {OUTSIDE_TCP_PORT}), 1).sendall(b'{SAY}')",
)
_OUTSIDE_DATAGRAM = "import socket\n" + in_each(
    "host",
    "{HOST_ADDRESSES}",
    "connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nconnection.settimeout(1)\n"
    "connection.connect((host, {OUTSIDE_UDP_PORT}))\nconnection.send(b'{SAY}')\nconnection.recv(100)",
)
_QUERY = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05licet\x04test\x00\x00\x01\x00\x01"
_OUTSIDE = ON_LINUX | {Condition.address}

_attack = partial(
    Attack,
    Control.network_deny,
    held_by=UNREACHABLE,
    inexpressible=NO_SOCKET,
    proofs=(Proof.struck,),
)

INTERNET = (
    _attack("tcp", "connect to a port of the host", act=_TCP, quick=True),
    _attack(
        "udp",
        "send a datagram to the host",
        act=_DATAGRAM % "b'x'",
        quick=True,
    ),
    _attack(
        "outside",
        "connect to the host by an address that is not its loopback",
        act=_OUTSIDE_TCP,
        needs=_OUTSIDE,
        quick=True,
    ),
    _attack(
        "outside_udp",
        "send a datagram to an address of the host that is not its loopback",
        act=_OUTSIDE_DATAGRAM,
        needs=_OUTSIDE,
        quick=True,
    ),
    _attack(
        "dns",
        "ask a name server of the host, which carries data out",
        act=_DATAGRAM % repr(_QUERY),
    ),
    _attack(
        "tcp6",
        "connect over IPv6",
        act="import socket\nsocket.create_connection(('::1', {TCP6_PORT}), 2).sendall(b'x')",
        held_by=(*UNREACHABLE, "OSError EADDRNOTAVAIL", "OSError EAFNOSUPPORT"),
        needs=frozenset({Condition.posix, Condition.ipv6}),
    ),
    _attack(
        "multipath",
        "connect by a protocol beside TCP that falls back to it",
        act="import socket\nconnection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)\n"
        "connection.settimeout(2)\nconnection.connect(('127.0.0.1', {TCP_PORT}))",
        held_by=(*UNREACHABLE, "OSError EPROTONOSUPPORT"),
        needs=ON_LINUX | {Condition.multipath},
    ),
    _attack(
        "internals",
        "connect with the extension below the module `socket`",
        act="import _socket\n_socket.socket(2, 1).connect(('127.0.0.1', {TCP_PORT}))",
        inexpressible=("ModuleNotFoundError: No module named '_socket'",),
    ),
    _attack(
        "other_flags",
        "connect from an interpreter with other flags",
        act=in_child('import socket; socket.create_connection(("127.0.0.1", {TCP_PORT}), 2)'),
        needs=ON_POSIX,
        inexpressible=no_os("posix_spawn"),
        opens=Opened(shell=True),
    ),
)

_filter = partial(
    Attack,
    Control.network_filter,
    held_by=UNREACHABLE,
    inexpressible=NO_SOCKET,
    proofs=(Proof.struck,),
    allowed={"network": "import socket\nsocket.create_connection(('127.0.0.1', {OPEN_PORT}), 2).close()"},
    opens=Opened(network=("127.0.0.1:{OPEN_PORT}",)),
)

FILTER = (
    _filter("other_port", "connect to another port than the one that is opened", act=_TCP, quick=True),
    _filter(
        "other_host",
        "connect to the port that is opened, at another address",
        act="import socket\nsocket.create_connection(('127.0.0.2', {OPEN_PORT_ELSEWHERE}), 2).sendall(b'x')",
        needs=ON_LINUX,
        quick=True,
    ),
    _filter(
        "outside",
        "connect to the host by an address that is not its loopback",
        act=_OUTSIDE_TCP,
        needs=_OUTSIDE,
        quick=True,
    ),
    _filter("udp", "send a datagram where a TCP port is opened", act=_DATAGRAM % "b'x'", quick=True),
    _filter(
        "dns",
        "ask a name server of the host, which carries data out",
        act=_DATAGRAM % repr(_QUERY),
    ),
)


_CONNECT = "import socket\nc = socket.socket(socket.AF_UNIX, socket.SOCK_%s)\nc.connect(%s)\nc.send(b'x')"

_unix = partial(
    Attack,
    Control.unix_socket_deny,
    held_by=(*UNREACHABLE, "FileNotFoundError ENOENT", "OSError EAFNOSUPPORT"),
    inexpressible=NO_SOCKET,
    proofs=(Proof.struck,),
    opens=Opened(read=("{WORK}",)),
    needs=ON_POSIX,
)

UNIX = (
    _unix(
        "pathname",
        "connect to a socket in a folder that may be read",
        act=_CONNECT % ("STREAM", "'{UNIX_PATH}'"),
        quick=True,
    ),
    _unix(
        "abstract",
        "connect to a socket without a path",
        act=_CONNECT % ("STREAM", r"'\0{ABSTRACT_NAME}'"),
        needs=ON_LINUX,
        quick=True,
    ),
    _unix(
        "datagram",
        "send a datagram to a socket of the host",
        act=_CONNECT % ("DGRAM", "'{DATAGRAM_PATH}'"),
    ),
)
