"""Receipts: what they say survives, and only what was written for this very host, and lately, is believed."""

from __future__ import annotations

import importlib
import json
import math
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.backend import Descriptor, Host, Language, Sandbox
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.plan import ExecutionPlan
from licet.probe import fingerprint as fingerprints
from licet.probe import identity as identities
from licet.probe.results import (
    INCONCLUSIVE_LIFETIME_S,
    LIFETIME_S,
    ProbeOutcome,
    ProbeResult,
    Receipts,
    digest,
)
from licet.probe.situation import situation
from licet.probe.store import ReceiptStore

NOW = 1_795_000_000.0
HERE = "a" * 64


def result(**changes: Any) -> ProbeResult:
    fields: dict[str, Any] = {
        "backend": "b",
        "control": Control.network_deny,
        "variant": "tcp",
        "outcome": ProbeOutcome.held,
        "attempted": "connect",
        "observed": "PermissionError EPERM",
        "twin": "got through",
        "reason": "because",
        "when": NOW,
        "duration": 0.25,
        "fingerprint": HERE,
    }
    return ProbeResult(**{**fields, **changes})


results = st.builds(
    ProbeResult,
    backend=st.sampled_from(["a", "b"]),
    control=st.sampled_from(Control),
    variant=st.sampled_from(["one", "two"]),
    outcome=st.sampled_from(ProbeOutcome),
    attempted=st.text(max_size=20),
    observed=st.text(max_size=20),
    twin=st.text(max_size=20),
    reason=st.text(max_size=20),
    when=st.floats(0, 4e9),
    duration=st.floats(0, 100),
    fingerprint=st.just(HERE),
)


@given(results)
def test_a_receipt_survives_json(given_result: ProbeResult) -> None:
    text = json.dumps(given_result.as_json())
    assert ProbeResult.from_json(json.loads(text)) == given_result


@pytest.mark.parametrize(
    "change",
    [
        {"control": "telepathy"},
        {"outcome": "fine"},
        {"when": "yesterday"},
        {"when": None},
        {"backend": 3},
        {"extra": "x"},
        {"variant": None},
    ],
)
def test_what_is_no_receipt_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"receipt|is not a valid|could not convert"):
        ProbeResult.from_json({**result().as_json(), **change})


def test_a_receipt_without_a_field_is_refused() -> None:
    content = result().as_json()
    del content["twin"]
    with pytest.raises(ValueError, match="no receipt: 'twin'"):
        ProbeResult.from_json(content)


@given(st.lists(results, max_size=6), st.randoms())
def test_the_digest_of_several_receipts_does_not_depend_on_their_order(
    some: list[ProbeResult], random: Any
) -> None:
    other = list(some)
    random.shuffle(other)
    assert digest(some) == digest(other)


@given(results, results)
def test_two_receipts_have_one_digest_only_if_they_are_equal(one: ProbeResult, other: ProbeResult) -> None:
    assert (one.digest == other.digest) == (one == other)


@given(st.lists(results, max_size=8))
def test_of_several_for_one_attack_the_latest_counts(some: list[ProbeResult]) -> None:
    receipts = Receipts.of(some)
    assert {r.key for r in receipts} == {r.key for r in some}
    for kept in receipts:
        assert kept.when == max(r.when for r in some if r.key == kept.key)


@pytest.mark.parametrize(
    ("outcome", "age", "counts"),
    [
        (ProbeOutcome.held, 0, True),
        (ProbeOutcome.held, LIFETIME_S - 1, True),
        (ProbeOutcome.held, LIFETIME_S, False),
        (ProbeOutcome.leaked, 100 * LIFETIME_S, True),  # time closes no hole
        (ProbeOutcome.leaked, -LIFETIME_S, True),
        (ProbeOutcome.inconclusive, INCONCLUSIVE_LIFETIME_S - 1, True),
        (ProbeOutcome.inconclusive, INCONCLUSIVE_LIFETIME_S, False),
        (ProbeOutcome.held, -59, True),
        (ProbeOutcome.held, -61, False),  # from a future that this clock has not seen
    ],
)
def test_a_receipt_counts_for_its_lifetime(outcome: ProbeOutcome, age: float, counts: bool) -> None:
    assert result(outcome=outcome).counts_at(NOW + age) is counts


def test_receipts_stay_the_same_object_while_all_count() -> None:
    receipts = Receipts.of([result(), result(variant="udp", when=NOW - 10)])
    assert receipts.at(NOW) is receipts
    assert [r.variant for r in receipts.at(NOW + LIFETIME_S - 5)] == ["tcp"]
    start, end = receipts.span()
    assert (start, end) == (NOW - 60, NOW - 10 + LIFETIME_S)


def store_in(folder: Path, now: float = NOW) -> ReceiptStore:
    return ReceiptStore(folder, clock=lambda: now)


def test_a_store_gives_back_what_was_added(tmp_path: Path) -> None:
    store = store_in(tmp_path / "probes")
    assert store.load(HERE) == ()
    store.add([result(), result(variant="udp")])
    store.add([result(when=NOW, outcome=ProbeOutcome.leaked), result(fingerprint="b" * 64)])
    assert {(r.variant, r.outcome.value) for r in store.load(HERE)} == {("tcp", "leaked"), ("udp", "held")}
    assert store.load("b" * 64) == (result(fingerprint="b" * 64),)
    assert store.load("c" * 64) == ()


def test_nothing_is_made_for_no_results(tmp_path: Path) -> None:
    ReceiptStore(tmp_path / "probes").add([])
    assert list(tmp_path.iterdir()) == []


def stored(store: ReceiptStore) -> dict[str, str]:
    return {found.variant: found.outcome.value for found in store.load(HERE)}


def test_a_new_result_replaces_one_from_a_clock_that_was_ahead(tmp_path: Path) -> None:
    ahead = result(when=NOW + 86400)
    store_in(tmp_path, NOW + 86400).add([ahead, replace(ahead, variant="udp")])
    store_in(tmp_path).add([result(outcome=ProbeOutcome.leaked)])
    assert stored(store_in(tmp_path)) == {"tcp": "leaked"}  # what does not count now is dropped
    store_in(tmp_path).add([result(when=NOW - 1)])
    assert stored(store_in(tmp_path)) == {"tcp": "leaked"}  # another process was later


def test_a_store_drops_what_is_too_old_but_no_leak_and_no_doubt(tmp_path: Path) -> None:
    store_in(tmp_path).add([result(variant=outcome.value, outcome=outcome) for outcome in ProbeOutcome])
    later = NOW + 2 * LIFETIME_S
    store_in(tmp_path, later).add([result(when=later)])
    assert stored(store_in(tmp_path)) == {"tcp": "held", "leaked": "leaked", "inconclusive": "inconclusive"}


def test_old_files_go_but_for_leaks_of_this_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaked = ProbeOutcome.leaked
    store_in(tmp_path).add([result(), result(fingerprint="b" * 64, outcome=leaked)])
    for path in tmp_path.iterdir():
        os.utime(path, (NOW, NOW))
    much_later = store_in(tmp_path, NOW + 5 * LIFETIME_S)
    for booted, left in ((NOW - 1, {"b", "c"}), (NOW + 1, {"c"})):
        monkeypatch.setattr("licet.probe.store._booted", lambda booted=booted: booted)
        much_later.add([result(fingerprint="c" * 64)])
        assert {path.name[0] for path in tmp_path.glob("*.receipts")} == left


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")
def test_nobody_else_reads_or_writes_receipts(tmp_path: Path) -> None:
    folder = tmp_path / "probes"
    store_in(folder).add([result()])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    path = folder / f"{HERE}.receipts"
    path.chmod(0o666)
    assert store_in(folder).load(HERE) == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"version": 1}',
        b'{"version": 2, "results": []}',
        b'{"version": 1, "results": [{}]}',
        b'{"version": 1, "results": 3}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_counts_as_missing_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    store = store_in(tmp_path)
    path = tmp_path / f"{HERE}.receipts"
    path.write_bytes(content)
    path.chmod(0o600)
    assert store.load(HERE) == ()
    store.add([result()])
    assert store.load(HERE) == (result(),)


def test_receipts_of_another_host_are_not_taken_over(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.add([result(fingerprint="b" * 64)])
    (tmp_path / f"{'b' * 64}.receipts").rename(tmp_path / f"{HERE}.receipts")
    assert store.load(HERE) == ()


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes are POSIX")
def test_a_link_or_a_pipe_is_no_receipt(tmp_path: Path) -> None:
    store = store_in(tmp_path / "probes")
    store.add([result()])
    path = tmp_path / "probes" / f"{HERE}.receipts"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert store.load(HERE) == ()
    path.unlink()
    os.mkfifo(path)
    assert store.load(HERE) == ()


WRITER = """
import json, sys
from pathlib import Path
from licet.probe.results import ProbeResult
from licet.probe.situation import situation
from licet.probe.store import ReceiptStore
content = json.loads(sys.argv[2])
sys.stdin.readline()
for number in range(5):
    variant = f"{sys.argv[3]}-{number}"
    ReceiptStore(Path(sys.argv[1])).add([ProbeResult.from_json({**content, "variant": variant})])
"""


def test_several_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    content = json.dumps(result(when=time.time()).as_json())
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), content, str(number)], stdin=subprocess.PIPE
        )
        for number in range(3)
    ]
    for writer in writers:
        writer.communicate(b"go\n")
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert len(ReceiptStore(tmp_path).load(HERE)) == 15
    assert {path.suffix for path in tmp_path.iterdir()} == {".receipts", ".lock"}  # no draft is left


class Described:
    """A backend that is there to be described."""

    def __init__(self, **changes: Any) -> None:
        contract, language = SandboxEnforcementContract(), Language("CPython")
        base = Descriptor("b", "1", contract, language, configuration="plain")
        self._descriptor = replace(base, **changes)

    def describe(self) -> Descriptor:
        return self._descriptor

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        raise NotImplementedError

    async def close(self) -> None:
        return None


def fingerprint_of(backend: Described) -> str:
    return fingerprints.fingerprint(backend, backend.describe())


def test_the_fingerprint_stays_for_the_same_backend_on_the_same_host() -> None:
    assert fingerprint_of(Described()) == fingerprint_of(Described())


@pytest.mark.parametrize(
    "change",
    [
        {"name": "c"},
        {"version": "2"},
        {"language": Language("Other")},
        {"language": Language("CPython", modules=frozenset({"json"}))},
        {"configuration": "deadline=off"},
        {"opens": frozenset({"read"})},
        {
            "sandbox_enforcement_contract": SandboxEnforcementContract(
                timeout=Enforcement(Level.enforced, "kernel", "m")
            )
        },
    ],
    ids=str,
)
def test_another_backend_voids_it(change: dict[str, Any]) -> None:
    assert fingerprint_of(Described(**change)) != fingerprint_of(Described())


def test_each_fact_of_the_host_is_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = fingerprints.facts(described := Described(), described.describe())
    assert set(facts) >= {
        "licet",
        "attacks",
        "interpreter",
        "machine",
        "kernel",
        "boot",
        "user",
        "cgroup",
        "container",
        "namespaces",
        "privileges",
    }
    before = fingerprint_of(Described())
    for name in fingerprints._machine():
        changed = {**fingerprints._machine(), name: "another"}
        with monkeypatch.context() as patch:
            patch.setattr(fingerprints, "_machine", lambda facts=changed: facts)
            assert fingerprint_of(Described()) != before, name
    for name, _ in situation():
        seen = tuple((n, "another" if n == name else value) for n, value in situation())
        assert fingerprints.fingerprint(described, described.describe(), seen) != before, name


def test_a_class_that_takes_arguments_says_which_or_each_instance_stands_alone() -> None:
    silent, other = Described(configuration=""), Described(configuration="")
    assert fingerprint_of(silent) == fingerprint_of(silent)
    assert fingerprint_of(silent) != fingerprint_of(other)

    class Plain(Described):
        def __init__(self) -> None:
            super().__init__(configuration="")

    class Twin(Plain):
        pass

    assert fingerprint_of(Plain()) == fingerprint_of(Plain()) != fingerprint_of(Twin())


def test_no_instance_inherits_from_one_that_is_gone() -> None:
    assert len({fingerprint_of(Described(configuration="")) for _ in range(20)}) == 20


@pytest.fixture
def old_code(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No file counts as newer than this process, which began before the files of its tests."""
    monkeypatch.setattr(identities, "_BEGAN", math.inf)
    identities._code.cache_clear()
    yield
    identities._code.cache_clear()


def code_of(package: str) -> str:
    identities._code.cache_clear()
    return identities._code(package)


def package_at(root: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    """Write the modules of `files` (dots as `__`), without `__init__.py` where none is given."""
    for name, text in files.items():
        path = root.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(root))


@pytest.mark.usefixtures("old_code")
def test_an_edit_of_the_backends_code_voids_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package_at(tmp_path, monkeypatch, edited_backend__inner__part="1", edited_backend__inner__other="1")
    package = tmp_path / "edited_backend"
    (package / "__init__.py").touch()
    importlib.import_module("edited_backend")
    part = package / "inner" / "part.py"
    first = code_of("edited_backend")
    part.write_text("22")
    second = code_of("edited_backend")
    assert first != second == code_of("edited_backend")
    (package / "notes.txt").touch()
    assert code_of("edited_backend") == second
    part.unlink()
    assert code_of("edited_backend") not in {first, second}


@pytest.mark.usefixtures("old_code")
def test_a_package_without_init_is_bound_by_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package_at(tmp_path, monkeypatch, spaced_backend__inner__part="1")
    importlib.import_module("spaced_backend.inner.part")
    before = code_of("spaced_backend")
    (tmp_path / "spaced_backend" / "inner" / "part.py").write_text("22")
    assert code_of("spaced_backend") != before


@pytest.mark.usefixtures("old_code")
@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_links_that_lead_nowhere_or_around_are_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package_at(tmp_path, monkeypatch, linked_backend__part="1")
    importlib.import_module("linked_backend.part")
    before = code_of("linked_backend")
    (tmp_path / "linked_backend" / "around").symlink_to(tmp_path / "linked_backend")
    assert code_of("linked_backend") == before
    (tmp_path / "linked_backend" / ".#part.py").symlink_to("me@host.1:2")  # as editors lock a file
    assert code_of("linked_backend") == code_of("linked_backend") != before


@pytest.mark.usefixtures("old_code")
def test_the_code_of_every_class_above_is_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = "class Base:\n    pass\n"
    package_at(tmp_path, monkeypatch, base_of_backend=base, leaf_of_backend="from base_of_backend import *\n")
    leaf = importlib.import_module("leaf_of_backend")
    kind = type("Leaf", (leaf.Base,), {"__module__": "leaf_of_backend"})
    assert set(identities._packages(kind)) == {"leaf_of_backend", "base_of_backend"}


SHOW = """
import sys, licet.probe.identity as identities
import touched_backend
if len(sys.argv) > 1:
    open(touched_backend.__file__, "a").write("# edited")
print(identities._code(sys.argv[-1] if len(sys.argv) > 2 else "touched_backend"))
"""


def test_code_that_changed_after_it_was_loaded_is_bound_to_this_process(tmp_path: Path) -> None:
    (tmp_path / "touched_backend.py").write_text("1\n")
    time.sleep(0.2)  # older than any process to come, by the clock of files

    def shown(*arguments: str) -> str:
        command = [sys.executable, "-c", SHOW, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout

    assert shown() == shown()
    assert shown("edit", "and", "licet") == shown("edit", "and", "licet")  # that of licet is as it was
    assert shown("edit") != shown()


def test_what_can_not_be_read_is_bound_to_this_process() -> None:
    command = [sys.executable, "-c", "import licet.probe.identity as i; print(i._code('not_there_at_all'))"]
    seen = {subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2)}
    assert len(seen) == 2


def test_the_interpreter_is_bound_by_its_content(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    binary = tmp_path / "python"
    binary.write_bytes(b"one")
    monkeypatch.setattr(sys, "executable", str(binary))
    before = fingerprints._interpreter()
    binary.write_bytes(b"two")
    assert fingerprints._interpreter() != before
