"""Reports about audit logs: out of reach of code, one object a line, and never silently cut short."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from licet import Runtime, Subject, Termination
from licet.state import read_state
from licet_audit.reader import LogReader

CPYTHON = "controlled_process"


DESCRIPTORS = """\
import os
names = []
for number in os.listdir("/proc/self/fd"):
    try:
        names.append(os.readlink("/proc/self/fd/" + number))
    except OSError:
        pass
names
"""


def verdict(log_file: Path) -> str:
    """What `licet audit verify` says."""
    return LogReader(read_state(log_file.parents[1])).verify().status


def test_report_audit_log_02_out_of_reach(on: Any, log_file: Path) -> None:
    above = log_file.parents[2]
    grants = f"allow: [read /, write {above}, network any, shell]\nscreen: {{mode: report}}"
    append = f"open({str(log_file)!r}, 'a').write('forged\\n')"
    hidden = f"import os\nname = ''.join({list(str(log_file))})\nopen(name, 'a').write('forged\\n')"
    for backend in ("monty", CPYTHON):
        runtime = on(backend, grants, pack="licet:compute")
        denied = runtime.run_sync(append)
        assert denied.termination is Termination.policy_denied
        assert str(denied.detail).endswith(
            f"`{above / '.licet'}` belongs to licet itself and is never opened"
        )
        tried = runtime.run_sync(hidden)
        if backend == CPYTHON:  # it could not keep it out
            assert tried.termination is Termination.no_backend
        else:
            assert (tried.termination, tried.error.type) == (Termination.exited, "PermissionError")
    assert verdict(log_file) == "proven"
    # no descriptor of it is handed on, even to code that may do all that its user may
    names = on(CPYTHON).run_sync(DESCRIPTORS).value
    assert [name for name in names if name.startswith(str(above))] == []
    # such code can write to its user's files, this one too; then its own result is refused, and it shows
    spoilt = on(CPYTHON).run_sync(hidden)
    assert (spoilt.termination, spoilt.success) == (Termination.audit_unavailable, False)
    assert str(spoilt.detail).startswith("the code ran, but its result could not be recorded: ")
    assert verdict(log_file) == "tampered"


def test_what_code_was_given_and_said_is_in_no_record(on: Any, log_file: Path) -> None:
    """What holds already of `report-audit-log-04`."""
    result = on(CPYTHON, "env: {TOKEN: s-token}").run_sync(
        "import os\nprint(os.environ['TOKEN'], data, input(), 's-code')\n's-value'",
        inputs={"data": "s-data"},
        stdin="s-input",
    )
    assert (result.stdout, result.value) == ("s-token s-data s-input s-code\n", "s-value")
    assert re.findall(b"s-(?:token|data|input|code|value)", log_file.read_bytes()) == []
    assert b'"environment":["TOKEN"]' in log_file.read_bytes()


FORGED = 'x\n{"event":"approved"}\r\u2028{}\u2029\x85\x0b\x0c\x1c\x1b[2J\x00\ud800\u202e'


def test_report_audit_log_03_injection(on: Any, backend: str, log_file: Path) -> None:
    runtime = on(backend)
    result = runtime.run_sync(
        f"# {FORGED[:22]}\nprint({FORGED[:30]!a})\nraise ValueError({FORGED!a})",
        metadata={"user": FORGED, FORGED: "key"},
        subject=Subject(id=FORGED, groups=(FORGED,)),
    )
    assert result.error is not None
    assert result.error.type == "ValueError"
    data = log_file.read_bytes()
    lines = data.decode("utf-8").splitlines()  # at everything that any reader takes for a line's end
    assert len(lines) == data.count(b"\n")
    kinds = ["log", "request", "decision", "selection", "authorization", "execution", "result"]
    assert [json.loads(line)["kind"] for line in lines] == kinds
    assert re.search("[\x00-\x09\x0b-\x1f\x80-\x9f\u2028\u2029\ud800-\udfff]", data.decode()) is None
    said = json.loads(lines[1])["body"]
    escaped = 'x\n{"event":"approved"}\r\\u2028{}\\u2029\\x85\x0b\x0c\x1c\x1b[2J\x00\\ud800\u202e'
    assert said["metadata"]["user"] == said["subject"]["id"] == escaped
    assert verdict(log_file) == "proven"


FULL_DISK = """\
import resource, signal, sys
from licet import Runtime
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Runtime(sys.argv[1]) as runtime:
    if sys.argv[2]:
        runtime.run_sync("1")
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    result = runtime.run_sync("print('effect')")
    print(result.termination, result.stdout, runtime.run_sync("1").termination)
"""
SWALLOWED = """\
import logging, sys
logging.raiseExceptions = False
logging.basicConfig(filename="/dev/full", level=logging.INFO)
logging.info("about to run")
print("effect")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, for a device that is always full")
@pytest.mark.parametrize("before", ["", "one run"])
def test_report_audit_log_05_a_full_disk(
    on: Any, naive: Any, tmp_path: Path, log_file: Path, before: str
) -> None:
    assert naive(SWALLOWED).stdout == b"effect\n"
    on("monty")
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "0.yaml"), before]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "audit_unavailable  audit_unavailable\n", done.stderr
    assert on("monty").run_sync("1 + 1").value == 2  # there is space again
    assert verdict(log_file) == "proven"


RUNS = """\
import sys
from licet import Runtime
with Runtime(sys.argv[1]) as runtime:
    for number in range(int(sys.argv[2])):
        print(runtime.run_sync("1", metadata={"long": "x" * 9000}).run_id, flush=True)
"""


def test_report_audit_log_05_writers_at_once(on: Any, recorded: Any, tmp_path: Path, log_file: Path) -> None:
    on("monty")
    command = [sys.executable, "-c", RUNS, str(tmp_path / "0.yaml"), "25"]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    told = [line for writer in writers for line in writer.communicate(timeout=120)[0].split()]
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert sorted(line["run_id"] for line in recorded() if line["kind"] == "result") == sorted(told)
    assert len(told) == 75
    assert [line["seq"] for line in recorded()] == list(range(len(recorded())))
    assert verdict(log_file) == "proven"


def test_report_audit_log_05_killed_while_writing(
    on: Any, recorded: Any, tmp_path: Path, log_file: Path
) -> None:
    on("monty")
    command = [sys.executable, "-c", RUNS, str(tmp_path / "0.yaml"), "1000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline().strip() for _ in range(5)]
        writer.send_signal(signal.SIGKILL)
        told += writer.stdout.read().split()
    # where the kill met no write, this is what one leaves
    with log_file.open("ab") as log:
        log.write(b'{"body":{"torn')
    with Runtime(tmp_path / "0.yaml") as runtime:
        assert runtime.run_sync("1 + 1").value == 2
    assert {run for run in told if len(run) == 26} <= {line["run_id"] for line in recorded()}
    recovered = [line["body"] for line in recorded() if line["body"].get("event") == "torn_tail_quarantined"]
    assert len(recovered) == 1
    assert verdict(log_file) == "proven"
    assert os.listdir(log_file.parents[1] / "quarantine") != []
