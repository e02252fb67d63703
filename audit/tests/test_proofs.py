"""Proofs have one spelling, prove what they say, and are made only of what was signed."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.errors import AuditUnavailable, UsageError
from licet.record import Entry, Record
from licet.state import StateDirectory
from licet_audit import proofs, tree
from licet_audit.checking import check
from licet_audit.checkpointer import Notary, signed
from licet_audit.keys import signer
from licet_audit.notes import Head, Note, Signer, base64_of
from licet_audit.proofs import ConsistencyProof, InvalidProof, RecordProof, RecordsProof
from licet_audit.prover import Prover
from slow_tree import Leaves

SIGNER = Signer("licet/" + "0" * 32, b"s" * 32)
LINES = [b'{"n":%d}' % number for number in range(9)]
HASHES = Leaves([tree.leaf(line) for line in LINES])


def note_at(size: int) -> Note:
    return SIGNER.sign(Head(SIGNER.key.name, size, tree.root(HASHES, size)), 1_800_000_000)


RECORD = RecordProof(4, tuple(tree.inclusion(HASHES, 4, 9)), note_at(9), LINES[4])
CONSISTENCY = ConsistencyProof(3, tree.root(HASHES, 3), tuple(tree.consistency(HASHES, 3, 9)), note_at(9))
RECORDS = RecordsProof(tuple(tree.cover(HASHES, [1, 4], 9)), note_at(9))


def test_a_proof_of_a_record_reads_as_c2sp_has_it() -> None:
    note = note_at(9).data.decode()
    assert RECORD.data.decode() == (
        "c2sp.org/tlog-proof@v1\n"
        "extra eyJuIjo0fQ==\n"
        "index 4\n"
        f"{base64_of(tree.leaf(LINES[5]))}\n"
        f"{base64_of(tree.node(tree.leaf(LINES[6]), tree.leaf(LINES[7])))}\n"
        f"{base64_of(tree.root(HASHES, 4))}\n"
        f"{base64_of(tree.leaf(LINES[8]))}\n"
        f"\n{note}"
    )
    assert replace(RECORD, line=None).data.decode().splitlines()[1] == "index 4"


@pytest.mark.parametrize("proof", [RECORD, replace(RECORD, line=None), CONSISTENCY, RECORDS])
def test_each_is_read_back_as_it_was_written(proof: proofs.Proof) -> None:
    assert proofs.parse(proof.data) == proof


@settings(deadline=None)
@given(st.sampled_from([RECORD, CONSISTENCY]), st.data())
def test_no_changed_byte_of_a_proof_is_proven(proof: proofs.Proof, data: st.DataObject) -> None:
    """Save in the time, which a signature of its own vouches for, and which is then not shown."""
    whole = bytearray(proof.data)
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    try:
        found = check(proofs.parse(bytes(whole)), SIGNER.key)
    except InvalidProof:
        return
    last = bytes(proof.data).rindex(b"\xe2\x80\x94")
    assert found.status == "disproved" or (place >= last and "signed" not in found.facts)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((b"c2sp.org/tlog-proof@v1", b"c2sp.org/tlog-proof@v2"), "its first line is none of "),
        ((b"extra e", b"extra !"), "its extra data are no base64: "),
        ((b"index 4", b"index 04"), "it has no line `index NUMBER` where it should"),
        ((b"index 4", b"index -4"), "it has no line `index NUMBER` where it should"),
        ((b"index 4\n", b""), "it has no line `index NUMBER` where it should"),
        ((b"index 4\n", b"index 4\nAAAA\n"), "one of its hashes has not 32 bytes"),
        ((b"index 4\n", b"index 4\n" + b"A" * 43 + b"=\n" + b"A" * 43 + b"=\n"), None),
        (
            (b"index 4\n", b"index 4\n" + (b"A" * 43 + b"=\n") * 64),
            "it has 68 hashes, at most 64 can be needed",
        ),
        ((b"\n\nlicet", b"\nlicet"), "below its hashes is no signed checkpoint: "),
        (("—".encode(), b"-"), "below its hashes is no signed checkpoint: "),
        ((b"\n9\n", b"\n09\n"), "its checkpoint is none: "),
        ((b"\n", b"\r\n"), "its first line is none of "),
    ],
)
def test_what_is_no_proof_is_told(change: tuple[bytes, bytes], why: str | None) -> None:
    data = RECORD.data.replace(*change)
    if why is None:
        assert check(proofs.parse(data), SIGNER.key).status == "disproved"
        return
    with pytest.raises(InvalidProof) as problem:
        proofs.parse(data)
    assert str(problem.value).startswith(why)


def test_a_proof_rests_on_the_key_of_its_log() -> None:
    assert check(RECORD, SIGNER.key).status == "proven"
    assert check(CONSISTENCY, SIGNER.key).status == "proven"
    unknown = check(RECORD, None)
    assert (unknown.status, unknown.why) == (
        "unverifiable",
        f"the key of `{SIGNER.key.name}` is not known here",
    )
    for key in (Signer(SIGNER.key.name, b"x" * 32).key, replace(SIGNER.key, name="another")):
        assert (check(RECORD, key).status, check(RECORD, key).why) == (
            "disproved",
            "its checkpoint is not signed by that key",
        )


def test_the_record_may_come_beside_its_proof_and_has_to_be_the_one() -> None:
    bare = replace(RECORD, line=None)
    assert check(bare, SIGNER.key, LINES[4]).status == "proven"
    assert check(bare, SIGNER.key, LINES[5]).status == "disproved"
    with pytest.raises(InvalidProof, match=r"^it comes without its record, which is needed to check it$"):
        check(bare, SIGNER.key)
    with pytest.raises(InvalidProof, match=r"^it is of the records of a bundle"):
        check(RECORDS, SIGNER.key)


@pytest.fixture
def log(state: StateDirectory, append: Callable[..., list[Record]], entry: Callable[..., Entry]) -> Prover:
    """A signed log of 300 records in several segments, and one record more."""
    append(*([entry(n=n)] for n in range(299)), segment_bytes=20_000)
    Notary(state).checkpoint()
    return Prover(state)


def test_each_record_is_proved_by_the_newest_checkpoint(state: StateDirectory, log: Prover) -> None:
    key = signer(state).key
    for seq in (0, 1, 150, 298, log.head.size - 1):
        found = log.record(seq)
        assert found.line is not None and b'"seq":%d,' % seq in found.line
        assert check(proofs.parse(found.data), key).status == "proven"


def test_records_that_nobody_signed_can_not_be_proved(
    state: StateDirectory, log: Prover, append: Callable[..., list[Record]], entry: Callable[..., Entry]
) -> None:
    size = log.head.size
    (state.path / "unsigned").write_bytes((state.path / "checkpoint").read_bytes())
    append([entry()])
    (state.path / "checkpoint").write_bytes((state.path / "unsigned").read_bytes())
    with pytest.raises(UsageError) as newer:
        Prover(state).record(size)
    assert newer.value.message == (
        f"record #{size} is newer than the newest checkpoint, which covers {size} records"
    )
    with pytest.raises(UsageError, match=r"^there is no record #9999 in this log$"):
        Prover(state).record(9999)


def test_a_log_without_a_checkpoint_proves_nothing(state: StateDirectory, log: Prover) -> None:
    (state.path / "checkpoint").unlink()
    with pytest.raises(
        AuditUnavailable, match=r"^the log in `.*` has no signed checkpoint, so nothing of it"
    ):
        Prover(state).record(0)
    (state.path / "checkpoint").write_text("rubbish")
    with pytest.raises(AuditUnavailable, match=r"^the log's checkpoint is none: "):
        Prover(state).record(0)


def test_a_record_that_was_changed_yields_no_proof(state: StateDirectory, log: Prover) -> None:
    path = sorted((state.path / "log").iterdir())[0]
    path.write_bytes(path.read_bytes().replace(b'"n":3}', b'"n":4}', 1))
    with pytest.raises(AuditUnavailable, match=r"^record #4 is not the one that was signed$"):
        Prover(state).record(4)


def test_a_checkpoint_continues_older_ones_and_no_others(state: StateDirectory, log: Prover) -> None:
    key, size = signer(state).key, log.head.size
    for old in (0, 1, 100, size):
        found = log.continues(log.head_at(old))
        assert check(proofs.parse(found.data), key).status == "proven"
    with pytest.raises(
        AuditUnavailable, match=r"^the first 100 records of the log are not those of that check"
    ):
        log.continues(replace(log.head_at(100), root=b"x" * 32))
    with pytest.raises(UsageError, match=r"^that is a checkpoint of `another`, this log is `licet/"):
        log.continues(Head("another", 100, b"x" * 32))
    with pytest.raises(UsageError, match=rf"^the newest checkpoint covers {size} records, not {size + 1}$"):
        log.head_at(size + 1)
    sizes = sorted(int(path.name) for path in (state.path / "checkpoints").iterdir())
    assert len(sizes) > 1
    older = log.signed_at(sizes[0])
    assert check(log.continues(log.head_at(5), older), key).facts["records"] == str(sizes[0])
    with pytest.raises(UsageError, match=rf"^{sizes[0]} records can't continue {size}$"):
        log.continues(log.head, older)
    with pytest.raises(UsageError, match=r"^no signed checkpoint of 7 records is kept$"):
        log.signed_at(7)


def test_a_proof_is_small(state: StateDirectory, log: Prover) -> None:
    """Of 300 records; with a million it has 20 hashes of 45 bytes."""
    proof = replace(log.record(5), line=None)
    note = signed(state)
    assert note is not None
    assert len(proof.data) - len(note.data) == len("c2sp.org/tlog-proof@v1\nindex 5\n\n") + 45 * len(
        proof.hashes
    )
