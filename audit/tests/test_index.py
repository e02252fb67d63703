"""The index answers as reading the whole log would, whatever becomes of its file and of the log."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from licet.errors import AuditUnavailable
from licet.record import Entry, Record, seat
from licet.state import StateDirectory, open_state
from licet_audit.index import Index, RunRow, Wanted, store
from licet_audit.reader import LogReader

WRITER = {"host": "h", "pid": 1, "instance": "i", "version": "1"}
WORDS = ("a", "b", "=c", "monty", "'; DROP TABLE run; --", "ä\u202e", "%", "_")
HOSTS = ("x.example", "y.example", "::1")
words = st.sampled_from(WORDS)
odd = st.sampled_from((None, 3, [], {}, "text", ["x", 1], {"id": 2}))


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, str | None, dict[str, Any]]:
    """One record's kind, phase and body: mostly what licet writes, sometimes nonsense."""
    kind, phase = draw(
        st.sampled_from(
            (
                ("request", None),
                ("decision", None),
                ("selection", None),
                ("probe", "after"),
                ("execution", "before"),
                ("tool_call", "before"),
                ("tool_call", "after"),
                ("access", None),
                ("approval", None),
                ("result", "after"),
            )
        )
    )
    intents = st.one_of(
        words.map(lambda word: f"tool {word}"),
        st.sampled_from(HOSTS).map(
            lambda host: f"network [{host}]:443" if ":" in host else f"network {host}:443"
        ),
        st.sampled_from(("run", "network (unknown)", "read /x")),
    )
    effects = st.sampled_from(("allow", "deny", "ask"))
    verdict = st.fixed_dictionaries(
        {"intent": intents, "effect": effects, "source": st.sampled_from(("declared", "granted"))}
    )
    hit = st.fixed_dictionaries({"rule": words, "truth": st.sampled_from(("true", "false", "unknown"))})
    usual: dict[str, st.SearchStrategy[Any]] = {
        "subject": st.fixed_dictionaries(
            {"id": words, "type": words}, optional={"tenant": words, "on_behalf_of": words}
        ),
        "effect": effects,
        "policy": words,
        "verdicts": st.lists(verdict, max_size=3),
        "verdict": verdict,
        "rules": st.lists(hit, max_size=2),
        "backend": words,
        "isolation": words,
        "tool": words,
        "action": st.sampled_from(("read", "network")),
        "target": st.sampled_from(("/x", "x.example:80", "y")),
        "allowed": st.booleans(),
        "termination": st.sampled_from(("exited", "timeout", "unknown")),
        "usage": st.fixed_dictionaries({"wall_time": st.sampled_from(("0.5", "nan", "x", "1e999", "-1"))}),
        "event": st.sampled_from(
            ("asked", "answered", "granted", "denied", "waiting", "resumed", "executed")
        ),
        "approval": words,
        "person": st.fixed_dictionaries({"id": words}),
        "counts": st.booleans(),
        "results": st.just([]),
        "leaked": st.integers(0, 2),
    }
    names = draw(st.lists(st.sampled_from(sorted(usual)), unique=True, min_size=6))
    body = {name: draw(usual[name] if draw(st.integers(0, 9)) else odd) for name in names}
    return kind, phase, body


times = st.tuples(st.integers(1, 3), st.integers(0, 23)).map(
    lambda t: f"2026-01-{t[0]:02}T{t[1]:02}:00:00.0Z"
)
entries = st.lists(st.tuples(st.sampled_from(("", "R1", "R12", "S", "\u00e4")), times, bodies()), max_size=25)
wanteds = st.builds(
    Wanted,
    run=st.none() | st.sampled_from(("R", "R1", "R12", "\ud800", "\u00e4")),
    decision=st.none() | st.sampled_from(("allow", "deny", "probe")),
    subject=st.none() | words,
    tenant=st.none() | words,
    backend=st.none() | words,
    rule=st.none() | words,
    termination=st.none() | st.sampled_from(("exited", "unfinished", "waiting")),
    approval=st.none() | words,
    approver=st.none() | words,
    approval_state=st.none() | st.sampled_from(("pending", "granted", "denied", "consumed")),
    host=st.none() | st.sampled_from(HOSTS),
    tool=st.none() | words,
    since=st.none() | times,
    until=st.none() | times,
    limit=st.none() | st.integers(1, 3),
    newest_first=st.booleans(),
    after=st.none() | st.integers(0, 20),
)
few = st.builds(
    lambda wanted, keep: only(wanted, keep),
    wanteds,
    st.sets(st.sampled_from([f.name for f in fields(Wanted)]), max_size=3),
)


def only(wanted: Wanted, keep: set[str]) -> Wanted:
    return Wanted(**{name: getattr(wanted, name) for name in keep})


@dataclass
class Written:
    """A log that a test writes by hand, so that it can write anything."""

    state: StateDirectory
    seq: int = 0
    prev: str = ""

    def add(self, segment: int, made: list[tuple[str, str, tuple[str, str | None, dict[str, Any]]]]) -> None:
        path = self.state.path / "log" / f"seg-{segment:020d}.jsonl"
        path.parent.mkdir(exist_ok=True)
        with path.open("ab") as file:
            for run_id, time, (kind, phase, body) in made:
                entry = Entry(kind, run_id, body, time, 1, phase=phase)  # type: ignore[arg-type]
                record, line = seat(entry, log=self.state.log_id, seq=self.seq, prev=self.prev, writer=WRITER)
                self.seq, self.prev = self.seq + 1, record.leaf
                file.write(line + b"\n")


def slow(records: list[Record]) -> list[RunRow]:
    """The runs, each from all of its records at once."""
    runs: dict[str, list[tuple[int, Record]]] = {}
    for place, record in enumerate(records):
        if record.entry.run_id:
            runs.setdefault(record.entry.run_id, []).append((place, record))
    return [slow_row(found[0][0], [record for _, record in found]) for found in runs.values()]


def text(value: object, *keys: str) -> str | None:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def items(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def slow_row(place: int, records: list[Record]) -> RunRow:
    row: dict[str, Any] = dict.fromkeys(one.name for one in fields(RunRow))
    row |= {"termination": "unfinished", "executed": False}
    rules, hosts, tools, denied = [], [], [], []
    approvals: list[str] = []
    approvers: list[str] = []
    for record in records:
        kind, phase, body = record.entry.kind, record.entry.phase, record.entry.body
        nobody = row["subject"] is row["on_behalf_of"] is None
        if kind == "request" and isinstance(body.get("subject"), dict) and nobody:
            row["subject"], row["subject_type"] = text(body, "subject", "id"), text(body, "subject", "type")
            row["tenant"] = text(body, "subject", "tenant")
            row["on_behalf_of"] = text(body, "subject", "on_behalf_of")
        if kind == "decision":
            row |= {"effect": text(body, "effect"), "policy": text(body, "policy")}
        if kind == "probe" and row["subject"] is None:
            row |= {"effect": "probe", "backend": text(body, "backend"), "termination": "unfinished"}
            if "results" in body:
                row["termination"] = f"{body.get('leaked')} refuted"
        if kind == "approval":
            slow_approval(row, body, approvals, approvers)
        if kind == "execution":
            row |= {"backend": text(body, "backend"), "isolation": text(body, "isolation"), "executed": True}
        if kind == "result":
            took = text(body, "usage", "wall_time")
            row |= {"termination": text(body, "termination"), "duration": 0.5 if took == "0.5" else None}
        called = kind == "tool_call" and phase == "before"
        if called and (tool := text(body, "tool")) is not None:
            tools.append(tool)
            denied += [f"tool {tool}"] if body.get("effect") == "deny" else []
        if called or kind == "decision":
            verdicts = items(body.get("verdicts")) if kind == "decision" else items([body.get("verdict")])
            rules += [one["rule"] for one in items(body.get("rules")) if one["truth"] != "false"]
            for verdict in verdicts:
                if "intent" not in verdict or verdict["source"] == "granted":
                    continue
                asked(verdict["intent"], hosts, tools)
                denied += [verdict["intent"]] if verdict["effect"] == "deny" else []
        if kind == "access" and (action := text(body, "action")) and (target := text(body, "target")):
            asked(f"{action} {target}", hosts, tools)
            denied += [] if body.get("allowed") is True else [f"{action} {target}"]
    lists = {"rules": rules, "hosts": hosts, "tools": tools, "denied": denied}
    lists |= {"approvals": approvals, "approvers": approvers}
    row |= {name: tuple(dict.fromkeys(found)) for name, found in lists.items()}
    row |= {"run_id": records[0].entry.run_id, "time": records[0].entry.time, "place": place}
    return RunRow(**row | {"first_seq": records[0].seq, "last_seq": records[-1].seq})


def slow_approval(
    row: dict[str, Any], body: Mapping[str, Any], approvals: list[str], approvers: list[str]
) -> None:
    event, name = text(body, "event"), text(body, "approval")
    if name is not None and name not in approvals:
        approvals.append(name)
    if row["termination"] in ("unfinished", "waiting") and event in ("waiting", "resumed"):
        row["termination"] = "waiting" if event == "waiting" else "unfinished"
    elif row["termination"] == "waiting" and event in ("denied", "expired", "withdrawn", "revoked"):
        row["termination"] = "approval_denied"
    if event == "answered" and body.get("counts") is True and (who := text(body, "person", "id")) is not None:
        approvers.append(who)
    states = {"asked": "pending", "granted": "granted", "denied": "denied", "executed": "consumed"}
    if event in states and name == (approvals[-1] if approvals else None):
        row["approval_state"] = states[event]


def asked(intent: str, hosts: list[str], tools: list[str]) -> None:
    action, _, target = intent.partition(" ")
    if action == "network" and target != "(unknown)":
        hosts.append("::1" if target == "[::1]:443" else target.partition(":")[0])
    if action == "tool":
        tools.append(target)


def chosen(rows: list[RunRow], wanted: Wanted) -> list[RunRow]:
    """The rows that are wanted, one question after the other."""
    equal = {"effect": wanted.decision, "tenant": wanted.tenant}
    equal |= {"backend": wanted.backend, "termination": wanted.termination}
    equal |= {"approval_state": wanted.approval_state}
    among = {"rules": wanted.rule, "hosts": wanted.host, "tools": wanted.tool}
    among |= {"approvals": wanted.approval, "approvers": wanted.approver}
    for name, value in equal.items():
        rows = [row for row in rows if value is None or getattr(row, name) == value]
    for name, value in among.items():
        rows = [row for row in rows if value is None or value in getattr(row, name)]
    who = wanted.subject
    rows = [row for row in rows if who is None or who in (row.subject, row.on_behalf_of)]
    rows = [row for row in rows if row.run_id.startswith(wanted.run or "")]
    rows = [row for row in rows if (wanted.since or "") <= row.time]
    rows = [row for row in rows if wanted.until is None or row.time < wanted.until]
    if wanted.newest_first:
        rows = [row for row in rows[::-1] if wanted.after is None or row.place < wanted.after]
    else:
        rows = [row for row in rows if wanted.after is None or row.place > wanted.after]
    return rows


def grouped(rows: list[RunRow], of: Callable[[RunRow], tuple[str | None, ...]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        for group in of(row):
            effects = found.setdefault(group or "?", {})
            effects[row.effect or "?"] = effects.get(row.effect or "?", 0) + 1
    return found


def check(state: StateDirectory, wanted: list[Wanted]) -> None:
    """Compare everything that the index says with what the slow reference says."""
    records = list(LogReader(state).records())
    rows = slow(records)
    with Index.open(state) as index:
        assert list(index.runs()) == rows
        for one in wanted:
            expected = chosen(rows, one)
            assert list(index.runs(one)) == expected[: one.limit], one
            assert index.count(one) == len(expected), one
            assert dict(index.counts(one, "day")) == grouped(expected, lambda row: (row.time[:10],))
            assert dict(index.counts(one, "effect")) == grouped(expected, lambda row: (row.effect,))
            assert dict(index.counts(one, "backend")) == grouped(expected, lambda row: (row.backend,))
            assert dict(index.counts(one, "subject")) == grouped(expected, lambda row: (row.subject,))
            assert dict(index.counts(one, "rule")) == grouped(expected, lambda row: row.rules)
            assert dict(index.counts(one, "host")) == grouped(expected, lambda row: row.hosts)
            assert dict(index.counts(one, "denied")) == grouped(expected, lambda row: row.denied)
        for run_id in ("", "R1", "R12", "none"):
            assert index.records(run_id) == tuple(one for one in records if one.entry.run_id == run_id)
        for seq in (-1, 0, len(records) // 2, len(records), 2**60):
            assert index.record(seq) == next((one for one in records if one.seq == seq), None)


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[], Written]:
    """Make logs, each in a directory of its own."""
    numbers = iter(range(10**6))
    return lambda: Written(open_state(tmp_path / f"state{next(numbers)}"))


@settings(max_examples=25, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck))
@given(first=entries, second=entries, third=entries, wanted=st.lists(few, max_size=4))
def test_it_answers_as_a_scan_does_after_appends_a_new_segment_a_prune_and_a_cut(
    fresh: Callable[[], Written], first: Any, second: Any, third: Any, wanted: list[Wanted]
) -> None:
    log = fresh()
    log.add(0, first)
    check(log.state, wanted)
    log.add(0, second)
    check(log.state, wanted)
    log.add(log.seq, third)
    check(log.state, wanted)
    if third and (first or second):  # so that there are two segments
        (log.state.path / "log" / f"seg-{0:020d}.jsonl").unlink()
        check(log.state, wanted)
        last = next((log.state.path / "log").iterdir())
        lines = last.read_bytes().splitlines(keepends=True)
        last.write_bytes(b"".join(lines[:-1]) + lines[-1][:-5])
        check(log.state, wanted)


@pytest.fixture
def log(fresh: Callable[[], Written]) -> Written:
    """A log of 300 records, indexed."""
    made = fresh()
    made.add(0, some(300))
    check(made.state, [])
    return made


def some(number: int) -> Any:
    source = random.Random(number)
    for _ in range(number):
        body = {"subject": {"id": source.choice(WORDS)}, "termination": "exited", "effect": "allow"}
        kind = source.choice(("request", "decision", "result"))
        yield f"R{source.randrange(60)}", "2026-01-01T00:00:00.0Z", (kind, None, body)


def test_an_edit_that_keeps_the_size_is_noticed(log: Written) -> None:
    path = log.state.path / "log" / f"seg-{0:020d}.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"effect":"allow"', b'"effect":"deny!"'))
    check(log.state, [Wanted(decision="deny!")])


def test_an_edit_before_an_append_is_noticed_when_the_record_is_read(log: Written) -> None:
    path = log.state.path / "log" / f"seg-{0:020d}.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"effect":"allow"', b'"effect":"deny!"', 1))
    log.add(0, some(5))
    with Index.open(log.state) as index:
        run = next(
            record for record in LogReader(log.state).records() if record.entry.body["effect"] == "deny!"
        )
        assert index.record(run.seq) == run
        assert list(index.runs()) == slow(list(LogReader(log.state).records()))


def test_a_line_that_is_no_record_is_an_error_and_no_gap(log: Written) -> None:
    path = log.state.path / "log" / f"seg-{0:020d}.jsonl"
    good = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"v": 1}\n')
    for _ in range(2):
        with (
            pytest.raises(AuditUnavailable, match=f"the line at byte {len(good)} of .* is no record"),
            Index.open(log.state),
        ):
            pass
    path.write_bytes(good)
    check(log.state, [])


def garbage(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zeros(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    path.write_bytes(content)


def foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE run (x)")
        db.execute("INSERT INTO run VALUES (1)")


def lying(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE named")


@pytest.mark.parametrize("damage", [garbage, nothing, cut, zeros, foreign, lying, Path.unlink])
def test_a_damaged_file_is_made_anew(log: Written, damage: Callable[[Path], None]) -> None:
    path = store.path_of(log.state)
    damage(path)
    check(log.state, [])
    with Index.open(log.state) as index:
        assert index.note is None
        assert index.count() == 60


def test_another_log_in_the_place_of_one_is_indexed_anew(log: Written, fresh: Callable[[], Written]) -> None:
    other = fresh()
    other.add(0, some(40))
    shutil.copy(other.state.path / "log" / f"seg-{0:020d}.jsonl", log.state.path / "log")
    check(log.state, [])


def test_where_there_is_no_cache_the_index_is_in_memory(
    log: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    check(log.state, [])
    with Index.open(log.state) as index:
        assert index.note is not None


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_a_cache_that_others_may_write_to_is_not_believed(log: Written) -> None:
    folder = store.path_of(log.state).parent
    assert (folder.stat().st_mode & 0o777, store.path_of(log.state).stat().st_mode & 0o777) == (0o700, 0o600)
    folder.chmod(0o777)
    with Index.open(log.state) as index:
        assert index.note == f"other users may write to `{folder}`"


def test_who_holds_the_file_makes_others_work_on_a_copy(
    log: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "PATIENCE", 0.01)
    with Index.open(log.state) as reading:
        before = list(reading.runs())
        log.add(0, some(20))
        with Index.open(log.state) as other:
            assert other.note == "another process uses it"
            assert list(other.runs()) == slow(list(LogReader(log.state).records()))
        assert list(reading.runs()) == before
    with Index.open(log.state) as again:
        assert again.note is None


def test_a_full_disk_is_no_error(log: Written) -> None:
    log.add(0, some(3000))
    configure = store._configure

    def small(db: sqlite3.Connection) -> None:
        configure(db)
        [(pages,)] = db.execute("PRAGMA page_count")
        if pages > 2:
            db.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_configure", small)
        with Index.open(log.state) as index:
            assert index.note == "the disk is full"
            assert list(index.runs()) == slow(list(LogReader(log.state).records()))
    check(log.state, [])


def test_reading_leaves_the_directory_of_the_log_alone(log: Written) -> None:
    def seen() -> dict[Path, tuple[int, int]]:
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in log.state.path.rglob("*")}

    before = seen()
    check(log.state, [])
    assert seen() == before


def asking(state: StateDirectory) -> Iterator[subprocess.Popen[str]]:
    """Processes that bring the index up to date a little at a time, each as soon as it begins."""
    while True:
        script = Path(__file__).with_name("index_process.py")
        command = [sys.executable, str(script), str(state.path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_processes_take_turns_and_one_that_is_killed_leaves_a_whole_index(
    fresh: Callable[[], Written],
) -> None:
    log = fresh()
    log.add(0, some(1500))
    others = asking(log.state)
    pair = [next(others), next(others)]
    pair[0].kill()
    log.add(0, some(500))
    check(log.state, [Wanted(subject="a")])
    pair[0].communicate(timeout=60)
    assert pair[0].returncode == -signal.SIGKILL
    assert pair[1].communicate(timeout=60)[0] == "done\n"
    check(log.state, [])
    with Index.open(log.state) as index:
        assert index.note is None


@pytest.mark.soak
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_kills_at_any_moment(fresh: Callable[[], Written]) -> None:
    source = random.Random(1)
    log = fresh()
    for process in islice(asking(log.state), 40):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(source.random() / 10)
        process.kill()
        process.communicate()
        log.add(0, some(300))
        check(log.state, [])
