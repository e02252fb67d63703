"""Disks that fail: the first failure is the last word of a writer, and nothing half-written counts."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from licet.errors import AuditUnavailable
from licet.record import Entry
from licet.state import StateDirectory, open_state
from licet_audit.log import DurableLog
from licet_audit.reader import LogReader

Make = Callable[..., Entry]
root_only = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux, to mount a tmpfs"
)
needs_preload = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)

FAULTY_DISK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lets half of one write through, or loses one sync, and says EIO: the one that follows the file `armed`.
   `hang` holds up a sync for as long as that file is there. */
static int hit(const char *what) {
    return !strcmp(getenv("FAULT"), what) && access(getenv("ARMED"), F_OK) == 0
        && unlink(getenv("ARMED")) == 0;
}
ssize_t write(int fd, const void *data, size_t size) {
    static int failing;
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (failing) { failing = 0; errno = EIO; return -1; }
    if (size > 400 && hit("write")) { failing = 1; return real(fd, data, size / 2); }
    return real(fd, data, size);
}
int fdatasync(int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    if (hit("fdatasync")) { errno = EIO; return -1; }
    while (!strcmp(getenv("FAULT"), "hang") && access(getenv("ARMED"), F_OK) == 0) usleep(1000);
    return real(fd);
}
"""

APPENDS = """
import asyncio, os, resource, sys
from pathlib import Path
from licet.errors import AuditUnavailable
from licet.record import Entry
from licet.state import open_state
from licet_audit.log import DurableLog

def entry(kind, phase=None, **body):
    return Entry(kind, "run", body, "", 1, phase=phase)

async def main():
    log = DurableLog(open_state(Path(sys.argv[1])))
    await log.append([entry("decision", effect="allow"), entry("execution", "before", n=1)])
    ARM
    for n in (2, 3):
        try:
            await log.append([entry("request", n=n, text="x" * 1000)])
        except AuditUnavailable as problem:
            print(problem.message, problem.advice, sep="|")
    await log.close()

asyncio.run(main())
"""


def bodies(state: StateDirectory) -> list[object]:
    """What each record but decisions says: its number, how a run ended, or the event."""
    said = [one.entry.body for one in LogReader(state).records() if one.entry.kind != "decision"]
    return [body.get("n", body.get("termination", body.get("event"))) for body in said]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


@root_only
def test_a_full_disk_refuses_and_goes_on_once_there_is_room(disk: Path, entry: Make) -> None:
    state = open_state(disk / ".licet")
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(20_000))

    async def fill() -> int:
        log = DurableLog(state)
        granted = entry("decision", "cut", effect="allow")
        await log.append([granted, entry("execution", "cut", "before", n=0)])
        for n in range(1, 1000):
            try:
                await log.append([entry(n=n, text="x" * 700)])
            except AuditUnavailable as problem:
                assert problem.message.endswith("is full")
                assert problem.advice == "free some space on it, then run again"
                break
        ballast.unlink()
        with pytest.raises(AuditUnavailable, match="the log was given up after a failure: the disk"):
            await log.append([entry(n=-1)])
        await log.close()
        return n

    refused = asyncio.run(fill())
    assert 10 < refused < 100
    assert bodies(state)[2:] == list(range(refused))
    assert LogReader(state).verify().status == "proven"

    async def go_on() -> None:
        log = DurableLog(state)
        await log.append([entry(n=refused)])
        await log.close()

    asyncio.run(go_on())
    assert bodies(state)[2:] == [*range(refused), "reopened", "unknown", refused]
    assert LogReader(state).verify().status == "proven"


@root_only
def test_a_disk_that_became_read_only_refuses(disk: Path, entry: Make) -> None:
    state = open_state(disk / ".licet")

    async def run(n: int) -> None:
        log = DurableLog(state)
        try:
            await log.append([entry(n=n)])
        finally:
            await log.close()

    asyncio.run(run(1))
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(AuditUnavailable) as caught:
        asyncio.run(run(2))
    assert caught.value.message.endswith("is on a read-only file system")
    assert caught.value.advice == "make it writable, or point LICET_HOME at a directory that is"
    assert LogReader(state).verify().status == "proven"
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    asyncio.run(run(3))
    assert bodies(state)[1:] == [1, 3]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX resource limits")
def test_a_file_size_limit_cuts_nothing_in_half(tmp_path: Path, append: Callable[..., object]) -> None:
    state = open_state(tmp_path / ".licet")
    arm = "resource.setrlimit(resource.RLIMIT_FSIZE, (1700, 1700))"
    done = subprocess.run(
        [sys.executable, "-c", APPENDS.replace("ARM", arm), state.path],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert first.endswith("met a file size limit|raise the limit (`ulimit -f`), then run again")
    assert second == f"the log was given up after a failure: {first}"
    assert bodies(state)[2:] == [1]
    append([])
    assert bodies(state)[2:] == [1, "unknown"]
    assert LogReader(state).verify().status == "proven"


@pytest.fixture(scope="session")
def faulty_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "faulty.c").write_text(FAULTY_DISK)
    library = folder / "faulty.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, folder / "faulty.c", "-ldl"], check=True)
    return library


@needs_preload
@pytest.mark.parametrize("fault", ["write", "fdatasync"])
def test_the_first_io_error_is_the_last_word(
    state: StateDirectory, faulty_disk: Path, tmp_path: Path, append: Callable[..., object], fault: str
) -> None:
    armed = tmp_path / "armed"
    done = subprocess.run(
        [sys.executable, "-c", APPENDS.replace("ARM", f"Path({str(armed)!r}).touch()"), state.path],
        env={**os.environ, "LD_PRELOAD": str(faulty_disk), "FAULT": fault, "ARMED": str(armed)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert first.endswith("reported an error|check the disk before anything runs again")
    assert second == f"the log was given up after a failure: {first}"
    assert not armed.exists()
    assert bodies(state)[2:] == [1]
    assert LogReader(state).verify().status == "proven"
    append([])
    assert bodies(state)[2:] == [1, "unknown"]


HANGS = """
import asyncio, sys
from pathlib import Path
from licet.record import Entry
from licet.state import open_state
from licet_audit.log import DurableLog

async def main():
    log = DurableLog(open_state(Path(sys.argv[1])))
    armed = Path(sys.argv[2])
    appends = lambda n: log.append([Entry("request", "run", {"n": n}, "", 1)])
    await appends(1)
    armed.touch()
    hanging = asyncio.create_task(appends(2))
    for _ in range(100):  # the loop goes on while the sync hangs, or nobody lets it go
        await asyncio.sleep(0.001)
    assert not hanging.done()
    armed.unlink()
    await hanging
    await log.close()

asyncio.run(main())
"""


@needs_preload
def test_a_sync_that_hangs_stops_no_other_task(
    state: StateDirectory, faulty_disk: Path, tmp_path: Path
) -> None:
    armed = tmp_path / "armed"
    subprocess.run(
        [sys.executable, "-c", HANGS, state.path, armed],
        env={**os.environ, "LD_PRELOAD": str(faulty_disk), "FAULT": "hang", "ARMED": str(armed)},
        timeout=60,
        check=True,
    )
    assert bodies(state)[1:] == [1, 2]
    assert LogReader(state).verify().status == "proven"


@needs_preload
def test_a_sound_disk_takes_the_same_appends(
    state: StateDirectory, faulty_disk: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", APPENDS.replace("ARM", "pass"), state.path],
        env={
            **os.environ,
            "LD_PRELOAD": str(faulty_disk),
            "FAULT": "write",
            "ARMED": str(tmp_path / "never"),
        },
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == ""
    assert bodies(state)[2:] == [1, 2, 3]


@pytest.mark.parametrize("damage", ["delete", "cut"])
def test_a_log_that_is_cut_while_in_use_is_given_up(state: StateDirectory, entry: Make, damage: str) -> None:
    async def run() -> None:
        log = DurableLog(state)
        await log.append([entry(n=1)])
        (segment,) = (state.path / "log").iterdir()
        if damage == "delete":
            segment.unlink()
        else:
            os.truncate(segment, 10)
        for prefix in ("", "the log was given up after a failure: "):
            with pytest.raises(AuditUnavailable) as caught:
                await log.append([entry(n=2)])
            assert caught.value.message == f"{prefix}`{segment}` was cut or deleted while in use"
        await log.close()

    asyncio.run(run())
    result = LogReader(state).verify()
    assert result.status == {"delete": "unverifiable", "cut": "incomplete"}[damage]


def test_a_log_that_is_no_directory_is_told(state: StateDirectory, entry: Make) -> None:
    (state.path / "log").write_text("")

    async def run() -> None:
        log = DurableLog(state)
        for _ in range(2):
            with pytest.raises(AuditUnavailable, match="log` can't be used: file exists"):
                await log.append([entry()])
        (state.path / "log").unlink()
        await log.append([entry(n=1)])
        await log.close()

    asyncio.run(run())
    assert bodies(state)[1:] == [1]
