"""Receipts: what they say survives, and only what was written for this very host, and lately, is believed."""

from __future__ import annotations

import importlib
import json
import os
import stat
import subprocess
import sys
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
from licet.probe.results import (
    INCONCLUSIVE_LIFETIME_S,
    LIFETIME_S,
    ProbeOutcome,
    ProbeResult,
    Receipts,
    digest,
)
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
        (ProbeOutcome.leaked, LIFETIME_S - 1, True),
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


def test_a_store_gives_back_what_was_added(tmp_path: Path) -> None:
    store = ReceiptStore(tmp_path / "probes")
    assert store.load(HERE) == ()
    store.add([result(), result(variant="udp")])
    store.add([result(when=NOW + 1, outcome=ProbeOutcome.leaked), result(fingerprint="b" * 64)])
    assert {(r.variant, r.outcome.value) for r in store.load(HERE)} == {("tcp", "leaked"), ("udp", "held")}
    assert store.load("b" * 64) == (result(fingerprint="b" * 64),)
    assert store.load("c" * 64) == ()


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")
def test_nobody_else_reads_or_writes_receipts(tmp_path: Path) -> None:
    folder = tmp_path / "probes"
    ReceiptStore(folder).add([result()])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    path = folder / f"{HERE}.receipts"
    path.chmod(0o666)
    assert ReceiptStore(folder).load(HERE) == ()


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
    store = ReceiptStore(tmp_path)
    path = tmp_path / f"{HERE}.receipts"
    path.write_bytes(content)
    path.chmod(0o600)
    assert store.load(HERE) == ()
    store.add([result()])
    assert store.load(HERE) == (result(),)


def test_receipts_of_another_host_are_not_taken_over(tmp_path: Path) -> None:
    store = ReceiptStore(tmp_path)
    store.add([result(fingerprint="b" * 64)])
    (tmp_path / f"{'b' * 64}.receipts").rename(tmp_path / f"{HERE}.receipts")
    assert store.load(HERE) == ()


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes are POSIX")
def test_a_link_or_a_pipe_is_no_receipt(tmp_path: Path) -> None:
    store = ReceiptStore(tmp_path / "probes")
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
from licet.probe.store import ReceiptStore
content = json.loads(sys.argv[2])
sys.stdin.readline()
for number in range(5):
    variant = f"{sys.argv[3]}-{number}"
    ReceiptStore(Path(sys.argv[1])).add([ProbeResult.from_json({**content, "variant": variant})])
"""


def test_several_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    content = json.dumps(result().as_json())
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
        base = Descriptor("b", "1", SandboxEnforcementContract(), Language("CPython"))
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
    for name in facts:
        if name in {"backend", "contract", "language", "opens", "code"}:
            continue
        changed = {**fingerprints._host(os.getpid(), os.geteuid()), name: "another"}
        with monkeypatch.context() as patch:
            patch.setattr(fingerprints, "_host", lambda pid, user, facts=changed: facts)
            assert fingerprint_of(Described()) != before, name


def test_an_edit_of_the_backends_code_voids_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "edited_backend"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").touch()
    part = package / "inner" / "part.py"
    part.write_text("1")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("edited_backend")
    seen = []
    for text in ("1", "22", "22"):
        part.write_text(text) if part.read_text() != text else None
        fingerprints._code.cache_clear()
        seen.append(fingerprints._code("edited_backend"))
    assert seen[0] != seen[1] == seen[2]
    (package / "notes.txt").touch()
    fingerprints._code.cache_clear()
    assert fingerprints._code("edited_backend") == seen[1]
    assert fingerprints._code("not_there_at_all") == "unreadable"
    fingerprints._code.cache_clear()


def test_the_interpreter_is_bound_by_its_content(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    binary = tmp_path / "python"
    binary.write_bytes(b"one")
    monkeypatch.setattr(sys, "executable", str(binary))
    before = fingerprints._interpreter()
    binary.write_bytes(b"two")
    assert fingerprints._interpreter() != before
