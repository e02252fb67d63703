"""`licet audit anchor`: have the newest checkpoint seen outside this host, now."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from licet.errors import AuditUnavailable, UsageError

from licet_audit.cli import options

if TYPE_CHECKING:
    from licet.settings import Settings
    from licet.state import StateDirectory

    from licet_audit.anchors.anchoring import Anchoring


@click.command()
@options.of_a_log
@options.as_json
def anchor(state: str | None, policy: str | None, as_json: bool) -> int:
    """Have the newest checkpoint seen by the anchors that settings name, and record it.

    Meant for a timer of the system. Anchors stand under `[anchors]` in `config.toml`.

    \b
    Exit codes: 0 all of them have seen it · 1 some have not · 2 usage · 7 the log can't be used
    """
    from licet.cli import places
    from licet.settings import load_settings
    from licet.state import trusted

    from licet_audit.cli.readers import reader_of

    found = reader_of(state, policy).state
    if (own := trusted(found.path)) is None:
        raise AuditUnavailable(
            f"`{found.path}` was not made by licet for this user, who can't sign for its log",
            advice="anchor it where it was made",
        )
    settings = places.found(policy)[1] if state is None else load_settings(Path(state), os.environ)
    return _shown(_anchored(own, settings), as_json=as_json)


def _anchored(state: StateDirectory, settings: Settings) -> Anchoring:
    from licet.plugins import Plugins

    from licet_audit.anchors import anchoring
    from licet_audit.log import DurableLog

    log = DurableLog(state)
    try:
        with anchoring.lock(state) as held:
            if held is None:
                raise AuditUnavailable("another process anchors this log now", advice="wait until it is done")
            return anchoring.anchor(state, Plugins(settings), log)
    finally:
        asyncio.run(log.close())


def _shown(found: Anchoring, *, as_json: bool) -> int:
    from licet.cli.terminal import Card, Tone, put_json, show_card

    if not found.answers:
        raise UsageError(
            "settings name nobody who should see this log",
            advice="name a file, a time-stamping authority or a witness under `[anchors]` in `config.toml`",
        )
    if as_json:
        seen = [{"kind": one.kind, "anchor": one.anchor, "time": one.time} for one in found.receipts]
        failed = [{"kind": one.kind, "anchor": one.anchor, "reason": one.reason} for one in found.failures]
        put_json({"size": found.head.size, "root": found.head.root.hex(), "anchored": seen, "failed": failed})
        return int(bool(failed))
    rows = [(one.kind, f"{one.anchor}{f', at {one.time}' if one.time else ''}") for one in found.receipts]
    rows += [(one.kind, f"FAILED: {one.anchor}: {one.reason}") for one in found.failures]
    tone: Tone = "bad" if found.failures else "good"
    heading = "not seen by all" if found.failures else "anchored"
    show_card(Card(tone, heading, f"{found.head.size} records", rows))
    return int(bool(found.failures))
