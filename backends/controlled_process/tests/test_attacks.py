"""Code that attacks its supervision: the private channel, the keeper, the host; and what is claimed."""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from licet import supervise
from licet.backend import Backend, Termination
from licet.contract import Control, Level
from licet.errors import BackendError, PlanNotSealed

Run = Callable[..., Any]

FIND_CHANNEL = """\
import os
fd = next(n for n in range(3, 4096) if os.path.exists(f'/proc/self/fd/{n}'))
def frame(text, size=None):
    data = text.encode()
    os.write(fd, (len(data) if size is None else size).to_bytes(4, 'big') + data)
"""


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        ("frame('{', 1)", "Expecting property name enclosed in double quotes"),
        ("frame('', 0)", "Expecting value"),
        ("frame('[1]')", "a frame is no object"),
        ("frame('', 1 << 31)", "a frame of 2147483648 bytes is more than the limit of 4194304"),
        ("frame('[' * 100000)", "the text is nested too deep to be a value"),
        ('frame(\'{"value": {"$type": "set", "items": [[1]]}}\')', "the members of a `set` are none"),
        ('frame(\'{"value": {"$type": "module"}}\')', "a `module` is malformed"),
        ('frame(\'{"value": 1, "repr": 2}\')', "expected text"),
        ("frame('{\"value\": ' + '9' * 5000 + '}')", "Exceeds the limit"),
        ("os.write(fd, b'\\0\\0\\0\\xff' + b'x'); os.close(fd)", "the last frame is cut off"),
    ],
)
def test_a_spoilt_report_loses_the_value_and_nothing_else(run: Run, attack: str, why: str) -> None:
    ran = run(FIND_CHANNEL + "import signal\nprint('before')\n" + attack + "\n'the value'")
    assert (ran.outcome.termination, ran.outcome.exit_code, ran.outcome.value) == (
        Termination.exited,
        0,
        None,
    )
    assert ran.outcome.detail.startswith(f"what the code reported is unusable: {why}")
    assert ran.stdout == "before\n"


def test_a_closed_channel_is_a_run_without_value(run: Run) -> None:
    ran = run(FIND_CHANNEL + "os.close(fd)\n'the value'")
    assert (ran.outcome.exit_code, ran.outcome.value, ran.outcome.detail) == (0, None, None)


def test_code_can_forge_its_own_value_and_no_more(run: Run) -> None:
    ran = run(FIND_CHANNEL + 'frame(\'{"value": 7, "repr": "seven"}\')\n8')
    assert (ran.outcome.value, ran.outcome.value_repr) == (7, "seven")
    ran = run(FIND_CHANNEL + 'frame(\'{"value": 7, "repr": "seven"}\')\n1/0')
    assert (ran.outcome.exit_code, ran.outcome.value, ran.outcome.error) == (1, None, None)
    ran = run(FIND_CHANNEL + 'frame(\'{"error": {"type": "MemoryError", "message": "x", "line": -1}}\')\n8')
    assert (ran.outcome.termination, ran.outcome.exit_code, ran.outcome.error) == (
        Termination.exited,
        0,
        None,
    )


def test_a_channel_flood_does_not_block_the_code(run: Run) -> None:
    flood = "try:\n    while True: os.write(fd, bytes(65536))\nexcept OSError: pass\nprint('on')\n1"
    ran = run(FIND_CHANNEL + flood)
    assert (ran.outcome.exit_code, ran.stdout, ran.outcome.value) == (0, "on\n", None)


def test_standard_output_is_never_taken_for_a_report(run: Run) -> None:
    ran = run("print('{\"value\": 7}')\nprint('ended 0 0')\n5")
    assert (ran.outcome.value, ran.stdout) == (5, '{"value": 7}\nended 0 0\n')


STRIKES = {
    "kill the keeper": "os.kill(os.getppid(), signal.SIGKILL)",
    "stop the keeper": "os.kill(os.getppid(), signal.SIGSTOP)",
    "kill the host": "os.kill(grand, signal.SIGKILL)",
    "stop the host": "os.kill(grand, signal.SIGSTOP)",
    "signal by descriptor": "signal.pidfd_send_signal(os.pidfd_open(os.getppid()), signal.SIGKILL)",
    "write the keeper's memory": "open(f'/proc/{os.getppid()}/mem', 'r+b')",
    "take the keeper's descriptors": "os.readlink(f'/proc/{os.getppid()}/fd/0')",
    "read the host's memory": "open(f'/proc/{grand}/mem', 'rb')",
}
STRIKE = """\
import os, signal
grand = int(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])
try:
    %s
except (PermissionError, ProcessLookupError) as refused:
    print(type(refused).__name__, flush=True)
else:
    print('struck', flush=True)
"""


@pytest.mark.skipif(not supervise.can_confine_signals(), reason="this kernel has no Landlock scopes")
@pytest.mark.parametrize("strike", STRIKES.values(), ids=STRIKES)
def test_code_can_strike_neither_keeper_nor_host(run: Run, strike: str) -> None:
    ran = run(STRIKE % strike + "5")
    assert (ran.stdout, ran.outcome.value) == ("PermissionError\n", 5)


TWIN = """\
import subprocess, sys
middle = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
subprocess.run([sys.executable, '-c', middle, sys.argv[1]])
"""


@pytest.mark.parametrize("strike", STRIKES.values(), ids=STRIKES)
def test_the_twin_of_each_strike_succeeds_without_supervision(strike: str) -> None:
    if strike == STRIKES["take the keeper's descriptors"] and os.geteuid() != 0:
        strike = "os.listdir(f'/proc/{os.getppid()}/fd')"
    with subprocess.Popen(
        [sys.executable, "-c", TWIN, STRIKE % strike],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as twin:
        assert twin.stdout is not None
        line = twin.stdout.readline()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(twin.pid, 9)
    assert line == "struck\n"


def test_the_twin_without_the_wall_kills_its_keeper() -> None:
    work = supervise.Snippet(STRIKE % STRIKES["kill the keeper"])
    ended = supervise.run_blocking(
        supervise.Spec(work, "/", confine_signals=False), lambda stream, data: True
    )
    assert (ended.reason, ended.swept) == (supervise.Reason.backend_lost, False)


def test_the_contract_claims_what_this_host_can_keep(tools: Any) -> None:
    contract = tools.backend.describe().sandbox_enforcement_contract
    confined = supervise.can_confine_signals()
    untouchable = confined and os.geteuid() != 0 and not supervise.can_move_cgroups()
    kept = {Control.stdout_limit, Control.stderr_limit, Control.working_directory}
    if confined:
        kept |= {Control.timeout, Control.cancellation}
    if untouchable:
        kept |= {
            Control.environment_allowlist,
            Control.process_tree_cleanup,
            Control.orphan_cleanup,
            Control.handle_isolation,
        }
    assert {control for control, claim in contract.items() if claim.level is Level.enforced} == kept
    assert contract.isolation == "none"
    for control in (
        Control.shell_execution,
        Control.filesystem_read_deny,
        Control.filesystem_write_deny,
        Control.network_deny,
        Control.network_filter,
        Control.unix_socket_deny,
        Control.process_count_limit,
        Control.filesystem_bytes_limit,
        Control.syscall_filter,
        Control.privilege_drop,
        Control.separate_kernel,
    ):
        assert contract[control].level is Level.not_enforced
    for _, claim in contract.items():
        assert claim.level is not Level.partial or claim.gaps


def test_the_environment_of_the_host_is_out_of_reach_where_that_is_claimed(
    run: Run, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = STRIKE % "assert open(f'/proc/{grand}/environ').read() != ''"
    stdout = run(code).stdout
    claim = tools.backend.describe().sandbox_enforcement_contract.environment_allowlist
    if claim.level is Level.enforced:
        assert stdout == "PermissionError\n"
    else:
        assert stdout in ("PermissionError\n", "struck\n")


def test_a_setuid_program_gains_nothing(run: Run) -> None:
    ran = run("next(l for l in open('/proc/self/status') if l.startswith('NoNewPrivs'))")
    assert ran.outcome.value == "NoNewPrivs:\t1\n"


def test_nothing_is_left_between_runs(run: Run) -> None:
    first = "import builtins, sys, os\nbuiltins.left = 1\nos.environ['LEFT'] = '1'\nsys.path.append('x')"
    run(first)
    code = "import builtins, os, sys\n[hasattr(builtins, 'left'), 'LEFT' in os.environ, 'x' in sys.path]"
    assert run(code).outcome.value == [False, False, False]


def test_the_plugin_hands_over_the_backend() -> None:
    plugin = importlib.import_module("licet_controlled_process.plugin")
    [backend] = plugin.licet_backends()
    assert isinstance(backend, Backend)
    described = backend.describe()
    assert (described.name, described.unavailable, described.language.name) == (
        "controlled_process",
        None,
        "CPython",
    )
    assert described.opens == {"read", "write", "network", "shell", "tool"}
    assert described is backend.describe()
    assert issubclass(PlanNotSealed, BackendError)
