"""The store does what a slow reading of its rules does, whatever is done in whatever order."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from asked import Watch, answer, demand, request
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from licet.approvals import clocks
from licet.approvals.counting import objection
from licet.approvals.covering import covers
from licet.approvals.forms import Answer, ApprovalRequest, Ending, Given, Reach, StoredApproval
from licet.approvals.store import ApprovalStore
from licet.errors import AnswerRefused, ApprovalClosed, NoApproval
from licet.state import open_state

IDS = ("A1", "A2", "A3", "A4")
PEOPLE = ("ann", "bob", "ada")
TOKENS = (None, None, None, "t1", "t2")


@dataclass
class Used:
    """One use, and which of the stores began it."""

    seq: int
    run_id: str
    which: int
    ending: str | None = None


@dataclass
class Kept:
    """One approval, as simply as can be."""

    request: ApprovalRequest
    state: str = "pending"
    given: list[Given] = field(default_factory=list)
    reach: Reach = field(default_factory=Reach)
    uses: list[Used] = field(default_factory=list)
    sealed: bool = True
    approved: int = 0

    def is_over(self, seconds: float) -> bool:
        lasts = self.reach.expires if self.state == "granted" else self.request.expires
        return self.state in ("pending", "granted") and seconds >= lasts


class Reference:
    """The store with nothing but dictionaries; `seconds` have passed since the beginning."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.start = watch.at.wall
        self.kept: dict[str, Kept] = {}
        self.tokens: set[str] = set()
        self.grants = 0

    def age(self, one: Kept) -> float:
        return self.watch.at.wall - one.request.asked.wall

    def state(self, one: Kept) -> str:
        return "expired" if one.is_over(self.age(one)) else one.state

    def open(self, id: str) -> Kept:
        if id not in self.kept:
            raise NoApproval("none")
        if self.state(self.kept[id]) not in ("pending", "granted"):
            raise ApprovalClosed("over")
        return self.kept[id]

    def answer(self, id: str, said: Answer) -> None:
        one = self.open(id)
        if said.token in self.tokens:
            raise AnswerRefused("token")
        if objection(one.request, one.given, said, self.watch.at) is not None:
            raise AnswerRefused("no")
        if said.token is not None:
            self.tokens.add(said.token)
        one.given.append(Given(said, self.watch.at))
        if not said.approve:
            one.state = "denied"
        elif len(one.given) == max(need.count or 1 for need in one.request.requirements):
            self._grant(one)

    def _grant(self, one: Kept) -> None:
        answers = [given.answer for given in one.given]
        expires = min([one.request.expires, *(a.expires for a in answers if a.expires is not None)])
        if {a.scope for a in answers} == {"shape"}:
            uses = min((a.uses for a in answers if a.uses is not None), default=None)
            one.reach = Reach("shape", frozenset(), uses, expires)
        else:
            one.reach = Reach(expires=expires)
        one.state = "granted"
        if one.is_over(self.age(one)):
            one.state, one.reach = "expired", Reach()
            return
        self.grants += 1
        one.approved = self.grants

    def consume(self, id: str, use: Used, resuming: bool) -> None:
        one = self.open(id)
        again = one.request.kind == "run" and any(use.run_id == other.run_id for other in one.uses)
        if one.state != "granted" or again or (resuming and not one.sealed):
            raise ApprovalClosed("no")
        one.sealed = one.sealed and not resuming
        one.uses.append(use)
        if len(one.uses) == one.reach.uses:
            one.state = "consumed"

    def ended(self, id: str, ending: str, which: int, seq: int | None) -> None:
        if id not in self.kept:
            raise NoApproval("none")
        uses = self.kept[id].uses
        own = [one for one in uses if one.which == which and seq in (None, one.seq)]
        others = [one for one in uses if one.which != which and one.seq == seq and one.ending is None]
        found = [one for one in own if one.ending is None] or own or others
        if not found:
            raise ApprovalClosed("no use")
        found[-1].ending = ending

    def content(self, one: Kept) -> tuple[bool, bool]:
        """Whether the frozen part is there, and the document."""
        if self.state(one) == "expired" and one.state != "expired":
            return False, True
        if one.state in ("pending", "granted") or any(use.ending is None for use in one.uses):
            return True, True
        later = any(
            other.approved > one.approved and alike(one.request) == alike(other.request)
            for other in self.kept.values()
        )
        return False, bool(one.approved) and one.state in ("consumed", "expired") and not later


def alike(one: ApprovalRequest) -> tuple[str, str]:
    return one.kind, one.fields["tool"]


def outcome(act: Callable[[], object]) -> type[Exception] | None:
    try:
        act()
    except (NoApproval, ApprovalClosed, AnswerRefused) as problem:
        return type(problem)
    return None


class StoreAgainstReference(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.watch = Watch()
        self.patches = [
            mock.patch.dict(os.environ, XDG_STATE_HOME=str(self.folder / "user")),
            mock.patch.object(clocks, "now", lambda: self.watch.at),
        ]
        for patch in self.patches:
            patch.start()
        self.state = open_state(self.folder / ".licet")
        self.stores = [ApprovalStore(self.state) for _ in range(2)]
        self.reference = Reference(self.watch)
        self.seq = 0

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        for patch in self.patches:
            patch.stop()
        shutil.rmtree(self.folder)

    @rule(
        id=st.sampled_from(IDS),
        count=st.integers(1, 2),
        expires=st.sampled_from([50.0, 200.0]),
        kind=st.sampled_from(["run", "call"]),
        tool=st.sampled_from(["t", "u"]),
        which=st.integers(0, 1),
    )
    def ask(self, id: str, count: int, expires: float, kind: str, tool: str, which: int) -> None:
        fields = {"tool": tool, "workdir": "w", "code": "c"}
        to = request(id, demand(count), expires=expires, kind=kind, fields=fields, asked=self.watch.at)
        if id not in self.reference.kept:
            self.stores[which].ask(to, frozen=b"f", sealed=b"s")
            self.reference.kept[id] = Kept(to)

    @rule(
        id=st.sampled_from(IDS),
        who=st.sampled_from(PEOPLE),
        approve=st.sampled_from([True, True, True, False]),
        scope=st.sampled_from(["once", "shape"]),
        uses=st.sampled_from([None, 1, 2]),
        expires=st.sampled_from([None, 30.0]),
        reviewer=st.sampled_from(["auto", "human"]),
        token=st.sampled_from(TOKENS),
        right=st.sampled_from([True, True, True, False]),
        which=st.integers(0, 1),
    )
    def answer(self, id: str, who: str, right: bool, which: int, **said: object) -> None:
        said = {**said, "uses": said["uses"] if said["scope"] == "shape" else None}
        given = answer(request(id if right else "other"), who, **said)  # type: ignore[arg-type]
        expected = outcome(lambda: self.reference.answer(id, given))
        assert outcome(lambda: self.stores[which].answer(id, given, self.watch.at)) is expected

    @rule(id=st.sampled_from(IDS), own=st.booleans(), resuming=st.booleans(), which=st.integers(0, 1))
    def consume(self, id: str, own: bool, resuming: bool, which: int) -> None:
        self.seq += 1
        use = Used(self.seq, f"run-{id}" if own else "another", which)
        expected = outcome(lambda: self.reference.consume(id, use, resuming))
        found = outcome(
            lambda: self.stores[which].consume(
                id, use.seq, self.watch.at, run_id=use.run_id, resuming=resuming
            )
        )
        assert found is expected

    @rule(
        id=st.sampled_from(IDS),
        ending=st.sampled_from(["executed", "failed_to_start", "unknown"]),
        which=st.integers(0, 1),
        back=st.sampled_from([None, 0, 1, 2]),
    )
    def ended(self, id: str, ending: Ending, which: int, back: int | None) -> None:
        seq = None if back is None else self.seq - back
        expected = outcome(lambda: self.reference.ended(id, ending, which, seq))
        assert outcome(lambda: self.stores[which].ended(id, ending, self.watch.at, seq=seq)) is expected

    @rule(id=st.sampled_from(IDS), state=st.sampled_from(["withdrawn", "revoked"]), which=st.integers(0, 1))
    def end(self, id: str, state: str, which: int) -> None:
        def end() -> None:
            self.reference.open(id).state = state

        expected = outcome(end)
        found = outcome(lambda: self.stores[which].end(id, state, self.watch.at, reason=""))  # type: ignore[arg-type]
        assert found is expected

    @rule(which=st.integers(0, 1))
    def expire(self, which: int) -> None:
        expected = set()
        for id, one in self.reference.kept.items():
            if one.is_over(self.reference.age(one)):
                one.state = "expired"
                expected.add(id)
        assert {one.request.id for one in self.stores[which].expired(self.watch.at)} == expected

    @rule(seconds=st.sampled_from([1.0, 20.0, 60.0]))
    def pass_time(self, seconds: float) -> None:
        self.watch.go(seconds)

    @invariant()
    def both_say_the_same(self) -> None:
        for store in self.stores:
            listed = {one.request.id: one for one in store.listed()}
            assert listed.keys() == self.reference.kept.keys()
            for id, one in self.reference.kept.items():
                self._same(store.get(id), listed[id], one)

    def _same(self, found: StoredApproval, listed: StoredApproval, one: Kept) -> None:
        assert found.state == listed.state == self.reference.state(one)
        assert list(found.given) == one.given
        assert (found.used, found.reach if one.approved else Reach()) == (len(one.uses), one.reach)
        assert found.ending == (one.uses[-1].ending if one.uses else None)
        frozen, document = self.reference.content(one)
        assert (found.frozen is not None) == frozen
        assert ("code" in found.request.document) == document
        assert (found.sealed is not None) == (frozen and one.sealed)

    @invariant()
    def the_same_is_reached_and_compared(self) -> None:
        kept = self.reference.kept.values()
        for kind in ("run", "call"):
            to = request("other", kind=kind, fields={"tool": "t", "workdir": "w", "code": "c"})
            approved = [
                one
                for one in kept
                if one.approved
                and one.state in ("granted", "consumed", "expired")
                and alike(one.request) == (kind, "t")
                and self._document_is_there(one)
            ]
            last = max(approved, key=lambda one: one.approved, default=None)
            found = self.stores[0].previous(to)
            assert (found and found.request.id) == (last and last.request.id)
            reached = self.stores[1].reaching(to, self.watch.at)
            if reached is not None:
                one = self.reference.kept[reached.request.id]
                assert self.reference.state(one) == "granted"
                assert covers(reached, to)
            for one in kept:
                if self.reference.state(one) == "granted" and one.reach.scope == "shape":
                    same = alike(one.request) == (kind, "t")
                    assert not same or one.request.requirements != to.requirements or reached is not None

    def _document_is_there(self, one: Kept) -> bool:
        return self.reference.content(one)[1]


TestStore = StoreAgainstReference.TestCase
TestStore.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
