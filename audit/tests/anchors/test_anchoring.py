"""Anchoring now and regularly: receipts and records of it, never in the way of an append."""

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from licet.hookspecs import hookimpl
from licet.plugins import Plugins
from licet.record import AnchorFailure, AnchorReceipt, Entry
from licet.settings import Anchors, Settings
from licet.settings import Witness as WitnessSetting
from licet.state import StateDirectory
from licet_audit import checkpointer
from licet_audit.anchors import anchoring, receipts
from licet_audit.anchors.regularly import AnchoredLog, Regular, has_news
from licet_audit.keys import signer
from licet_audit.log import DurableLog
from licet_audit.notes import Head
from licet_audit.plugin import licet_audit_log
from licet_audit.reader import LogReader
from servers import Grow, Reply, Serve, Witness


@pytest.fixture
def medium(tmp_path: Path) -> Path:
    (tmp_path / "medium").touch()
    return tmp_path / "medium"


def settings_of(*files: Path, every: str | None = None, url: str | None = None) -> Settings:
    witnesses = [WitnessSetting(url=url, key=str(Witness().key))] if url else []
    wanted = {"files": files, "witnesses": witnesses, **({"every": every} if every else {})}
    return Settings(enabled=("audit",), anchors=Anchors.model_validate(wanted))


def events(state: StateDirectory) -> list[tuple[str, int]]:
    found = [record.entry.body for record in LogReader(state).records() if record.entry.kind == "log"]
    return [(body["event"], body["size"]) for body in found if body["event"].startswith("anchor")]


def anchor(state: StateDirectory, settings: Settings) -> anchoring.Anchoring:
    log = DurableLog(state)
    try:
        return anchoring.anchor(state, Plugins(settings), log)
    finally:
        asyncio.run(log.close())


def test_receipts_and_checkpoint_are_kept_and_it_is_recorded(
    state: StateDirectory, grow: Grow, medium: Path, tmp_path: Path
) -> None:
    grow(10)
    found = anchor(state, settings_of(medium, tmp_path / "gone"))
    assert found.head.size == 10
    assert [one.anchor for one in found.receipts] == [str(medium)]
    assert found.failures == (
        AnchorFailure(
            "file",
            str(tmp_path / "gone"),
            f"there is no file `{tmp_path / 'gone'}`: is its medium there? an empty one has to be made once",
        ),
    )
    assert {size: [one.anchor for one in each] for size, each in receipts.all_of(state).items()} == {
        10: [receipts.spelled(str(medium))]
    }
    kept = checkpointer.kept(state, 10)
    assert kept is not None and Head.parse(kept.text) == found.head
    assert events(state) == [("anchored", 10), ("anchor_failed", 10)]


class Stranger:
    """A plugin with an anchor, which answers what a test says."""

    name = value = "stranger"

    def __init__(self, answer: Callable[[], list[object]]) -> None:
        self._answer = answer

    def load(self) -> object:
        return self

    @hookimpl
    def licet_anchor(self, checkpoint: object) -> list[object]:
        return self._answer()


def plugins_of(answer: Callable[[], list[object]]) -> Plugins:
    return Plugins(Settings(enabled=("stranger",)), found=[Stranger(answer)])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: None, "TypeError: 'NoneType' object is not iterable"),
        (lambda: ["seen"], "TypeError: it answered `seen`, which is no receipt"),
        (lambda: [AnchorReceipt("k", 5, b"")], "TypeError: it answered `AnchorReceipt("),  # type: ignore[arg-type]
        (lambda: [AnchorReceipt("k", "a", "text")], "TypeError: it answered `AnchorReceipt("),  # type: ignore[arg-type]
    ],
)
def test_a_strangers_anchor_that_fails_is_a_failure(
    grow: Grow, answer: Callable[[], list[object]], why: str
) -> None:
    (found,) = plugins_of(answer).anchor(grow(3))
    assert isinstance(found, AnchorFailure)
    assert (found.kind, found.anchor) == ("plugin", "stranger")
    assert found.reason.startswith(why)


def test_what_a_stranger_answers_is_kept_or_told_whatever_it_is(state: StateDirectory, grow: Grow) -> None:
    grow(3)
    strange = [
        AnchorReceipt("../k", "a", b""),
        AnchorReceipt("ledger", "../\u2028\ud800", b"block 7", "now"),
        AnchorFailure("ledger", "x" * 9000, "\x85"),
    ]
    log = DurableLog(state)
    found = anchoring.anchor(state, plugins_of(lambda: list(strange)), log)
    asyncio.run(log.close())
    assert [type(one) for one in found.answers] == [AnchorFailure, AnchorReceipt, AnchorFailure]
    assert [one.data for one in receipts.all_of(state)[3]] == [b"block 7"]
    assert events(state) == [("anchor_failed", 3), ("anchored", 3), ("anchor_failed", 3)]
    last = list(LogReader(state).records())[-1].entry.body
    assert (len(last["anchor"]), last["reason"]) == (500, "\\x85")


def test_one_process_anchors_at_a_time(state: StateDirectory, grow: Grow) -> None:
    grow(1)
    with anchoring.lock(state) as held, anchoring.lock(state) as second:
        assert held is not None
        assert second is None


@pytest.fixture
def regular(state: StateDirectory, medium: Path) -> Callable[..., Regular]:
    def make(*more: Path) -> Regular:
        return Regular(DurableLog(state), state, settings_of(medium, *more, every="1h"))

    return make


def test_it_is_done_when_it_is_due_by_whichever_process_and_only_for_news(
    state: StateDirectory, grow: Grow, regular: Callable[..., Regular]
) -> None:
    assert regular().once() == 300  # nothing is in the log
    grow(10)
    assert regular().once() == 3600
    assert events(state) == [("anchored", 10)]
    assert 3500 < regular().once() < 3600
    (state.path / "anchor.lock").write_text(f"{0:020.3f}")
    assert not has_news(state)
    assert regular().once() == 300
    assert events(state) == [("anchored", 10)]
    grow(13)
    assert regular().once() == 3600
    assert [event for event, _ in events(state)] == ["anchored", "anchored"]


def test_after_a_failure_it_is_tried_sooner(
    state: StateDirectory, grow: Grow, regular: Callable[..., Regular], tmp_path: Path
) -> None:
    grow(10)
    assert regular(tmp_path / "gone").once() == 300
    assert 290 < regular(tmp_path / "gone").once() <= 300


def test_a_clock_that_was_set_back_does_not_stop_it(
    state: StateDirectory, grow: Grow, regular: Callable[..., Regular]
) -> None:
    grow(10)
    (state.path / "anchor.lock").write_text(f"{10**11:020.3f}")
    assert regular().once() == 3600
    assert events(state) == [("anchored", 10)]


def test_appends_go_on_while_an_anchor_hangs_and_closing_does_not_wait_for_it(
    state: StateDirectory, serve: Serve, grow: Grow, entry: Callable[..., Entry]
) -> None:
    grow(3)
    asked, over = threading.Event(), threading.Event()

    def hang(path: str, body: bytes) -> Reply:
        asked.set()
        over.wait(30)
        return 500, "text/plain", b""

    log = licet_audit_log(settings_of(every="1h", url=serve(hang).url), state)
    assert isinstance(log, AnchoredLog)

    async def use() -> int:
        assert await asyncio.to_thread(asked.wait, 30)
        records = [await log.append([entry(n=n)]) for n in range(5)]
        await log.close()
        return len(records)

    assert asyncio.run(use()) == 5
    assert not over.is_set()
    over.set()


def test_a_runtime_anchors_by_itself_and_says_so_in_the_log(
    state: StateDirectory, serve: Serve, witness: Witness, grow: Grow, entry: Callable[..., Entry]
) -> None:
    head = grow(3)
    witness.trusted[head.origin] = signer(state).key
    log = licet_audit_log(settings_of(every="1h", url=serve(witness.reply).url), state)
    recorded = threading.Event()
    inner = log._log  # type: ignore[attr-defined]
    append = inner.append

    async def noticed(entries: list[Entry]) -> object:
        found = await append(entries)
        if any(one.body.get("event") == "anchored" for one in entries):
            recorded.set()
        return found

    inner.append = noticed

    async def use() -> None:
        await log.append([entry()])
        assert await asyncio.to_thread(recorded.wait, 30)
        await log.close()

    asyncio.run(use())
    assert [event for event, _ in events(state)] == ["anchored"]
    assert witness.seen[head.origin].size in (3, 4)


def test_no_thread_and_nothing_else_where_settings_name_nobody(state: StateDirectory) -> None:
    assert type(licet_audit_log(Settings(), state)) is DurableLog


def test_the_record_names_the_receipt(state: StateDirectory, grow: Grow, medium: Path) -> None:
    grow(3)
    found = anchor(state, settings_of(medium))
    line = (state.path / "log" / f"seg-{0:020d}.jsonl").read_bytes().splitlines()[3]
    assert json.loads(line)["body"] == {
        "event": "anchored",
        "anchor": str(medium),
        "kind": "file",
        "size": 3,
        "root": found.head.root.hex(),
        "time": None,
        "digest": hashlib.sha256(found.receipts[0].data).hexdigest(),
    }
