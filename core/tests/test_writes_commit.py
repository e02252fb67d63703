"""Commits: all of it or nothing, whoever changes the host meanwhile and wherever the process dies."""

import inspect
import os
import signal
import stat
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from licet.plan import Opened
from licet.writes.commit import MOST_LEVELS, commit
from licet.writes.journal import Journal
from licet.writes.settling import recover
from licet.writes.staged import Edit, NotCommitted
from licet.writes.telling import changes_of
from licet.writes.view import FileView

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files are written on Linux alone so far")

Tree = dict[str, object]

BEFORE: Tree = {
    "a": (b"one", 0o640),
    "b": (b"two", 0o755),
    "gone": (b"gone", 0o644),
    "old": 0o755,
    "old/x": (b"x", 0o644),
    "old/y": 0o755,
    "old/y/z": (b"z", 0o644),
    "stays": 0o755,
    "stays/s": (b"s", 0o644),
    "turns": (b"turns", 0o644),
}
AFTER: Tree = {
    "a": (b"one!", 0o640),
    "b": (b"TWO", 0o755),
    "made": 0o755,
    "made/deep": 0o755,
    "made/deep/n": (b"n", 0o644),
    "old": (b"a file now", 0o644),
    "stays": 0o755,
    "stays/s": (b"s", 0o644),
    "stays/t": (b"t", 0o644),
    "turns": 0o755,
    "turns/into": (b"a directory", 0o644),
}


class Ground:
    def __init__(self, root: Path) -> None:
        self.root = root / "p"
        self.journal = Journal(root / "state" / "journal")
        self.opened = Opened(read=(str(self.root),), write=(str(self.root),))
        self.root.mkdir()
        for name, there in BEFORE.items():
            path = self.root / name
            if isinstance(there, tuple):
                path.write_bytes(there[0])
                path.chmod(there[1])
            else:
                path.mkdir()

    def view(self, opened: Opened | None = None) -> FileView:
        chosen = opened or self.opened
        return FileView(chosen, lambda action, path: chosen.opens(action, path))

    def edits(self) -> tuple[Edit, ...]:
        """What makes `AFTER` of `BEFORE`."""
        view, at = self.view(), str(self.root)
        view.append(f"{at}/a", b"!")
        view.write(f"{at}/b", b"TWO")
        view.remove(f"{at}/gone")
        view.remove(f"{at}/old/x")
        view.remove(f"{at}/old/y/z")
        view.remove_directory(f"{at}/old/y")
        view.remove_directory(f"{at}/old")
        view.write(f"{at}/old", b"a file now")
        view.make(f"{at}/made/deep", parents=True)
        view.write(f"{at}/made/deep/n", b"n")
        view.write(f"{at}/stays/t", b"t")
        view.remove(f"{at}/turns")
        view.make(f"{at}/turns")
        view.write(f"{at}/turns/into", b"a directory")
        return view.staged().edits

    def commit(
        self,
        edits: tuple[Edit, ...],
        at: Callable[[str], None] = lambda moment: None,
        opened: Opened | None = None,
    ) -> None:
        with self.journal.alone():
            commit("run", edits, opened or self.opened, self.journal, at)

    def tree(self) -> Tree:
        found: Tree = {}
        for path in sorted(self.root.rglob("*")):
            mode = stat.S_IMODE(path.lstat().st_mode)
            name = path.relative_to(self.root).as_posix()
            if path.is_symlink():
                found[name] = os.readlink(path)
            else:
                found[name] = (path.read_bytes(), mode) if path.is_file() else mode
        return found


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    old = os.umask(0o022)
    try:
        return Ground(Path(os.path.realpath(tmp_path)))
    finally:
        os.umask(old)


@pytest.fixture(autouse=True)
def _umask() -> object:
    old = os.umask(0o022)
    yield
    os.umask(old)


def test_all_of_it_is_written(ground: Ground) -> None:
    edits = ground.edits()
    assert ground.tree() == BEFORE
    ground.commit(edits)
    assert ground.tree() == AFTER
    assert ground.journal.is_empty


def test_the_changes_are_told(ground: Ground) -> None:
    told = {os.path.relpath(one.path, ground.root): one for one in changes_of(ground.edits())}
    assert {name: one.change for name, one in told.items()} == {
        "a": "replace",
        "b": "replace",
        "gone": "remove",
        "made": "make_directory",
        "made/deep": "make_directory",
        "made/deep/n": "create",
        "old": "create",
        "old/x": "remove",
        "old/y": "remove_directory",
        "old/y/z": "remove",
        "stays/t": "create",
        "turns": "make_directory",
        "turns/into": "create",
    }
    file = told["b"].file
    assert file is not None and told["made"].file is None
    assert (file.bytes, file.media_type) == (3, "application/octet-stream")
    assert file.sha256 == "a1a8a8cbbed4eb53ae62ee4fb0787504087232c29aa4d817757d06b68d0501ca"


def _moments(ground: Ground) -> list[str]:
    """Every moment of this commit at which a process can die, counted in a process that does not."""
    read, write = os.pipe()
    edits = ground.edits()
    pid = os.fork()
    if pid == 0:
        ground.commit(edits, lambda moment: os.write(write, f"{moment}\n".encode()) and None)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        moments = told.read().splitlines()
    assert os.waitpid(pid, 0)[1] == 0
    return moments


@pytest.mark.parametrize("second_death", [False, True])
def test_dying_at_any_moment_leaves_all_or_nothing(tmp_path: Path, second_death: bool) -> None:
    root = Path(os.path.realpath(tmp_path))
    counting = root / "counting"
    counting.mkdir()
    moments = _moments(Ground(counting))
    assert {"journal preparing", "file", "directory", "draft", "journal prepared", "checked", "in place"} < {
        *moments
    }
    outcomes = []
    for number, moment in enumerate(moments):
        place = root / str(number)
        place.mkdir()
        ground = Ground(place)
        _die(partial(_commit_and_die, ground, number))
        if second_death:
            _die(partial(_recover_and_die, ground))
        outcomes += [(moment, one.outcome) for one in recover(ground.journal)]
        done = moment in ("journal done", "finished", "journal removed")
        assert ground.tree() == (AFTER if done else BEFORE), moment
        assert ground.journal.is_empty
        assert recover(ground.journal) == ()
    for moment, outcome in outcomes:
        assert outcome == ("finished" if moment in ("journal done", "finished") else "undone")
    if not second_death:
        assert len(outcomes) == len(moments) - 1  # after the last one nothing is left open


def _commit_and_die(ground: Ground, number: int) -> None:
    ground.commit(ground.edits(), _killer(number))


def _killer(number: int) -> Callable[[str], None]:
    left = iter(range(number, -1, -1))

    def at(moment: str) -> None:
        if next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return at


def _die(act: Callable[[], object]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def _recover_and_die(ground: Ground) -> None:
    """Do half of what a recovery does, and die."""
    from licet.writes import settling

    real, calls = settling.identity_at, iter(range(7))

    def counted(above: int, name: str) -> object:
        if next(calls, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(above, name)

    settling.identity_at = counted  # type: ignore[assignment]
    recover(ground.journal)
    os.kill(os.getpid(), signal.SIGKILL)


def _replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"two")
    other.replace(path)


def _same_size_and_times(path: Path) -> None:
    before = path.stat()
    path.write_bytes(b"TWo")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


MEDDLING: dict[str, Callable[[Path], object]] = {
    "written in place": lambda p: (p / "b").write_bytes(b"theirs"),
    "same size and times": lambda p: _same_size_and_times(p / "b"),
    "replaced": lambda p: _replace(p / "b"),
    "removed": lambda p: (p / "b").unlink(),
    "a link": lambda p: ((p / "b").unlink(), (p / "b").symlink_to("a")),
    "a pipe": lambda p: ((p / "b").unlink(), os.mkfifo(p / "b")),
    "a directory": lambda p: ((p / "b").unlink(), (p / "b").mkdir()),
    "a second name": lambda p: os.link(p / "b", p / "second"),
    "setuid": lambda p: (p / "b").chmod(0o4755),
    "made meanwhile": lambda p: (p / "made").mkdir(),
    "a file made meanwhile": lambda p: (p / "stays" / "t").write_bytes(b"theirs"),
    "a dangling link": lambda p: (p / "made").symlink_to("nowhere"),
    "more in what goes": lambda p: (p / "old" / "y" / "more").write_bytes(b"theirs"),
    "other in what goes": lambda p: (p / "old" / "x").write_bytes(b"theirs"),
    "its parent moved": lambda p: (p / "stays").rename(p / "away"),
    "its parent a link": lambda p: ((p / "stays").rename(p / "away"), (p / "stays").symlink_to("away")),
    "its parent another": lambda p: ((p / "stays").rename(p / "away"), (p / "stays").mkdir()),
}


MOMENTS = ("before", "journal prepared", "checked", "in place")
ALL = {(how, when) for how in MEDDLING for when in MOMENTS}
# A path is what counts: nothing stood at it, and nothing stands there now.
HARMLESS = {("its parent another", "before")}


@pytest.mark.parametrize(("how", "when"), sorted(ALL - HARMLESS))
def test_what_others_changed_stays_and_nothing_is_written(ground: Ground, how: str, when: str) -> None:
    view, at = ground.view(), str(ground.root)
    assert view.read(f"{at}/b") == b"two"
    edits = ground.edits()
    left: Tree = {}

    def meddle(moment: str = "before") -> None:
        if moment == when and not left:
            MEDDLING[how](ground.root)
            left.update({"": 0})

    meddle()
    # `a` is the first to take its place, so that the moments of one path come before the others' turns
    if when in ("checked", "in place"):
        first = edits[0]
        assert first.path.endswith("/a")
    with pytest.raises(NotCommitted, match="nothing was written"):
        ground.commit(edits, meddle)
    expected = _meddled(how)
    assert ground.tree() == expected
    assert ground.journal.is_empty


def _meddled(how: str) -> Tree:
    """`BEFORE`, as others left it."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        other = Ground(Path(os.path.realpath(folder)))
        MEDDLING[how](other.root)
        return other.tree()


@pytest.mark.parametrize("how", ["written in place", "replaced", "removed", "a link"])
def test_the_last_moment_counts_too(ground: Ground, how: str) -> None:
    """Between the last look at a path and its exchange, others change that very path."""
    view = ground.view()
    view.write(f"{ground.root}/b", b"TWO")

    def meddle(moment: str) -> None:
        if moment == "checked":
            MEDDLING[how](ground.root)

    with pytest.raises(NotCommitted):
        ground.commit(view.staged().edits, meddle)
    assert ground.tree() == _meddled(how)


def test_what_others_put_in_the_place_of_ours_is_kept(ground: Ground) -> None:
    """Others replace what has taken its place already, then a later piece fails: nobody's file is lost."""
    view = ground.view()
    view.write(f"{ground.root}/a", b"ours")
    view.write(f"{ground.root}/b", b"ours")
    moments = iter(["checked", "in place"])

    def meddle(moment: str) -> None:
        if moment == "in place" and next(moments, None):
            (ground.root / "new").write_bytes(b"theirs")
            (ground.root / "new").replace(ground.root / "a")
            (ground.root / "b").write_bytes(b"theirs too")

    with pytest.raises(NotCommitted, match="not all of it could be put back"):
        ground.commit(view.staged().edits, meddle)
    [recovered] = recover(ground.journal)
    assert (recovered.outcome, recovered.paths) == ("failed", (f"{ground.root}/a", f"{ground.root}/b"))
    tree = ground.tree()
    kept = [there for name, there in tree.items() if name.startswith(".licet-")]
    assert tree["a"] == (b"theirs", 0o644) and tree["b"] == (b"theirs too", 0o755)
    assert kept == [(b"one", 0o640)]
    assert recover(ground.journal) == ()


@pytest.mark.parametrize(
    "opened",
    [
        Opened(read=("{p}",), write=("{p}/stays",)),
        Opened(read=("{p}",), write=("{p}",), write_masked=("{p}/made/deep",)),
        Opened(read=("{p}",), write=("{p}",), write_masked=("{p}/old/y",)),
        Opened(read=("{p}",), write=("{p}",), sealed=("{p}/turns/into",)),
        Opened(read=("{p}",)),
    ],
)
def test_a_backend_that_hands_over_more_than_is_opened_writes_nothing(ground: Ground, opened: Opened) -> None:
    def filled(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(path.format(p=ground.root) for path in paths)

    narrow = Opened(
        read=filled(opened.read),
        write=filled(opened.write),
        write_masked=filled(opened.write_masked),
        sealed=filled(opened.sealed),
    )
    with pytest.raises(NotCommitted, match="is not opened to be written"):
        ground.commit(ground.edits(), opened=narrow)
    assert ground.tree() == BEFORE and ground.journal.is_empty


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_stays(ground: Ground) -> None:
    os.chown(ground.root / "b", 1234, 4321)
    ground.commit(ground.edits())
    found = (ground.root / "b").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 4321, 0o755)


def test_the_umask_counts_for_what_is_new(ground: Ground) -> None:
    os.umask(0o077)
    ground.commit(ground.edits())
    tree = ground.tree()
    assert tree["stays/t"] == (b"t", 0o600) and tree["made/deep"] == 0o700
    assert tree["a"] == (b"one!", 0o640)


def test_a_full_disk_leaves_nothing(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    real, left = os.write, iter(range(3))

    def full(descriptor: int, data: object) -> int:
        if next(left, None) is None:
            raise OSError(28, "No space left on device")
        return real(descriptor, data)  # type: ignore[arg-type]

    edits = ground.edits()
    monkeypatch.setattr("licet.writes.commit.os.write", full)
    with pytest.raises(NotCommitted, match="nothing was written: no space left on device"):
        ground.commit(edits)
    monkeypatch.undo()
    assert ground.tree() == BEFORE and ground.journal.is_empty


def test_a_journal_that_nobody_can_read_is_set_aside(ground: Ground) -> None:
    with ground.journal.alone():
        pass
    folder = ground.root.parent / "state" / "journal"
    (folder / "one.json").write_text("{")
    (folder / "two.json").write_text('{"run_id":"two","state":"often","steps":[]}')
    step = '{"parent":1,"parent_id":[1,1],"name":"n","draft":"d","had":null,"has":null}'
    (folder / "three.json").write_text(f'{{"run_id":"three","state":"done","steps":[{step}]}}')
    assert [(one.run_id, one.outcome) for one in recover(ground.journal)] == [
        ("one", "failed"),
        ("three", "failed"),
        ("two", "failed"),
    ]
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["lock", "one.failed", "three.failed", "two.failed"]
    assert recover(ground.journal) == ()


@pytest.mark.parametrize(("levels", "fits"), [(MOST_LEVELS, True), (MOST_LEVELS + 1, False), (995, False)])
def test_a_directory_that_is_too_deep_is_not_written(ground: Ground, levels: int, fits: bool) -> None:
    view = ground.view()
    for level in range(levels + 1):
        view.make(f"{ground.root}/deep{'/d' * level}")
    if fits:
        ground.commit(view.staged().edits)
        assert len(list((ground.root / "deep").rglob("*"))) == levels
    else:
        with pytest.raises(NotCommitted, match=f"deep` is more than {MOST_LEVELS} levels deep"):
            ground.commit(view.staged().edits)
        assert ground.tree() == BEFORE
    assert ground.journal.is_empty


def test_what_is_too_deep_to_be_removed_is_told_and_set_aside(ground: Ground) -> None:
    """Only others can have put it there; the next run starts all the same."""

    def at(moment: str) -> None:
        if moment == "file":
            raise SystemExit

    with pytest.raises(SystemExit):
        ground.commit(ground.edits(), at)
    [draft] = [path for path in ground.root.iterdir() if path.name.startswith(".licet-")]
    draft.unlink()
    here = os.open(ground.root, os.O_RDONLY)
    for name in (draft.name, *"d" * 400):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    most = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 200)
    try:
        assert [one.outcome for one in recover(ground.journal)] == ["failed"]
    finally:
        sys.setrecursionlimit(most)
    assert recover(ground.journal) == ()


def test_recovery_leaves_a_commit_under_way_alone(ground: Ground) -> None:
    heard = []

    def at(moment: str) -> None:
        if moment == "in place":
            heard.append(recover(ground.journal))

    ground.commit(ground.edits(), at)
    assert ground.tree() == AFTER
    assert set(heard) == {()}


def test_two_runs_with_one_file_do_not_both_win(ground: Ground) -> None:
    first, second = ground.view(), ground.view()
    first.append(f"{ground.root}/a", b"1")
    second.append(f"{ground.root}/a", b"2")
    ground.commit(first.staged().edits)
    with pytest.raises(NotCommitted, match="was changed by others"):
        ground.commit(second.staged().edits)
    assert (ground.root / "a").read_bytes() == b"one1"
