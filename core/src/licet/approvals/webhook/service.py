"""Asking by the webhook: delivered once, then asked after with growing pauses, until time is over.

Rules this module keeps:

- a request that can't be delivered is a failure, which counts as a denial; a server that is gone afterwards,
  or a token that does not count, is no answer: it is told to the logger `licet.approvals`, once;
- an answer is given once for each asking, also if it is signed anew each time; whether its token was used
  before is for the store to say;
- a caller that is cancelled is let go at once; an exchange under way ends by its own bounds.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from licet.approvals import clocks
from licet.approvals.forms import Answer, ApprovalRequest
from licet.approvals.keys import key_of, secrets_in
from licet.approvals.tokens import answer_of
from licet.approvals.webhook.receiver import Receiver, TryAgain
from licet.errors import AnswerRefused, AskingFailed, InvalidSettings, LicetError
from licet.settings import Settings
from licet.threads import Threads

NAME = "webhook"

_log = logging.getLogger("licet.approvals")
_LONGEST_PAUSE_S = 15.0
_MOST_TOLD = 1000
_END_S = 0.1  # for each thread at the close

T = TypeVar("T")


class WebhookService:
    """The webhook of the settings; see `ApprovalService` for what it gives.

    `pause` is the first pause between two tries, in seconds; each is up to twice as long as the one before.

    Raises:
        InvalidSettings: the settings have no webhook or no issuer, or a key of theirs can't be used.
    """

    name = NAME
    waits = True

    def __init__(self, settings: Settings, *, pause: float = 1.0, patience: float = 10.0) -> None:
        webhook, issuers = settings.approvals.webhook, settings.approvals.issuers
        if webhook is None or not issuers:
            missing = "approvals.webhook" if webhook is None else "approvals.issuers"
            raise InvalidSettings(
                f"the approval service `{NAME}` is named, and `{missing}` is not set",
                advice="it needs `approvals.webhook` with `url` and `secret_file`, and `approvals.issuers`",
            )
        secrets_in(webhook.secret_file)  # what is wrong is told at once, not when somebody is asked
        for issuer in issuers:
            key_of(issuer)
        self.attended = webhook.deadline > 0
        self._settings = settings
        self._webhook = webhook
        self._receiver = Receiver(webhook, patience=patience)
        self._threads = Threads("licet-webhook")
        self._pause = pause
        self._told: set[tuple[str, str]] = set()

    async def ask(self, request: ApprovalRequest) -> AsyncIterator[Answer]:
        """Deliver the request, and give each answer until `deadline` has passed since."""
        taken: set[str | Answer] = set()
        for answer in self._answers(await self._delivered(request), request, taken):
            yield answer
        deadline = time.monotonic() + self._webhook.deadline
        waits = pauses(self._pause)
        while (pause := next(waits)) < deadline - time.monotonic():
            await asyncio.sleep(pause)
            for answer in self._answers(await self._asked_after(request), request, taken):
                waits = pauses(self._pause)  # others may be at it
                yield answer

    async def collect(self, request: ApprovalRequest) -> tuple[Answer, ...]:
        """What was answered by now, including what was given before; nothing while the server is away."""
        return tuple(self._answers(await self._asked_after(request), request, set()))

    async def close(self) -> None:
        """Let go of connections."""
        self._receiver.close()
        self._threads.close(_END_S)

    async def _delivered(self, request: ApprovalRequest) -> tuple[str, ...]:
        waits = pauses(self._pause)
        for left in range(self._webhook.retries, -1, -1):
            try:
                return await self._away(lambda: self._receiver.deliver(request))
            except TryAgain as problem:
                if not left:
                    raise AskingFailed(
                        f"nobody could be asked by the webhook: {problem}",
                        advice="run the code again when the server of the webhook answers",
                    ) from None
                await asyncio.sleep(max(next(waits), problem.pause))
        raise AssertionError("there is a first try")

    async def _asked_after(self, request: ApprovalRequest) -> tuple[str, ...]:
        """The tokens by now; none if the server is away or answers nonsense, which is told once."""
        try:
            return await self._away(lambda: self._receiver.answers(request))
        except (TryAgain, LicetError) as problem:
            self._tell(request, str(problem))
            return ()

    async def _away(self, work: Callable[[], T]) -> T:
        return await self._threads.call(work).result()

    def _answers(
        self, tokens: tuple[str, ...], request: ApprovalRequest, taken: set[str | Answer]
    ) -> Iterator[Answer]:
        """The answers in tokens that were not looked at before."""
        for token in tokens:
            if token in taken:
                continue
            taken.add(token)
            try:
                answer = answer_of(token, request, self._settings, clocks.now(), service=NAME)
            except (AnswerRefused, InvalidSettings) as problem:
                self._tell(request, problem.message)
                continue
            if (unsigned := replace(answer, token=None)) not in taken:
                taken.add(unsigned)
                yield answer

    def _tell(self, request: ApprovalRequest, why: str) -> None:
        if (request.id, why) in self._told:
            return
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told.add((request.id, why))
        _log.warning("approval %s: %s", request.id, why)


def pauses(first: float) -> Iterator[float]:
    """Seconds between tries: each is up to twice as long as the one before, and drawn from its upper half."""
    most = first
    while True:
        yield most * random.uniform(0.5, 1.0)
        most = min(most * 2, _LONGEST_PAUSE_S)
