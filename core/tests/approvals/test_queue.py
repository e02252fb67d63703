"""The queue: it asks nobody, and lets approvals wait."""

from __future__ import annotations

import asyncio

from licet.approvals.asking import answers, attended, can_wait, collected
from licet.approvals.callback import as_service
from licet.approvals.queue import QueueService
from matters import about_run


def test_it_waits_and_says_nothing_by_itself() -> None:
    queue = QueueService()
    assert (queue.name, attended([queue]), can_wait([queue])) == ("queue", False, True)
    assert as_service(queue) is queue

    async def ask() -> None:
        async with answers([queue], about_run()) as given:
            assert [one async for one in given] == []
        assert await collected([queue], about_run()) == ()
        await queue.close()

    asyncio.run(ask())
