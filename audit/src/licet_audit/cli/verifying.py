"""`licet audit verify`: what a log proves, one claim at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from licet.errors import AuditUnavailable, UsageError

from licet_audit.cli import options
from licet_audit.cli.readers import reader_of

if TYPE_CHECKING:
    from licet.state import StateDirectory

    from licet_audit.anchors.checked import Trust
    from licet_audit.claims import Verification
    from licet_audit.notes import VerifierKey
    from licet_audit.verification.verify import Wanted

F = TypeVar("F", bound=Callable[..., Any])

EXIT = {"proven": 0, "tampered": 1, "incomplete": 3, "unverifiable": 4}
_MARKS = {True: "ok", False: "FAILED", None: "unknown"}


_BELIEVED = (
    click.option(
        "--key", metavar="KEY", help="The log's public key, as text or in a file; default: as seen before."
    ),
    click.option(
        "--require-anchor", is_flag=True, help="Fail unless an anchor outside this host proves something."
    ),
    click.option(
        "--witness", "witnesses", metavar="KEY", multiple=True, help="A witness to trust, by its key."
    ),
    click.option(
        "--tsa-roots", metavar="FILE", multiple=True, help="Certificates of time-stamping authorities."
    ),
    click.option(
        "--anchor-file", "files", metavar="FILE", multiple=True, help="A file on other media to trust."
    ),
)


def believing(command: F) -> F:
    """Let a command be told whom to believe, by the keyword arguments of `beliefs`."""
    for option in reversed(_BELIEVED):
        command = option(command)
    return command


@click.command()
@believing
@options.of_a_log
@options.as_json
def verify(
    key: str | None,
    require_anchor: bool,
    witnesses: tuple[str, ...],
    tsa_roots: tuple[str, ...],
    files: tuple[str, ...],
    state: str | None,
    policy: str | None,
    as_json: bool,
) -> int:
    """Check the log, one claim at a time.

    All of it is read, offline; nothing in it is written. If all holds, its newest checkpoint is remembered in
    your own state directory, and the next time the log has to continue it. The key of the log is remembered
    likewise when it is first seen: compare its fingerprint with what the owner of the log tells you, or give
    the key that you have from there. Anchors count if these options name them, or the administrator of this
    machine does: what lies beside the log vouches for nothing.

    \b
    Exit codes: 0 proven · 1 tampered · 2 usage · 3 incomplete · 4 unverifiable
    """
    from licet.cli.terminal import fail, put_json

    believed = beliefs(key, require_anchor, witnesses, tsa_roots, files)
    try:
        reader = reader_of(state, policy)
    except AuditUnavailable as problem:
        fail(problem, as_json=as_json)
        return EXIT["unverifiable"]
    found = checked(reader.state, believed)
    if as_json:
        put_json(asdict(found))
    else:
        _show(found)
    return EXIT[found.status]


def beliefs(
    key: str | None,
    require_anchor: bool,
    witnesses: Sequence[str],
    tsa_roots: Sequence[str],
    files: Sequence[str],
) -> Wanted:
    """What these options ask of a verification.

    Raises:
        UsageError: a key is none, or the administrator's settings can't be used.
    """
    from licet_audit.verification.verify import Wanted
    from licet_audit.verification.workers import processors

    given, trust = _key(key), _trust(witnesses, tsa_roots, files)
    return Wanted(given, trust, require_anchor=require_anchor, inventory=True, workers=processors())


def checked(state: StateDirectory, believed: Wanted) -> Verification:
    """Verify a log, and show how far that is.

    Raises:
        UsageError: the key is one of another log.
    """
    from licet.cli.progress import Steps

    from licet_audit.verification.verify import verify as verified

    _require_of_log(believed.key, state.log_id)
    with Steps("checking the log") as steps:

        def hear(total: int | None) -> None:
            steps.step() if total is None else steps.expect(total)

        return verified(state, replace(believed, hear=hear))


def _key(given: str | None) -> VerifierKey | None:
    """The key that the verifier brings.

    Raises:
        UsageError: it is none.
    """
    from licet_audit.trust import key_of

    return None if given is None else key_of(given)


def _trust(witnesses: Sequence[str], roots: Sequence[str], files: Sequence[str]) -> Trust:
    """Whom to believe outside this host: those that options name, and those that the administrator does.

    Settings beside the log don't count: whoever can write the log can write them.

    Raises:
        UsageError: a witness has no key, or the administrator's settings can't be used.
    """
    from licet.settings import load_settings

    from licet_audit.anchors.checked import Trust
    from licet_audit.trust import key_of

    given = Trust(tuple(key_of(one) for one in witnesses), tuple(map(Path, roots)), tuple(map(Path, files)))
    try:
        return given.joined(Trust.of(load_settings(None, os.environ).anchors))
    except ValueError as problem:
        raise UsageError(f"the key of a witness in settings is none: {problem}") from None


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
    show_card(Card(tone, found.status, f"{found.records} records", rows), err=False)
