"""`licet audit prune`: remove the oldest records, whole segments of them, so that the rest still proves."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import click
from licet.errors import AuditUnavailable, UsageError
from licet.units import show_instant

from licet_audit.cli import asking, options
from licet_audit.cli.steps import counted

if TYPE_CHECKING:
    from licet.state import StateDirectory

    from licet_audit.notes import Note
    from licet_audit.retention.pruning import Pruning
    from licet_audit.retention.survey import Survey

_LEAST_DAYS = 184


@click.command()
@click.option("--keep", metavar="AGE", required=True, help="Records younger than this stay, such as 400d.")
@click.option(
    "--short",
    metavar="TEXT",
    help=f"Why less than {_LEAST_DAYS} days are enough; without it such an age is refused.",
)
@asking.reason
@asking.dry_run
@asking.yes
@options.of_a_log
@options.as_json
def prune(
    keep: str,
    short: str | None,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    state: str | None,
    policy: str | None,
    as_json: bool,
) -> int:
    """Remove the oldest records: whole segments whose newest record is older than AGE.

    Their leaves stay in the tree under a signed checkpoint, so that all that is left still proves, and so
    that whoever has a removed record can still prove it. Kept content that they name goes with them. What is
    on hold stays, and so does all that follows it.

    Who deploys or provides a high-risk AI system has to keep its logs for six months at least (EU AI Act,
    Articles 19 and 26(6)), so an age under 184 days needs `--short` with the reason why that is right here.

    Exit codes: 0 pruned, or nothing is old enough · 1 on hold · 2 usage · 7 not possible
    """
    age = _age(keep, short)
    before = _spelled(time.time() - age)
    if dry_run:
        found, plan, _ = _look(asking.log_to_read(state, policy), before)
        _tell(plan, None, before, as_json=as_json)
        return 1 if plan.hold else 0
    from licet_audit.identity import account
    from licet_audit.retention import pruning, removal

    why, where = asking.stated(_reason(keep, short, reason)), asking.log_to_change(state, policy)
    with removal.alone(where):
        _sign(where)
        found, plan, checkpoint = _look(where, before)
        if plan.hold and not plan.stretches:
            from licet_audit.retention.holds import refusal

            raise refusal([plan.hold], "nothing was pruned")
        record = None
        if plan.stretches:
            asking.require_meant(f"Remove {_summary(plan)} for good?", yes=yes)
            record = pruning.carry_out(where, plan, checkpoint, why, account(), size=found.size)
    _tell(plan, record, before, as_json=as_json, rehearsed=False)
    return 1 if plan.hold else 0


def _age(keep: str, short: str | None) -> float:
    from licet.units import duration

    try:
        age = duration(keep)
    except ValueError as problem:
        raise UsageError(f"`--keep`: {problem}", advice="give an age in days, such as `400d`") from None
    if age < _LEAST_DAYS * 86400 and not (short and short.strip()):
        raise UsageError(
            f"`--keep {keep[:60]}` is less than {_LEAST_DAYS} days: logs of high-risk AI systems "
            "have to be kept for six months at least (EU AI Act, Articles 19 and 26(6))",
            advice=f"keep {_LEAST_DAYS}d or more, or say with `--short TEXT` why less is right here",
        )
    return age


def _reason(keep: str, short: str | None, reason: str | None) -> str:
    parts = [reason.strip() if reason else f"records are kept for {keep}"]
    if short is not None:
        parts.append(f"less than {_LEAST_DAYS} days: {short.strip()}")
    return "; ".join(parts)


def _spelled(seconds: float) -> str:
    try:
        return show_instant(math.floor(seconds) * 10**9)
    except (ValueError, OverflowError, OSError):
        return ""  # before all records


def _sign(state: StateDirectory) -> None:
    """Have a checkpoint cover all that is durable, and look at the log as `verify` does."""
    from licet_audit.checkpointer import Notary
    from licet_audit.reader import LogReader

    Notary(state).checkpoint()
    if LogReader(state).verify().status == "tampered":
        raise AuditUnavailable(
            "this log was tampered with, so nothing is pruned: what shows it must stay",
            advice="`licet audit verify` says where",
        )


def _look(state: StateDirectory, before: str) -> tuple[Survey, Pruning, Note]:
    from licet_audit.retention import pruning
    from licet_audit.retention.covering import covered
    from licet_audit.retention.survey import survey

    with counted("records read") as hear:
        found = survey(state, hear)
    with counted("blocks of 256 records checked") as hear:
        proved = covered(state, hear)
    return found, pruning.planned(state, found, before, proved.in_tiles), proved.checkpoint


def _summary(plan: Pruning) -> str:
    from licet.units import show_size

    segments, content = len(plan.stretches), plan.erasure.count
    files = f"{segments} segment{'' if segments == 1 else 's'} ({show_size(plan.size)})"
    said = f"{plan.records} records in {files}, up to #{plan.last}"
    return f"{said}, and {content} pieces of content" if content else said


def _tell(plan: Pruning, record: int | None, before: str, *, as_json: bool, rehearsed: bool = True) -> None:
    from licet.cli.terminal import Card, put_json, show_card

    if as_json:
        put_json(_as_json(plan, record, before, rehearsed=rehearsed))
        return
    heading = "nothing to prune" if not plan.stretches else "would prune" if rehearsed else "pruned"
    rows = [("records", _summary(plan))] if plan.stretches else []
    rows.append(("ends", plan.ends))
    if plan.cut:
        rows.append(("cut", f"{len(plan.cut)} runs go on beyond it and lose their beginning"))
    if plan.again:
        rows.append(("holds", f"{len(plan.again)} are written again, since their records go"))
    if record is not None:
        rows.append(("stays", "the leaves of the tree and the checkpoint, so that the rest still proves"))
    note = f"audit #{record}" if record is not None else f"older than {before[:10]}"
    show_card(Card("warn" if plan.hold else "good", heading, note, rows))


def _as_json(plan: Pruning, record: int | None, before: str, *, rehearsed: bool) -> dict[str, Any]:
    return {
        "dry_run": rehearsed,
        "record": record,
        "before": before,
        "segments": [
            {"first": one.segment.first, "last": one.last, "bytes": one.segment.size}
            for one in plan.stretches
        ],
        "records": plan.records,
        "bytes": plan.size,
        "contents": plan.erasure.count,
        "cut": plan.cut,
        "ends": plan.ends,
        "hold": plan.hold[1].id if plan.hold else None,
    }
