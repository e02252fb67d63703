"""Asking all services at one time, and taking from each what is an answer to what was shown.

Rules this module keeps:

- whatever a service gives that is no answer to this very document is a denial by the service itself, as is a
  failure; nothing is ever read as a yes but an `Answer` that says so with `True`;
- a service that ends, or is still silent when the time is over, said nothing;
- who gave an answer is what the service is called here, whatever the answer says;
- once nobody listens any more, every service is cancelled and closed; one that resists is left behind after
  `PATIENCE_S`, and what it still says goes nowhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import unicodedata
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, get_args

from licet import messages
from licet.approvals.forms import Answer, ApprovalRequest, Asserted, Person, Reviewer, Scope
from licet.approvals.services import ApprovalService
from licet.output import bounded, escape

MOST_REASON = 500
"""How many characters of the reason of an answer are kept."""

PATIENCE_S = 3.0
"""How long a cancelled service may take to end, in seconds."""

COLLECTED_WITHIN_S = 30.0
"""How long services may take to say what was answered meanwhile, in seconds."""

_MOST_TEXT = 200  # characters of an id, a group, a name
_MOST_TOKEN = 1000
_MOST_MEMBERS = 100  # groups of a person, fields that may vary
_MOST_ANSWERS = 1000  # of one service, to one question

_Ask = Callable[[ApprovalService, ApprovalRequest], AsyncIterator[Any]]
_Heard = asyncio.Queue[Answer | None]


def attended(services: Iterable[ApprovalService]) -> bool:
    """Whether somebody can answer now."""
    return any(service.attended is True for service in services)


def can_wait(services: Iterable[ApprovalService]) -> bool:
    """Whether an answer may come later."""
    return any(service.waits is True for service in services)


@asynccontextmanager
async def answers(
    services: Sequence[ApprovalService], request: ApprovalRequest, *, deadline: float | None = None
) -> AsyncIterator[AsyncIterator[Answer]]:
    """Ask all of `services`, and give each answer as it comes, for at most `deadline` seconds.

    Inside the block the answers are iterated over: they end when no service will say anything more, or the
    time is over (None: never). Leaving the block, however that happens, ends what is still being asked.
    """
    async with _asked(services, request, lambda service, of: service.ask(of), deadline) as heard:
        yield heard


async def collected(
    services: Sequence[ApprovalService],
    request: ApprovalRequest,
    *,
    deadline: float | None = COLLECTED_WITHIN_S,
) -> tuple[Answer, ...]:
    """What was answered meanwhile by any of `services`, which ask nobody anew; held to the same rules."""
    async with _asked(services, request, _collecting, deadline) as heard:
        return tuple([answer async for answer in heard])


async def _collecting(service: ApprovalService, request: ApprovalRequest) -> AsyncIterator[Any]:
    for answer in await service.collect(request):
        yield answer


@asynccontextmanager
async def _asked(
    services: Sequence[ApprovalService], request: ApprovalRequest, ask: _Ask, deadline: float | None
) -> AsyncIterator[AsyncIterator[Answer]]:
    until = None if deadline is None else asyncio.get_running_loop().time() + deadline
    heard: _Heard = asyncio.Queue()  # each service says a bounded number
    tasks = [asyncio.create_task(_one(service, request, ask, heard)) for service in services]
    listening = _listening(heard, len(tasks), until)
    try:
        yield listening
    finally:
        await _ended(tasks)
        await listening.aclose()


async def _listening(heard: _Heard, speakers: int, until: float | None) -> AsyncGenerator[Answer]:
    """Every answer until all who speak have ended, or it is `until` on the loop's clock."""
    while speakers:
        try:
            async with asyncio.timeout_at(until):
                answer = await heard.get()
        except TimeoutError:
            return
        if answer is None:
            speakers -= 1
        else:
            yield answer


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel what still runs, and wait a little until it is gone."""
    for task in tasks:
        task.cancel()
        task.add_done_callback(_looked_at)
    if tasks:
        await asyncio.wait(tasks, timeout=PATIENCE_S)


def _looked_at(task: asyncio.Task[None]) -> None:
    """Look at what a service raised when nobody listened any more, so that nothing complains of it."""
    if not task.cancelled():
        task.exception()


async def _one(service: ApprovalService, request: ApprovalRequest, ask: _Ask, heard: _Heard) -> None:
    """Ask one service, and say its answers, then None."""
    name = type(service).__name__
    try:
        name = bounded(str(service.name), _MOST_TEXT)
        await _spoken(ask(service, request), name, request, heard)
    except BaseException as problem:
        task = asyncio.current_task()
        if isinstance(problem, KeyboardInterrupt) or (task is not None and task.cancelling()):
            raise
        why = f"it failed with {type(problem).__name__}: {messages.told(problem)}"
        heard.put_nowait(_denial(name, request, why))
    finally:
        heard.put_nowait(None)


async def _spoken(given: AsyncIterator[Any], name: str, request: ApprovalRequest, heard: _Heard) -> None:
    count = 0
    try:
        async for answer in given:
            count += 1
            objection = _objection(answer, request)
            if objection is None and count > _MOST_ANSWERS:
                objection = f"it gave more than {_MOST_ANSWERS} answers"
            if objection is not None:
                heard.put_nowait(_denial(name, request, objection))
                return
            heard.put_nowait(replace(answer, service=name, reason=bounded(answer.reason, MOST_REASON)))
    finally:
        close = getattr(given, "aclose", None) or getattr(given, "close", None)
        if close is not None:
            with contextlib.suppress(Exception):  # it has spoken, or its failure is told already
                ending = close()
                await ending if ending is not None else None


def is_failure(answer: Answer) -> bool:
    """Whether an answer says that a service failed, and not that somebody said no."""
    return answer.person.id == f"service:{answer.service}"


def _denial(name: str, request: ApprovalRequest, why: str) -> Answer:
    return Answer(Person(f"service:{name}"), False, request.shown, name, reason=bounded(why, MOST_REASON))


def _objection(answer: Any, request: ApprovalRequest) -> str | None:
    """Why something is no answer to `request`; None if it is one."""
    if type(answer) is not Answer:
        return f"it gave a `{type(answer).__name__}`, expected an `Answer`"
    if type(answer.person) is not Person:
        return f"the person of its answer is a `{type(answer.person).__name__}`, expected a `Person`"
    if type(answer.shown) is not str or answer.shown != request.shown:
        return f"it answers to {bounded(repr(answer.shown), _MOST_TEXT)}, asked was about `{request.shown}`"
    malformed = [name for name, good in (*_of_answer(answer), *_of_person(answer.person)) if not good]
    return f"`{malformed[0]}` of its answer is malformed" if malformed else None


def _of_answer(answer: Answer) -> Iterable[tuple[str, bool]]:
    yield "approve", type(answer.approve) is bool
    yield "scope", _is_one_of(answer.scope, Scope)
    yield "vary", _are_texts(answer.vary)
    yield "uses", answer.uses is None or (type(answer.uses) is int and answer.uses > 0)
    yield "expires", answer.expires is None or _is_duration(answer.expires)
    yield "reason", type(answer.reason) is str
    yield "token", answer.token is None or _is_text(answer.token, _MOST_TOKEN)


def _of_person(person: Person) -> Iterable[tuple[str, bool]]:
    yield "person.id", _is_text(person.id) and _is_plain_name(person.id)
    yield "person.groups", _are_texts(person.groups)
    yield "person.tenant", person.tenant is None or _is_text(person.tenant)
    yield "person.reviewer", _is_one_of(person.reviewer, Reviewer)
    yield "person.asserted_by", _is_one_of(person.asserted_by, Asserted)


def _is_text(value: object, most: int = _MOST_TEXT) -> bool:
    return type(value) is str and 0 < len(value) <= most


def _are_texts(value: object) -> bool:
    return type(value) is tuple and len(value) <= _MOST_MEMBERS and all(map(_is_text, value))


def _is_one_of(value: object, words: Any) -> bool:
    return type(value) is str and value in get_args(words)


def _is_duration(value: object) -> bool:
    return type(value) in (int, float) and value > 0 and math.isfinite(value)  # type: ignore[operator, arg-type]


def _is_plain_name(text: str) -> bool:
    """Whether a name can't be written in another way that looks the same, so that nobody counts twice."""
    return text == text.strip() == escape(text, newlines=False) == unicodedata.normalize("NFKC", text)
