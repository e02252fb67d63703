"""`licet audit erase`: delete kept content for good, and record it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from licet_audit.cli import asking, filters, options
from licet_audit.cli.steps import counted

if TYPE_CHECKING:
    from licet.state import StateDirectory

    from licet_audit.retention.choosing import Choice
    from licet_audit.retention.erasing import Erasure
    from licet_audit.retention.survey import Survey

_SHOWN = 10  # runs that are named
_STAYS = (
    "the records stay and still prove, with sizes and keyed digests; backups, snapshots and what a disk "
    "keeps of deleted files are not reached"
)


@click.command()
@asking.for_whom
@click.option(
    "--before",
    metavar="TIME",
    callback=filters.as_moment,
    help="All runs that ended before: 2026-05-01, or 90d (ago).",
)
@click.option("--orphans", is_flag=True, help="Content that no record names, since its writer died.")
@click.option("--skip", is_flag=True, help="Erase what can be erased, if some is on hold or still running.")
@asking.reason
@asking.dry_run
@asking.yes
@options.of_a_log
@options.as_json
def erase(
    runs: tuple[str, ...],
    subject: str | None,
    tenant: str | None,
    before: str | None,
    orphans: bool,
    skip: bool,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    state: str | None,
    policy: str | None,
    as_json: bool,
) -> int:
    """Delete kept content and its salts for good; the records of the runs stay, and one says what went.

    Chosen are the runs that meet all options. Without a salt nothing can be guessed from what a record
    holds. What is on hold stays.

    Exit codes: 0 erased, or nothing to erase · 1 on hold, or a run has not ended · 2 usage · 7 not possible
    """
    from licet_audit.retention import removal

    choice = asking.choice(runs or None, subject, tenant, before=before)
    _require_choice(choice, orphans=orphans)
    if dry_run:
        where = asking.log_to_read(state, policy)
        _, erasure = _look(where, choice, orphans=orphans)
        _tell(erasure, None, as_json=as_json)
        return 1 if erasure.held or erasure.unfinished else 0
    why, where = asking.stated(reason), asking.log_to_change(state, policy)
    with removal.alone(where):
        found, erasure = _look(where, choice, orphans=orphans)
        if not skip:
            erasure.require_whole()
        records: tuple[int, ...] = ()
        if erasure.count or erasure.approvals or erasure.left:
            what = _what(erasure)
            asking.require_meant(f"Erase {what}?", yes=yes)
            records = _carry_out(where, erasure, why, found.size)
    _tell(erasure, records, as_json=as_json)
    return 0


def _require_choice(choice: Choice, *, orphans: bool) -> None:
    from licet.errors import UsageError

    if orphans and not choice.is_empty:
        raise UsageError("`--orphans` belongs to no run", advice="erase orphans by themselves")
    if choice.is_empty and not orphans:
        raise UsageError(
            "nothing is chosen",
            advice="name runs, or choose with `--subject`, `--tenant`, `--before`, `--orphans`",
        )


def _look(state: StateDirectory, choice: Choice, *, orphans: bool) -> tuple[Survey, Erasure]:
    from dataclasses import replace

    from licet_audit.retention import erasing
    from licet_audit.retention.survey import survey

    with counted("records read") as hear:
        found = survey(state, hear)
    if choice.runs is not None:
        choice = replace(choice, runs=tuple(found.run(one).run_id for one in choice.runs))
    with counted("content looked at") as hear:
        if orphans:
            erasure = erasing.orphaned(state, found, hear)
        else:
            erasure = erasing.planned(state, found, choice, hear)
        erasure.left = erasing.left_over(state, found)
    return found, erasure


def _carry_out(state: StateDirectory, erasure: Erasure, reason: str, size: int) -> tuple[int, ...]:
    from licet_audit.identity import account
    from licet_audit.retention import erasing

    return erasing.carry_out(state, erasure, reason, account(), size=size)


def _what(erasure: Erasure) -> str:
    """All that goes, for a question."""
    parts = [_summary(erasure)] if erasure.count else []
    parts += [_approvals(erasure)] if erasure.approvals else []
    return " and ".join(parts) or f"{_pieces(len(erasure.left))} that came back"


def _approvals(erasure: Erasure) -> str:
    count = len(erasure.approvals)
    return f"what is stored of the approvals of {count} run{'' if count == 1 else 's'}"


def _summary(erasure: Erasure) -> str:
    from licet.units import show_size

    runs = len({one.run_id for one in erasure.named})
    whose = "that no record names" if erasure.orphans else f"of {runs} run{'' if runs == 1 else 's'}"
    return f"{_pieces(erasure.count)} ({show_size(erasure.size)}) {whose}"


def _pieces(count: int) -> str:
    return f"{count} piece{'' if count == 1 else 's'} of content"


def _tell(erasure: Erasure, records: tuple[int, ...] | None, *, as_json: bool) -> None:
    from licet.cli.terminal import Card, put_json, show_card

    if as_json:
        put_json(_as_json(erasure, records))
        return
    heading = (
        "nothing to erase"
        if not (erasure.count or erasure.approvals or erasure.left)
        else "would erase"
        if records is None
        else "erased"
    )
    rows = [("content", _summary(erasure))] if erasure.count else []
    if erasure.approvals:
        rows.append(("approvals", _approvals(erasure)))
    rows += [("", text) for text in _first(erasure.runs)]
    if erasure.left:
        rows.append(("again", f"{_pieces(len(erasure.left))} that was erased before, and was there again"))
    if erasure.altered:
        rows.append(("altered", f"{len(erasure.altered)} of it was no longer what was committed to"))
    if erasure.missing:
        rows.append(("missing", f"{len(erasure.missing)} was gone already, and no record says why"))
    rows += _left(erasure)
    if records:
        rows.append(("stays", _STAYS))
    note = f"audit {', '.join(f'#{seq}' for seq in records[:3])}" if records else ""
    show_card(Card("warn" if erasure.held or erasure.unfinished else "good", heading, note, rows))


def _left(erasure: Erasure) -> list[tuple[str, str]]:
    """What stays of that which was asked for, by hold."""
    runs: dict[str, set[str]] = {}
    for run, hold in erasure.held:
        runs.setdefault(str(hold), set()).add(run.run_id)
    rows = []
    for said, kept in runs.items():
        rows.append(("on hold", f"{len(kept)} run{'' if len(kept) == 1 else 's'}: {said}"))
        rows += [("", text) for text in _first(sorted(kept))]
    unfinished = _first([run.run_id for run in erasure.unfinished])
    return rows + [("not ended" if not number else "", text) for number, text in enumerate(unfinished)]


def _first(runs: list[str]) -> list[str]:
    """Some runs, and how many more there are."""
    more = len(runs) - _SHOWN
    return [*runs[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]


def _as_json(erasure: Erasure, records: tuple[int, ...] | None) -> dict[str, Any]:
    return {
        "dry_run": records is None,
        "records": list(records or ()),
        "runs": erasure.runs,
        "contents": erasure.count,
        "bytes": erasure.size,
        "orphans": erasure.orphans,
        "approvals": erasure.approvals,
        "altered": erasure.altered,
        "missing": erasure.missing,
        "left": erasure.left,
        "held": [{"run_id": run.run_id, "hold": hold.id} for run, hold in erasure.held],
        "unfinished": [run.run_id for run in erasure.unfinished],
    }
