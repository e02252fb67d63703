"""Hosts of their own: each holds the secret, runs what it is told, and ends with its prober."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from licet.backend import Backend, Descriptor, Host, Language, Outcome, Sandbox, Termination
from licet.contract import SandboxEnforcementContract
from licet.plan import ExecutionPlan, Opened
from licet.probe import traces
from licet.probe.hosts import Hosts
from licet.probe.listening import listen
from licet.probe.order import Order
from licet.probe.pace import Pace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, where hosts are watched")


class Telling:
    """A backend that tells of the process that it is in, or fails, as its code says."""

    def describe(self) -> Descriptor:
        return Descriptor("telling", "1", SandboxEnforcementContract(), Language("None"))

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return _Telling()

    async def close(self) -> None:
        return None


def _descriptors() -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # that of the listing
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return found


class _Telling:
    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        if plan.code == "fail":
            raise KeyError("oops")
        files = _descriptors()
        streams = [number in files for number in range(3)]
        told = {
            "environment": dict(os.environ),
            "parent": os.getppid(),
            "files": [*files.values()],
            "streams": streams,
        }
        host.write("stdout", json.dumps(told).encode())
        return Outcome(Termination.exited, exit_code=0)

    async def close(self) -> None:
        return None


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    made = Hosts()
    try:
        yield made
    finally:
        made.close()


def order(code: str) -> Order:
    return Order(code, {}, "/", {"wall_time": 5.0}, Opened())


class Heard:
    """What a host says, until it has ended."""

    def __init__(self, channel: socket.socket) -> None:
        self.pid = 0
        self.said: dict[str, Any] = {}
        self.ended = ""
        self.took = -1.0
        with channel.makefile("rb") as lines:
            for line in lines:
                content = json.loads(line)
                self.pid = content.get("host", self.pid)
                if "output" in content:
                    self.said = json.loads(content["output"])
                if "ended" in content:
                    self.ended, self.took = content["ended"], content["took"]
                    return


def hear(
    hosts: Hosts, holds: Path, code: str = "tell", backend: Backend | None = None
) -> tuple[socket.socket, Heard]:
    channel = hosts.ask(backend or Telling(), order(code), holds)
    return channel, Heard(channel)


class Lax(Telling):
    """One that may differ from what its class makes without arguments; it says so by `configuration`."""

    def __init__(self, configuration: str = "") -> None:
        self._configuration = configuration

    def describe(self) -> Descriptor:
        return replace(super().describe(), configuration=self._configuration)


class Set(Lax):
    """One that is set up in one way without arguments."""

    def __init__(self, configuration: str = "strict") -> None:
        super().__init__(configuration)


class Given(Lax):
    """One that can't be made without arguments."""

    def __init__(self, configuration: str) -> None:
        super().__init__(configuration)


@pytest.mark.parametrize(
    ("backend", "ended"),
    [
        (Set(), "exited 0"),
        (
            Set("lax"),
            "raised BackendError: `Set` made without arguments describes itself in another way",
        ),
        (Lax(), "raised BackendError: `Lax` takes arguments, and `configuration` does not tell which"),
        (
            Given("strict"),
            "raised BackendError: `Given` can't be made anew without arguments: TypeError: "
            "Given.__init__() missing 1 required positional argument: 'configuration'",
        ),
    ],
)
def test_a_host_runs_what_is_the_same_made_anew_and_nothing_else(
    hosts: Hosts, tmp_path: Path, backend: Backend, ended: str
) -> None:
    (tmp_path / "secret").write_text("x")
    channel, heard = hear(hosts, tmp_path / "secret", backend=backend)
    with channel:
        assert heard.ended == ended


def test_a_host_holds_the_secret_and_the_file_and_its_standard_streams(hosts: Hosts, tmp_path: Path) -> None:
    holds = tmp_path / "secret"
    holds.write_text("x")
    channel, heard = hear(hosts, holds)
    with channel:
        assert heard.ended == "exited 0"
        assert heard.took >= 0
        assert heard.said["environment"][hosts.variable] == hosts.secret
        assert str(holds) in heard.said["files"]
        assert heard.said["streams"] == [True, True, True]
    assert hosts.variable not in os.environ


def test_the_variable_of_each_scene_has_a_name_of_its_own() -> None:
    names = {Hosts().variable for _ in range(8)}
    assert len(names) == 8
    assert not any(re.search("LICET|PROBE|SECRET|KEY|TOKEN|PASS", name) for name in names)


def test_all_hosts_come_from_one_process_and_end_with_their_sockets(hosts: Hosts, tmp_path: Path) -> None:
    pairs = [hear(hosts, tmp_path) for _ in range(3)]
    assert len({heard.said["parent"] for _, heard in pairs}) == 1
    watched = traces.Watched([heard.pid for _, heard in pairs])
    try:
        pairs[0][0].close()
        pairs[1][0].close()
        assert not traces.Watched([pairs[0][1].pid, pairs[1][1].pid]).outlive(10)
        assert Path(f"/proc/{pairs[2][1].pid}").exists()
        pairs[2][0].close()
        assert not watched.outlive(10)
    finally:
        watched.close()


def test_the_process_that_makes_hosts_ends_when_told(tmp_path: Path) -> None:
    hosts = Hosts()
    channel, heard = hear(hosts, tmp_path)
    channel.close()
    maker = traces.Watched([heard.said["parent"]])
    hosts.close()
    assert not maker.outlive(10)
    maker.close()
    hosts.close()  # a second time does nothing
    with pytest.raises(ConnectionAbortedError, match="no host is made any more"):
        hosts.ask(Telling(), order("tell"), tmp_path)


def test_a_process_that_makes_hosts_is_replaced_when_it_has_died(tmp_path: Path) -> None:
    hosts = Hosts()
    channel, heard = hear(hosts, tmp_path)
    channel.close()
    maker = traces.Watched([heard.said["parent"]])
    maker.kill()
    assert not maker.outlive(10)
    maker.close()
    channel, again = hear(hosts, tmp_path)
    channel.close()
    hosts.close()
    assert again.said["parent"] != heard.said["parent"]


def test_what_a_backend_raises_is_told(hosts: Hosts, tmp_path: Path) -> None:
    channel, heard = hear(hosts, tmp_path, "fail")
    channel.close()
    assert (heard.ended, heard.took) == ("raised KeyError: 'oops'", 0.0)


def test_what_is_heard_is_whole_and_its_end_is_told() -> None:
    reader, writer = os.pipe()
    heard: list[bytes] = []
    over = threading.Event()
    listen(reader, heard.append, over)
    os.close(reader)  # the thread has its own
    os.write(writer, b"a" * 1000)
    os.write(writer, b"b")
    assert not over.is_set()
    os.close(writer)
    assert over.wait(10)
    assert b"".join(heard) == b"a" * 1000 + b"b"


@pytest.mark.parametrize(
    ("slow", "lost"),
    [([1.0], False), ([9.0], True), ([1.0, 1.1, 9.0], True), ([1.0, 1.2, 1.0, 9.0], False)],
)
def test_pace_is_lost_where_work_takes_too_long_too_often(slow: list[float], lost: bool) -> None:
    pace = Pace()
    pace._measures = deque((10.0 + number, measure) for number, measure in enumerate([50.0, *slow]))
    assert pace.lost_since(10.5) is lost


def test_pace_without_a_measure_is_lost_only_after_a_while() -> None:
    now = time.monotonic()
    assert not Pace().lost_since(now)
    assert Pace().lost_since(now - 5)


def test_pace_is_measured() -> None:
    began = time.monotonic()
    with Pace() as pace:
        while not pace._measures:
            time.sleep(0.01)
    at, slow = pace._measures[0]
    assert began < at < time.monotonic()
    assert slow >= 0.99
