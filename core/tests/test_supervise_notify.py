"""Names and addresses of code that has no network: what is read from its words, and what it is told."""

from __future__ import annotations

import errno
import ipaddress
import select
import socket
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

if sys.platform != "linux":
    pytest.skip("connections are made for code on Linux alone", allow_module_level=True)

from licet.supervise.notify.address import Place, place
from licet.supervise.notify.dns import LONGEST, Conversation, NoQuery, answer
from licet.supervise.notify.gate import complete
from licet.supervise.notify.names import MOST, Names, files


def inet(host: str, port: int) -> bytes:
    return struct.pack("=H", socket.AF_INET) + port.to_bytes(2, "big") + socket.inet_aton(host) + bytes(8)


def inet6(host: str, port: int, scope: int = 0) -> bytes:
    packed = socket.inet_pton(socket.AF_INET6, host)
    return (
        struct.pack("=H", socket.AF_INET6) + port.to_bytes(2, "big") + bytes(4) + packed + scope.to_bytes(4)
    )


@given(st.ip_addresses(), st.integers(0, 65535))
def test_an_address_is_read_as_what_it_is(address: Any, port: int) -> None:
    family, data = (socket.AF_INET, inet) if address.version == 4 else (socket.AF_INET6, inet6)
    inside = address.ipv4_mapped if address.version == 6 else None
    assert place(data(str(address), port), family) == Place(str(inside or address), port)


@pytest.mark.parametrize(
    ("data", "family", "number"),
    [
        (b"", socket.AF_INET, errno.EINVAL),
        (b"\0\0", socket.AF_INET, errno.EAFNOSUPPORT),
        (inet("1.2.3.4", 1)[:15], socket.AF_INET, errno.EINVAL),
        (inet6("::1", 1)[:23], socket.AF_INET6, errno.EINVAL),
        (inet("1.2.3.4", 1), socket.AF_INET6, errno.EAFNOSUPPORT),
        (inet("1.2.3.4", 1), socket.AF_UNIX, errno.EACCES),
        (inet6("fe80::1", 1, 2), socket.AF_INET6, errno.EACCES),
        (struct.pack("=H", socket.AF_UNIX) + b"/run/x", socket.AF_INET, errno.EACCES),
    ],
)
def test_what_leads_nowhere_is_told_by_number(data: bytes, family: int, number: int) -> None:
    with pytest.raises(OSError) as found:
        place(data, family)
    assert found.value.errno == number


@given(st.binary(max_size=128), st.sampled_from([socket.AF_INET, socket.AF_INET6, socket.AF_UNIX]))
def test_whatever_is_no_address_is_refused(data: bytes, family: int) -> None:
    try:
        host, port = place(data, family)
    except OSError as problem:
        assert problem.errno in (errno.EINVAL, errno.EACCES, errno.EAFNOSUPPORT)
    else:
        assert str(ipaddress.ip_address(host)) == host
        assert 0 <= port < 65536


def query(name: str, kind: int = 1, *, group: int = 1, flags: int = 0x100, questions: int = 1) -> bytes:
    labels = b"".join(len(label).to_bytes(1) + label.encode() for label in name.split("."))
    return (
        struct.pack("!6H", 77, flags, questions, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, group)
    )


def told(data: bytes) -> tuple[int, int, bytes]:
    """The code of an answer, how many addresses are in it, and its last bytes."""
    number, flags, _, answers, *_ = struct.unpack_from("!6H", data)
    assert (number, flags & 0x8000) == (77, 0x8000)
    return flags & 15, answers, data[-4:]


def test_every_name_has_an_address_and_nothing_else() -> None:
    names = Names(["shop.example"])
    first, second = bytes([198, 18, 1, 0]), bytes([198, 18, 1, 1])
    assert told(answer(query("SHOP.Example"), names.address)) == (0, 1, first)
    assert told(answer(query("other.example"), names.address)) == (0, 1, second)
    assert (names.name("198.18.1.1"), names.name("198.18.1.2")) == ("other.example", None)
    for kind in (2, 5, 15, 16, 28, 255):
        assert told(answer(query("shop.example", kind), names.address))[:2] == (0, 0)
    assert told(answer(query("shop.example", group=3), names.address))[:2] == (5, 0)
    assert told(answer(query("shop.example", flags=0x2900), names.address))[:2] == (4, 0)
    assert told(answer(query("shop.example", questions=2), names.address))[:2] == (1, 0)


@pytest.mark.parametrize("name", ["", "a b.example", "-a.example", "é.example", ".".join(["a" * 60] * 5)])
def test_what_is_no_host_name_is_unknown(name: str) -> None:
    labels = name.encode().split(b".") if name else []
    said = b"".join(bytes([len(label)]) + label for label in labels)
    data = struct.pack("!6H", 77, 0x100, 1, 0, 0, 0) + said + b"\0" + struct.pack("!HH", 1, 1)
    assert told(answer(data, Names().address))[:2] == (3, 0)


@given(st.binary(max_size=200), st.lists(st.integers(1, 50), max_size=10))
def test_garbage_ends_the_conversation_or_is_waited_for(data: bytes, cuts: list[int]) -> None:
    names = Names()
    talk, rest = Conversation(names.address), data
    try:
        for cut in (*cuts, 1000):
            heard = talk.feed(rest[:cut])
            rest = rest[cut:]
            assert len(heard) <= 2 * LONGEST
    except NoQuery:
        pass
    assert len(tuple(names)) <= len(data) // 17


@given(st.lists(st.sampled_from(["a.example", "b.example", "c.example"]), max_size=6), st.data())
def test_queries_are_answered_in_order_however_they_arrive(asked: list[str], data: st.DataObject) -> None:
    names = Names()
    expected = [answer(query(name), names.address) for name in asked]
    stream = b"".join(len(one).to_bytes(2) + one for one in map(query, asked))
    talk, heard = Conversation(Names().address), b""
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        heard += talk.feed(stream[:cut])
        stream = stream[cut:]
    assert heard == b"".join(len(one).to_bytes(2) + one for one in expected)


def test_a_query_may_not_be_long_and_an_answer_is_none() -> None:
    with pytest.raises(NoQuery):
        Conversation(Names().address).feed((LONGEST + 1).to_bytes(2))
    with pytest.raises(NoQuery):
        answer(query("a.example", flags=0x8000), Names().address)
    looped = struct.pack("!6H", 77, 0x100, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1"
    with pytest.raises(NoQuery):
        answer(looped, Names().address)


def test_names_are_bounded_and_the_known_ones_are_the_same_everywhere() -> None:
    names = Names(["b.example", "a.example"])
    assert [names.address(f"n{n}.example") is None for n in range(MOST)].count(True) == 2
    assert told(answer(query("one.more"), names.address))[:2] == (2, 0)
    assert names.address("a.example") == "198.18.1.1"
    text = files(["b.example", "a.example"])["/etc/hosts"]
    assert text == "127.0.0.1 localhost\n198.18.1.0 b.example\n198.18.1.1 a.example\n"
    assert files(["localhost"])["/etc/hosts"] == "198.18.1.0 localhost\n"


def broken(finish: bool) -> socket.socket:
    """A connection that was made without waiting, and that the other end has reset."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(server.getsockname())
        select.select([], [connection], [])
        if finish:
            complete(connection)
        with server.accept()[0] as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    select.select([connection], [], [])
    return connection


@pytest.mark.skipif(
    not int(Path("/proc/sys/net/ipv4/tcp_fastopen").read_text()) & 1, reason="no fast open here"
)
@pytest.mark.parametrize(("finish", "arrives"), [(False, True), (True, False)])
def test_a_connection_that_was_completed_is_never_connected_anew(finish: bool, arrives: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere, broken(finish) as connection:
        told = []
        for _ in range(2):
            try:
                connection.sendto(b"x", socket.MSG_FASTOPEN, elsewhere.getsockname())
            except OSError as problem:
                told.append(problem.errno)
        assert bool(select.select([elsewhere], [], [], 0.5)[0]) is arrives
        assert (told == [errno.EISCONN] * 2) is finish
