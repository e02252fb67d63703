"""What commands that remove something have in common: where, why, and whether it is meant."""

from __future__ import annotations

import sys

import click
from licet.errors import UsageError
from licet.plain import plain
from licet.state import StateDirectory, open_state

from licet_audit.cli.options import F
from licet_audit.cli.readers import reader_of
from licet_audit.retention.choosing import Choice

_MOST_REASON = 2000  # characters

dry_run = click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
yes = click.option("--yes", is_flag=True, help="Don't ask whether it is meant.")
reason = click.option("--reason", metavar="TEXT", help="Why; it stands in the record for good.")


_FOR_WHOM = (
    click.argument("runs", nargs=-1, metavar="[RUN]..."),
    click.option("--subject", metavar="ID", help="All runs for this subject, or on behalf of it."),
    click.option("--tenant", metavar="ID", help="All runs for this tenant."),
)


def for_whom(command: F) -> F:
    """Let a command be told which runs are meant, as `runs`, `subject` and `tenant`."""
    for option in reversed(_FOR_WHOM):
        command = option(command)
    return command


def log_to_read(state: str | None, policy: str | None) -> StateDirectory:
    """The state directory that is meant, to look at.

    Raises:
        AuditUnavailable: there is no log.
    """
    return reader_of(state, policy).state


def log_to_change(state: str | None, policy: str | None) -> StateDirectory:
    """The state directory that is meant, which this user may write to.

    Raises:
        AuditUnavailable: there is no log, or it is not this user's.
    """
    return open_state(log_to_read(state, policy).path)


def stated(text: str | None) -> str:
    """The reason that was given.

    Raises:
        UsageError: there is none, or it is too long for a record.
    """
    if text is None or not text.strip():
        raise UsageError(
            "a reason is missing", advice="say why with `--reason TEXT`; it stands in the record"
        )
    if len(text) > _MOST_REASON:
        raise UsageError(
            f"the reason has {len(text)} characters, {_MOST_REASON} are allowed",
            advice="name the document that says more",
        )
    return str(plain(text.strip()))


def choice(
    runs: tuple[str, ...] | None,
    subject: str | None,
    tenant: str | None,
    since: str | None = None,
    before: str | None = None,
) -> Choice:
    """The runs that options choose, spelled as records spell them."""
    return Choice(
        runs,
        None if subject is None else plain(subject),
        None if tenant is None else plain(tenant),
        since,
        before,
    )


def require_meant(question: str, *, yes: bool) -> None:
    """Ask on a terminal whether something is meant.

    Raises:
        UsageError: nobody can be asked, and `--yes` was not given.
        click.Abort: it is not.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "nobody can be asked here whether this is meant",
            advice="look at it with `--dry-run`, then add `--yes`",
        )
    click.confirm(question, abort=True, err=True)
