"""Services asked at one time: only an answer to what was shown is heard, and nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from licet.approvals import asking
from licet.approvals.asking import MOST_REASON, answers, attended, can_wait, collected
from licet.approvals.forms import Answer, ApprovalRequest, Person
from licet.approvals.services import ApprovalService
from matters import about_run

REQUEST = about_run()
YES = REQUEST.approve("ann", groups=("finance",), reason="fine")


class Service:
    """Says what it is told to say, then waits for ever if `stays`."""

    def __init__(
        self, name: str, *said: Any, stays: bool = False, attended: Any = True, waits: Any = False
    ) -> None:
        self.name, self.attended, self.waits = name, attended, waits
        self.said, self.stays = said, stays
        self.asked = asyncio.Event()
        self.closed = 0

    async def ask(self, request: ApprovalRequest) -> AsyncIterator[Answer]:
        self.asked.set()
        try:
            for one in self.said:
                if isinstance(one, BaseException):
                    raise one
                yield one
            if self.stays:
                await asyncio.Event().wait()
        finally:
            self.closed += 1

    async def collect(self, request: ApprovalRequest) -> tuple[Answer, ...]:
        if self.stays:
            await asyncio.Event().wait()
        for one in self.said:
            if isinstance(one, BaseException):
                raise one
        return self.said

    async def close(self) -> None: ...


def heard(*services: Any, deadline: float | None = 30.0) -> list[Answer]:
    async def ask() -> list[Answer]:
        before = asyncio.all_tasks()
        async with answers(cast("Sequence[ApprovalService]", services), REQUEST, deadline=deadline) as given:
            found = [one async for one in given]
        assert asyncio.all_tasks() == before
        return found

    return asyncio.run(ask())


def denied(name: str, why: str) -> Answer:
    return Answer(Person(f"service:{name}"), False, REQUEST.shown, name, reason=why)


def test_every_answer_of_every_service_is_heard() -> None:
    one, other = Service("one", YES, REQUEST.deny("bob")), Service("other", REQUEST.approve("eve"))
    assert sorted(heard(one, other), key=lambda answer: answer.person.id) == [
        replace(YES, service="one"),
        replace(REQUEST.deny("bob"), service="one"),
        replace(REQUEST.approve("eve"), service="other"),
    ]
    assert (one.closed, other.closed) == (1, 1)


def test_no_service_says_nothing() -> None:
    assert heard() == []
    assert heard(Service("silent")) == []


class Sub(Answer):
    """Not the very type."""


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, "it gave a `NoneType`, expected an `Answer`"),
        ("yes", "it gave a `str`, expected an `Answer`"),
        (1, "it gave a `int`, expected an `Answer`"),
        ("ALLOW ", "it gave a `str`, expected an `Answer`"),
        (True, "it gave a `bool`, expected an `Answer`"),
        (Sub(Person("ann"), True, REQUEST.shown, "s"), "it gave a `Sub`, expected an `Answer`"),
        (replace(YES, person="ann"), "the person of its answer is a `str`, expected a `Person`"),
        (replace(YES, shown="x"), f"it answers to 'x', asked was about `{REQUEST.shown}`"),
        (replace(YES, shown=None), f"it answers to None, asked was about `{REQUEST.shown}`"),
        (replace(YES, approve=1), "`approve` of its answer is malformed"),
        (replace(YES, approve="no"), "`approve` of its answer is malformed"),
        (replace(YES, scope="forever"), "`scope` of its answer is malformed"),
        (replace(YES, vary=["code"]), "`vary` of its answer is malformed"),
        (replace(YES, uses=True), "`uses` of its answer is malformed"),
        (replace(YES, uses=0), "`uses` of its answer is malformed"),
        (replace(YES, expires=float("nan")), "`expires` of its answer is malformed"),
        (replace(YES, expires=float("inf")), "`expires` of its answer is malformed"),
        (replace(YES, expires=-1), "`expires` of its answer is malformed"),
        (replace(YES, reason=None), "`reason` of its answer is malformed"),
        (replace(YES, token=""), "`token` of its answer is malformed"),
        (replace(YES, person=Person("")), "`person.id` of its answer is malformed"),
        (replace(YES, person=Person("ann ")), "`person.id` of its answer is malformed"),
        (replace(YES, person=Person("an\u200bn")), "`person.id` of its answer is malformed"),
        (replace(YES, person=Person("\uff41nn")), "`person.id` of its answer is malformed"),
        (replace(YES, person=Person("a" * 201)), "`person.id` of its answer is malformed"),
        (replace(YES, person=Person("ann", ("a",) * 101)), "`person.groups` of its answer is malformed"),
        (replace(YES, person=Person("ann", "finance")), "`person.groups` of its answer is malformed"),  # type: ignore[arg-type]
        (replace(YES, person=Person("ann", tenant=1)), "`person.tenant` of its answer is malformed"),  # type: ignore[arg-type]
        (replace(YES, person=Person("ann", reviewer="boss")), "`person.reviewer` of its answer is malformed"),  # type: ignore[arg-type]
        (
            replace(YES, person=Person("ann", asserted_by="me")),  # type: ignore[arg-type]
            "`person.asserted_by` of its answer is malformed",
        ),
        (RuntimeError("no network"), "it failed with RuntimeError: no network"),
        (SystemExit(3), "it failed with SystemExit: 3"),
        (asyncio.CancelledError(), "it failed with CancelledError: "),
        (BaseException("odd"), "it failed with BaseException: odd"),
    ],
)
def test_what_is_no_answer_to_this_is_a_denial_by_the_service(said: Any, why: str) -> None:
    assert heard(Service("odd", said, YES)) == [denied("odd", why)]  # and nothing more of it is heard
    assert heard(Service("even", YES)) == [replace(YES, service="even")]


def test_an_answer_to_another_request_is_none_to_this_one() -> None:
    other = about_run("2\n").approve("ann")
    (answer,) = heard(Service("s", other))
    assert (answer.approve, answer.person.id) == (False, "service:s")


@pytest.mark.parametrize("ask", [None, lambda request: None, lambda request: [YES], 5])
def test_a_service_that_cannot_be_asked_denies(ask: Any) -> None:
    service = Service("s")
    service.ask = ask  # type: ignore[method-assign]
    (answer,) = heard(service)
    assert (answer.approve, answer.person.id) == (False, "service:s")
    assert answer.reason.startswith("it failed with TypeError: ")


def test_a_coroutine_in_place_of_answers_denies_and_is_closed() -> None:
    async def ask(request: ApprovalRequest) -> Answer:
        return YES

    service = Service("s")
    service.ask = ask  # type: ignore[method-assign, assignment]
    (answer,) = heard(service)
    assert (answer.approve, answer.person.id) == (False, "service:s")


def test_who_answered_by_what_is_not_for_the_answer_to_say_and_reasons_are_bounded() -> None:
    (answer,) = heard(Service("real", replace(YES, service="terminal", reason="x" * 10_000)))
    assert (answer.service, len(answer.reason)) == ("real", MOST_REASON)
    (failed,) = heard(Service("s", ValueError("y" * 10_000)))
    assert len(failed.reason) == MOST_REASON


def test_one_failure_does_not_silence_the_others() -> None:
    found = heard(Service("bad", ValueError("x")), Service("good", YES))
    assert {answer.service: answer.approve for answer in found} == {"bad": False, "good": True}


def test_a_service_that_never_stops_talking_denies() -> None:
    found = heard(Service("s", *[YES] * (asking._MOST_ANSWERS + 5)))
    assert len(found) == asking._MOST_ANSWERS + 1
    assert found[-1] == denied("s", "it gave more than 1000 answers")


def test_silence_beyond_the_deadline_is_nothing_and_is_ended() -> None:
    slow, quick = Service("slow", stays=True), Service("quick", YES)
    assert heard(slow, quick, deadline=0.05) == [replace(YES, service="quick")]
    assert slow.closed == 1


def test_leaving_early_closes_what_is_still_asked() -> None:
    slow, talker = Service("slow", stays=True), Service("talker", *[YES] * 100)

    async def ask() -> None:
        async with answers([slow, talker], REQUEST) as given:
            async for _ in given:
                await slow.asked.wait()
                break
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(ask())
    assert (slow.closed, talker.closed) == (1, 1)


def test_cancelling_the_asker_closes_all_services() -> None:
    services = [Service(f"s{n}", stays=True) for n in range(5)]

    async def ask() -> None:
        async with answers(services, REQUEST) as given:
            async for _ in given:
                pytest.fail("nobody answered")

    async def main() -> None:
        task = asyncio.create_task(ask())
        for service in services:
            await service.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    assert [service.closed for service in services] == [1] * 5


class Failing(Service):
    """Fails when it is closed, or cancelled."""

    async def ask(self, request: ApprovalRequest) -> AsyncIterator[Answer]:
        try:
            yield YES
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("no way out")


def test_what_fails_at_its_end_harms_nobody() -> None:
    assert heard(Failing("f"), deadline=0.05) == [replace(YES, service="f")]


def test_one_that_resists_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PATIENCE_S", 0.05)
    release = asyncio.Event()

    class Stubborn(Service):
        async def ask(self, request: ApprovalRequest) -> AsyncIterator[Answer]:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            yield YES

    async def ask() -> None:
        async with answers([Stubborn("s")], REQUEST, deadline=0.05) as given:
            assert [one async for one in given] == []
        release.set()
        left = asyncio.all_tasks() - {cast("asyncio.Task[Any]", asyncio.current_task())}
        await asyncio.wait(left, timeout=5)
        assert all(task.done() for task in left)

    asyncio.run(ask())


def test_what_was_answered_meanwhile_is_held_to_the_same() -> None:
    def found(*services: Any, deadline: float | None = 30.0) -> tuple[Answer, ...]:
        return asyncio.run(collected(services, REQUEST, deadline=deadline))

    assert found(Service("a", YES)) == (replace(YES, service="a"),)
    assert found(Service("a")) == ()
    assert found(Service("a", None)) == (denied("a", "it gave a `NoneType`, expected an `Answer`"),)
    assert found(Service("a", OSError("gone"))) == (denied("a", "it failed with OSError: gone"),)
    assert found(Service("a", stays=True), Service("b", YES), deadline=0.05) == (replace(YES, service="b"),)
    odd = Service("a")
    odd.said = "yes"  # type: ignore[assignment]
    (answer,) = found(odd)
    assert answer == denied("a", "it gave a `str`, expected an `Answer`")


@pytest.mark.parametrize("helper", [attended, can_wait])
def test_only_true_says_that_somebody_is_there(helper: Callable[[Any], bool]) -> None:
    def service(value: Any) -> Service:
        return Service("s", attended=value, waits=value)

    assert not helper([])
    assert not helper([service(False), service("yes"), service(1)])
    assert helper([service(False), service(True)])
