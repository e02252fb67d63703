"""Environments are built by a real installer from wheels made here: whole, read-only, found by their list."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from licet.environments import store
from licet.environments.building import build, discard
from licet.environments.finding import Environments
from licet.environments.lockfile import LockFile, parse_lock
from licet.environments.manifest import NAME, PACKAGES, STAMP
from licet.environments.python import PythonWish, this_identity, this_interpreter
from licet.errors import BuildFailed, EnvironmentUnavailable, Position
from wheels import use_only, wheel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="made for POSIX rights")

BUILD = """\
import sys
from pathlib import Path
from licet.environments.building import build
from licet.environments.lockfile import read_lock
print(build(read_lock(Path(sys.argv[1]))).fresh)
"""


def lock_of(*lines: str) -> LockFile:
    return parse_lock("".join(lines).encode(), "r.txt")


def wish_of(lock: LockFile) -> PythonWish:
    return PythonWish("packages", "r.txt", "/p/r.txt", Position("p.yaml", 3), lock)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_only(tmp_path / "wheels", tmp_path / "home", monkeypatch)
    return tmp_path / "wheels"


@pytest.fixture
def ready(wheels: Path) -> tuple[LockFile, Path]:
    """An environment of one package."""
    lock = lock_of(wheel(wheels, "alpha", alpha="answer = 42\n", alpha_more="more = 1\n"))
    return lock, build(lock).stored.path


@pytest.fixture
def elsewhere(tmp_path: Path) -> Callable[[str], subprocess.Popen[str]]:
    """Begin to build a list in a process of its own."""

    def begin(line: str) -> subprocess.Popen[str]:
        (tmp_path / "r.txt").write_text(line)
        command = [sys.executable, "-c", BUILD, str(tmp_path / "r.txt")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    return begin


def test_what_is_built_is_whole_read_only_and_found_by_its_list(ready: tuple[LockFile, Path]) -> None:
    lock, path = ready
    assert files(path) == [
        NAME,
        PACKAGES,
        *(f"{PACKAGES}/{name}" for name in files(path / PACKAGES)),
    ]
    modules = {name for name in os.listdir(path / PACKAGES) if name.endswith(".py")}
    assert modules == {"alpha.py", "alpha_more.py"}
    tag = sys.implementation.cache_tag
    assert (path / PACKAGES / "__pycache__" / f"alpha.{tag}.pyc").is_file()
    for one in (path, *path.rglob("*")):
        assert one.stat().st_mode & 0o222 == 0, one
    assert int((path / PACKAGES / "alpha.py").stat().st_mtime) == STAMP
    assert not build(lock).fresh
    found = Environments().find(wish_of(lock))
    assert found is not None
    assert (found.packages, found.version) == ((str(path / PACKAGES),), this_identity().version)
    assert (found.interpreter, found.prefix) == this_interpreter()
    assert [one.key for one in store.stored(whole=True)] == [path.name]
    discard(path)
    assert (store.find(lock), store.stored()) == (None, ())


def test_one_list_is_one_environment_and_another_list_another(wheels: Path) -> None:
    one, two = wheel(wheels, "alpha"), wheel(wheels, "beta")
    first = build(lock_of(one, two))
    again = build(lock_of(f"# said otherwise\n{two}", one.replace("alpha==", "Alpha == ")))
    assert (first.fresh, again.fresh, again.stored.path) == (True, False, first.stored.path)
    other = lock_of(one)
    with pytest.raises(EnvironmentUnavailable, match="is not built for cpython") as problem:
        Environments().find(wish_of(other))
    assert problem.value.advice == "run `licet env build /p/r.txt`"
    assert problem.value.where == Position("p.yaml", 3)
    known = Environments()
    digests = {known.find(wish_of(lock)) for lock in (lock_of(one, two), lock_of(two, one))}
    assert build(other).stored.path != first.stored.path
    assert len({*digests, known.find(wish_of(other))}) == 2


def test_what_was_changed_is_refused_and_built_anew(ready: tuple[LockFile, Path]) -> None:
    lock, path = ready
    module = path / PACKAGES / "alpha.py"

    def change(act: Callable[[], object]) -> str:
        module.parent.chmod(0o755)
        module.chmod(0o644)
        act()
        with pytest.raises(EnvironmentUnavailable) as problem:
            Environments().find(wish_of(lock))
        assert (problem.value.advice or "").endswith("which makes it anew")
        assert build(lock).fresh
        assert Environments().find(wish_of(lock)) is not None
        return str(problem.value).partition("built: ")[2]

    assert change(lambda: module.write_text("answer = 43\n")) == "`alpha.py` was changed"
    assert change(lambda: (module.parent / "beta.py").write_text("")) == "`beta.py` is not of it"
    assert change(module.unlink) == "`alpha.py` is missing"
    link = module.parent / "gamma.py"
    unfit = f"`{link}` can't be looked at: neither a file nor a directory"
    assert change(lambda: link.symlink_to("/etc/passwd")) == unfit
    manifest = path / NAME
    assert change(lambda: (path.chmod(0o755), manifest.unlink())) == "its manifest is missing or damaged"
    assert change(lambda: path.chmod(0o777)) == f"other users may write to `{path}`"


def test_content_behind_an_old_time_is_seen_by_the_whole_look_alone(ready: tuple[LockFile, Path]) -> None:
    lock, path = ready
    module = path / PACKAGES / "alpha.py"
    module.chmod(0o644)
    module.write_text("answer = 43\n")
    os.utime(module, (STAMP, STAMP))
    quick, whole = store.find(lock), store.find(lock, whole=True)
    assert quick is not None and whole is not None
    assert (quick.problem, whole.problem) == (None, "the content of `alpha.py` was changed")
    assert build(lock).fresh


@pytest.mark.parametrize("case", ["hash", "sdist", "missing", "needs"])
def test_what_can_not_be_had_as_listed_is_not_built(wheels: Path, case: str) -> None:
    line, said = wheel(wheels, "alpha", needs="beta" if case == "needs" else ""), ""
    if case == "hash":
        line, said = f"alpha==1.0 --hash=sha256:{'0' * 64}\n", "DO NOT MATCH THE HASHES|Hash mismatch"
    elif case == "sdist":
        (wheels / "alpha-1.0-py3-none-any.whl").unlink()
        (wheels / "alpha").mkdir()
        proof = wheels / "ran"
        (wheels / "alpha" / "setup.py").write_text(f"open({str(proof)!r}, 'w')\n")
        shutil.make_archive(str(wheels / "alpha-1.0"), "gztar", wheels, "alpha")
        said = "No matching distribution|no usable wheels|no version"
    elif case == "missing":
        line, said = line.replace("1.0", "2.0"), "No matching distribution|no version"
    else:
        wheel(wheels, "beta")
        said = "hash"
    with pytest.raises(BuildFailed, match=said):
        build(lock_of(line))
    assert not (wheels / "ran").exists()
    assert store.stored() == ()
    assert [name for name in os.listdir(store.made_home()) if not name.endswith(".lock")] == []


def test_what_nobody_listed_is_not_kept(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = lock_of(wheel(wheels, "alpha"))
    (wheels / "more.txt").write_text(wheel(wheels, "beta"))
    monkeypatch.setenv("PIP_REQUIREMENT", str(wheels / "more.txt"))
    with pytest.raises(BuildFailed, match="`beta` was installed and is not in the list"):
        build(lock)
    assert store.stored() == ()


def test_of_two_builds_at_once_one_builds(
    wheels: Path, elsewhere: Callable[[str], subprocess.Popen[str]]
) -> None:
    line = wheel(wheels, "alpha")
    running = [elsewhere(line) for _ in range(2)]
    assert sorted(one.communicate(timeout=200)[0] for one in running) == ["False\n", "True\n"]
    assert [one.problem for one in store.stored(whole=True)] == [None]


def test_a_killed_build_leaves_nothing_that_is_used(
    wheels: Path, elsewhere: Callable[[str], subprocess.Popen[str]]
) -> None:
    line = wheel(wheels, "alpha")
    lock, home = lock_of(line), store.made_home()
    running = elsewhere(line)
    drafts: list[Path] = []
    deadline = time.monotonic() + 60
    while not drafts and running.poll() is None and time.monotonic() < deadline:
        drafts = [*home.glob(".*/work/requirements.txt")]
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert drafts
    assert store.find(lock) is None
    assert build(lock).fresh
    assert [name for name in os.listdir(home) if not name.endswith(".lock")] == [store.key_of(lock)]


def test_a_full_disk_leaves_nothing(wheels: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk takes root")
    home = store.made_home()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k,mode=700", "none", str(home)])
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        lock = lock_of(wheel(wheels, "alpha", alpha=f"text = {'x' * 400_000!r}\n"))
        with pytest.raises(BuildFailed):
            build(lock)
        assert store.find(lock) is None
        assert build(lock_of(wheel(wheels, "beta"))).fresh
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)


def test_a_store_that_others_can_write_to_is_refused(ready: tuple[LockFile, Path]) -> None:
    lock, path = ready
    path.parent.chmod(0o777)
    with pytest.raises(EnvironmentUnavailable, match="other users may write"):
        Environments().find(wish_of(lock))
    with pytest.raises(EnvironmentUnavailable, match="other users may write"):
        build(lock)
    path.parent.chmod(0o700)
    assert Environments().find(wish_of(lock)) is not None
