"""`licet audit verify`: what a log proves, one claim at a time."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from licet.errors import AuditUnavailable, UsageError

from licet_audit.cli import options
from licet_audit.cli.readers import reader_of

if TYPE_CHECKING:
    from licet_audit.claims import Verification
    from licet_audit.notes import VerifierKey

EXIT = {"proven": 0, "tampered": 1, "incomplete": 3, "unverifiable": 4}
_MARKS = {True: "ok", False: "FAILED", None: "unknown"}


@click.command()
@click.option(
    "--key", metavar="KEY", help="The log's public key, as text or in a file; default: as seen before."
)
@click.option(
    "--require-anchor", is_flag=True, help="Fail unless an anchor outside this host proves something."
)
@options.of_a_log
@options.as_json
def verify(
    key: str | None, require_anchor: bool, state: str | None, policy: str | None, as_json: bool
) -> int:
    """Check the log, one claim at a time.

    All of it is read, offline; nothing in it is written. If all holds, its newest checkpoint is remembered in
    your own state directory, and the next time the log has to continue it. The key of the log is remembered
    likewise when it is first seen: compare its fingerprint with what the owner of the log tells you, or give
    the key that you have from there.

    \b
    Exit codes: 0 proven · 1 tampered · 2 usage · 3 incomplete · 4 unverifiable
    """
    from licet.cli.progress import Steps
    from licet.cli.terminal import fail, put_json

    from licet_audit.verification.verify import Wanted
    from licet_audit.verification.verify import verify as verified
    from licet_audit.verification.workers import processors

    given = _key(key)
    try:
        reader = reader_of(state, policy)
    except AuditUnavailable as problem:
        fail(problem, as_json=as_json)
        return EXIT["unverifiable"]
    _require_of_log(given, reader.state.log_id)
    with Steps("checking the log") as steps:

        def hear(total: int | None) -> None:
            steps.step() if total is None else steps.expect(total)

        found = verified(reader.state, Wanted(given, require_anchor, processors(), hear))
    if as_json:
        put_json(asdict(found))
    else:
        _show(found)
    return EXIT[found.status]


def _key(given: str | None) -> VerifierKey | None:
    """The key that the verifier brings.

    Raises:
        UsageError: it is none.
    """
    from licet_audit.trust import key_of

    return None if given is None else key_of(given)


def _require_of_log(key: VerifierKey | None, log_id: str) -> None:
    """Make sure that the key is one of this log at all.

    Raises:
        UsageError: it is the key of another log, or one for cosignatures.
    """
    from licet_audit import notes

    if key is None:
        return
    if key.name != notes.origin_of(log_id) or key.kind != notes.NOTE:
        raise UsageError(
            f"the key is one of `{key.name}`, and this log is `{notes.origin_of(log_id)}`",
            advice="give the key that the owner of this log tells you",
        )


def _show(found: Verification) -> None:
    from licet.cli.terminal import Card, Tone, show_card

    rows = [(claim.name, f"{_MARKS[claim.ok]}: {claim.detail}") for claim in found.claims]
    if found.first_bad_seq is not None:
        place = "in no file" if found.first_bad_byte is None else f"byte {found.first_bad_byte}"
        rows.append(("first bad", f"record #{found.first_bad_seq}, {place}"))
    rows += [("not proven", text) for text in found.not_proven]
    tone: Tone = "good" if found.status == "proven" else "bad"
    show_card(Card(tone, found.status, f"{found.records} records", rows))
