"""`licet approvals watch`: each change as it comes.

Rules this module keeps:

- what others answer elsewhere is fetched, and taken by the desk like any other answer; that a service fails
  while nobody waits for it is told, and denies nothing;
- an approval that is over is told once, with what came of it.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self

import click

from licet.approvals.forms import OPEN, Answer, StoredApproval
from licet.cli.approvals.office import with_place

if TYPE_CHECKING:
    from licet.approvals.clerk import Clerk
    from licet.cli.approvals.office import Office
    from licet.plugins import Plugins
    from licet.trail import Trail

_PERIOD_S = 1.0
_ENDED = 10


@click.command()
@with_place
def watch(policy: str | None, state: str | None, as_json: bool) -> int:
    """Tell each change of an approval as it comes, until Ctrl-C; with --json one document a line.

    What waits at the beginning is told first. A terminal shows a table that stays up to date. Answers that
    were given elsewhere, such as to a webhook, are fetched.

    \b
    Exit codes: 2 usage · 8 the approvals can't be read · 130 stopped
    """
    from licet.cli.approvals.office import looked_into
    from licet.plugins import Plugins

    plugins: Plugins | None = None
    seen: dict[str, StoredApproval] = {}
    with _Table() if sys.stdout.isatty() and not as_json else _Lines(as_json=as_json) as shown:
        while True:
            with looked_into(policy, state) as office:
                if office is not None:
                    plugins = plugins or Plugins(office.settings)
                    _fetch(office, plugins)
                changes = list(_changes(office, seen)) if office is not None else []
            shown.tell(changes, list(seen.values()))
            time.sleep(_PERIOD_S)


class _Lines:
    """Each change, for a pipe: a card, or a document a line."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *end: object) -> None: ...

    def tell(self, changes: Sequence[StoredApproval], there: Sequence[StoredApproval]) -> None:
        from licet.cli.approvals.listing import as_document

        for stored in changes:
            if self._as_json:
                click.echo(json.dumps(as_document(stored), default=str))
            else:
                _put(stored)
        sys.stdout.flush()


class _Table:
    """What there is, and the last that ended meanwhile, for a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, auto_refresh=False)
        self._ended: deque[StoredApproval] = deque(maxlen=_ENDED)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *end: object) -> None:
        self._live.stop()

    def tell(self, changes: Sequence[StoredApproval], there: Sequence[StoredApproval]) -> None:
        from rich.text import Text

        from licet.cli.approvals.listing import COLUMNS, table
        from licet.cli.terminal import drawn_table

        self._ended.extend(one for one in changes if one.state not in OPEN)
        rows = table([*there, *self._ended])
        nothing = Text("nothing waits for an approval")
        drawn = drawn_table(self._console, COLUMNS, rows, prose=1, whole=0) if rows else nothing
        self._live.update(drawn, refresh=True)


def _fetch(office: Office, plugins: Plugins) -> None:
    """Mark what has expired, and take what was answered elsewhere."""
    from licet.approvals.desk import collect

    services = [one for one in plugins.approval_services() if one.waits]
    office.recorded("", lambda clerk, trail: clerk.tidy(trail))
    for stored in office.store.listed(("pending",)) if services else ():

        async def work(clerk: Clerk, trail: Trail, stored: StoredApproval = stored) -> None:
            for failure in await collect(clerk, services, stored, trail):
                _complain(failure)

        office.recorded(stored.request.run_id, work)


@functools.cache
def _complain(answer: Answer) -> None:
    """Tell once what a service lacks."""
    from licet.cli.terminal import warn

    warn(f"the approval service `{answer.service}` could not be asked: {answer.reason}")


def _changes(office: Office, seen: dict[str, StoredApproval]) -> Iterator[StoredApproval]:
    """What is new or another than when it was seen last; what is over is seen no more."""
    there = {one.request.id: one for one in office.store.listed(tuple(OPEN))}
    gone = [office.store.get(name) for name in seen.keys() - there.keys()]
    for one in sorted([*there.values(), *gone], key=lambda one: one.request.id):
        before = seen.get(one.request.id)
        if before is None or _aspects(before) != _aspects(one):
            yield one
        seen[one.request.id] = one
    for one in gone:
        del seen[one.request.id]


def _aspects(stored: StoredApproval) -> tuple[object, ...]:
    return stored.state, len(stored.given), stored.used, stored.ending


def _put(stored: StoredApproval) -> None:
    from licet.cli import approving
    from licet.cli.terminal import Card, show_card

    request = stored.request
    tone, heading = approving.HEADINGS[stored.state]
    rows = [("for", request.requester.id), *approving.became(stored)]
    if stored.state == "pending":
        rows.append(("until", approving.until(request)))
    what = f"{approving.what_of(request)} {heading}"
    show_card(Card(tone, what, f"approval {request.id}", tuple(rows)), err=False)
