"""A policy that is read anew when its files change: whole, or not at all."""

import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from licet.errors import InvalidPolicy
from licet.policy import LivePolicy, PolicySource, live, load_stack, watch


class Files:
    """Policies in a directory, edited as people and programs edit them."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.source = PolicySource({}, self.root / "managed")

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            path = self.root / f"{name.replace('__', '/')}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"licet: 1\n{text}\n")

    def open(self) -> LivePolicy:
        return LivePolicy(self.root / "root.yaml", self.source)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves both clocks on by some seconds."""
    passed_s = 0.0
    monotonic, time_ns = live.time.monotonic, watch.time.time_ns
    monkeypatch.setattr(live.time, "monotonic", lambda: monotonic() + passed_s)
    monkeypatch.setattr(watch.time, "time_ns", lambda: time_ns() + int(passed_s * 1e9))

    def move(seconds: float) -> None:
        nonlocal passed_s
        passed_s += seconds

    return move


def said(caplog: pytest.LogCaptureFixture, files: Files) -> list[str]:
    return [
        record.getMessage().replace(f"{files.root}/", "")
        for record in caplog.records
        if record.levelno >= logging.WARNING
    ]


def denials(policy: LivePolicy) -> set[str]:
    return {entry.text for document in policy.current().documents for entry in document.deny}


def test_without_a_change_it_is_one_stack(files: Files, clock: Callable[[float], None]) -> None:
    files.write(root="deny: [shell]")
    policy = files.open()
    first = policy.current()
    assert policy.current() is first
    clock(10)
    assert policy.current() is first  # old enough to be believed by its numbers
    assert policy.current() is first


@pytest.mark.parametrize("seconds", [0, 10])
def test_a_change_holds_for_whoever_asks_next(
    files: Files, clock: Callable[[float], None], seconds: int
) -> None:
    files.write(root="deny: [shell]")
    policy = files.open()
    first = policy.current()
    clock(seconds)
    policy.current()
    files.write(root="deny: [shell, run]")
    second = policy.current()
    assert denials(policy) == {"shell", "run"}
    assert first.digest != second.digest
    assert [entry.text for entry in first.root.deny] == ["shell"]


def test_a_change_of_the_same_size_within_one_tick_of_the_clock_is_seen(files: Files) -> None:
    """Written in place at once: neither inode nor size nor, on a coarse clock, any time tells it."""
    files.write(root="deny: [tool aa]")
    policy = files.open()
    for name in ("ab", "ac", "ad", "ae"):
        files.write(root=f"deny: [tool {name}]")
        assert denials(policy) == {f"tool {name}"}


@pytest.mark.skipif(sys.platform == "win32", reason="on Windows nothing tells when a file was really changed")
def test_a_change_that_puts_its_time_back_is_seen(files: Files, clock: Callable[[float], None]) -> None:
    files.write(root="deny: [tool aa]")
    path = files.root / "root.yaml"
    policy = files.open()
    clock(10)
    policy.current()
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # until the clock of the file system has moved
        files.write(root="deny: [tool ab]")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert denials(policy) == {"tool ab"}


def appears(files: Files) -> None:
    files.write(managed__machine="deny: [run]")


def appears_in_a_directory_that_is_there(files: Files) -> None:
    files.write(managed__second="deny: [run]")


def loses_a_file(files: Files) -> None:
    (files.root / "managed/machine.yaml").unlink()


def link_moves(files: Files) -> None:
    files.write(v2__org="deny: [run]")
    (files.root / "now").unlink()
    (files.root / "now").symlink_to("v2")


def parent_changes(files: Files) -> None:
    files.write(base="deny: [run]")


def is_replaced_by_a_rename(files: Files) -> None:
    files.write(new="extends: ./base.yaml\nwithin: [./now/org.yaml]\ndeny: [run]")
    (files.root / "new.yaml").replace(files.root / "root.yaml")


def directory_becomes_a_link(files: Files) -> None:
    """The file is the very same, but whoever may replace the link now chooses the policy."""
    (files.root / "v1").rename(files.root / "v0")
    (files.root / "v1").symlink_to("v0")


@pytest.mark.parametrize(
    ("change", "managed", "expected"),
    [
        (appears, False, {"run"}),
        (appears_in_a_directory_that_is_there, True, {"run", "shell"}),
        (loses_a_file, True, set()),
        (link_moves, False, {"run"}),
        (parent_changes, False, {"run"}),
        (is_replaced_by_a_rename, False, {"run"}),
        (directory_becomes_a_link, False, set()),
    ],
)
def test_everything_that_it_was_read_from_counts(
    files: Files,
    clock: Callable[[float], None],
    change: Callable[[Files], None],
    managed: bool,
    expected: set[str],
) -> None:
    files.write(root="extends: ./base.yaml\nwithin: [./now/org.yaml]", base="", v1__org="")
    (files.root / "now").symlink_to("v1")
    if managed:
        files.write(managed__machine="deny: [shell]")
    policy = files.open()
    clock(10)
    before = policy.current()
    assert policy.current() is before
    change(files)
    after = policy.current()
    assert after is not before
    assert after.stale is None
    assert denials(policy) == expected
    fresh = load_stack(files.root / "root.yaml", files.source)
    assert (after.digest, after.sealed) == (fresh.digest, fresh.sealed)


def test_a_broken_file_keeps_what_was_before_and_says_so_once(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    files.write(root="within: [./org.yaml]", org="deny: [run]")
    policy = files.open()
    before = policy.current()
    files.write(org="denny: [run]")
    stale = policy.current()
    why = "org.yaml:2:1: unknown key `denny`"
    assert (stale.stale or "").replace(f"{files.root}/", "") == why
    assert replace(stale, stale=None).digest == before.digest
    assert denials(policy) == {"run"}
    assert policy.current() is stale
    assert said(caplog, files) == [
        f"the policy has changed and can't be used, so `{before.name}` stays in force: {why}"
    ]


def test_each_state_of_the_files_is_told_once(
    files: Files, caplog: pytest.LogCaptureFixture, clock: Callable[[float], None]
) -> None:
    files.write(root="deny: [run]")
    policy = files.open()
    for text in ("alow: []", "alow: []  # still", "allow: [", "deny: [run]"):
        files.write(root=text)
        for _ in range(3):
            policy.current()
            clock(2)  # tried again, and nothing new to say
    assert [message.rpartition(": ")[2] for message in said(caplog, files)] == [
        "unknown key `alow`",
        "unknown key `alow`",
        "did not find expected node content",
    ]
    assert policy.current().stale is None


def test_a_bound_that_vanishes_stays_in_force_and_a_fresh_start_refuses(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    files.write(root="within: [./org.yaml]", org="deny: [run]")
    policy = files.open()
    (files.root / "org.yaml").unlink()
    assert denials(policy) == {"run"}
    why = "root.yaml:2:10: the policy `org.yaml` can't be read: no such file or directory"
    assert (policy.current().stale or "").replace(f"{files.root}/", "") == why
    assert len(said(caplog, files)) == 1
    with pytest.raises(InvalidPolicy, match="can't be read: no such file or directory"):
        files.open()

    files.write(org="deny: [run, shell]")  # and it comes back
    assert policy.current().stale is None
    assert denials(policy) == {"run", "shell"}


def test_files_that_are_not_in_force_yet_are_sealed(files: Files) -> None:
    """Else the runs meanwhile could write the policy of those after them."""
    files.write(v1__policy="deny: [run]", v2__policy="within: [./gone.yaml]")
    (files.root / "root.yaml").symlink_to("v1/policy.yaml")
    policy = files.open()
    before = policy.current()
    (files.root / "root.yaml").unlink()
    (files.root / "root.yaml").symlink_to("v2/policy.yaml")
    added = {f"{files.root}/v2/policy.yaml", f"{files.root}/v2/gone.yaml"}
    assert {*policy.current().sealed} == {*before.sealed} | added
    assert policy.current().digest == before.digest


def test_a_pinned_bound_that_changes_is_not_taken(files: Files) -> None:
    files.write(org="deny: [run]")
    pin = load_stack(files.root / "org.yaml", files.source).sources[str(files.root / "org.yaml")]
    files.write(root=f"within: [{{file: ./org.yaml, sha256: '{pin}'}}]")
    policy = files.open()
    files.write(org="deny: []")
    assert denials(policy) == {"run"}
    assert "is pinned to sha256" in (policy.current().stale or "")


def test_a_managed_bound_that_is_broken_does_not_take_the_others_away(files: Files) -> None:
    files.write(root="", managed__a="deny: [run]")
    policy = files.open()
    files.write(managed__b="nonsense: 1")
    assert denials(policy) == {"run"}
    assert "unknown key `nonsense`" in (policy.current().stale or "")


def test_what_failed_without_a_change_of_files_is_tried_again(
    files: Files, clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write(root="deny: [run]")
    policy = files.open()
    files.write(root="deny: [shell]")

    def too_many_files(path: Path, limit: int) -> bytes:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(watch, "read_plain", too_many_files)
        assert denials(policy) == {"run"}
        assert (policy.current().stale or "").endswith("can't be read: too many open files")
    assert policy.current().stale is not None
    clock(1.1)
    assert policy.current().stale is None
    assert denials(policy) == {"shell"}


def test_a_relative_root_stays_the_file_it_was(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write(root="deny: [run]", elsewhere__root="")
    monkeypatch.chdir(files.root)
    policy = LivePolicy("root.yaml", files.source)
    monkeypatch.chdir(files.root / "elsewhere")
    files.write(root="deny: [shell]")
    assert denials(policy) == {"shell"}


@pytest.mark.skipif(sys.platform == "win32", reason="there a current directory can't be taken away")
def test_it_needs_no_current_directory(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write(root="deny: [run]")
    policy = files.open()
    gone = files.root / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    shutil.rmtree(gone)
    files.write(root="deny: [shell]")
    assert denials(policy) == {"shell"}
    with pytest.raises(InvalidPolicy, match="it is relative, and the current directory is gone"):
        LivePolicy("root.yaml", files.source)


def test_many_threads_read_a_change_once(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write(root="deny: [run]")
    policy = files.open()
    files.write(root="deny: [shell]")
    loads = []
    real = live.load_stack

    def counted(*given: object, **named: object) -> object:
        loads.append(1)
        return real(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(live, "load_stack", counted)
    start = threading.Barrier(8)
    found = []

    def ask() -> None:
        start.wait()
        found.append(policy.current())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(stack) for stack in found}) == len(loads) == 1
    assert denials(policy) == {"shell"}


TEXTS = {
    "root": st.sampled_from(["within: [./org.yaml]", "within: []", "within: [./gone.yaml]", "alow: []"]),
    "org": st.sampled_from(["deny: [run]", "deny: [shell]", "deny: [", None]),
    "managed__m": st.sampled_from(["deny: [tool m]", "", "nonsense: 1", None]),
}
STEPS = st.lists(
    st.one_of([st.tuples(st.just(name), texts) for name, texts in TEXTS.items()]), min_size=1, max_size=8
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(STEPS)
def test_what_is_in_force_is_the_last_version_that_loads(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str | None]]
) -> None:
    """The slow reference loads everything after each step and remembers what worked last."""
    files = Files(tmp_path_factory.mktemp("live"))
    files.write(root="within: [./org.yaml]", org="deny: [run]")
    policy = files.open()
    reference, stale = load_stack(files.root / "root.yaml", files.source), None
    for name, text in steps:
        if text is None:
            (files.root / f"{name.replace('__', '/')}.yaml").unlink(missing_ok=True)
        else:
            files.write(**{name: text})
        try:
            reference, stale = load_stack(files.root / "root.yaml", files.source), None
        except InvalidPolicy as problem:
            stale = str(problem)
        found = policy.current()
        assert (found.digest, found.sources, found.stale) == (reference.digest, reference.sources, stale)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_reads_by_itself(files: Files) -> None:
    files.write(root="deny: [run]")
    policy = files.open()
    files.write(root="deny: [shell]")
    with policy._guard:  # as if another thread were reading when this one forks
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if denials(policy) == {"shell"} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
