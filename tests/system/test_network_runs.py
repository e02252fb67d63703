"""Code that connects, from its request to the host that it reaches: chosen by contract, decided, recorded."""

import os
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from licet import Runtime
from licet.record import MemoryLog
from licet.supervise.jail import ground
from licet.supervise.notify.standing import shortfall

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or (ground().refusal or shortfall()) is not None,
    reason="needs a Linux that lets this user make jails, and look into them",
)


@pytest.fixture
def port() -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                with listener.accept()[0] as connection:
                    connection.sendall(b"hello\n")
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


_QUICK = "sandbox: {evidence: declared}\n"  # the attacks have tests of their own


class House:
    def __init__(self, folder: Path, policy: str) -> None:
        (folder / "p.yaml").write_text(f"licet: 1\nextends: licet:compute\n{_QUICK}{policy}")
        self.log = MemoryLog()
        self.runtime = Runtime(folder / "p.yaml", log=self.log, managed=folder / "none")

    def run(self, code: str) -> Any:
        return self.runtime.run_sync(code)

    def connections(self) -> list[tuple[str, bool]]:
        bodies = [record.entry.body for record in self.log.records() if record.entry.kind == "access"]
        return [
            (body["target"], body["allowed"])
            for body in bodies
            if "allowed" in body and body["action"] == "network"
        ]

    def outcomes(self) -> list[tuple[str, str]]:
        bodies = [record.entry.body for record in self.log.records() if record.entry.kind == "access"]
        return [(body["target"], body["outcome"]) for body in bodies if "outcome" in body]


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    root = Path(os.path.realpath(tmp_path)) / "p"
    root.mkdir()
    monkeypatch.chdir(root)
    opened: list[House] = []

    def make(policy: str) -> House:
        opened.append(House(root, policy))
        return opened[-1]

    yield make
    for one in opened:
        one.runtime.close()


TALK = """\
import socket
def talk(host, port):
    try:
        with socket.create_connection((host, port), 5) as c:
            return c.recv(10)
    except OSError as problem:
        return type(problem).__name__
"""


def test_an_opened_address_is_reached_and_others_are_not(house: Any, port: int) -> None:
    at = house(f"allow: [network 127.0.0.1:{port}]\nscreen: {{mode: report}}\n")
    code = f"{TALK}\n[talk(host, {port}) for host in ('127.0.0.1', 'localhost', '127.0.0.2', 'x.example')]"
    found = at.run(code)
    assert found.backend.name == "restricted_linux"
    assert found.value == [b"hello\n", b"hello\n", "PermissionError", "PermissionError"]
    assert at.connections() == [
        (f"127.0.0.1:{port}", True),
        (f"127.0.0.1:{port}", True),
        (f"127.0.0.2:{port}", False),
        (f"x.example:{port}", False),
    ]
    assert at.outcomes() == [(f"127.0.0.1:{port}", "connected")] * 2


def test_a_name_that_leads_inside_is_not_opened_by_its_name(house: Any, port: int) -> None:
    at = house(f"allow: [network localhost:{port}]\nscreen: {{mode: report}}\n")
    assert at.run(f"{TALK}\ntalk('localhost', {port})").value == "PermissionError"
    assert at.connections() == [(f"localhost:{port}", True)]  # it was opened, and led where nothing is
    assert at.outcomes() == [(f"localhost:{port}", "PermissionError")]


def test_certificates_can_be_checked(house: Any) -> None:
    if not ssl.create_default_context().cert_store_stats()["x509_ca"]:
        pytest.skip("this host trusts nobody")
    at = house("allow: [network shop.example:443]\nscreen: {mode: report}\n")
    code = "import ssl\nssl.create_default_context().cert_store_stats()['x509_ca'] > 0"
    assert at.run(code).value is True
