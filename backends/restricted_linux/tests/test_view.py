"""What code sees in a jail: nothing that was not opened, and nothing of a run before it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

_TELL = """\
def tell(act):
    try:
        return act()
    except OSError as problem:
        return type(problem).__name__
"""


def told(run: Run, expression: str, jail: dict[str, Any] | None = None, **fields: Any) -> Any:
    ran = run(f"{_TELL}import os\ntell(lambda: {expression})", jail, **fields)
    assert (ran.ended.exit_code, ran.stderr) == (0, "")
    return ran.ended.report.value


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/etc/passwd", "FileNotFoundError"),
        ("/etc/shadow", "FileNotFoundError"),
        ("/proc/1/environ", "PermissionError"),
        ("/proc/1/mem", "PermissionError"),
        ("/proc/sys/kernel/random/boot_id", "FileNotFoundError"),
        ("/sys/kernel", "FileNotFoundError"),
        ("/dev/mem", "FileNotFoundError"),
    ],
)
def test_what_no_policy_opens_is_not_there(run: Run, path: str, seen: str) -> None:
    assert told(run, f"open('{path}').read(1)") == seen


def test_it_sees_itself_alone(run: Run, tmp_path: Path) -> None:
    assert told(run, "sorted(name for name in os.listdir('/proc') if name.isdecimal())") == ["1", "2"]
    assert told(run, "(os.getuid(), os.getpid(), os.uname().nodename)") == (65534, 2, "licet")
    on_the_way = [tmp_path.parts[2]] if tmp_path.parts[1] == "tmp" else []
    assert told(run, "os.listdir('/tmp')") == on_the_way


def test_it_has_no_right_and_no_descriptor_but_its_own(run: Run) -> None:
    status = run("print(open('/proc/self/status').read())").stdout
    lines = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert {lines[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (lines["NoNewPrivs"], lines["Seccomp"]) == ("1", "2")
    assert len(told(run, "os.listdir('/proc/self/fd')")) == 5  # its streams, its channel, and this very list


def test_opened_paths_are_seen_and_closed_ones_inside_are_not(run: Run, tmp_path: Path) -> None:
    for name in ("shown", "shown/closed", "shown/closed/open"):
        (tmp_path / name).mkdir(mode=0o700)
        (tmp_path / name / "f").write_text(name)
        (tmp_path / name / "f").chmod(0o600)
    shown = tmp_path / "shown"
    jail = {
        "read": (str(shown), str(shown / "closed" / "open")),
        "hidden": (str(shown / "closed"), str(shown / "nowhere")),
    }
    assert told(run, f"open('{shown}/f').read()", jail) == "shown"
    assert told(run, f"open('{shown}/closed/f').read()", jail) == "FileNotFoundError"
    assert told(run, f"os.listdir('{shown}/closed')", jail) == "PermissionError"
    assert told(run, f"open('{shown}/closed/open/f').read()", jail) == "shown/closed/open"
    assert told(run, f"open('{shown}/f', 'a')", jail) == "OSError"  # a read-only file system
    assert told(run, f"os.chmod('{shown}/f', 0)", jail) == "OSError"


@pytest.mark.parametrize("name", ["plain", "with space", "a:b,c\\d", "new\nline", "é☃", "x" * 200])
def test_names_of_any_kind(run: Run, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "f").write_text("here")
    jail = {"read": (str(folder),), "write": (str(folder),)}
    path = str(folder / "f")
    assert told(run, f"(open({path!r}, 'a').write('!'), open({path!r}).read())[1]", jail) == "here!"
    assert (folder / "f").read_text() == "here"


def test_a_file_is_shown_under_another_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "real").write_text("content")
    jail = {"files": ((str(tmp_path / "real"), "/data/in.txt"),)}
    assert told(run, "open('/data/in.txt').read()", jail) == "content"
    assert told(run, "open('/data/in.txt', 'w')", jail) == "OSError"


def test_nothing_of_a_run_is_left_to_the_next(run: Run) -> None:
    plant = (
        "import os, sys, builtins\nfor place in ('/tmp/token', '/dev/shm/token'):\n"
        "    open(place, 'w').write('t0ken')\nos.environ['TOKEN'] = 't0ken'\n"
        "sys.token = builtins.token = 't0ken'"
    )
    look = (
        "import os, sys, builtins\n(os.path.exists('/tmp/token'), os.listdir('/dev/shm'), dict(os.environ),\n"
        " hasattr(sys, 'token'), hasattr(builtins, 'token'))"
    )
    search = """\
found, token = 0, ''.join(('t0', 'ken-of-', 'one-run')).encode()
with open('/proc/self/mem', 'rb', buffering=0) as memory:
    for line in open('/proc/self/maps').read().splitlines():
        span, rights = line.split()[:2]
        if 'r' in rights and 'w' in rights and '[v' not in line:
            start, end = (int(part, 16) for part in span.split('-'))
            memory.seek(start)
            found += memory.read(end - start).count(token)
found
"""
    for _ in range(3):
        assert run(plant).ended.exit_code == 0
        assert run(look).ended.report.value == (False, [], {}, False, False)
    kept = "keep = ['t0ken-of-one-run' + str(n) for n in range(100)]\n"
    assert run(kept + search).ended.report.value >= 100
    clean = run("found = 0\n" + search).ended.report.value
    assert clean <= 2, "the token itself, as the search made it"


def test_variables_are_exactly_those_given(run: Run) -> None:
    given = {"A": "1", "LONG": "x" * 20_000, "ÜMLAUT": "ß"}
    assert told(run, "dict(os.environ)", environment=given) == given
    assert told(run, "dict(os.environ)") == {}


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.close(1)\nos.close(2)",
        "import os\nos.closerange(0, 100)",
        "import os\nif os.fork():\n    os._exit(0)\nos.setsid()\nimport time\ntime.sleep(30)",
        "import os\nos.kill(-1, 15)",
        "import os\nos._exit(3)",
        "import atexit, sys\natexit.register(sys.exit, 4)",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(30,), daemon=True).start()",
    ],
)
def test_ends_of_all_kinds(run: Run, code: str) -> None:
    ran = run(code, wall_time=10.0)
    assert ran.ended.reason.value == "exited" and ran.ended.swept
    assert ran.ended.used.wall_time < 9


def test_what_hangs_at_its_end_is_ended(run: Run) -> None:
    for code in (
        "import atexit, time\natexit.register(time.sleep, 60)",
        "import time\nclass A:\n    def __del__(self):\n        time.sleep(60)\na = A()",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    ):
        ran = run(code, wall_time=0.7)
        assert (ran.ended.reason.value, ran.ended.swept) == ("timeout", True)


def test_a_run_that_shares_nothing_has_a_seed_of_its_own(run: Run) -> None:
    warm = {told(run, "hash('licet')") for _ in range(3)}
    cold = {told(run, "hash('licet')", warm=False) for _ in range(3)}
    assert (len(warm), len(cold), len(warm | cold)) == (1, 3, 4)


def test_a_whole_root_is_shown_but_for_what_no_run_has(run: Run) -> None:
    jail = {"read": ("/",)}
    seen = "[os.path.exists('/etc/passwd'), os.path.exists('/proc/sys'), os.path.exists('/dev/mem')]"
    assert told(run, seen, jail) == [True, False, False]
    assert told(run, "open('/etc/passwd', 'a')", jail) in {"OSError", "PermissionError"}
    closed = {"read": ("/",), "hidden": ("/etc",)}
    assert told(run, "open('/etc/passwd')", closed) in {"FileNotFoundError", "PermissionError"}


WRITE_TO_A_PIPE = """\
import os
def write(path):
    try:
        pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        os.write(pipe, b"out")
        return "written"
    except OSError as problem:
        return type(problem).__name__
"""


@pytest.mark.parametrize("frozen", [False, True])
def test_a_named_pipe_in_a_folder_that_may_only_be_read_leads_nowhere(
    run: Run, tmp_path: Path, frozen: bool
) -> None:
    folder = tmp_path / "above" / "folder"
    folder.mkdir(parents=True)
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    (folder / "file").write_text("shown")
    above, folders = (str(tmp_path / "above"),), (str(folder),)
    jail = {"read": above, "write": above, "frozen": folders} if frozen else {"read": folders}
    heard = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        code = f"{WRITE_TO_A_PIPE}\n[write({str(pipe)!r}), open({str(folder / 'file')!r}).read()]"
        assert run(code, jail).ended.report.value[1] == "shown"
        assert os.read(heard, 10) == b""
        outside = [sys.executable, "-c", f"{WRITE_TO_A_PIPE}\nprint(write({str(pipe)!r}))"]
        assert subprocess.run(outside, capture_output=True, text=True, check=True).stdout == "written\n"
        assert os.read(heard, 10) == b"out"
    finally:
        os.close(heard)
