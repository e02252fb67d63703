"""What a run sees of the host's files, and what it may change of them; each attack beside what is allowed."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from licet.plan import Opened
from licet.request import Mount
from licet.writes import sight
from licet.writes.staged import MOST_EDITS, StorageFull
from licet.writes.view import FileView

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files are opened on Linux alone so far")

Asked = list[tuple[str, str]]


class Ground:
    """A folder with an opened part, a closed part inside it, and a file outside."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data, self.out, self.secret = root / "data", root / "out", root / "data" / "secret"
        for folder in (self.data, self.out, self.secret, self.data / "sub"):
            folder.mkdir()
        (self.data / "a").write_bytes(b"one")
        (self.data / "sub" / "b").write_bytes(b"two")
        (self.secret / "key").write_bytes(b"key")
        (root / "outside").write_bytes(b"outside")
        (self.out / "old").write_bytes(b"old")
        self.asked: Asked = []
        self.opened = Opened(
            read=(str(self.data),),
            write=(str(self.data), str(self.out)),
            read_masked=(str(self.secret),),
            write_masked=(str(self.secret),),
        )

    def view(self, **options: object) -> FileView:
        opened = options.pop("opened", self.opened)
        assert isinstance(opened, Opened)

        def allows(action: str, path: str) -> bool:
            self.asked.append((action, path))
            return opened.opens(action, path)  # type: ignore[arg-type]

        return FileView(opened, allows, **options)  # type: ignore[arg-type]

    def changes(self, view: FileView) -> dict[str, str | None]:
        return {os.path.relpath(edit.path, self.root): edit.change for edit in view.staged().edits}


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(Path(os.path.realpath(tmp_path)))


def refused(act: Callable[[], object]) -> str:
    """The name of the error number with which an act is refused."""
    with pytest.raises(OSError) as caught:
        act()
    assert caught.value.errno is not None
    return errno.errorcode[caught.value.errno]


def test_reads_list_and_tell_what_is_opened(ground: Ground) -> None:
    view = ground.view()
    assert view.read(f"{ground.data}/a") == b"one"
    assert view.names(str(ground.data)) == [("a", "file"), ("sub", "directory")]
    assert list(view.tree(str(ground.data))) == [
        ("", "directory"),
        ("a", "file"),
        ("sub", "directory"),
        ("sub/b", "file"),
    ]
    assert list(view.tree(str(ground.data), 1))[-1] == ("sub", "directory")
    assert (view.stat(f"{ground.data}/a").size, view.stat(str(ground.data)).kind) == (3, "directory")
    assert view.find(f"{ground.data}/none") is None
    assert refused(lambda: view.read(f"{ground.data}/none")) == "ENOENT"
    assert refused(lambda: view.read(str(ground.data))) == "EISDIR"
    assert refused(lambda: view.names(f"{ground.data}/a")) == "ENOTDIR"
    assert view.staged().edits == ()


def test_each_path_is_asked_for_once_and_before_it_is_looked_at(ground: Ground) -> None:
    view = ground.view()
    view.read(f"{ground.data}/a")
    view.stat(f"{ground.data}/a")
    assert ground.asked == [("read", f"{ground.data}/a")]
    for _ in range(2):
        assert refused(lambda: view.read(f"{ground.root}/outside")) == "EACCES"
    assert ground.asked[1:] == [("read", f"{ground.root}/outside")] * 2


@pytest.mark.parametrize(
    "path",
    [
        "{root}/outside",
        "{root}",
        "{data}/secret/key",
        "{data}/secret",
        "{data}/secret/none",
        "{data}/../outside",
        "{data}/to_file",
        "{data}/to_folder/outside",
        "{data}/to_secret",
        "{data}/absolute",
        "/proc/self/root{root}/outside",
        "/proc/self/mem",
        "/dev/stdin",
    ],
)
def test_nothing_else_is_read(ground: Ground, path: str) -> None:
    (ground.data / "to_file").symlink_to("../outside")
    (ground.data / "to_folder").symlink_to("..")
    (ground.data / "to_secret").symlink_to("secret/key")
    (ground.data / "absolute").symlink_to(ground.root / "outside")
    (ground.data / "to_a").symlink_to("a")
    view = ground.view()
    where = path.format(root=ground.root, data=ground.data)
    assert refused(lambda: view.read(where)) == "EACCES"
    assert refused(lambda: view.stat(where)) == "EACCES"
    assert view.read(f"{ground.data}/to_a") == b"one"


def test_a_whole_file_system_that_is_opened_has_no_magic_links(ground: Ground) -> None:
    view = ground.view(opened=Opened(read=("/",)))
    assert view.read(f"{ground.root}/outside") == b"outside"
    for magic in ("/proc/self/mem", "/proc/self/environ", f"/proc/{os.getpid()}/environ", "/dev/fd/0"):
        assert refused(lambda magic=magic: view.read(magic)) == "EACCES"  # type: ignore[misc]


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "loop"])
def test_what_is_no_plain_file_is_not_opened(ground: Ground, kind: str) -> None:
    import socket

    there = ground.data / "there"
    if kind == "fifo":
        os.mkfifo(there)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(there))
    elif kind == "device":
        try:
            os.mknod(there, 0o600 | 0o020000, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")
    else:
        there.symlink_to("there")
    view = ground.view()
    expected = "ELOOP" if kind == "loop" else "EACCES"
    assert refused(lambda: view.read(str(there))) == expected
    assert refused(lambda: view.write(str(there), b"x")) == expected


def test_a_link_that_is_put_in_the_way_later_is_not_followed(ground: Ground) -> None:
    view = ground.view()
    assert view.read(f"{ground.data}/sub/b") == b"two"
    (ground.data / "sub").rename(ground.data / "moved")
    (ground.root / "b").write_bytes(b"elsewhere")
    (ground.data / "sub").symlink_to("..")
    assert refused(lambda: view.read(f"{ground.data}/sub/b")) == "EACCES"
    assert refused(lambda: view.write(f"{ground.data}/sub/b", b"x")) == "EACCES"


def test_the_run_sees_its_changes_and_the_host_does_not(ground: Ground) -> None:
    view = ground.view()
    view.append(f"{ground.data}/a", b"!")
    view.write(f"{ground.data}/new", b"n")
    view.make(f"{ground.data}/x/y", parents=True)
    view.write(f"{ground.data}/x/y/z", b"z")
    view.remove(f"{ground.data}/sub/b")
    view.remove_directory(f"{ground.data}/sub")
    assert view.read(f"{ground.data}/a") == b"one!"
    assert [name for name, _ in view.names(str(ground.data))] == ["a", "new", "x"]
    assert view.find(f"{ground.data}/sub/b") is None
    assert refused(lambda: view.write(f"{ground.data}/sub/c")) == "ENOENT"
    assert refused(lambda: view.write(f"{ground.data}/new/c")) == "ENOTDIR"
    assert (ground.data / "a").read_bytes() == b"one" and (ground.data / "sub" / "b").exists()
    assert not (ground.data / "new").exists()
    assert ground.changes(view) == {
        "data/a": "replace",
        "data/new": "create",
        "data/sub": "remove_directory",
        "data/sub/b": "remove",
        "data/x": "make_directory",
        "data/x/y": "make_directory",
        "data/x/y/z": "create",
    }


def test_what_is_undone_is_no_change(ground: Ground) -> None:
    view = ground.view()
    view.write(f"{ground.data}/new", b"n")
    view.remove(f"{ground.data}/new")
    view.make(f"{ground.data}/x")
    view.remove_directory(f"{ground.data}/x")
    assert ground.changes(view) == {}


def test_names_change_files_move_and_the_directories_of_the_host_stay(ground: Ground) -> None:
    view = ground.view()
    view.rename(f"{ground.data}/a", f"{ground.data}/sub/a")
    view.make(f"{ground.data}/x")
    view.write(f"{ground.data}/x/1", b"1")
    view.rename(f"{ground.data}/x", f"{ground.data}/y")
    view.rename(f"{ground.data}/y/1", f"{ground.data}/y/2")
    view.rename(f"{ground.data}/y/2", f"{ground.data}/y/2")
    assert view.read(f"{ground.data}/y/2") == b"1"
    assert refused(lambda: view.rename(f"{ground.data}/sub", f"{ground.data}/other")) == "EXDEV"
    assert refused(lambda: view.rename(f"{ground.data}/y", f"{ground.data}/y/z")) == "EINVAL"
    assert refused(lambda: view.rename(f"{ground.data}/none", f"{ground.data}/other")) == "ENOENT"
    assert ground.changes(view) == {
        "data/a": "remove",
        "data/sub/a": "create",
        "data/y": "make_directory",
        "data/y/2": "create",
    }


def test_nothing_gets_into_a_closed_part_by_another_name(ground: Ground) -> None:
    view = ground.view()
    view.make(f"{ground.data}/x")
    view.make(f"{ground.data}/x/secret")
    for act in (
        lambda: view.write(f"{ground.secret}/key", b"x"),
        lambda: view.remove(f"{ground.secret}/key"),
        lambda: view.make(f"{ground.secret}/x"),
        lambda: view.rename(f"{ground.data}/a", f"{ground.secret}/a"),
        lambda: view.rename(f"{ground.secret}/key", f"{ground.data}/key"),
        lambda: view.remove_directory(str(ground.secret)),
        lambda: view.rename(f"{ground.data}/x", str(ground.secret)),
        lambda: view.remove_directory(str(ground.data)),
        lambda: view.rename(str(ground.data), f"{ground.root}/moved"),
        lambda: view.write(f"{ground.data}/../outside", b"x"),
    ):
        assert refused(act) == "EACCES"
    assert ground.changes(view) == {"data/x": "make_directory", "data/x/secret": "make_directory"}


def test_a_directory_that_hides_something_is_not_empty(ground: Ground) -> None:
    opened = Opened(
        read=(str(ground.root),),
        write=(str(ground.root),),
        read_masked=(str(ground.secret / "key"),),
        write_masked=(str(ground.secret / "key"),),
    )
    view = ground.view(opened=opened)
    assert view.names(str(ground.secret)) == []
    assert refused(lambda: view.remove_directory(str(ground.secret))) == "ENOTEMPTY"


def test_what_may_be_written_and_not_read_begins_with_nothing(ground: Ground) -> None:
    view = ground.view()
    assert view.names(str(ground.out)) == []
    assert view.find(f"{ground.out}/old") is None
    assert refused(lambda: view.read(f"{ground.out}/old")) == "ENOENT"
    assert refused(lambda: view.remove(f"{ground.out}/old")) == "ENOENT"
    view.append(f"{ground.out}/old", b"mine")
    assert view.read(f"{ground.out}/old") == b"mine"
    assert view.names(str(ground.out)) == [("old", "file")]
    assert ground.changes(view) == {"out/old": "replace"}


def test_a_root_may_be_one_file_or_not_be_there_yet(ground: Ground) -> None:
    opened = Opened(write=(f"{ground.root}/report", f"{ground.root}/fresh", f"{ground.root}/no/where"))
    view = ground.view(opened=opened)
    view.write(f"{ground.root}/report", b"r")
    view.make(f"{ground.root}/fresh/x", parents=True)
    assert refused(lambda: view.write(f"{ground.root}/no/where")) == "ENOENT"
    assert refused(lambda: view.remove(f"{ground.root}/report")) == "EACCES"
    assert ground.changes(view) == {
        "fresh": "make_directory",
        "fresh/x": "make_directory",
        "report": "create",
    }


def test_second_names_and_rights_of_an_owner_are_kept(ground: Ground) -> None:
    os.link(ground.root / "outside", ground.data / "second")
    (ground.data / "program").write_bytes(b"p")
    (ground.data / "program").chmod(0o4755)
    view = ground.view()
    for name in ("second", "program"):
        for act in (view.write, view.append, view.remove):
            assert refused(lambda act=act, name=name: act(f"{ground.data}/{name}")) == "EACCES"  # type: ignore[misc]
    assert ground.changes(view) == {}


def test_files_of_a_request_have_names_of_their_own(ground: Ground) -> None:
    opened = Opened(read=(f"{ground.root}/outside", str(ground.data)), write=(str(ground.data),))
    view = ground.view(opened=opened, mounts=(Mount(f"{ground.data}/in.csv", f"{ground.root}/outside"),))
    assert view.read(f"{ground.data}/in.csv") == b"outside"
    assert ground.asked == [("read", f"{ground.root}/outside")]
    assert [name for name, _ in view.names(str(ground.data))] == ["a", "in.csv", "secret", "sub"]
    assert not view.is_link(f"{ground.data}/in.csv")
    for act in (view.write, view.append, view.remove):
        assert refused(lambda act=act: act(f"{ground.data}/in.csv")) == "EROFS"  # type: ignore[misc]


@pytest.mark.parametrize("way", ["one", "many", "append", "copy"])
def test_storage_has_a_size(ground: Ground, way: str) -> None:
    (ground.data / "large").write_bytes(b"x" * 2000)
    view = ground.view(storage=1000)
    view.write(f"{ground.data}/a", b"x" * 900)
    acts: dict[str, Callable[[], None]] = {
        "one": lambda: view.write(f"{ground.data}/new", b"x" * 101),
        "many": lambda: [view.write(f"{ground.data}/{n}", b"x") for n in range(101)] and None,
        "append": lambda: view.append(f"{ground.data}/a", b"x" * 101),
        "copy": lambda: view.rename(f"{ground.data}/large", f"{ground.data}/larger"),
    }
    with pytest.raises(StorageFull):
        acts[way]()


def test_room_is_given_back(ground: Ground) -> None:
    view = ground.view(storage=9 << 20)
    piece = os.urandom(4 << 20)
    for _ in range(8):
        view.write(f"{ground.data}/a", piece)
        view.write(f"{ground.data}/b", piece[:100])
    assert view.used == (4 << 20) + 100
    assert view.read(f"{ground.data}/a") == piece and view.read(f"{ground.data}/b") == piece[:100]
    view.remove(f"{ground.data}/a")
    assert view.used == 100


def test_pieces_written_in_turns_stay_apart(ground: Ground) -> None:
    view = ground.view()
    for number in range(200):
        view.append(f"{ground.data}/x", b"%d," % number)
        view.append(f"{ground.data}/y", b"%d;" % number)
    assert view.read(f"{ground.data}/x") == b"".join(b"%d," % n for n in range(200))
    assert view.read(f"{ground.data}/y") == b"".join(b"%d;" % n for n in range(200))


def test_the_number_of_changes_is_bounded(ground: Ground) -> None:
    view = ground.view()
    view.make(f"{ground.data}/n")
    for number in range(MOST_EDITS - 1):
        view.write(f"{ground.data}/n/{number}")
    with pytest.raises(StorageFull):
        view.write(f"{ground.data}/n/more")


def test_a_large_file_is_not_taken_into_memory(ground: Ground) -> None:
    with (ground.data / "large").open("wb") as file:
        file.truncate(1 << 40)
    view = ground.view()
    assert refused(lambda: view.read(f"{ground.data}/large")) == "EFBIG"
    assert refused(lambda: view.append(f"{ground.data}/large", b"x")) == "EFBIG"
    assert view.stat(f"{ground.data}/large").size == 1 << 40


def test_a_crowded_directory_is_not_listed(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight, "MOST_NAMES", 3)
    for number in range(2):
        (ground.data / str(number)).touch()
    view = ground.view()
    assert refused(lambda: view.names(str(ground.data))) == "EFBIG"
    assert view.names(f"{ground.data}/sub") == [("b", "file")]


def test_a_name_that_is_no_text_is_not_listed(ground: Ground) -> None:
    (ground.data / os.fsdecode(b"\xff")).touch()
    assert [name for name, _ in ground.view().names(str(ground.data))] == ["a", "sub"]
