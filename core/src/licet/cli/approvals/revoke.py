"""`licet approvals revoke`: takes back what was approved and is not used up."""

from __future__ import annotations

import click

from licet.cli.approvals.office import with_place


@click.command()
@click.argument("approval")
@with_place
@click.option("--reason", default="", metavar="TEXT", help="Why; stands in the record.")
def revoke(approval: str, policy: str | None, state: str | None, as_json: bool, reason: str) -> int:
    """Take back the approval APPROVAL, an id or its beginning: nothing more begins under it.

    \b
    Exit codes: 0 revoked · 2 usage, or no such approval · 3 it is over already
    """
    from licet.cli import approving, asking
    from licet.cli.approvals.listing import as_document
    from licet.cli.approvals.office import opened
    from licet.cli.terminal import Card, put_json, show_card

    with opened(policy, state) as office:
        before = office.store.get(approval)
        request, why, person = before.request, reason.strip(), asking.os_person("auto")
        after = office.recorded(
            request.run_id, lambda clerk, trail: clerk.end(before, "revoked", trail, why, person)
        )
    if as_json:
        put_json(as_document(after))
        return 0
    tone, heading = approving.HEADINGS[after.state]
    rows = tuple(approving.became(after))
    show_card(Card(tone, f"{approving.what_of(request)} {heading}", f"approval {request.id}", rows))
    return 0
