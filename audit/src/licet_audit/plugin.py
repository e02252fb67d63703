"""What this distribution offers to licet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from licet.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click
    from licet.record import AnchorFailure, AnchorReceipt, AuditLog, AuditReader, Checkpoint
    from licet.settings import Settings
    from licet.state import StateDirectory


@hookimpl
def licet_audit_log(settings: Settings, state: StateDirectory) -> AuditLog:
    """Open the durable log in `state`; it joins the chain at its first append."""
    from licet_audit.log import DurableLog

    log = DurableLog(state)
    if settings.anchors.every is None:
        return log
    from licet_audit.anchors.regularly import AnchoredLog

    return AnchoredLog(log, state, settings)


@hookimpl
def licet_audit_reader(state: StateDirectory) -> AuditReader:
    """Open the log in `state` for reading only."""
    from licet_audit.reader import LogReader

    return LogReader(state)


@hookimpl
def licet_anchor(checkpoint: Checkpoint, settings: Settings) -> Sequence[AnchorReceipt | AnchorFailure]:
    """Have `checkpoint` seen by the files, time-stamping authorities and witnesses that settings name."""
    from licet_audit.anchors import anchored

    return tuple(anchored(checkpoint, settings.anchors))


@hookimpl
def licet_commands() -> Sequence[click.Command]:
    """`licet audit`."""
    from licet_audit.cli import audit

    return (audit,)
