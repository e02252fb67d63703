"""`licet audit list --logs`: which logs there should be on this host, and what is found of each."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from licet_audit.inventory import KnownLog

_ID = 12  # digits of an id that tell logs apart; `--json` has all
_COLUMNS = ("log", "found", "records", "signed", "last signed (UTC)", "last closed (UTC)", "where", "because")


def list_logs(*, as_json: bool) -> int:
    """Show all logs that this user's state directory knows."""
    from licet.cli.progress import Steps
    from licet.cli.terminal import put_json, put_table, say

    from licet_audit.inventory import inventory

    logs = []
    with Steps("logs looked at") as steps:
        for log in inventory():
            logs.append(log)
            steps.step()
    if as_json:
        put_json([asdict(log) for log in logs])
    elif not logs:
        say("this user has no log on this host, as far as its state directory knows")
    else:
        put_table(_COLUMNS, map(_row, logs), prose=1, whole=0)
    return 0


def _row(log: KnownLog) -> tuple[str, ...]:
    return (
        log.log_id[:_ID],
        log.found,
        _shown(log.records),
        _shown(log.signed),
        _time(log.signed_at),
        "in use" if log.in_use else _time(log.closed),
        log.path or "-",
        log.detail,
    )


def _shown(number: int | None) -> str:
    return "-" if number is None else str(number)


def _time(utc: str | None) -> str:
    return utc[:19].replace("T", " ") if utc else "-"
