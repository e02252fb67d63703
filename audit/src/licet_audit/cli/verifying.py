"""`licet audit verify`: what a log proves, one claim at a time."""

from __future__ import annotations

from dataclasses import asdict

import click
from licet.errors import AuditUnavailable

from licet_audit.cli import options
from licet_audit.cli.readers import reader_of

EXIT = {"proven": 0, "tampered": 1, "incomplete": 3, "unverifiable": 4}
_MARKS = {True: "ok", False: "FAILED", None: "unknown"}


@click.command()
@options.of_a_log
@options.as_json
def verify(state: str | None, policy: str | None, as_json: bool) -> int:
    """Check the log, one claim at a time.

    Exit codes: 0 proven · 1 tampered · 2 usage · 3 incomplete · 4 unverifiable
    """
    from licet.cli.terminal import Card, Tone, fail, put_json, show_card

    try:
        found = reader_of(state, policy).verify()
    except AuditUnavailable as problem:
        fail(problem, as_json=as_json)
        return EXIT["unverifiable"]
    if as_json:
        put_json(asdict(found))
        return EXIT[found.status]
    rows = [(claim.name, f"{_MARKS[claim.ok]}: {claim.detail}") for claim in found.claims]
    if found.first_bad_seq is not None:
        rows.append(("first bad", f"record #{found.first_bad_seq}, byte {found.first_bad_byte}"))
    rows += [("not proven", text) for text in found.not_proven]
    tone: Tone = "good" if found.status == "proven" else "bad"
    show_card(Card(tone, found.status, f"{found.records} records", rows))
    return EXIT[found.status]
