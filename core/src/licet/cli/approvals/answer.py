"""`licet approvals approve` and `deny`: one person's answer to what was shown.

Rules this module keeps:

- what is approved is named: by the card that this command shows and the y typed below it, or by its digest;
- whoever did not type that y is not seen to act, and counts as `auto`;
- who answers comes from the operating system or from a signed token, never from an option.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from licet.approvals.forms import Answer, ApprovalRequest, Scope, StoredApproval
from licet.cli.approvals.office import with_place
from licet.errors import AnswerRefused, UsageError

if TYPE_CHECKING:
    from licet.cli.approvals.office import Office

F = TypeVar("F", bound=Callable[..., Any])

NAME = "cli"
"""The service that these answers come by."""

_MOST_REASON = 500

_OPTIONS = (
    click.argument("approval"),
    click.option("--reason", default="", metavar="TEXT", help="Why; stands in the record."),
    click.option("--shown", metavar="DIGEST", help="The digest that `licet approvals show` prints."),
    click.option("--token", metavar="FILE", help="A signed answer instead; `-` for standard input."),
    click.option("--yes", is_flag=True, help="Don't ask; counts as an answer that nobody was seen to give."),
)


def _with_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return with_place(command)


@click.command()
@_with_options
@click.option(
    "--scope",
    type=click.Choice(["once", "session", "shape"]),
    default="once",
    show_default=True,
    help="How far the yes reaches.",
)
@click.option("--vary", multiple=True, metavar="NAME", help="With `--scope shape`: what may be another.")
@click.option("--uses", type=click.IntRange(min=1), help="How often it may be used.")
@click.option("--expires", metavar="DURATION", help="From the asking on; never longer than policy says.")
def approve(scope: Scope, vary: tuple[str, ...], uses: int | None, expires: str | None, **given: Any) -> int:
    """Approve APPROVAL, an id or its beginning, as the user of this system.

    On a terminal everything is shown, and a y makes it so. Elsewhere `--shown DIGEST` has to name what is
    approved.

    \b
    Exit codes: 0 taken · 2 usage, or no such approval · 3 it does not count, or is over · 130 not confirmed
    """
    from licet import units

    try:
        seconds = units.duration(expires) if expires is not None else None
    except ValueError as problem:
        raise UsageError(f"`--expires`: {problem}") from None
    reach = {"scope": scope, "vary": vary, "uses": uses, "expires": seconds}
    return _answer(True, reach if (vary or uses or expires or scope != "once") else {}, **given)


@click.command()
@_with_options
def deny(**given: Any) -> int:
    """Deny APPROVAL, an id or its beginning, as the user of this system.

    \b
    Exit codes: 0 taken · 2 usage, or no such approval · 3 it does not count, or is over · 130 not confirmed
    """
    return _answer(False, {}, **given)


def _answer(
    approve: bool,
    reach: dict[str, Any],
    approval: str,
    policy: str | None,
    state: str | None,
    as_json: bool,
    token: str | None,
    **given: Any,
) -> int:
    from licet.cli.approvals.listing import as_document
    from licet.cli.approvals.office import opened
    from licet.cli.terminal import put_json

    with opened(policy, state) as office:
        before = office.store.get(approval)
        if token is not None:
            if stated := [name for name, value in (given | reach).items() if value]:
                raise UsageError(
                    f"a token says everything itself; `--{stated[0]}` can't be added", advice="leave it out"
                )
            answer = _signed(office, before.request, token, approve=approve)
        else:
            answer = _own(before, approve=approve, reach=reach, **given)
        id, run_id = before.request.id, before.request.run_id
        after = office.recorded(run_id, lambda clerk, trail: clerk.take(id, answer, trail))
    if as_json:
        put_json(as_document(after))
    else:
        _show(after, policy, state)
    return 0


def _signed(office: Office, request: ApprovalRequest, token: str, *, approve: bool) -> Answer:
    """The answer that an issuer signed."""
    from licet.approvals.clocks import now
    from licet.approvals.tokens import answer_of
    from licet.cli import inputs

    text = inputs.read_file(token).decode("ascii", "replace")
    answer = answer_of(text, request, office.settings, now())
    if answer.approve is not approve:
        said = "approves" if answer.approve else "denies"
        raise UsageError(
            f"the token {said} it",
            advice=f"use `licet approvals {'approve' if answer.approve else 'deny'}`",
        )
    return answer


def _own(
    before: StoredApproval, *, approve: bool, reach: dict[str, Any], reason: str, shown: str | None, yes: bool
) -> Answer:
    """The answer of the user of this system, who is asked first where that is possible.

    Raises:
        AnswerRefused: it would not count.
        UsageError: nothing says what is answered.
        click.Abort: it was not meant.
    """
    from licet.cli import approving, asking
    from licet.cli.terminal import colour

    request = before.request
    if len(reason) > _MOST_REASON:
        raise UsageError(f"the reason has {len(reason)} characters, {_MOST_REASON} are allowed")
    asks = asking.at_terminal() and not yes
    if approve and shown is None and not asks:
        raise UsageError(
            "nothing says what is approved",
            advice=f"give the digest that `licet approvals show {request.id}` ends with as `--shown`",
        )
    if shown is not None and shown != request.shown:
        raise AnswerRefused(
            f"`--shown` names another document than that of the approval `{request.id}`",
            advice=f"look at it again: `licet approvals show {request.id}`",
        )
    person = asking.os_person("human" if asks else "auto")
    answer = Answer(person, approve, request.shown, NAME, reason=reason.strip(), **reach)
    if asks:
        asking.refuse_in_vain(before, answer)
        paper = approving.paper(request, before, whole=True, details=True)
        click.echo(paper.sheet.text(), nl=False, err=True, color=colour())
        asking.forget_typed()
        click.confirm("Approve exactly this?" if approve else "Deny this?", abort=True, err=True)
    return answer


def _show(after: StoredApproval, policy: str | None, state: str | None) -> None:
    from licet.cli import approving
    from licet.cli.terminal import Card, show_card

    request = after.request
    tone, heading = approving.HEADINGS[after.state]
    rows = [*approving.became(after)]
    if after.state == "pending":
        rows.append(("until", approving.until(request)))
    elif after.state == "granted":
        rows.append(("then", approving.resuming(request.run_id, policy)))
    what = f"{approving.what_of(request)} {heading}"
    show_card(Card(tone, what, f"approval {request.id}", tuple(rows)))
