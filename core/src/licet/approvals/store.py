"""The approvals of one state directory, in `approvals.sqlite`: it alone decides what is granted and spent.

Rules this module keeps:

- every change is one transaction, durable when its method returns; a state is changed only from the state
  that it was seen in;
- whether time is over is worked out by both clocks at each access; that it is, is handed out once;
- a use begins once, by one caller; the suspended run that waited for it is handed out with it and is gone;
- a use that began ends: by the caller who knows, or as `unknown` when its process is dead;
- content goes when nothing can come of it any more; the last document of its kind that was approved stays
  until another one is, since people compare with it.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, replace
from types import TracebackType
from typing import Any, Self, get_args

from licet.approvals import clocks, rows, steps
from licet.approvals.clocks import Moment
from licet.approvals.counting import objection, standing
from licet.approvals.covering import covers, requested
from licet.approvals.database import Database
from licet.approvals.forms import OPEN, Answer, ApprovalRequest, Ending, Given, Person, State, StoredApproval
from licet.approvals.presence import Presence
from licet.errors import AnswerRefused, ApprovalClosed, ApprovalsUnavailable, NoApproval
from licet.output import bounded
from licet.state import StateDirectory

NAME = "approvals.sqlite"


class ApprovalStore:
    """What is pending, granted, spent; used by many processes and threads at one time.

    Keep it open from `consume` to `ended`: a use of a store that was closed counts as one that died.
    """

    def __init__(self, state: StateDirectory) -> None:
        """Open the store, which is made where it is missing.

        Raises:
            ApprovalsUnavailable: it can't be opened, was damaged, or is of a later version.
        """
        self._file = Database(state, NAME)
        self._presence = Presence(state.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._presence.release():
            with contextlib.suppress(ApprovalsUnavailable, OSError), self._file.reading() as db:
                if not db.execute(steps.IS_USING, (self._presence.name,)).fetchone():
                    self._presence.drop(self._presence.name)
        self._file.close()

    def ask(
        self, request: ApprovalRequest, *, frozen: bytes | None = None, sealed: bytes | None = None
    ) -> None:
        """Keep a new approval, pending; durable when this returns.

        Raises:
            ValueError: there is one of this id.
        """
        columns = rows.of_request(request)
        document = rows.text(request.document)
        with self._file.changing() as db:
            if db.execute("SELECT 1 FROM approval WHERE id = ?", (request.id,)).fetchone():
                raise ValueError(f"the approval `{request.id}` is there already")
            found = db.execute(
                f"INSERT INTO approval ({', '.join(columns)}) VALUES (:{', :'.join(columns)})", columns
            )
            db.execute("INSERT INTO content VALUES (?, ?, ?, ?)", (found.lastrowid, document, frozen, sealed))

    def get(self, approval: str) -> StoredApproval:
        """The approval of this id, or of the one that begins so, expired where its time is over at
        `clocks.now()`.

        Raises:
            NoApproval: there is none, or more than one begins so.
        """
        with self._file.reading() as db:
            like = (approval, approval, approval + "\U0010ffff")
            where = "(id = ? OR (id >= ? AND id < ?)) ORDER BY id LIMIT 2"
            found = steps.whole(db, where, like) if approval else []
        exact = [one for one in found if one.request.id == approval]
        if len(exact or found) != 1:
            why = "more than one approval begins with" if found else "there is no approval"
            raise NoApproval(
                f"{why} `{bounded(approval, 80)}`", advice="`licet approvals list --all` shows their ids"
            )
        return steps.as_of(clocks.now(), (exact or found)[0])

    def of_run(self, run_id: str) -> tuple[StoredApproval, ...]:
        """All approvals of a run, oldest first."""
        with self._file.reading() as db:
            found = steps.whole(db, "run_id = ? ORDER BY number", (run_id,))
        now = clocks.now()
        return tuple(steps.as_of(now, one) for one in found)

    def listed(self, states: Sequence[State] = (), *, limit: int | None = None) -> tuple[StoredApproval, ...]:
        """Approvals in any of `states` (empty: in all), newest first; without frozen and sealed parts.

        Of their documents, only the name of the tool is there.
        """
        wanted = frozenset(states or get_args(State))
        looked_at = sorted(wanted | OPEN if "expired" in wanted else wanted)
        now, found = clocks.now(), []
        with self._file.reading() as db:
            query = f"SELECT {rows.COLUMNS} FROM approval WHERE state = ? ORDER BY number DESC"
            cursors = [db.execute(query, (state,)) for state in looked_at]
            for row in heapq.merge(*cursors, key=lambda row: int(row[0]), reverse=True):
                one = steps.as_of(now, rows.stored(row))
                if one.state in wanted:
                    found.append(one)
                    if len(found) == limit:
                        break
        return tuple(found)

    def counted(self) -> Mapping[State, int]:
        """How many approvals there are in each state; what has expired counts so when that was marked."""
        with self._file.reading() as db:
            return dict(db.execute("SELECT state, count(*) FROM approval GROUP BY state").fetchall())

    def answer(self, approval: str, answer: Answer, at: Moment) -> StoredApproval:
        """Take one answer, and say what the approval is then; durable when this returns.

        Raises:
            NoApproval: there is none of this id.
            ApprovalClosed: it is over, or has expired.
            AnswerRefused: this person may not answer, or has answered; the document is another one; the
            token is spent.
        """
        with self._file.changing() as db:
            number, before = steps.still_open(db, approval, at)
            if answer.token is not None:
                steps.spend_token(db, number, answer.token)
            if (against := objection(before.request, before.given, answer, at)) is not None:
                raise AnswerRefused(against.why, advice=against.advice)
            given = (*before.given, Given(answer, at))
            comes_to = standing(before.request, given, at)
            columns: dict[str, Any] = {"given": rows.text_of_given(given), "state": comes_to.state}
            if comes_to.state == "granted" and comes_to.reach is not None:
                columns |= {**rows.of_reach(comes_to.reach), "approved": steps.grant_number(db)}
            if not answer.approve:
                columns["reason"] = rows.text(answer.reason)
            steps.change(db, number, before, at, columns)
            return steps.now_is(db, number)

    def end(
        self, approval: str, state: State, at: Moment, *, reason: str, by: Person | None = None
    ) -> StoredApproval:
        """Make a pending or granted one `denied`, `withdrawn` or `revoked`, for a reason other than an
        answer.

        Raises:
            NoApproval, ApprovalClosed: as in `answer`.
            ValueError: nobody ends one so.
        """
        if state not in ("denied", "withdrawn", "revoked"):
            raise ValueError(f"nobody makes an approval `{state}`")
        with self._file.changing() as db:
            number, before = steps.still_open(db, approval, at)
            columns = {"state": state, "reason": rows.text(reason)}
            if by is not None:
                columns["ended_by"] = rows.text(asdict(by))
            steps.change(db, number, before, at, columns)
            return steps.now_is(db, number)

    def expired(self, at: Moment) -> tuple[StoredApproval, ...]:
        """Mark what expired by now, and return what this call marked: each to exactly one caller."""
        with self._file.reading() as db:  # most often nothing has, and then nobody is kept waiting
            if not any(steps.as_of(at, one).state == "expired" for _, one in steps.all_open(db)):
                return ()
        with self._file.changing() as db:
            marked = []
            for number, before in steps.all_open(db):
                if steps.as_of(at, before).state == "expired":
                    steps.change(db, number, before, at, {"state": "expired"})
                    marked.append(steps.now_is(db, number))
            return tuple(marked)

    def consume(
        self, approval: str, seq: int, at: Moment, *, run_id: str | None = None, resuming: bool = False
    ) -> StoredApproval:
        """Spend one use of a granted one; `seq` is that of the record that says so. One caller wins.

        `run_id` is the run that goes on by it, if that is another one than asked. With `resuming`, what is
        returned has the suspended run as `sealed`, which is handed out to one caller and is gone then.

        Raises:
            NoApproval: there is none of this id.
            ApprovalClosed: it is not granted (any more), is spent, has expired; this run has begun by it, or
            the suspended one has gone on.
        """
        with self._file.changing() as db:
            number, before = steps.still_open(db, approval, at)
            if before.state != "granted":
                raise ApprovalClosed(
                    f"the approval `{before.request.id}` is not granted, it is pending",
                    advice=f"have it answered: `licet approvals show {before.request.id}`",
                )
            sealed = steps.take_sealed(db, number, before) if resuming else None
            self._presence.announce()
            runs, holder = run_id or before.request.run_id, self._presence.name
            steps.begin_use(db, number, before, at, run_id=runs, seq=seq, holder=holder)
            return replace(steps.now_is(db, number), sealed=sealed)

    def has_begun(self, approval: str, run_id: str) -> bool:
        """Whether a use of an approval was spent for this run."""
        with self._file.reading() as db:
            return bool(db.execute(steps.HAS_BEGUN, (approval, run_id)).fetchone())

    def ended(self, approval: str, ending: Ending, at: Moment, *, seq: int | None = None) -> None:
        """Note what came of the use that this store began last, or of the one with the record `seq`.

        What is not needed any more is dropped. What this store says of its own use is what holds, also where
        others took it for dead.

        Raises:
            NoApproval: there is none of this id.
            ApprovalClosed: no such use began, or it has ended and is another store's.
        """
        with self._file.changing() as db:
            number, before = steps.found(db, approval)
            own = self._presence.name
            use = db.execute(
                "SELECT number FROM use WHERE approval = :number AND (:seq IS NULL OR seq = :seq) "
                "AND (holder = :own OR (:seq IS NOT NULL AND ending IS NULL)) "
                "ORDER BY holder = :own DESC, ending IS NULL DESC, number DESC",
                {"number": number, "seq": seq, "own": own},
            ).fetchone()
            if use is None:
                raise ApprovalClosed(
                    f"no use of the approval `{before.request.id}` has begun here that has not ended",
                    advice="`licet audit show` tells what came of each",
                )
            steps.end_use(db, number, use[0], ending, at)

    def recover(self, at: Moment) -> tuple[StoredApproval, ...]:
        """End the uses whose process died as `unknown`; the approvals that this call ended one of.

        Each use is ended by exactly one caller, so that it is recorded once.
        """
        with self._file.changing() as db:
            holders = {holder for (holder,) in db.execute("SELECT holder FROM use WHERE ending IS NULL")}
            known = sorted({*holders, *self._presence.others()})
            dead = [holder for holder in known if not self._presence.is_alive(holder)]
            touched: dict[int, None] = {}
            for holder in dead:
                began = "SELECT approval, number FROM use WHERE holder = ? AND ending IS NULL"
                for number, use in db.execute(began, (holder,)).fetchall():
                    steps.end_use(db, number, use, "unknown", at)
                    touched[number] = None
            for holder in dead:
                self._presence.drop(holder)
            return tuple(steps.now_is(db, number) for number in touched)

    def suspend(self, approval: str, sealed: bytes) -> None:
        """Keep the suspended run of a call that waits.

        Raises:
            NoApproval, ApprovalClosed: as in `answer`.
        """
        with self._file.changing() as db:
            number, _ = steps.still_open(db, approval, clocks.now())
            db.execute("UPDATE content SET sealed = ? WHERE approval = ?", (sealed, number))

    def reaching(self, request: ApprovalRequest, at: Moment) -> StoredApproval | None:
        """The oldest granted one of scope `session` or `shape` that covers `request`, if there is one."""
        where = "requested = ? AND state = 'granted' AND scope <> 'once' ORDER BY number"
        with self._file.reading() as db:
            for one in steps.whole(db, where, (rows.key(requested(request)),)):
                if covers(steps.as_of(at, one), request):
                    return one
        return None

    def previous(self, request: ApprovalRequest) -> StoredApproval | None:
        """The last that was approved of the same kind, requester, directory and tool: to compare with."""
        states = ", ".join(f"'{state}'" for state in steps.COMPARABLE)
        where = (
            f"alike = ? AND approved IS NOT NULL AND id <> ? AND document IS NOT NULL AND state IN ({states})"
        )
        with self._file.reading() as db:
            found = steps.whole(
                db, f"{where} ORDER BY approved DESC LIMIT 1", (rows.alike(request), request.id)
            )
        return found[0] if found else None

    def forget(self, run_id: str) -> int:
        """Erase all content of the approvals of a run; how many there were.

        What was open is withdrawn, since nobody can read any more what it would be the answer to.
        """
        at = rows.text(astuple(clocks.now()))
        with self._file.changing() as db:
            ids = db.execute("SELECT id FROM approval WHERE run_id = ?", (run_id,)).fetchall()
            for number, before in [steps.found(db, id) for (id,) in ids]:
                db.execute("DELETE FROM content WHERE approval = ?", (number,))
                db.execute(
                    "UPDATE approval SET outline = '{}', reason = '\"\"', given = ? WHERE number = ?",
                    (rows.without_reasons(before.given), number),
                )
                for state in OPEN:
                    columns = {"state": "withdrawn", "reason": rows.text("its content was erased")}
                    rows.update(db, number, state, {**columns, "changed": at})
        if ids:
            self._file.fold()
        return len(ids)
