"""Every hook that a plugin can implement, one sentence each.

A plugin is a module that an entry point of the group `licet` names; licet imports it only when its name is
enabled, and calls every implementation by itself, so that one failure is one indeterminate vote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import click

    from licet.approvals.services import ApprovalService
    from licet.backend import Backend
    from licet.decide import Ballot, Decision
    from licet.record import AnchorFailure, AnchorReceipt, AuditLog, AuditReader, Checkpoint
    from licet.request import NormalizedRequest
    from licet.scrubbing import Channel, Secret
    from licet.settings import Settings
    from licet.state import StateDirectory

hookspec = pluggy.HookspecMarker("licet")
hookimpl = pluggy.HookimplMarker("licet")


@hookspec
def licet_backends() -> Sequence[Backend]:  # type: ignore[empty-body]
    """Return the sandbox backends of this plugin, without starting anything."""


@hookspec
def licet_policy_packs() -> Mapping[str, Path]:  # type: ignore[empty-body]
    """Return the policy packs of this plugin, name to file, which policies name as `licet:NAME`."""


@hookspec
def licet_decide(request: NormalizedRequest, decision: Decision) -> Sequence[Ballot]:  # type: ignore[empty-body]
    """Return further votes on a decision, or on one call of a tool where `decision.call` holds one."""


@hookspec
def licet_scrub(text: str, channel: Channel) -> Sequence[Secret]:  # type: ignore[empty-body]
    """Return what in `text`, which is to leave a run by `channel`, is secret, and where it is."""


@hookspec
def licet_lacks() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Return what this plugin has to do without, such as a `detector`, and the command that brings each."""


@hookspec(firstresult=True)
def licet_audit_log(settings: Settings, state: StateDirectory) -> AuditLog | None:
    """Open the durable log in `state` for appending, or return None if this plugin keeps none."""


@hookspec(firstresult=True)
def licet_audit_reader(state: StateDirectory) -> AuditReader | None:
    """Open the log in `state` for reading only, or return None if this plugin keeps none."""


@hookspec
def licet_approval_service(settings: Settings) -> Sequence[ApprovalService]:  # type: ignore[empty-body]
    """Return the approval services of this plugin that `settings.approvals.services` names, asking nobody."""


@hookspec
def licet_commands() -> Sequence[click.Command]:  # type: ignore[empty-body]
    """Return commands that `licet` has besides its own, without importing what only running them needs."""


@hookspec
def licet_anchor(  # type: ignore[empty-body]
    checkpoint: Checkpoint, settings: Settings
) -> Sequence[AnchorReceipt | AnchorFailure]:
    """Have `checkpoint` seen outside this host; return what proves that it was, or why it was not."""
