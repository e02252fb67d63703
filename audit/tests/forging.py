"""What tests that attack a log share: changing lines, and doing what a forger who knows the format does."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from licet.plain import canonical
from licet.record import leaf_hash
from licet.state import StateDirectory
from licet_audit import notes, tree
from licet_audit.claims import Verification
from licet_audit.notes import Head, Signer
from licet_audit.reader import LogReader
from licet_audit.tiles import GrowingTree, write_tiles
from licet_audit.verification import signed
from licet_audit.verification import verify as verifying

Edit = Callable[[list[bytes]], list[bytes]]
Spell = Callable[[dict[str, Any]], bytes]


def verify(state: StateDirectory) -> Verification:
    """Verify a log, and make sure that it makes no difference to take records as they were signed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signed, "relied_on", lambda outside: None)
        patch.setattr(verifying, "_remembered", lambda state, outside, result: result)
        expected = LogReader(state).verify()
    result = LogReader(state).verify()
    assert without_count(result) == without_count(expected)
    return result


def without_count(result: Verification) -> Verification:
    """The answer, but for how many lines were spelled again, and for what was remembered of it."""
    return replace(
        result,
        claims=tuple(
            replace(claim, detail="") if claim.name == "bytes" and claim.ok else claim
            for claim in result.claims
            if claim.name != "pinned"
        ),
    )


def failed(result: Verification) -> dict[str, str]:
    return {claim.name: claim.detail for claim in result.claims if claim.ok is False}


def told(result: Verification, name: str) -> tuple[bool | None, str]:
    return next((claim.ok, claim.detail) for claim in result.claims if claim.name == name)


def change(segment: Path, edit: Edit) -> None:
    segment.write_bytes(b"".join(edit(segment.read_bytes().splitlines(keepends=True))))


def edited(line: bytes, **fields: object) -> bytes:
    return canonical({**json.loads(line), **fields}) + b"\n"


def rehash(lines: Sequence[bytes], spell: Spell = canonical) -> list[bytes]:
    """Make every line fit the one before."""
    forged, prev = [], ""
    for seq, line in enumerate(lines):
        text = spell({**json.loads(line), "seq": seq, "prev": prev})
        prev = leaf_hash(text)
        forged.append(text + b"\n")
    return forged


def forge(
    state: StateDirectory,
    segment: Path,
    edit: Edit,
    signer: Signer | None = None,
    spell: Spell = canonical,
) -> None:
    """Rewrite a log of one file, tiles included; sign it anew as `signer`, if there is one."""
    lines = rehash(edit(segment.read_bytes().splitlines(keepends=True)), spell)
    segment.write_bytes(b"".join(lines))
    shutil.rmtree(state.path / "tile", ignore_errors=True)
    grown = GrowingTree()
    grown.extend(tree.leaf(line[:-1]) for line in lines)
    write_tiles(state, grown.tiles())
    if signer is not None:
        head = Head(notes.origin_of(state.log_id), len(lines), grown.root())
        (state.path / "checkpoint").write_bytes(signer.sign(head, 1_800_000_000).data)
        (state.path / "log.vkey").write_text(f"{signer.key}\n")
