"""Functions of the embedding program as services: only an answer is a yes."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from dataclasses import replace
from typing import Any

import pytest
from licet.approvals import Answer, ApprovalRequest, Person
from licet.approvals.asking import answers, attended, can_wait
from licet.approvals.callback import CallbackService, as_service
from licet.approvals.queue import QueueService
from licet.errors import UsageError
from licet.state import StateDirectory
from matters import about_run

REQUEST = about_run()


def asked(function: Any) -> list[Answer]:
    async def ask() -> list[Answer]:
        async with answers([as_service(function)], REQUEST, deadline=30) as given:
            return [one async for one in given]

    return asyncio.run(ask())


def approve(request: ApprovalRequest) -> Answer:
    return request.approve("ann", groups=("finance",))


async def approve_later(request: ApprovalRequest) -> Answer:
    await asyncio.sleep(0)
    return approve(request)


class Approver:
    """An object that is called."""

    async def __call__(self, request: ApprovalRequest) -> Answer:
        return approve(request)


@pytest.mark.parametrize(
    "function",
    [
        approve,
        approve_later,
        Approver(),
        functools.partial(approve_later),
        lambda request: approve_later(request),
    ],
)
def test_a_function_approves_however_it_is_made(function: Any) -> None:
    assert asked(function) == [Answer(Person("ann", ("finance",)), True, REQUEST.shown, "callback")]


@pytest.mark.parametrize("given", [None, "yes", 1, "ALLOW ", True, {"approve": True}, Answer, object()])
def test_whatever_else_it_returns_is_a_denial(given: Any) -> None:
    async def later(request: ApprovalRequest) -> Any:
        return given

    for function in (lambda request: given, later):
        (answer,) = asked(function)
        assert (answer.approve, answer.person) == (False, Person("service:callback"))
        assert answer.reason == f"it gave a `{type(given).__name__}`, expected an `Answer`"


def test_a_denial_is_one() -> None:
    (answer,) = asked(lambda request: request.deny("bob", reason="too much"))
    assert (answer.approve, answer.person.id, answer.reason) == (False, "bob", "too much")


@pytest.mark.parametrize("problem", [ValueError, SystemExit, KeyboardInterrupt, StopIteration, GeneratorExit])
def test_what_it_raises_is_a_denial(problem: type[BaseException]) -> None:
    def fail(request: ApprovalRequest) -> Answer:
        raise problem("x")

    (answer,) = asked(fail)
    assert (answer.approve, answer.person.id) == (False, "service:callback")


def test_a_blocking_function_runs_beside_the_loop_in_the_context_of_the_asker() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    release = threading.Event()

    def block(request: ApprovalRequest) -> Answer:
        assert release.wait(30)
        return request.approve(who.get())

    async def ask() -> list[Answer]:
        who.set("ann")
        async with answers([CallbackService(block, "desk")], REQUEST) as given:
            release.set()  # the loop is free to do this
            return [one async for one in given]

    (answer,) = asyncio.run(ask())
    assert (answer.person.id, answer.service) == ("ann", "desk")


def test_a_function_that_hangs_is_left_behind_and_its_thread_ends_with_it() -> None:
    release, begun, threads = threading.Event(), threading.Event(), []

    def hang(request: ApprovalRequest) -> Answer:
        threads.append(threading.current_thread())
        begun.set()
        release.wait(30)
        return approve(request)

    async def ask() -> None:
        async with answers([as_service(hang)], REQUEST, deadline=0.05) as given:
            assert [one async for one in given] == []

    asyncio.run(ask())
    assert begun.wait(30)
    release.set()
    threads[0].join(30)
    assert not threads[0].is_alive()


def test_how_far_a_yes_reaches_is_handed_on() -> None:
    def shape(request: ApprovalRequest) -> Answer:
        return request.approve(
            "ann", tenant="acme", reviewer="human", scope="shape", vary=["code"], uses=3, expires=60.0
        )

    (answer,) = asked(shape)
    assert answer == replace(
        REQUEST.approve("ann", tenant="acme", reviewer="human"),
        scope="shape",
        vary=("code",),
        uses=3,
        expires=60.0,
    )
    assert answer.person.asserted_by == "caller"


def test_a_service_is_taken_as_it_is(tmp_path: Any) -> None:
    service = CallbackService(approve)
    assert as_service(service) is service
    assert as_service(approve).name == "callback"
    assert (attended([service]), can_wait([service])) == (True, False)
    assert asyncio.run(service.collect(REQUEST)) == ()


@pytest.mark.parametrize("thing", [None, "queue", 1, CallbackService, QueueService, StateDirectory])
def test_what_cannot_be_asked_is_refused(thing: Any) -> None:
    with pytest.raises(UsageError, match="can't be asked for approvals") as problem:
        as_service(thing)
    assert problem.value.advice is not None
    assert "`attended`" in problem.value.advice
