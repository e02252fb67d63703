"""Layers of the kernel: what code left in an overlay is what reaches the host, or nothing does."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layered import Guest, Root, aside, run
from licet.plan import Opened
from licet.writes.commit import commit
from licet.writes.journal import Journal
from licet.writes.staged import NotCommitted, Staged

Tree = dict[str, object]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="overlays are of Linux")

WAYS = [pytest.param(True, id="user_namespace")]
if os.geteuid() == 0:
    WAYS.append(pytest.param(False, id="root"))


def tree_of(root: Path) -> Tree:
    """Content of files, True for directories, what links say."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        else:
            found[name] = path.read_bytes() if path.is_file() else True
    return found


def plant(root: Path, tree: Tree) -> None:
    root.mkdir(exist_ok=True)
    for name, there in tree.items():
        if isinstance(there, bytes):
            (root / name).write_bytes(there)
        else:
            (root / name).mkdir()


@dataclass
class Ground:
    root: Path
    user: bool = True
    bare: bool = False
    size: str = "8m"

    @property
    def opened(self) -> Opened:
        at = (str(self.root),)
        return Opened(read=() if self.bare else at, write=at)

    def run(self, code: Callable[[Path], object]) -> Guest:
        return run([Root(self.root, self.bare)], lambda: code(self.root), user=self.user, size=self.size)

    def commit(self, found: Staged, opened: Opened | None = None) -> str | None:
        """Commit; why not, if not."""
        try:
            if found.refused is not None:
                assert found.edits == ()
                return found.refused
            journal = Journal(self.root.parent / "state" / "journal")
            with journal.alone():
                commit("run", found.edits, opened or self.opened, journal)
            assert journal.is_empty
        except NotCommitted as problem:
            return str(problem)
        finally:
            found.close()
        return None

    def settle(self, guest: Guest, opened: Opened | None = None, most_bytes: int = 1 << 20) -> str | None:
        return self.commit(guest.staged(opened or self.opened, most_bytes), opened)

    def do(self, code: Callable[[Path], object], **more: object) -> str | None:
        return self.settle(self.run(code), **more)  # type: ignore[arg-type]


BEFORE: Tree = {
    "a": b"one",
    "b": b"two",
    "d": True,
    "d/x": b"x",
    "d/y": True,
    "d/y/z": b"z",
}


@pytest.fixture(params=WAYS)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    old = os.umask(0o022)
    root = Path(os.path.realpath(tmp_path)) / "p"
    plant(root, BEFORE)
    yield Ground(root, request.param)
    os.umask(old)


# -- programs of file operations, in a layer and on a plain copy

NAMES = ("a", "b", "c")
PATHS = [*NAMES, *(f"{a}/{b}" for a in NAMES for b in NAMES), *(f"{a}/{b}/c" for a in NAMES for b in NAMES)]

places = st.sampled_from(PATHS)
bodies = st.binary(max_size=4)
ops = st.one_of(
    st.tuples(st.sampled_from(["write", "append", "exclusive", "atomic", "patch"]), places, bodies),
    st.tuples(st.sampled_from(["truncate", "chmod"]), places, st.sampled_from([0, 3, 0o600, 0o755])),
    st.tuples(st.sampled_from(["unlink", "rmdir", "rmtree", "mkdir", "makedirs", "touch", "open"]), places),
    st.tuples(st.sampled_from(["rename", "link", "instead", "exchange"]), places, places),
)
links = st.tuples(st.just("symlink"), places, st.sampled_from(["a", "b", "../a", "nowhere"]))
programs = st.lists(ops, min_size=1, max_size=14)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    tree: Tree = {}
    for path in draw(st.lists(places, unique=True, max_size=9)):
        parent = os.path.dirname(path)
        if path in tree or (parent and tree.get(parent) is not True and parent in tree):
            continue
        way = path.split("/")
        steps = ["/".join(way[:n]) for n in range(1, len(way))]
        if any(isinstance(tree.get(step), bytes) for step in steps):
            continue
        for step in steps:
            tree[step] = True
        tree[path] = draw(st.one_of(bodies, st.just(True)))
    return tree


def perform(root: Path, program: list[tuple]) -> list[str]:  # type: ignore[type-arg]
    """Do each operation; how each ended."""
    return [_performed(root, *op) for op in program]


def _performed(root: Path, name: str, place: str, other: object = None) -> str:
    path = root / place
    try:
        _OPS[name](path, root / other if name in _TWO else other)  # type: ignore[operator]
    except OSError as problem:
        return type(problem).__name__
    return "done"


def _write(path: Path, data: bytes, mode: str) -> None:
    with open(path, mode) as file:
        file.write(data)


def _atomic(path: Path, data: bytes) -> None:
    beside = path.with_name("draft")
    beside.write_bytes(data)
    try:
        os.replace(beside, path)
    except OSError:
        beside.unlink()
        raise


def _patch(path: Path, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(2)
        file.write(data)


def _rename(path: Path, other: Path) -> None:
    """As `mv` does it, where a directory of the host can't be renamed."""
    try:
        os.rename(path, other)
    except OSError as problem:
        if problem.errno != 18:  # EXDEV
            raise
        if other.is_dir():
            os.rmdir(other)
        shutil.copytree(path, other, symlinks=True)
        shutil.rmtree(path)


def _instead(path: Path, other: Path) -> None:
    """A directory in the place of a file, or a file in that of a directory, and then the name of another."""
    if path.is_dir():
        shutil.rmtree(path)
        path.write_bytes(b"now a file")
    else:
        path.unlink()
        path.mkdir()
        (path / "n").write_bytes(b"n")
    _rename(path, other)


def _exchange(path: Path, other: Path) -> None:
    beside = path.with_name("draft")
    _rename(path, beside)
    try:
        _rename(other, path)
    finally:
        _rename(beside, other if not other.exists() else path)


def _shut(path: Path, mode: int) -> None:
    """What there is stays readable: to rename a directory in an overlay is to copy it with all its files."""
    os.chmod(path, mode | (0o700 if path.is_dir() else 0o400))


_TWO = ("rename", "link", "instead", "exchange")
_OPS: dict[str, Callable[..., object]] = {
    "write": lambda path, data: _write(path, data, "wb"),
    "append": lambda path, data: _write(path, data, "ab"),
    "exclusive": lambda path, data: _write(path, data, "xb"),
    "atomic": _atomic,
    "patch": _patch,
    "truncate": os.truncate,
    "chmod": _shut,
    "unlink": lambda path, _: os.unlink(path),
    "rmdir": lambda path, _: os.rmdir(path),
    "rmtree": lambda path, _: shutil.rmtree(path),
    "mkdir": lambda path, _: os.mkdir(path),
    "makedirs": lambda path, _: os.makedirs(path),
    "touch": lambda path, _: os.utime(path),
    "open": lambda path, _: open(path, "r+b").close(),
    "rename": _rename,
    "link": os.link,
    "instead": _instead,
    "exchange": _exchange,
    "symlink": lambda path, target: os.symlink(os.path.basename(target), path),
}


def check_program(before: Tree, program: list[tuple], *, user: bool, where: str | None = None) -> None:  # type: ignore[type-arg]
    """What a program leaves on the host is what it leaves in a plain copy; links refuse all of it."""
    with tempfile.TemporaryDirectory(dir=where) as folder:
        home = Path(os.path.realpath(folder))
        plant(home / "p", before)
        plant(home / "copy", before)
        ground = Ground(home / "p", user)
        aside(lambda: _tell(home / "there", perform(home / "copy", program)))
        found = ground.run(lambda root: _tell_run(root, program)).staged(ground.opened)
        assert tree_of(home / "p") == before
        problem = ground.commit(found)
        open_up(home / "copy")
        after = tree_of(home / "copy")
        if any(isinstance(there, str) for there in after.values()):
            assert problem is not None and "symbolic link" in problem
            assert tree_of(home / "p") == before
        else:
            assert problem is None
            assert tree_of(home / "p") == after
        assert not list((home / "p").rglob(".licet-*"))


def _tell(path: Path, ended: list[str]) -> None:
    path.write_text("\n".join(ended))


def _tell_run(root: Path, program: list[tuple]) -> None:  # type: ignore[type-arg]
    there = (root.parent / "there").read_text().splitlines()
    here = perform(root, program)
    assert here == there, f"{here} {there}"


def open_up(root: Path) -> None:
    for path in [root, *root.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=150)


@pytest.mark.parametrize("user", WAYS)
@SLOW
@given(before=trees(), program=programs)
def test_the_host_gets_what_a_plain_copy_would(user: bool, before: Tree, program: list) -> None:  # type: ignore[type-arg]
    check_program(before, program, user=user)
