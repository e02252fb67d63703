"""Code in a jail that opens hosts: what it reaches, and what it learns where it does not."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from licet import supervise
from licet.supervise.jail import Jail, JailLauncher, needs
from licet.supervise.notify.gate import MOST_ASKED
from licet.supervise.notify.standing import shortfall

pytestmark = pytest.mark.skipif(shortfall() is not None, reason=str(shortfall()))

Connect = Callable[[str, int], Coroutine[Any, Any, int]]


@pytest.fixture
def server() -> Iterator[int]:
    """A port that answers each line with the same line, until it is closed."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=200)

    def serve(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines, contextlib.suppress(OSError):
            for line in lines:
                if line == b"reset\n":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
                if line.startswith(b"GET "):
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                elif line[:1].islower():
                    connection.sendall(line)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@dataclass
class Host:
    """Connects to the server under every name in `opens`, and refuses all others."""

    port: int
    opens: tuple[str, ...] = ("127.0.0.1", "shop.example", "a.wild.example")
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def connect(self, host: str, port: int) -> int:
        self.asked.append((host, port))
        if host not in self.opens:
            raise PermissionError(f"`{host}` is not opened")
        connection = socket.socket()
        try:
            connection.setblocking(False)
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
            return connection.detach()
        finally:
            connection.close()


@dataclass(frozen=True)
class Ran:
    ended: supervise.ProcessOutcome
    stderr: str

    @property
    def value(self) -> Any:
        assert (self.ended.exit_code, self.stderr) == (0, "")
        return self.ended.report.value


def run(launcher: JailLauncher, folder: Path, connect: Connect | None, code: str, **fields: Any) -> Ran:
    jail = fields.pop("jail", {})
    shown = Jail(needs(), str(folder), network=True, names=("shop.example",), **jail)
    heard = bytearray()

    def hear(stream: str, data: bytes) -> bool:
        if stream == "stderr":
            heard.extend(data)
        return True

    fields = {"wall_time": 20.0, **fields}
    spec = supervise.Spec(
        supervise.Snippet(code), str(folder), interpreter=needs().program, jail=shown, **fields
    )
    ended = asyncio.run(supervise.run(spec, hear, launcher, connect=connect))
    ended.drop()
    return Ran(ended, heard.decode())


@pytest.fixture
def told(launcher: JailLauncher, tmp_path: Path, server: int) -> Callable[..., Any]:
    """Run code that knows `PORT` and `tell`, by a host that opens the server; return its value."""

    def told(code: str, host: Host | None = None, **fields: Any) -> Any:
        connect = (host or Host(server)).connect
        return run(launcher, tmp_path, connect, f"{_TELL}\nPORT = {server}\n{code}", **fields).value

    return told


_TELL = """\
import errno, socket
def tell(act):
    try:
        return act()
    except OSError as problem:
        return errno.errorcode.get(problem.errno, str(problem))
def talk(host, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_STREAM) as c:
        c.settimeout(5)
        c.connect((host, PORT))
        c.sendall(b'hi\\n')
        return c.recv(10)
"""


@pytest.mark.parametrize("host", ["127.0.0.1", "shop.example", "SHOP.example", "a.wild.example"])
def test_what_is_opened_is_reached_by_address_and_by_name(
    told: Callable[..., Any], server: int, host: str
) -> None:
    outside = Host(server)
    assert told(f"talk({host!r})", outside) == b"hi\n"
    assert outside.asked == [(host.lower(), server)]


@pytest.mark.parametrize("host", ["127.0.0.2", "closed.example", "198.18.77.7", "::1", "localhost.example"])
def test_what_is_not_opened_is_refused_by_the_host(told: Callable[..., Any], server: int, host: str) -> None:
    outside, family = Host(server), "socket.AF_INET6" if ":" in host else "socket.AF_INET"
    assert told(f"tell(lambda: talk({host!r}, {family}))", outside) == "EACCES"
    assert outside.asked == [(host, server)]


def test_an_ipv4_address_inside_ipv6_is_that_address(told: Callable[..., Any], server: int) -> None:
    outside = Host(server)
    assert told("talk('::ffff:127.0.0.1', socket.AF_INET6)", outside) == b"hi\n"
    assert outside.asked == [("127.0.0.1", server)]


@pytest.mark.parametrize(
    ("act", "seen"),
    [
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", "EPERM"),
        ("socket.socket(socket.AF_UNIX)", "EPERM"),
        ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", "EPERM"),
        ("socket.socket(socket.AF_INET, socket.SOCK_RAW)", "EPERM"),
        ("socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)", "EPERM"),
        ("socket.socketpair()[0].connect('/run/x')", "EACCES"),
        ("socket.socketpair()[0].connect('\\0x')", "EACCES"),
        ("socket.socket().bind(('127.0.0.1', 0))", "EPERM"),
        ("socket.socket().listen()", "EPERM"),
        ("socket.socket().connect(('127.0.0.1', 1))", "ECONNREFUSED"),
        ("socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', PORT))", "EPERM"),
        ("socket.socket().sendmsg([b'x'], [], 0x20000000, ('127.0.0.1', PORT))", "EPERM"),
    ],
)
def test_nothing_but_tcp_and_nothing_by_the_way(told: Callable[..., Any], act: str, seen: str) -> None:
    assert told(f"tell(lambda: {act})") == seen


def test_a_call_that_is_none_is_refused_as_the_kernel_would(told: Callable[..., Any]) -> None:
    code = """\
import ctypes, os
library = ctypes.CDLL(None, use_errno=True)
good = (socket.AF_INET).to_bytes(2, 'little') + PORT.to_bytes(2, 'big') + bytes([127, 0, 0, 1]) + bytes(8)
def call(fd, address, length):
    return library.connect(fd, address, length) and errno.errorcode[ctypes.get_errno()]
c, pair = socket.socket(), socket.socketpair()
six = (socket.AF_INET6).to_bytes(2, 'little') + bytes(26)
found = [call(999, good, 16), call(0, good, 16), call(-1, good, 16), call(c.fileno(), ctypes.c_void_p(8), 16),
         call(c.fileno(), good, 1), call(c.fileno(), good, -1), call(c.fileno(), good, 8),
         call(c.fileno(), six, 28), call(c.fileno(), bytes(16), 16), call(c.fileno(), good + bytes(200), 200),
         call(c.fileno(), good, 16), call(c.fileno(), good, 16)]
found
"""
    assert told(code) == [
        *("EBADF", "ENOTSOCK", "EBADF", "EFAULT"),
        *("EINVAL", "EINVAL", "EINVAL"),
        *("EAFNOSUPPORT", "EAFNOSUPPORT", "EINVAL"),
        *(0, "EISCONN"),
    ]


def test_what_was_set_on_a_socket_stays(told: Callable[..., Any]) -> None:
    code = """\
import fcntl, os
c = socket.socket()
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
c.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 77)
before = c.fileno()
c.connect(('shop.example', PORT))
first = (c.fileno() == before, c.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
         c.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
         c.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), os.get_blocking(before),
         os.get_inheritable(before))
d = socket.socket()
d.setblocking(False)
d.set_inheritable(True)
d.connect(('127.0.0.1', PORT))
(first, os.get_blocking(d.fileno()), os.get_inheritable(d.fileno()))
"""
    assert told(code) == ((True, 1, 1, 77, True, False), False, True)


def test_libraries_work_as_they_are(told: Callable[..., Any]) -> None:
    code = """\
import asyncio, http.client, urllib.request
kept = http.client.HTTPConnection('shop.example', PORT)
seen = []
for _ in range(2):
    kept.request('GET', '/')
    seen.append(kept.getresponse().read())
seen.append(urllib.request.urlopen(f'http://a.wild.example:{PORT}/').read())
async def talk():
    reader, writer = await asyncio.open_connection('shop.example', PORT)
    writer.write(b'hi\\n')
    line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return line
async def all():
    return await asyncio.gather(*(talk() for _ in range(50)))
seen.append(set(asyncio.run(all())))
seen
"""
    assert told(code) == [b"ok", b"ok", b"ok", {b"hi\n"}]


def test_another_program_connects_the_same_way(told: Callable[..., Any]) -> None:
    if not Path("/usr/bin/curl").exists():
        pytest.skip("no curl here")
    jail = {"programs": True, "read": ("/usr", "/bin", "/lib", "/lib64", "/etc/ssl")}
    code = """\
import subprocess
command = ['/usr/bin/curl', '-sS', f'http://a.wild.example:{PORT}/']
subprocess.run(command, capture_output=True, text=True).stdout
"""
    assert told(code, jail={key: _there(value) for key, value in jail.items()}) == "ok"


def _there(value: Any) -> Any:
    return tuple(path for path in value if not Path(path).is_symlink()) if isinstance(value, tuple) else value


def test_many_at_once_from_threads(told: Callable[..., Any], server: int) -> None:
    outside = Host(server)
    code = "from concurrent.futures import ThreadPoolExecutor as T\nwith T(50) as t:\n"
    assert told(f"{code}    r = list(t.map(talk, ['shop.example'] * 100))\nset(r)", outside) == {b"hi\n"}
    assert len(outside.asked) == 100


def test_a_host_that_waits_holds_up_nothing_else(launcher: JailLauncher, tmp_path: Path, server: int) -> None:
    """One connection is answered only once another was made, by the same code."""
    outside, second = Host(server), asyncio.Event()

    async def connect(host: str, port: int) -> int:
        if host == "127.0.0.1":
            second.set()
        else:
            await second.wait()
        return await outside.connect(host, port)

    code = f"{_TELL}\nPORT = {server}\nimport threading\nfound = []\n"
    code += "t = threading.Thread(target=lambda: found.append(talk('shop.example')))\nt.start()\n"
    code += "found.append(talk('127.0.0.1'))\nt.join()\nfound"
    assert run(launcher, tmp_path, connect, code).value == [b"hi\n", b"hi\n"]


def test_what_can_wait_at_once_is_bounded(launcher: JailLauncher, tmp_path: Path) -> None:
    asked = []

    async def connect(host: str, port: int) -> int:
        asked.append(host)
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    code = f"{_TELL}\nPORT = 80\nimport os, sys, threading\nfound, enough = [], threading.Semaphore(0)\n"
    code += "def one():\n    found.append(tell(lambda: talk('shop.example')))\n    enough.release()\n"
    code += "for _ in range(300):\n    threading.Thread(target=one, daemon=True).start()\n"
    code += "for _ in range(44):\n    enough.acquire()\n"
    code += "print(sorted(set(found)), len(found), flush=True, file=sys.stderr)\nos._exit(0)"
    ran = run(launcher, tmp_path, connect, code)
    assert (ran.stderr, len(asked)) == ("['ENOBUFS'] 44\n", MOST_ASKED)


def test_an_end_while_the_host_is_asked_leaves_nothing(launcher: JailLauncher, tmp_path: Path) -> None:
    cancelled = []

    async def connect(host: str, port: int) -> int:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(host)
        return -1

    before = len(os.listdir("/proc/self/fd"))
    code = "import socket\nsocket.create_connection(('shop.example', 80))"
    ran = run(launcher, tmp_path, connect, code, wall_time=1.0)
    assert (ran.ended.reason, cancelled) == (supervise.Reason.timeout, ["shop.example"])
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_host_that_breaks_ends_the_run(launcher: JailLauncher, tmp_path: Path) -> None:
    async def connect(host: str, port: int) -> int:
        raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        run(launcher, tmp_path, connect, "import socket\nsocket.create_connection(('shop.example', 80))")


def test_without_a_host_nobody_connects(launcher: JailLauncher, tmp_path: Path) -> None:
    ran = run(launcher, tmp_path, None, "import socket\nsocket.create_connection(('127.0.0.1', 80), 1)")
    error = ran.ended.report.error
    assert error is not None and error.type == "PermissionError"


@pytest.mark.parametrize(
    ("problem", "seen"),
    [
        (PermissionError("no"), errno.EACCES),
        (TimeoutError("late"), errno.ETIMEDOUT),
        (socket.gaierror(-2, "unknown"), errno.EHOSTUNREACH),
        (ConnectionRefusedError(errno.ECONNREFUSED, "no"), errno.ECONNREFUSED),
        (OSError("odd"), errno.EHOSTUNREACH),
        (OSError(errno.ENOSYS, "odd"), errno.EHOSTUNREACH),
    ],
)
def test_why_it_failed_is_told_by_number(
    launcher: JailLauncher, tmp_path: Path, problem: OSError, seen: int
) -> None:
    async def connect(host: str, port: int) -> int:
        raise problem

    code = f"{_TELL}\nPORT = 80\nimport errno\ntell(lambda: talk('shop.example'))"
    assert run(launcher, tmp_path, connect, code).value == errno.errorcode[seen]


def test_a_signal_does_not_end_a_connection_that_is_asked_for(
    launcher: JailLauncher, tmp_path: Path, server: int
) -> None:
    outside = Host(server)

    async def connect(host: str, port: int) -> int:
        await asyncio.sleep(0.3)
        return await outside.connect(host, port)

    code = f"{_TELL}\nPORT = {server}\nimport signal\nheard = []\n"
    code += "signal.signal(signal.SIGALRM, lambda *_: heard.append(1))\n"
    code += "signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)\nfound = talk('shop.example')\n"
    code += "signal.setitimer(signal.ITIMER_REAL, 0)\n(found, bool(heard))"
    assert run(launcher, tmp_path, connect, code).value == (b"hi\n", True)
    assert len(outside.asked) == 1


def test_a_connection_that_broke_can_be_made_anew_by_asking_alone(
    told: Callable[..., Any], server: int
) -> None:
    code = """\
c = socket.create_connection(('shop.example', PORT))
c.sendall(b'reset\\n')
tell(lambda: c.recv(1))
again = [tell(lambda: c.sendto(b'x', flags, ('127.0.0.1', PORT))) for flags in (0x20000000, 0, 0x20000000)]
closed = [tell(lambda: c.connect((host, PORT))) for host in ('127.0.0.2', 'shop.example')]
c.sendall(b'hi\\n')
(again, closed, c.recv(10))
"""
    outside = Host(server)
    again, closed, heard = told(code, outside)
    assert ([again[0], again[2]], closed, heard) == (["EPERM", "EPERM"], ["EACCES", None], b"hi\n")
    assert [host for host, _ in outside.asked] == ["shop.example", "127.0.0.2", "shop.example"]


def test_names_without_end_are_bounded(told: Callable[..., Any], server: int) -> None:
    code = """\
def look(n):
    try:
        return socket.gethostbyname(f'n{n}.example')
    except socket.gaierror:
        return None
found = [look(n) for n in range(4100)]
(found[0], found.count(None), len(set(found)))
"""
    assert told(code, wall_time=60.0) == ("198.18.1.1", 5, 4096)


@pytest.mark.parametrize("shown", ["/", "/etc"])
def test_files_of_the_host_about_names_are_covered(told: Callable[..., Any], shown: str) -> None:
    jail = {"read": (shown,)}
    code = "import os\n(talk('shop.example'), talk('a.wild.example'), open('/etc/hosts').read(), "
    code += "[tell(lambda: open(f, 'a')) for f in ('/etc/hosts', '/dev/.texts/etc/hosts')], "
    code += "[tell(lambda: os.chmod(f, 0)) for f in ('/etc/hosts', '/dev/.texts/etc/hosts')])"
    first, second, hosts, *changed = told(code, jail=jail)
    assert (first, second) == (b"hi\n", b"hi\n")
    assert hosts == "127.0.0.1 localhost\n198.18.1.0 shop.example\n"
    assert {number for numbers in changed for number in numbers} <= {"EROFS", "EACCES", "EPERM"}
