"""Reports about limits, networks and backends: what is not held is not promised, and is refused to code."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from licet import ExecutionRequest, Intent, Limits, Runtime, Termination, supervise
from licet.backend import Backend, Descriptor, GuestError, Host, Language, Outcome, Sandbox, Target
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.errors import InvalidRequest
from licet.plan import ExecutionPlan
from licet.record import MemoryLog
from licet.supervise.walls import Wall, look

CPYTHON = "controlled_process"
ROOT = Path(__file__).parents[3]


# Backends

REACHES = [
    ("exec('import js')", "ModuleNotFoundError", "No module named 'js'"),
    ("eval('__import__')", "NameError", "name '__import__' is not defined"),
    ("eval('__loader__')", "NameError", "name '__loader__' is not defined"),
    ("eval('__builtins__')", "NameError", "name '__builtins__' is not defined"),
    ("eval('().__class__')", "AttributeError", "'tuple' object has no attribute '__class__'"),
    (
        "getattr(print, '__se' + 'lf__')",
        "AttributeError",
        "'builtin_function_or_method' object has no attribute '__self__'",
    ),
    (
        "getattr(lambda: 0, '__glo' + 'bals__')",
        "AttributeError",
        "'function' object has no attribute '__globals__'",
    ),
    (
        "getattr(int, '__subcl' + 'asses__')",
        "AttributeError",
        "type object 'int' has no attribute '__subclasses__'",
    ),
    ("import sys; getattr(sys, 'mod' + 'ules')", "AttributeError", "module 'sys' has no attribute 'modules'"),
    (
        "import sys; getattr(sys, '_get' + 'frame')()",
        "AttributeError",
        "module 'sys' has no attribute '_getframe'",
    ),
]
"""Ways to a bridge or to the host, hidden from the screen: what Monty answers."""


def test_report_backend_selection_04_the_layer_that_holds(on: Any, naive: Any) -> None:
    runtime = on("monty", pack="licet:trusted")
    described = runtime.run_sync("1")
    held = described.contract
    behind = look().standing == set(Wall)
    alone = {("language", Level.enforced), ("language", Level.not_applicable)}
    wall = {("kernel", Level.enforced)} if behind else alone
    for control in (Control.filesystem_read_deny, Control.network_deny, Control.shell_execution):
        assert (held[control].boundary, held[control].level) in wall
    assert described.backend.isolation == ("kernel" if behind else "language")
    # nothing of the host is there besides the names that were given
    names = "[(k, v) for k, v in locals().items() if v is not int and v is not float and v is not str]"
    assert runtime.run_sync(names, inputs={"given": 1}).value == [("given", 1)]
    for reach, kind, message in REACHES:
        result = runtime.run_sync(reach)
        assert (result.termination, result.value) == (Termination.exited, None)
        assert result.error == GuestError(kind, message, 1)
        made_of_js = "import sys\nsys.modules['js'] = sys\n"  # as where the host hands its own objects in
        assert naive(made_of_js + reach).returncode == 0


# Libraries and differences of interpreters


def test_report_libraries_in_guest_02_spawned_processes(row: Any, on: Any, tmp_path: Path) -> None:
    file = tmp_path / "unguarded.py"
    file.write_text(row.code)
    naive_way = subprocess.run([sys.executable, str(file)], capture_output=True, timeout=60)
    assert b"_fixup_main_from_path" in naive_way.stderr  # the child ran it again
    # where code may start programs: the code is no file, so that a child has nothing to run again
    result = on(CPYTHON).run_sync(row.code)
    assert (result.success, result.stdout, result.stderr) == (True, "x\n", "")
    own = "def f(): pass\n" + row.code.replace("target=print, args=('x',)", "target=f") + "p.exitcode"
    missing = on(CPYTHON).run_sync(own)
    assert missing.value == 1
    assert "AttributeError: Can't get attribute 'f' on <module '__main__' (built-in)>" in missing.stderr
    # elsewhere it is denied, and says so
    denied = on("monty").run_sync(row.code)
    assert (denied.termination, denied.detail) == (
        Termination.policy_denied,
        "`shell` is denied: nothing allows it",
    )
    page = (ROOT / "docs" / "explanation" / "enforcement.md").read_text("utf-8")
    assert "`multiprocessing`" in page


@pytest.mark.parametrize(
    ("code", "hidden", "lacked"),
    [
        ("'x'.translate({})", "getattr('x', 'trans' + 'late')", "str.translate"),
        ("(5).to_bytes(2, 'big')", "getattr(5, 'to_' + 'bytes')", "int.to_bytes"),
        (
            "import dataclasses\ndataclasses.asdict",
            "import dataclasses\ngetattr(dataclasses, 'as' + 'dict')",
            "dataclasses.asdict",
        ),
        (
            "from dataclasses import asdict",
            "import dataclasses as d\ngetattr(d, 'as' + 'dict')",
            "dataclasses.asdict",
        ),
    ],
)
def test_report_libraries_in_guest_04_what_monty_lacks(
    row: Any, on: Any, code: str, hidden: str, lacked: str
) -> None:
    runtime = on("monty")
    assert runtime.run_sync(row.code).stdout == "1 2\n"  # what it lacked then, it has now
    seen = runtime.run_sync(code)  # what the text shows is not given to it
    [candidate] = [one for one in seen.decision.selection.candidates if one.name == "monty"]
    assert seen.termination is Termination.no_backend
    asked = {re.split("[.:]", blocker.asked)[-1] for blocker in candidate.blockers}
    assert lacked.rpartition(".")[2] in asked
    result = runtime.run_sync(hidden)
    assert (result.termination, result.exit_code) == (Termination.exited, 1)
    assert result.detail == f"Monty, the Python subset that ran this, lacks it: `{lacked}`"
    own = runtime.run_sync("class A: pass\ngetattr(A(), 'trans' + 'late')")  # CPython has none either
    assert (own.error.type, own.detail) == ("AttributeError", None)


def test_report_libraries_in_guest_05_another_version(
    on: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tomllib.loads((ROOT / "backends" / "monty" / "pyproject.toml").read_text())["project"]
    [pinned] = [need for need in project["dependencies"] if need.startswith("pydantic-monty==")]
    needed = pinned.partition("==")[2]
    assert on("monty").run_sync("1 + 1").value == 2  # the pinned version is the one that is tested
    installed = tmp_path / "site" / "pydantic_monty-9.9.9.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: pydantic-monty\nVersion: 9.9.9\n")
    monkeypatch.syspath_prepend(str(installed.parent))
    result = on("monty", log=MemoryLog()).run_sync("1 + 1")
    assert (result.termination, result.value) == (Termination.no_backend, None)
    monty = next(c for c in result.decision.selection.candidates if c.name == "monty")
    assert [(b.what, b.offered, b.because) for b in monty.blockers] == [
        ("available", "unavailable", f"expected pydantic-monty {needed}, found 9.9.9")
    ]


# Networks

EMBEDDED = [
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:0:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2001:0:53aa:64c:0:0:80ff:fffe",
    "::1",
    "::",
    "fc00::1",
    "fe80::1",
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "224.0.0.1",
]
AMBIGUOUS = [
    "2130706433",
    "017700000001",
    "0x7f000001",
    "127.1",
    "0177.0.0.1",
    "127.0.0.1.",
    "[::ffff:7f00:1]",
]


class Connecting:
    """A backend that asks its host for one connection, as every broker does."""

    def __init__(self, name: str) -> None:
        walls = {control.value: Enforcement(Level.enforced, "kernel", "a test") for control in Control}
        self._descriptor = Descriptor(
            "connecting",
            "1",
            SandboxEnforcementContract(**walls),
            Language("Connecting"),
            frozenset({"network"}),
            1.0,
        )
        self._name = name

    def describe(self) -> Descriptor:
        return self._descriptor

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return self

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        try:
            os.close(await host.connect(Target(self._name, 443)))
        except PermissionError as problem:
            return Outcome(Termination.exited, 0, value=str(problem))
        return Outcome(Termination.exited, 0, value="connected")

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("address", EMBEDDED)
def test_report_network_policy_01_private_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """A name that is allowed, and whose answer is an address inside."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    answer = [(family, socket.SOCK_STREAM, 6, "", (address, 443, 0, 0)[: 4 if ":" in address else 2])]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
    policy = tmp_path / "p.yaml"
    policy.write_text("licet: 1\nallow: [network api.example.com:443]\nsandbox: {evidence: declared}\n")
    backend: Backend = Connecting("api.example.com")
    with Runtime(policy, backends=[backend], log=MemoryLog()) as runtime:
        result = runtime.run_sync("1")
    why = "resolves to an address that is not public; name that address itself"
    assert result.value == f"`api.example.com:443` {why}"


@pytest.mark.parametrize(
    ("entry", "asked", "why"),
    [
        ("8.8.8.8", "api.example.com", "`api.example.com:443` resolves to an address that the policy denies"),
        (
            "8.8.0.0/16",
            "api.example.com",
            "`api.example.com:443` resolves to an address that the policy denies",
        ),
        ("8.8.8.8", "127.1", "`127.1` is no address of four plain decimal numbers"),
        ("8.8.8.8", "169.254.169.254", "`169.254.169.254:443` is not opened by this run's policy"),
    ],
)
def test_report_network_policy_01_denied_by_every_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, asked: str, why: str
) -> None:
    """An address that is denied is denied by every name, and no wide entry opens one that is inside."""
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
    policy = tmp_path / "p.yaml"
    policy.write_text(
        f"licet: 1\nallow: [network any]\ndeny: [network {entry}]\nsandbox: {{evidence: declared}}\n"
    )
    with Runtime(policy, backends=[Connecting(asked)], log=MemoryLog()) as runtime:
        assert runtime.run_sync("1").value == why


@pytest.mark.parametrize("spelling", AMBIGUOUS)
def test_report_network_policy_01_ambiguous_spellings(on: Any, spelling: str) -> None:
    runtime = on("monty", "allow: [network any]")
    with pytest.raises(InvalidRequest, match=r"can't be understood: "):
        runtime.decide("1", intents=(Intent("network", f"{spelling}:443"),))


@pytest.mark.parametrize(
    "spelling", ["LOCALHOST:80", "localhost.:80", "LocalHost.:80", "Metadata.Google.Internal.:80"]
)
def test_report_network_policy_02_one_spelling(on: Any, spelling: str) -> None:
    denying = on("monty", "allow: [network any]\ndeny: [network localhost, network metadata.google.internal]")
    [_, verdict] = denying.decide("1", intents=(Intent("network", spelling),)).verdicts
    assert verdict.effect == "deny"
    assert verdict.intent.target == spelling.lower().replace(".:", ":")
    [_, other] = denying.decide("1", intents=(Intent("network", "example.com:80"),)).verdicts
    assert other.effect == "allow"
    [_, same] = denying.decide("1", intents=(Intent("network", "bücher.example:443"),)).verdicts
    assert same.intent.target == "xn--bcher-kva.example:443"
    with pytest.raises(InvalidRequest, match="write its `xn--` form"):
        denying.decide("1", intents=(Intent("network", "straße.example:443"),))


@pytest.fixture
def listener() -> Iterator[tuple[int, threading.Event]]:
    """A port of this host, and whether anything connected to it."""
    connected = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    server.accept()[0].close()
                    connected.set()

        accepting = threading.Thread(target=accept)
        accepting.start()
        yield server.getsockname()[1], connected
        server.shutdown(socket.SHUT_RDWR)
        accepting.join()


def test_report_network_policy_05_a_flag_that_nobody_enforces(
    row: Any, on: Any, naive: Any, blockers: Any, listener: tuple[int, threading.Event]
) -> None:
    port, connected = listener
    code = row.code.replace("{HOST}", "127.0.0.1").replace("{PORT}", str(port))
    hidden = (
        f"import importlib\nsocket = importlib.import_module('sock' + 'et')\n{code.partition(chr(10))[2]}"
    )
    # a policy that opens all but the network: code that says so is denied, and no backend runs what hides it
    closed = on(CPYTHON, "allow: [read /, write /, shell]\nscreen: {mode: report}", pack="licet:compute")
    denied = closed.run_sync(code)
    assert denied.detail == "`network (unknown)` is denied: nothing allows `network`, whatever its target"
    assert ("network_deny", "enforced", "not_enforced") in blockers(closed.run_sync(hidden))
    demanding = on(CPYTHON, require="{network_deny: enforced}")
    assert blockers(demanding.run_sync(hidden)) == [("network_deny", "enforced", "not_enforced")]
    asking = on(CPYTHON).run_sync(ExecutionRequest(code=hidden, requirements={"network_deny": "enforced"}))
    assert blockers(asking) == [("network_deny", "enforced", "not_enforced")]
    assert not connected.is_set()
    # with the network opened in so many words, it is what an ordinary process does
    assert on(CPYTHON).run_sync(hidden).success
    assert connected.wait(5)
    assert naive(code).returncode == 0


# Limits


HOGS = """\
import os
children = []
for _ in range(8):
    if (pid := os.fork()) == 0:
        x = bytearray({size})
        os._exit(0)
    children.append(pid)
sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, where address space can be limited")
def test_report_resources_02_limits_of_each_process(on: Any, blockers: Any) -> None:
    limit = 256 << 20
    code = HOGS.format(size=limit * 9 // 10)
    # the limit that an ordinary process can be given lets eight children have it eight times
    spec = supervise.Spec(supervise.Snippet(code), "/", memory=limit + (64 << 20))
    ended = supervise.run_blocking(spec, lambda stream, data: True)
    assert (ended.reason, ended.report.value) == (supervise.Reason.exited, 0)
    # so it is no limit of the run, is called partial, and a run that states one is not given it
    refused = on(CPYTHON, f"limits: {{memory: {limit}}}").run_sync(code)
    assert blockers(refused) == [("memory_limit", "enforced", "partial")]
    claim = on(CPYTHON).run_sync("1").contract[Control.memory_limit]
    assert claim.gaps[0] == "each process of the run has the whole limit for itself"
    # where there is one process, its limit is the run's
    hog = "x = []\nwhile True: x.append('a' * 1000000)"
    assert on("monty").run_sync(hog).termination is Termination.memory_limit


def test_report_resources_05_limits_that_nobody_keeps(on: Any, blockers: Any, backend: str) -> None:
    log = MemoryLog()
    runtime = on(backend, log=log)
    with pytest.raises(InvalidRequest, match="max_allocations"):
        runtime.run_sync("1", limits={"max_allocations": 1000})
    assert list(log.records()) == []
    if backend == CPYTHON:
        [unkept] = blockers(runtime.run_sync("1", limits=Limits(files=1 << 20)))
        assert unkept == ("filesystem_bytes_limit", "enforced", "not_enforced")
    else:  # it keeps every limit that there is
        every = dict.fromkeys(Limits.model_fields, 10_000_000) | {
            "wall_time": 5,
            "cpu_time": 5,
            "processes": 1,
        }
        assert runtime.run_sync("1", limits=every).success
    started = [record for record in log.records() if record.entry.kind == "execution"]
    assert len(started) == (backend == "monty")


def test_report_resources_06_limits_in_bytes(on: Any, backend: str) -> None:
    runtime = on(backend, "limits: {code: 64KiB, stdin: 64KiB, stdout: 1MiB, stderr: 1MiB, output: 64KiB}")
    sign = "日"
    for code in ("#" + sign * 65536, ("#" + sign * 65536).encode()):
        result = runtime.run_sync(code)
        assert result.termination is Termination.policy_denied
        assert result.detail == "the code has 196609 bytes, the limit `code` is 65536"
    # refused before it is parsed: this would be a syntax error
    assert runtime.run_sync("(" * 65537).termination is Termination.policy_denied
    assert runtime.run_sync("#" + sign * 21845).success
    assert not runtime.run_sync("#" + sign * 21846).success
    refused = runtime.run_sync("1", stdin=sign * 21846)
    assert refused.detail == "standard input has 65538 bytes, the limit `stdin` is 65536"
    assert runtime.run_sync(f"print({sign!r} * 21845)").stdout_bytes == 65536
    flooded = runtime.run_sync(f"print({sign!r} * 30000)")
    assert flooded.termination is Termination.output_limit
    assert 65536 < flooded.stdout_bytes <= 90001
