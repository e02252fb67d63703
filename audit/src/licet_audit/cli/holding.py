"""`licet audit hold` and `licet audit release`: what must stay until somebody says that it may go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from licet_audit.cli import asking, filters, options
from licet_audit.cli.steps import counted

if TYPE_CHECKING:
    from licet_audit.retention.holds import Hold


@click.command()
@asking.for_whom
@click.option(
    "--since",
    metavar="TIME",
    callback=filters.as_moment,
    help="All runs from then on: 2026-05-01, or 90d (ago).",
)
@click.option("--before", metavar="TIME", callback=filters.as_moment, help="All runs that began before.")
@click.option("--list", "listing", is_flag=True, help="Show the holds that are in force; sets none.")
@asking.reason
@options.of_a_log
@options.as_json
def hold(
    runs: tuple[str, ...],
    subject: str | None,
    tenant: str | None,
    since: str | None,
    before: str | None,
    listing: bool,
    reason: str | None,
    state: str | None,
    policy: str | None,
    as_json: bool,
) -> int:
    """Have content and records of runs stay, whoever wants to erase or prune them, until it is released.

    Held are the runs that meet all options, those of later too. A run whose records don't say for whom it
    was is held with every subject and tenant. A hold is a record in the log.

    Exit codes: 0 held · 2 usage, or no such run · 7 not possible
    """
    from licet.errors import UsageError

    choice = asking.choice(runs or None, subject, tenant, since, before)
    if listing:
        if not choice.is_empty or reason is not None:
            raise UsageError("`--list` sets no hold", advice="leave the other options out")
        return _list(state, policy, as_json=as_json)
    if choice.is_empty:
        raise UsageError(
            "nothing is chosen",
            advice="name runs, or choose with `--subject`, `--tenant`, `--since`, `--before`; "
            "`--list` shows what is held",
        )
    from licet_audit.retention import holding

    why, where = asking.stated(reason), asking.log_to_change(state, policy)
    with counted("records read") as hear:
        made, count = holding.set_hold(where, choice, why, hear)
    _tell(made, "on hold", f"{count} run{'' if count == 1 else 's'} in this log now", as_json=as_json)
    return 0


@click.command()
@click.argument("hold", metavar="HOLD")
@asking.reason
@options.of_a_log
@options.as_json
def release(hold: str, reason: str | None, state: str | None, policy: str | None, as_json: bool) -> int:
    """End a hold; HOLD is its id or the beginning of that. What it held may then be erased and pruned.

    Exit codes: 0 released · 2 usage, or no such hold · 7 not possible
    """
    from licet_audit.retention import holding

    why, where = asking.stated(reason), asking.log_to_change(state, policy)
    with counted("records read") as hear:
        ended, seq = holding.release_hold(where, hold.upper(), why, hear)
    _tell(ended, "released", f"audit #{seq}", as_json=as_json, ended=why)
    return 0


def _list(state: str | None, policy: str | None, *, as_json: bool) -> int:
    from licet.cli.terminal import put_json, put_table, say

    from licet_audit.retention import holding

    with counted("records read") as hear:
        found = holding.in_force(asking.log_to_read(state, policy), hear)
    if as_json:
        put_json([one.as_json() for one in found])
        return 0
    if not found:
        say("no hold is in force")
        return 0
    rows = [(one.id, one.since[:19].replace("T", " "), one.by, _what(one), one.reason) for one in found]
    put_table(("hold", "since (UTC)", "by", "what", "why"), rows, prose=1, whole=0)
    return 0


def _what(hold: Hold) -> str:
    return str(hold.what) if hold.what is not None else "everything: its record can't be understood"


def _tell(hold: Hold, heading: str, note: str, *, as_json: bool, ended: str | None = None) -> None:
    from licet.cli.terminal import Card, put_json, show_card

    if as_json:
        put_json(hold.as_json())
        return
    rows = [("hold", hold.id), ("what", _what(hold)), ("why", hold.reason), ("by", hold.by)]
    rows += [("ended", ended)] if ended is not None else []
    show_card(Card("good", heading, note, rows))
