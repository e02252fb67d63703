"""One store decides what is granted and spent."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asked import T0, Watch, answer, demand, later, request
from licet.approvals.counting import standing
from licet.approvals.forms import ApprovalRequest, Person, Reach, State, StoredApproval
from licet.approvals.store import NAME, ApprovalStore
from licet.errors import AnswerRefused, ApprovalClosed, ApprovalsUnavailable, AuditUnavailable, NoApproval
from licet.request import Subject
from licet.state import StateDirectory, open_state

CANARY = "canary-7f3a"


def granted(store: ApprovalStore, to: ApprovalRequest, **said: Any) -> StoredApproval:
    store.ask(to, frozen=b"frozen", sealed=b"sealed")
    return store.answer(to.id, answer(to, **said), T0)


def spend(store: ApprovalStore, id: str, seq: int = 7) -> StoredApproval:
    return store.consume(id, seq, T0)


def test_what_was_asked_is_kept_whole(store: ApprovalStore) -> None:
    to = request(
        "A1",
        demand(2, "finance", reviewer="human"),
        demand(),
        requester=Subject(id="ad\ud800a", properties={"n": 1, "f": 1.5, "b": True, "s": "1"}, groups=("x",)),
        document={"code": "\u202e\x1b[31m\ud800", "n": [1, None, {"a": True}]},
    )
    store.ask(to, frozen=b"\0frozen", sealed=b"sealed")
    kept = store.get("A1")
    assert kept == StoredApproval(to, "pending", changed=T0, frozen=b"\0frozen", sealed=b"sealed")
    assert type(kept.request.requester.properties["n"]) is int
    assert store.of_run("run-A1") == (kept,)
    assert store.of_run("run-A2") == ()


def test_an_id_is_there_once(store: ApprovalStore) -> None:
    store.ask(request())
    with pytest.raises(ValueError, match="`A1` is there already"):
        store.ask(request(digest="another"))
    assert store.get("A1").request == request()


def test_an_approval_is_found_by_how_its_id_begins(store: ApprovalStore) -> None:
    for id in ("A1", "A12", "A2"):
        store.ask(request(id))
    assert store.get("A2").request.id == "A2"
    assert store.get("A12").request.id == "A12"
    assert store.get("A1").request.id == "A1"
    for odd, why in (
        ("A", "more than one"),
        ("B", "no approval"),
        ("", "no approval"),
        ("A%", "no approval"),
    ):
        with pytest.raises(NoApproval, match=why):
            store.get(odd)


def test_nobody_answers_what_was_not_asked(store: ApprovalStore) -> None:
    store.ask(request("A11"))
    with pytest.raises(NoApproval):
        store.answer("A1", answer(request()), T0)
    with pytest.raises(NoApproval):
        store.consume("A1", 1, T0)
    with pytest.raises(NoApproval):
        store.ended("A1", "executed", T0)
    with pytest.raises(NoApproval):
        store.end("A1", "revoked", T0, reason="")
    with pytest.raises(NoApproval):
        store.suspend("A1", b"")


def test_two_of_finance_grant_it(store: ApprovalStore) -> None:
    to = request("A1", demand(2, "finance"))
    store.ask(to)
    first = store.answer("A1", answer(to, "ann", "finance"), later(1))
    assert (first.state, len(first.given)) == ("pending", 1)
    second = store.answer("A1", answer(to, "bob", "finance", reason="ok"), later(2))
    assert (second.state, second.reach) == ("granted", Reach("once", frozenset(), 1, 1800.0))
    assert [(one.answer.person.id, one.answer.reason, one.at) for one in second.given] == [
        ("ann", "", later(1)),
        ("bob", "ok", later(2)),
    ]


def test_an_answer_that_does_not_count_changes_nothing(store: ApprovalStore) -> None:
    to = request("A1", demand(1, "finance"))
    store.ask(to)
    before = store.get("A1")
    for odd in (answer(to), answer(request("A2"), "ann", "finance"), answer(to, "ada", "finance")):
        with pytest.raises(AnswerRefused) as refused:
            store.answer("A1", odd, T0)
        assert refused.value.advice
    assert store.get("A1") == before
    assert store.answer("A1", answer(to, "ann", "finance"), T0).state == "granted"


def test_a_no_is_the_end(store: ApprovalStore) -> None:
    to = request()
    store.ask(to, frozen=b"frozen", sealed=b"sealed")
    denied = store.answer("A1", answer(to, approve=False, reason="too much"), T0)
    assert (denied.state, denied.reason, denied.frozen, denied.sealed) == ("denied", "too much", None, None)
    with pytest.raises(ApprovalClosed, match="the approval `A1` was denied: too much"):
        store.answer("A1", answer(to, "bob"), T0)
    with pytest.raises(ApprovalClosed):
        spend(store, "A1")


def test_a_human_takes_a_grant_back_until_it_is_spent(store: ApprovalStore) -> None:
    granted(store, request())
    assert store.answer("A1", answer(request(), "bob", approve=False), T0).state == "denied"
    granted(store, request("A2"))
    spend(store, "A2")
    with pytest.raises(ApprovalClosed, match="`A2` is spent"):
        store.answer("A2", answer(request("A2"), "bob", approve=False), T0)


def test_a_token_is_good_for_one_answer_to_whatever_approval(store: ApprovalStore) -> None:
    for id in ("A1", "A2"):
        store.ask(request(id, demand(2)))
    store.answer("A1", answer(request("A1"), "ann", token="issuer:1"), T0)
    for id, who in (("A1", "bob"), ("A2", "ann")):
        with pytest.raises(AnswerRefused, match="the token was used before"):
            store.answer(id, answer(request(id), who, token="issuer:1"), T0)
    assert len(store.answer("A2", answer(request("A2"), "ann", token="issuer:2"), T0).given) == 1


def test_a_token_of_a_refused_answer_is_not_spent(store: ApprovalStore) -> None:
    to = request("A1", demand(1, "finance"))
    store.ask(to)
    with pytest.raises(AnswerRefused, match="may not answer"):
        store.answer("A1", answer(to, token="t"), T0)
    assert store.answer("A1", answer(to, "ann", "finance", token="t"), T0).state == "granted"


def test_a_grant_is_spent_once(store: ApprovalStore) -> None:
    granted(store, request())
    used = spend(store, "A1")
    assert (used.state, used.used, used.seq, used.ending) == ("consumed", 1, 7, None)
    with pytest.raises(ApprovalClosed, match="the approval `A1` is spent"):
        spend(store, "A1", 8)
    store.ended("A1", "executed", T0)
    over = store.get("A1")
    assert (over.state, over.ending, over.seq, over.frozen, over.sealed) == (
        "consumed",
        "executed",
        7,
        None,
        None,
    )
    with pytest.raises(ApprovalClosed):
        spend(store, "A1", 9)


def test_what_is_pending_is_not_spent(store: ApprovalStore) -> None:
    store.ask(request())
    with pytest.raises(ApprovalClosed, match="`A1` is not granted, it is pending"):
        spend(store, "A1")


def test_a_grant_for_three_uses_has_three(store: ApprovalStore) -> None:
    granted(store, request(), scope="shape", uses=3)
    for n in (1, 2, 3):
        assert spend(store, "A1", n).used == n
        store.ended("A1", "executed", T0)
    assert store.get("A1").state == "consumed"
    with pytest.raises(ApprovalClosed):
        spend(store, "A1", 4)


def test_a_run_begins_once_by_a_grant_however_many_uses_it_has(store: ApprovalStore) -> None:
    granted(store, request(kind="run"), scope="session")
    spend(store, "A1")
    with pytest.raises(ApprovalClosed, match="the run `run-A1` has begun by this approval"):
        spend(store, "A1", 8)
    assert store.consume("A1", 9, T0, run_id="another").used == 2


def test_a_suspended_run_goes_on_once_however_many_uses_there_are(store: ApprovalStore) -> None:
    granted(store, request(), scope="session")
    assert spend(store, "A1").sealed is None
    assert store.get("A1").sealed == b"sealed"
    assert store.consume("A1", 8, T0, resuming=True).sealed == b"sealed"
    assert store.get("A1").sealed is None
    with pytest.raises(ApprovalClosed, match="no suspended run waits"):
        store.consume("A1", 9, T0, resuming=True)
    assert store.get("A1").used == 2


def test_a_run_that_waits_is_kept(store: ApprovalStore) -> None:
    to = request()
    store.ask(to, frozen=b"frozen")
    store.suspend("A1", b"sealed")
    assert store.get("A1").sealed == b"sealed"
    store.end("A1", "withdrawn", T0, reason="cancelled")
    with pytest.raises(ApprovalClosed, match="was withdrawn: cancelled"):
        store.suspend("A1", b"sealed again")


@pytest.mark.parametrize("becomes", ["denied", "withdrawn", "revoked"])
def test_somebody_ends_it(store: ApprovalStore, becomes: State) -> None:
    granted(store, request())
    boss = Person("boss", ("board",), asserted_by="os")
    over = store.end("A1", becomes, later(1), reason="no", by=boss)
    assert (over.state, over.reason, over.ended_by, over.changed) == (becomes, "no", boss, later(1))
    assert (over.frozen, over.sealed) == (None, None)
    with pytest.raises(ApprovalClosed):
        spend(store, "A1")
    with pytest.raises(ApprovalClosed):
        store.end("A1", becomes, T0, reason="again")


def test_nobody_ends_it_as_what_only_the_store_says(store: ApprovalStore) -> None:
    store.ask(request())
    for state in ("pending", "granted", "expired", "consumed"):
        with pytest.raises(ValueError, match="nobody makes an approval"):
            store.end("A1", state, T0, reason="")  # type: ignore[arg-type]


def test_an_ending_is_of_a_use(store: ApprovalStore) -> None:
    granted(store, request(), scope="shape", uses=2)
    with pytest.raises(ApprovalClosed, match="no use of the approval `A1` has begun"):
        store.ended("A1", "executed", T0)
    spend(store, "A1", 7)
    spend(store, "A1", 8)
    store.ended("A1", "failed_to_start", T0, seq=7)
    assert store.get("A1").ending is None
    assert store.get("A1").frozen == b"frozen"
    store.ended("A1", "executed", T0)
    assert (store.get("A1").ending, store.get("A1").frozen) == ("executed", None)
    with pytest.raises(ApprovalClosed):
        store.ended("A1", "executed", T0, seq=9)


# time


def test_what_expired_is_over_before_anybody_marks_it(store: ApprovalStore, watch: Watch) -> None:
    store.ask(request(expires=60.0), frozen=b"frozen")
    granted(store, request("A2", expires=60.0))
    at = watch.go(60)
    assert [one.state for one in store.listed()] == ["expired", "expired"]
    assert store.get("A1").frozen is None
    for refused in (
        lambda: store.answer("A1", answer(request("A1")), at),
        lambda: store.consume("A2", 1, at),
        lambda: store.end("A1", "withdrawn", at, reason=""),
        lambda: store.suspend("A1", b""),
    ):
        with pytest.raises(ApprovalClosed, match="has expired"):
            refused()


def test_each_expiry_is_handed_out_once(store: ApprovalStore, state: StateDirectory, watch: Watch) -> None:
    store.ask(request("A1", expires=60.0))
    store.ask(request("A2", expires=61.0))
    assert store.expired(watch.go(60))[0].request.id == "A1"
    with ApprovalStore(state) as other:
        assert other.expired(watch.at) == ()
        assert [one.request.id for one in other.expired(watch.go(1))] == ["A2"]
    assert store.expired(watch.at) == ()


def test_a_wall_clock_that_is_set_back_extends_nothing(store: ApprovalStore, watch: Watch) -> None:
    granted(store, request(expires=60.0))
    watch.go(61)
    at = watch.set_wall(-60)
    with pytest.raises(ApprovalClosed, match="has expired"):
        store.consume("A1", 1, at)


def test_a_wall_clock_that_jumps_forward_expires(store: ApprovalStore, watch: Watch) -> None:
    granted(store, request(expires=60.0))
    at = watch.set_wall(61)
    with pytest.raises(ApprovalClosed, match="has expired"):
        store.consume("A1", 1, at)


def test_a_restart_neither_extends_nor_ends(store: ApprovalStore, watch: Watch) -> None:
    for id in ("A1", "A2", "A3"):
        granted(store, request(id, expires=60.0))
    watch.go(30)
    assert store.consume("A1", 1, watch.restart()).state == "consumed"
    with pytest.raises(ApprovalClosed):
        store.consume("A2", 2, watch.go(30))


def test_a_wall_clock_set_back_over_a_restart_ends_everything(store: ApprovalStore, watch: Watch) -> None:
    granted(store, request())
    watch.restart()
    with pytest.raises(ApprovalClosed, match="has expired"):
        store.consume("A1", 1, watch.set_wall(-1))


def test_time_that_passed_before_an_answer_stays_passed_over_a_restart(
    store: ApprovalStore, watch: Watch
) -> None:
    to = request(expires=60.0)
    store.ask(to)
    store.answer("A1", answer(to), watch.go(50))
    watch.restart()
    watch.set_wall(-40)  # before the answer, after the asking
    with pytest.raises(ApprovalClosed, match="has expired"):
        store.consume("A1", 1, watch.at)


def test_a_grant_may_expire_before_the_asking_does(store: ApprovalStore, watch: Watch) -> None:
    granted(store, request(), expires=60.0)
    assert store.get("A1").reach.expires == 60
    with pytest.raises(ApprovalClosed):
        store.consume("A1", 1, watch.go(60))


def test_what_two_people_agree_on_may_have_expired_when_the_second_answers(store: ApprovalStore) -> None:
    to = request("A1", demand(2))
    store.ask(to)
    store.answer("A1", answer(to, "ann", expires=60.0), later(1))
    found = store.answer("A1", answer(to, "bob"), later(60))
    assert found.state == "expired"
    assert store.previous(request("A2")) is None


# what lies about


def test_a_list_is_newest_first_and_by_state(store: ApprovalStore, watch: Watch) -> None:
    granted(store, request("A1"))
    spend(store, "A1")
    store.ask(request("A2", expires=60.0))
    granted(store, request("A3"))
    store.ask(request("A4"))

    def ids(*states: State, limit: int | None = None) -> list[str]:
        return [one.request.id for one in store.listed(states, limit=limit)]

    assert ids() == ["A4", "A3", "A2", "A1"]
    assert ids(limit=2) == ["A4", "A3"]
    assert ids("pending", "granted") == ["A4", "A3", "A2"]
    watch.go(60)
    assert ids("pending") == ["A4"]
    assert ids("expired") == ["A2"]
    assert ids("expired", "consumed") == ["A2", "A1"]
    assert store.counted() == {"pending": 2, "granted": 1, "consumed": 1}
    listed = store.listed(["granted"])[0]
    assert listed.request.document == {"call": {"tool": "refund"}}
    assert (listed.frozen, listed.sealed) == (None, None)


def test_the_oldest_grant_that_reaches_covers(store: ApprovalStore, watch: Watch) -> None:
    granted(store, request("A0"))
    granted(store, request("A1"), scope="shape", vary=("amount",), uses=1)
    granted(store, request("A2"), scope="session", expires=60.0)
    again = request("A9")
    first = store.reaching(again, T0)
    assert first is not None
    assert first.request.id == "A1"
    spend(store, "A1")
    second = store.reaching(again, T0)
    assert second is not None
    assert second.request.id == "A2"
    assert store.reaching(replace(again, policy_digest="tightened"), T0) is None
    assert store.reaching(again, watch.go(60)) is None


def test_the_last_that_was_approved_is_compared_with(store: ApprovalStore) -> None:
    def before() -> str | None:
        found = store.previous(request("A9"))
        return found and found.request.id

    store.ask(request("A1"))
    assert before() is None
    store.answer("A1", answer(request("A1")), T0)
    assert before() == "A1"
    assert store.previous(request("A1")) is None
    spend(store, "A1")
    store.ended("A1", "executed", T0)
    assert before() == "A1"
    kept = store.previous(request("A9"))
    assert kept is not None
    assert kept.request.document == request("A1").document
    granted(store, request("A2"))
    assert before() == "A2"
    assert store.get("A1").request.document == {"call": {"tool": "refund"}}
    other = replace(request("A9"), fields={**request().fields, "tool": "another"})
    assert store.previous(other) is None
    store.end("A2", "revoked", T0, reason="")
    assert before() is None


def test_content_stays_while_something_can_come_of_it(store: ApprovalStore) -> None:
    granted(store, request("A1"), scope="shape", uses=1)
    granted(store, request("A2"))
    assert store.get("A1").frozen == b"frozen"
    spend(store, "A1")
    assert store.get("A1").frozen == b"frozen"
    store.ended("A1", "executed", T0)
    assert store.get("A1").frozen is None
    assert store.get("A1").request.document == {"call": {"tool": "refund"}}


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_nothing_of_what_was_erased_is_anywhere(store: ApprovalStore, state: StateDirectory) -> None:
    document = {"code": CANARY * 2000, "call": {"tool": "refund"}}
    store.ask(request("A1", document=document), frozen=CANARY.encode(), sealed=CANARY.encode() * 9)
    granted(store, request("A2", run_id="run-A1", document=document), reason=CANARY)
    spend(store, "A2")
    granted(store, request("A3"))
    assert CANARY.encode() in everything(state.path)
    assert store.forget("run-A1") == 2
    assert CANARY.encode() not in everything(state.path)
    assert store.get("A1").state == "withdrawn"
    assert store.get("A2").state == "consumed"
    assert store.get("A3").frozen == b"frozen"
    assert store.forget("run-A1") == 2
    assert store.forget("run-9") == 0


# the file


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")
def test_nobody_else_can_read_it(store: ApprovalStore, state: StateDirectory) -> None:
    store.ask(request())
    files = [path for path in state.path.iterdir() if path.name.startswith("approvals")]
    assert {path.name for path in files} >= {NAME, f"{NAME}-wal", f"{NAME}-shm"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")
def test_a_file_that_others_can_write_to_is_not_used(state: StateDirectory) -> None:
    ApprovalStore(state).close()
    (state.path / NAME).chmod(0o660)
    with pytest.raises(ApprovalsUnavailable, match="other users may read or own") as refused:
        ApprovalStore(state)
    assert "chmod 600" in (refused.value.advice or "")


@pytest.mark.parametrize("name", [NAME, f"{NAME}-wal", f"{NAME}-shm", f"{NAME}-journal", "approvals.lock"])
@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_no_link_is_followed(state: StateDirectory, tmp_path: Path, name: str) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(b"")
    (state.path / name).symlink_to(target)
    with pytest.raises(ApprovalsUnavailable, match="is a symbolic link"):
        ApprovalStore(state)
    assert target.read_bytes() == b""


def test_a_state_directory_of_somebody_else_is_not_used(state: StateDirectory, tmp_path: Path) -> None:
    with ApprovalStore(state) as store:
        granted(store, request())
    shutil.copytree(state.path, tmp_path / "copy")
    with pytest.raises(AuditUnavailable, match="may be a copy"):
        open_state(tmp_path / "copy")


def test_a_store_of_another_directory_is_not_used(state: StateDirectory, tmp_path: Path) -> None:
    with ApprovalStore(state) as store:
        granted(store, request())
    other = open_state(tmp_path / "other")
    shutil.copy(state.path / NAME, other.path / NAME)
    with pytest.raises(ApprovalsUnavailable, match="belongs to another state directory"):
        ApprovalStore(other)


def test_a_store_that_is_replaced_while_it_is_open_is_not_written_to(
    store: ApprovalStore, state: StateDirectory
) -> None:
    granted(store, request())
    shutil.copy(state.path / NAME, state.path / "copy")
    (state.path / "copy").replace(state.path / NAME)
    with pytest.raises(ApprovalsUnavailable, match="was moved or replaced"):
        spend(store, "A1")


def test_a_store_of_a_later_version_is_not_used(state: StateDirectory) -> None:
    ApprovalStore(state).close()
    with closing(sqlite3.connect(state.path / NAME)) as db:
        db.execute("PRAGMA user_version = 2")
    with pytest.raises(ApprovalsUnavailable, match="is of version 2, and this reads version 1"):
        ApprovalStore(state)


def test_another_database_is_not_used(state: StateDirectory) -> None:
    with closing(sqlite3.connect(state.path / NAME)) as db:
        db.execute("CREATE TABLE t (x)")
    (state.path / NAME).chmod(0o600)
    with pytest.raises(ApprovalsUnavailable, match="is no store of approvals"):
        ApprovalStore(state)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE approval SET state = 'approved'",
        "UPDATE approval SET used = 2",
        "UPDATE approval SET uses = 0",
        "UPDATE approval SET state = 'consumed'",
        "UPDATE approval SET used = 1",
        "UPDATE approval SET ending = 'executed'",
        "UPDATE approval SET expires = 'never'",
        "INSERT INTO token VALUES (x'00', 1), (x'00', 1)",
        "INSERT INTO content VALUES (99, '', NULL, NULL)",
    ],
)
def test_the_tables_refuse_what_no_code_of_ours_writes(
    store: ApprovalStore, state: StateDirectory, change: str
) -> None:
    store.ask(request())
    with closing(sqlite3.connect(state.path / NAME)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(change)


def test_a_row_that_can_not_be_read_is_damage(store: ApprovalStore, state: StateDirectory) -> None:
    store.ask(request())
    for column in ("requester", "requirements", "fields", "asked", "given", "vary", "reason", "changed"):
        with closing(sqlite3.connect(state.path / NAME, isolation_level=None)) as db:
            (was,) = db.execute(f"SELECT {column} FROM approval").fetchone()
            db.execute(f"UPDATE approval SET {column} = ?", ("{" if column != "fields" else "[]",))
            with pytest.raises(ApprovalsUnavailable, match="the approval in row 1 can't be read") as refused:
                store.get("A1")
            assert "move it aside" in (refused.value.advice or "")
            db.execute(f"UPDATE approval SET {column} = ?", (was,))
    assert store.get("A1").request == request()


def test_a_store_that_was_closed_is_not_used(store: ApprovalStore) -> None:
    store.close()
    store.close()
    with pytest.raises(ApprovalsUnavailable, match="was closed"):
        store.ask(request())


# threads


def test_two_hundred_answers_at_one_time_are_all_taken_once(
    store: ApprovalStore, state: StateDirectory
) -> None:
    to = request("A1", demand(100), demand(1, "finance"))
    store.ask(to)
    with ApprovalStore(state) as other, ThreadPoolExecutor(16) as pool:

        def say(n: int) -> bool:
            try:
                (store, other)[n % 2].answer("A1", answer(to, f"p{n // 2}"), later(1))
            except AnswerRefused:
                return False
            return True

        taken = list(pool.map(say, range(200)))
    kept = store.get("A1")
    assert taken.count(True) == len(kept.given) == 100
    assert {one.answer.person.id for one in kept.given} == {f"p{n}" for n in range(100)}
    assert kept.state == standing(to, kept.given, later(1)).state == "pending"
    assert store.answer("A1", answer(to, "fin", "finance"), later(2)).state == "granted"


def test_many_threads_race_for_one_grant_and_one_wins(store: ApprovalStore) -> None:
    granted(store, request())

    def take(n: int) -> bool:
        try:
            spend(store, "A1", n)
        except ApprovalClosed:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(take, range(64))).count(True) == 1
