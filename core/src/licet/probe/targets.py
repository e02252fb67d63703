"""What one run of an attack aims at: files, sockets and a process, made as its program names them.

Rules this module keeps:

- only what a program names is made; whatever was made or started is gone when the targets are closed;
- whether a target was hit is seen on the target itself, and not heard from the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from licet.probe import messages, places
from licet.probe.trial import Ear

_PLACEHOLDER = re.compile(r"\{([A-Z][A-Z0-9_]*)\}")
_SIBLING = "import sys, time; time.sleep(30)"
_SHOWS_S = 3.0  # what a process may need to die of a signal
_SAYS_S = 0.5  # what a mark may need that was sent by now


class Targets:
    """The targets of one run. `fill` makes those that a text names; `struck` tells whether one was hit."""

    def __init__(self, root: Path, token: str, variable: str, secret: str | None = None) -> None:
        self.root = root
        self.token = token
        self.variable = variable
        self.work = root / "work"
        self.outside = root / "outside"
        for folder in (self.root, self.work, self.outside):
            _make_public(folder)
        self.say = f"probe-{secrets.token_hex(4)}"
        self.secret = secret or f"secret-{secrets.token_hex(8)}"
        self.factors = (secrets.randbelow(9000) + 1000, secrets.randbelow(9000) + 1000)
        self._values: dict[str, str] = {}
        self._struck: list[Callable[[], bool]] = []
        self._closing = contextlib.ExitStack()

    def fill(self, text: str) -> str:
        """Replace the placeholders of `text`, making what they name."""
        return _PLACEHOLDER.sub(self._value, text)

    def struck(self, *, expected: bool = False) -> bool:
        """Whether a target shows a blow; blocks where one is `expected`, until it shows."""
        until = time.monotonic() + (_SHOWS_S if expected and self._struck else 0)
        while not (found := any(look() for look in self._struck)) and time.monotonic() < until:
            time.sleep(0.01)
        return found

    def ear(self, **options: Any) -> Ear:
        """A host that hears the program of this run."""
        return Ear(self.say, answer=self.factors[0] * self.factors[1], **options)

    def secret_file(self) -> Path:
        """A file outside of the working directory, with the secret in it."""
        return self._secret_in(self.outside)

    def close(self) -> None:
        """Close what is open and end what runs."""
        self._closing.close()

    def _value(self, match: re.Match[str]) -> str:
        name = match[1]
        maker = _MAKERS.get(name)
        if maker is None:
            return match[0]
        if name not in self._values:
            value = maker(self)
            self._values[name] = value.as_posix() if isinstance(value, Path) else str(value)
        return self._values[name]

    # -- what placeholders name

    def _secret_name(self) -> str:
        self.secret_file()
        name = f"name-{secrets.token_hex(4)}"
        (self.outside / name).write_text(self.secret)
        return name

    def _secret_in(self, folder: Path) -> Path:
        path = folder / "secret.txt"
        if not path.exists():
            path.write_text(self.secret)
            path.chmod(0o644)
        return path

    def _allowed_file(self) -> Path:
        path = self.work / "allowed.txt"
        path.write_text("allowed")
        return path

    def _link(self, target: Path) -> Path:
        link = self.work / f"link-{target.name}"
        link.symlink_to(target)
        return link

    def _by_dots(self, target: Path) -> str:
        return f"{self.work.as_posix()}/../{target.relative_to(self.root).as_posix()}"

    def _canary(self) -> Path:
        return self._canary_in(self.outside)

    def _canary_in(self, folder: Path) -> Path:
        path = folder / "canary.txt"
        self._struck.append(path.exists)
        return path

    def _victim(self) -> Path:
        return self._victim_in(self.outside)

    def _victim_in(self, folder: Path) -> Path:
        path = folder / "victim.txt"
        if not path.exists():
            path.write_text("untouched")
            path.chmod(0o644)
            self._struck.append(lambda: not _untouched(path))
        return path

    def _elsewhere(self, make: Callable[[Path], Path]) -> list[str]:
        """What `make` makes, in a folder of this run at each of the other places of the host."""
        return [make(self._folder_in(place)).as_posix() for place in places.folders()]

    def _folder_in(self, place: Path) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="licet-probe-", dir=place))
        self._closing.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        return folder

    def _listen(
        self,
        family: int,
        address: Any,
        kind: int = socket.SOCK_STREAM,
        *,
        aim: bool = True,
        mark: bytes = b"",
    ) -> Any:
        """Listen at `address`; where anybody can reach it, what came has to begin with `mark`."""
        listener = self._closing.enter_context(socket.socket(family, kind))
        listener.setblocking(False)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(16)
        if aim:
            self._struck.append(lambda: _arrived(listener, kind, mark))
        return listener.getsockname()

    def _port(
        self,
        family: int = socket.AF_INET,
        host: str = "127.0.0.1",
        *,
        aim: bool = True,
        mark: bytes = b"",
    ) -> int:
        return int(self._listen(family, (host, 0), aim=aim, mark=mark)[1])

    def _same_port(self) -> int:
        """The number of the open port, at another address of the host."""
        return int(self._listen(socket.AF_INET, ("127.0.0.2", int(self.fill("{OPEN_PORT}"))))[1])

    def _echo(self, host: str = "127.0.0.1", mark: bytes = b"") -> int:
        """A port that answers datagrams, as a name server does; only those that begin with `mark`."""
        server = self._closing.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        server.setblocking(False)
        server.bind((host, 0))
        heard = []
        loop = asyncio.get_running_loop()

        def answer() -> None:
            with contextlib.suppress(OSError):
                data, sender = server.recvfrom(100)
                if data.startswith(mark):
                    heard.append(sender)
                    server.sendto(b"answer", sender)

        try:
            loop.add_reader(server.fileno(), answer)
        except NotImplementedError:  # the loop of Windows: nobody answers, but it arrives
            self._struck.append(lambda: _arrived(server, socket.SOCK_DGRAM, mark))
        else:
            self._closing.callback(loop.remove_reader, server.fileno())
            self._struck.append(lambda: bool(heard))
        return int(server.getsockname()[1])

    def _path_socket(self, name: str, kind: int = socket.SOCK_STREAM) -> str:
        # bound by its short name, since the whole path may be longer than a socket's may be
        path = str(self.work / name)
        self._listen(socket.AF_UNIX, path, kind)
        return path

    def _abstract(self) -> str:
        name = f"licet-{secrets.token_hex(8)}"
        self._listen(socket.AF_UNIX, f"\0{name}")
        return name

    def _sibling(self) -> int:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _SIBLING, self.secret],
            env={**os.environ, self.variable: self.secret},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

        def end() -> None:
            process.kill()
            process.wait()

        self._closing.callback(end)
        self._struck.append(lambda: process.poll() is not None)
        return process.pid


def _make_public(folder: Path) -> None:
    """Make a folder that other users may enter, so that no mere mode bit passes for a wall."""
    folder.mkdir()
    folder.chmod(0o755)


def _untouched(path: Path) -> bool:
    return path.exists() and path.stat().st_mode & 0o777 == 0o644 and path.read_text() == "untouched"


def _arrived(listener: socket.socket, kind: int, mark: bytes) -> bool:
    """Whether a blow came that begins with `mark`; the kernel's queue keeps it until it is looked for."""
    with contextlib.suppress(OSError):  # nothing waits there any more
        while not _next(listener, kind, mark).startswith(mark):
            pass
        return True
    return False


def _next(listener: socket.socket, kind: int, mark: bytes) -> bytes:
    if kind != socket.SOCK_STREAM:
        return listener.recv(100)
    connection, _ = listener.accept()
    with connection:
        if not mark:
            return b""
        connection.settimeout(_SAYS_S)
        try:
            return connection.recv(len(mark))
        except OSError:  # a stranger that says nothing
            return b""


def _system_file() -> Path:
    return (
        Path(os.environ.get("SYSTEMROOT", "C:/Windows"), "win.ini")
        if os.name == "nt"
        else Path("/etc/passwd")
    )


def _system_text(_: Targets) -> str:
    return _system_file().read_text("utf-8", "replace").splitlines()[0]


def _boot_id(_: Targets) -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


_MAKERS: dict[str, Callable[[Targets], object]] = {
    "SAY": lambda t: t.say,
    "TOKEN": lambda t: t.token,
    "SECRET": lambda t: t.secret,
    "VARIABLE": lambda t: t.variable,
    "FACTOR": lambda t: t.factors[0],
    "OTHER_FACTOR": lambda t: t.factors[1],
    "SUM": lambda t: sum(t.factors),
    "WORK": lambda t: t.work,
    "OUTSIDE": lambda t: t.secret_file().parent,
    "SECRET_FILE": lambda t: t.secret_file(),
    "SECRET_NAME": Targets._secret_name,
    "SECRET_LINK": lambda t: t._link(t.secret_file()),
    "OUTSIDE_LINK": lambda t: t._link(t.secret_file().parent),
    "VICTIM_IN_LINK": lambda t: t._link(t._victim().parent) / t._victim().name,
    "SECRET_BY_DOTS": lambda t: t._by_dots(t.secret_file()),
    "VICTIM_BY_DOTS": lambda t: t._by_dots(t._victim()),
    "ALLOWED_FILE": Targets._allowed_file,
    "CANARY_FILE": Targets._canary,
    "VICTIM_FILE": Targets._victim,
    "SECRET_FILES_ELSEWHERE": lambda t: t._elsewhere(t._secret_in),
    "CANARY_FILES_ELSEWHERE": lambda t: t._elsewhere(t._canary_in),
    "VICTIM_FILES_ELSEWHERE": lambda t: t._elsewhere(t._victim_in),
    "VICTIM_LINK": lambda t: t._link(t._victim()),
    "TCP_PORT": Targets._port,
    "TCP6_PORT": lambda t: t._port(socket.AF_INET6, "::1"),
    "OPEN_PORT": lambda t: t._port(aim=False),
    "OPEN_PORT_ELSEWHERE": Targets._same_port,
    "UDP_PORT": Targets._echo,
    "HOST_ADDRESSES": lambda t: [*places.addresses()],
    "OUTSIDE_TCP_PORT": lambda t: t._port(host="", mark=t.say.encode()),
    "OUTSIDE_UDP_PORT": lambda t: t._echo("", t.say.encode()),
    "UNIX_PATH": lambda t: t._path_socket("s.sock"),
    "DATAGRAM_PATH": lambda t: t._path_socket("d.sock", socket.SOCK_DGRAM),
    "ABSTRACT_NAME": Targets._abstract,
    "SIBLING": Targets._sibling,
    "SHARED_MEMORY": lambda t: t._closing.enter_context(messages.shared_memory(t.secret)),
    "MESSAGE_QUEUE": lambda t: t._closing.enter_context(messages.queue(t.secret)),
    "SYSTEM_FILE": lambda t: _system_file(),
    "SYSTEM_TEXT": _system_text,
    "HOST_FOLDER": lambda t: os.environ["USERPROFILE"],
    "BOOT_ID": _boot_id,
}
