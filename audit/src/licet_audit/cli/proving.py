"""`licet audit prove`: proofs for somebody who does not have the log, and checking one.

Rules this module keeps:

- a proof that is checked names its own log; whose key that log has is told by the caller, or known here;
- a file that exists is never overwritten.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from licet.errors import UsageError, reason_of
from licet.files import read_plain

from licet_audit.cli import options

if TYPE_CHECKING:
    from licet_audit.notes import Note
    from licet_audit.proofs import ConsistencyProof, RecordProof
    from licet_audit.prover import Prover

_MOST_BYTES = 64 * 2**20
_EXIT = {"proven": 0, "disproved": 1, "unverifiable": 4}


@click.command()
@click.argument("what", metavar="[SEQ|RUN]", required=False)
@click.option("--between", nargs=2, metavar="OLD NEW", help="Prove that checkpoint NEW continues OLD.")
@click.option("--check", metavar="FILE", help="Check a proof; neither the log nor a network is needed.")
@click.option("--key", metavar="KEY", help="--check: the log's public key, as text or in a file.")
@click.option("--record", metavar="FILE", help="--check: the record, if it is not in the proof.")
@click.option("--bare", is_flag=True, help="Leave the record itself out of its proof.")
@click.option("-o", "--output", metavar="PATH", help="Write to a new file; for a RUN, to a new directory.")
@options.of_a_log
@options.as_json
def prove(
    what: str | None,
    between: tuple[str, str] | None,
    check: str | None,
    key: str | None,
    record: str | None,
    bare: bool,
    output: str | None,
    state: str | None,
    policy: str | None,
    as_json: bool,
) -> int:
    """Prove that a record, or each record of a run, is in the signed log.

    The proof is a text, `c2sp.org/tlog-proof@v1`, with the newest checkpoint in it. OLD and NEW are numbers
    of records, or files that hold checkpoints; of NEW there must be a signed one.

    Exit codes: 0 made, or proven · 1 the proof does not hold · 2 usage · 4 the proof holds, but nobody
    vouches for the key that signed it · 7 the log can't be used
    """
    if (what, between, check).count(None) != 2:
        raise UsageError("exactly one of SEQ or RUN, --between and --check is needed")
    if check is None and (key or record):
        raise UsageError("`--key` and `--record` are for `--check`")
    if check is not None:
        return _check(check, key, record, as_json=as_json)
    from licet_audit.cli.readers import reader_of
    from licet_audit.prover import Prover

    reader = reader_of(state, policy)
    prover = Prover(reader.state)
    if between is not None:
        return _put([_between(prover, *between)], output, as_json=as_json)
    assert what is not None
    number = what.removeprefix("#")
    if number.isascii() and number.isdigit():
        return _put([prover.record(int(number[:19]))], output, bare=bare, as_json=as_json)
    found = [prover.record(one.seq) for one in reader.records_of(what.upper())]
    return _put(found, output, bare=bare, as_folder=True, as_json=as_json)


def _between(prover: Prover, old: str, new: str) -> ConsistencyProof:
    from licet_audit.notes import Head

    before = prover.head_at(_number(old)) if _number(old) >= 0 else Head.parse(_checkpoint(old).text)
    after = prover.signed_at(_number(new)) if _number(new) >= 0 else _checkpoint(new)
    return prover.continues(before, after)


def _number(text: str) -> int:
    """A number of records; -1 if it is none."""
    return int(text[:19]) if text.isascii() and text.isdigit() else -1


def _checkpoint(path: str) -> Note:
    from licet_audit.notes import Head, InvalidNote, Note

    try:
        note = Note.parse(_read(path))
        Head.parse(note.text)
    except InvalidNote as problem:
        raise UsageError(f"`{path}` holds no checkpoint: {problem}") from None
    return note


def _put(
    proofs: Sequence[RecordProof | ConsistencyProof],
    output: str | None,
    *,
    as_json: bool,
    bare: bool = False,
    as_folder: bool = False,
) -> int:
    """Write proofs to stdout, a new file or a new directory."""
    from licet.cli.terminal import put_json

    from licet_audit.outputs import new_file, new_folder
    from licet_audit.proofs import RecordProof

    named = {
        f"{one.index}.tlog-proof" if isinstance(one, RecordProof) else "consistency": one for one in proofs
    }
    texts = {
        name: replace(one, line=None).data if bare and isinstance(one, RecordProof) else one.data
        for name, one in named.items()
    }
    if output is not None and as_folder:
        with new_folder(Path(output)) as folder:
            for name, text in texts.items():
                folder.put(name, (text,))
    elif output is not None:
        with new_file(Path(output)) as file:
            file.writelines(texts.values())
    if as_json:
        put_json({"path": output, "proofs": {name: text.decode("utf-8") for name, text in texts.items()}})
    elif output is None and len(texts) > 1:
        raise UsageError(f"that run has {len(texts)} records", advice="write their proofs to `-o DIRECTORY`")
    elif output is None:
        sys.stdout.buffer.writelines(texts.values())
    return 0


def _check(path: str, given: str | None, record: str | None, *, as_json: bool) -> int:
    from licet.cli.terminal import Card, Tone, put_json, show_card

    from licet_audit import proofs, trust
    from licet_audit.checking import check

    line = None if record is None else _read(record).removesuffix(b"\n")
    try:
        proof = proofs.parse(_read(path))
        origin = proofs.head_of(proof.checkpoint).origin
        found = check(proof, trust.key_of(given) if given else trust.pinned(origin), line)
    except proofs.InvalidProof as problem:
        raise UsageError(f"`{path}` can't be checked: {problem}") from None
    if as_json:
        put_json({"status": found.status, "why": found.why, **found.facts})
        return _EXIT[found.status]
    rows = [*found.facts.items(), ("because", found.why)]
    if found.status == "unverifiable":
        rows.append(("you can", "get the key from the log's owner, and give it as `--key`"))
    tones: dict[str, Tone] = {"proven": "good", "disproved": "bad", "unverifiable": "warn"}
    show_card(Card(tones[found.status], found.status, rows=rows), err=False)
    return _EXIT[found.status]


def _read(path: str) -> bytes:
    try:
        data = read_plain(Path(path), _MOST_BYTES + 1, follow=True)
    except OSError as problem:
        raise UsageError(f"`{path}` can't be read: {reason_of(problem)}") from None
    if len(data) > _MOST_BYTES:
        raise UsageError(f"`{path}` has more than {_MOST_BYTES >> 20} MiB")
    return data
