"""Writing a bundle.

Rules this module keeps:

- the same records of the same checkpoint make the same bytes, whenever they are exported;
- a bundle holds only what the newest checkpoint covers, and is checked against it before it appears;
- content comes along only when it is asked for, only that of these records, and only where it is intact.
"""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from licet.errors import AuditUnavailable, UsageError
from licet.files import read_plain
from licet.record import Record, commitment
from licet.state import StateDirectory, failures

from licet_audit import contents, keys, tree, trust
from licet_audit.anchors import receipts
from licet_audit.exports import Export
from licet_audit.lines import chosen
from licet_audit.notes import InvalidNote, VerifierKey
from licet_audit.outputs import Folder, new_folder, refuse_inside
from licet_audit.prover import Prover

FORMAT = "licet/bundle@v1"
_SPOOLED = 16 * 2**20  # bytes of records that are gathered in memory
_MOST_CONTENT = 1 << 30  # bytes; no limit of a run lets more be kept


@dataclass
class _Gathered:
    """The records of a bundle: their lines in a file, their numbers, and their leaf hashes in a row."""

    file: IO[bytes]
    seqs: array[int] = field(default_factory=lambda: array("Q"))
    leaves: bytearray = field(default_factory=bytearray)
    commitments: set[str] = field(default_factory=set)

    def add(self, seq: int, line: bytes, record: Record) -> None:
        """Take one more record."""
        self.file.write(line + b"\n")
        self.seqs.append(seq)
        self.leaves += tree.leaf(line)
        self.commitments.update(record.kept.values())

    def leaf_hashes(self) -> dict[int, bytes]:
        """The leaf hashes by number."""
        return {seq: bytes(self.leaves[at * 32 : at * 32 + 32]) for at, seq in enumerate(self.seqs)}

    def lines(self) -> Iterator[bytes]:
        """The lines again, in pieces."""
        self.file.seek(0)
        while piece := self.file.read(1 << 20):
            yield piece


def write(export: Export) -> int:
    """Write a bundle to a new directory or ZIP file.

    Raises:
        UsageError: no place is named, something is there already, or nothing is selected.
        AuditUnavailable: the log can't be read, or is not what was signed.
    """
    from licet.cli.terminal import Card, put_json, show_card

    output: str | None = export.options["output"]
    if output is None:
        raise UsageError("a bundle needs a place", advice="name it: `-o DIRECTORY` or `-o FILE.zip`")
    refuse_inside(export.reader.state.path, Path(output))
    with tempfile.SpooledTemporaryFile(_SPOOLED) as file:
        gathered, newer, prover = _gather(export, file)
        with new_folder(Path(output)) as folder:
            manifest = _fill(folder, export, prover, gathered)
    if export.as_json:
        put_json({"path": output, "newer": newer, **manifest})
        return 0
    rows = [("records", f"{manifest['records']} of {manifest['size']}")]
    if newer:
        rows.append(("left out", f"{newer} that are newer than the newest checkpoint"))
    rows += [
        ("anchors", str(manifest["anchors"]) if manifest["anchors"] else "none: nobody outside has seen it"),
        ("content", _content(manifest, asked=export.options["content"])),
        ("check it", _advice(output)),
    ]
    show_card(Card("good", "written", output, rows))
    return 0


def _content(manifest: dict[str, Any], *, asked: bool) -> str:
    if not manifest["commitments"]:
        return "none: these records commit to none"
    if not asked:
        return f"left out; `--content` adds what is kept of {manifest['commitments']} pieces"
    return f"{len(manifest['content'])} of {manifest['commitments']} pieces; the others are not kept any more"


def _advice(output: str) -> str:
    """How whoever gets the bundle checks it; the key has to come another way."""
    script = "unpack it, python3 verify.py" if output.endswith(".zip") else f"python3 {output}/verify.py"
    return f"{script} --key KEY; KEY is the log's public key, told by another way than the bundle"


def _gather(export: Export, file: IO[bytes]) -> tuple[_Gathered, int, Prover]:
    """The chosen records that the checkpoint covers, and how many are newer."""
    state = export.reader.state
    prover, gathered, newer = Prover(state), _Gathered(file), 0
    size = prover.head.size
    for seq, line, record in chosen(state, export.selection):
        if seq < size:
            gathered.add(seq, line, record)
        else:
            newer += 1
    if not gathered.seqs:
        advice = f"{newer} are newer than the newest checkpoint" if newer else "`licet audit list` shows runs"
        raise UsageError("no signed record is selected", advice=advice)
    return gathered, newer, prover


def _fill(folder: Folder, export: Export, prover: Prover, gathered: _Gathered) -> dict[str, Any]:
    state = export.reader.state
    proof = prover.records(gathered.seqs)
    if not proof.holds(gathered.leaf_hashes()):
        raise AuditUnavailable(
            "the records are not those that were signed", advice="`licet audit verify` says what is wrong"
        )
    folder.put("records.jsonl", gathered.lines())
    folder.put("records.proof", (proof.data,))
    if (key := _key(state, prover.head.origin)) is not None:
        folder.put("log.vkey", (f"{key}\n".encode(),))
    anchors = _put_anchors(folder, state, prover)
    held = list(_put_content(folder, state, gathered)) if export.options["content"] else []
    manifest = {
        "format": FORMAT,
        "log": state.log_id,
        "size": prover.head.size,
        "root": prover.head.root.hex(),
        "selection": export.selection.as_json(),
        "records": len(gathered.seqs),
        "first": gathered.seqs[0],
        "last": gathered.seqs[-1],
        "anchors": anchors,
        "commitments": len(gathered.commitments),
        "content": held,
    }
    folder.put("manifest.json", (json.dumps(manifest, indent=2, sort_keys=True).encode() + b"\n",))
    folder.put("verify.py", (files(__package__).joinpath("verify.py").read_bytes(),))
    return manifest


def _put_anchors(folder: Folder, state: StateDirectory, prover: Prover) -> int:
    """Add the receipts of checkpoints up to the newest one, and the proofs that it continues those."""
    count = 0
    for size, found in receipts.all_of(state).items():
        if 0 < size <= prover.head.size:
            proof = prover.continues(prover.head_at(size))
            folder.put(f"anchors/{size:020d}/consistency", (proof.data,))
            for receipt in filter(receipts.is_whole, found):
                folder.put(f"anchors/{size:020d}/{receipt.name}", (receipt.data,))
                count += 1
    return count


def _put_content(folder: Folder, state: StateDirectory, gathered: _Gathered) -> Iterator[str]:
    for committed in sorted(filter(contents.is_commitment, gathered.commitments)):
        path = contents.path_of(state, committed)
        with failures(path):
            try:
                found = read_plain(path, _MOST_CONTENT)
            except FileNotFoundError:
                continue
        if commitment(found[:32], found[32:]) == committed:
            folder.put(f"content/{committed}", (found,))
            yield committed


def _key(state: StateDirectory, origin: str) -> VerifierKey | None:
    try:
        return trust.pinned(origin) or keys.published(state)
    except InvalidNote as problem:
        raise AuditUnavailable(f"`log.vkey` holds no key: {problem}", advice="move it aside") from None
