"""Tree, notes and cosignatures against published vectors, and against another implementation."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from licet_audit import tree
from licet_audit.notes import COSIGNATURE, Head, InvalidNote, Note, Signer, VerifierKey
from slow_tree import Leaves, slow_root

# The leaves, roots and inner nodes that tests of Certificate Transparency have used since RFC 6962.
INPUTS = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
LEAF_1 = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"
LEAF_4 = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"
NODE_23 = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
NODE_45 = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"
NODE_67 = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"
NODE_4567 = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"

# The example of Go's package sumdb/note.
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_SEED = "AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
GO_NOTE = """If you think cryptography is the answer to your problem,
then you don't know what your problem is.

— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
""".encode()

HEAD = Head("licet/" + "0" * 32, 9, b"\x14" * 32)
SIGNED = Signer(HEAD.origin, b"s" * 32).sign(HEAD, 1_800_000_000)
KEY = Signer(HEAD.origin, b"s" * 32).key


PUBLISHED = Leaves([tree.leaf(bytes.fromhex(one)) for one in INPUTS])


def test_roots_are_the_published_ones() -> None:
    assert [tree.root(PUBLISHED, size).hex() for size in range(9)] == ROOTS


@pytest.mark.parametrize(
    ("index", "size", "proof"),
    [
        (0, 1, []),
        (0, 8, [LEAF_1, NODE_23, NODE_4567]),
        (5, 8, [LEAF_4, NODE_67, ROOTS[4]]),
        (2, 3, [ROOTS[2]]),
        (1, 5, [ROOTS[1], NODE_23, LEAF_4]),
    ],
)
def test_inclusion_proofs_are_the_published_ones(index: int, size: int, proof: list[str]) -> None:
    found = tree.inclusion(PUBLISHED, index, size)
    assert [one.hex() for one in found] == proof
    leaf = tree.leaf(bytes.fromhex(INPUTS[index]))
    assert tree.root_from_inclusion(leaf, index, size, found) == bytes.fromhex(ROOTS[size])


@pytest.mark.parametrize(
    ("old", "new", "proof"),
    [
        (1, 1, []),
        (1, 8, [LEAF_1, NODE_23, NODE_4567]),
        (6, 8, [NODE_45, NODE_67, ROOTS[4]]),
        (2, 5, [NODE_23, LEAF_4]),
    ],
)
def test_consistency_proofs_are_the_published_ones(old: int, new: int, proof: list[str]) -> None:
    found = tree.consistency(PUBLISHED, old, new)
    assert [one.hex() for one in found] == proof
    assert tree.is_consistent(old, bytes.fromhex(ROOTS[old]), new, bytes.fromhex(ROOTS[new]), found)


def test_the_note_of_go_is_read_verified_and_signed_alike() -> None:
    key, note = VerifierKey.parse(GO_KEY), Note.parse(GO_NOTE)
    assert str(key) == GO_KEY
    assert note.data == GO_NOTE
    assert note.signed_by(key) is not None
    signer = Signer(key.name, base64.b64decode(GO_SEED)[1:])
    assert signer.key == key
    head = Head("o", 1, b"\0" * 32)
    assert signer.sign(head, 5).signed_by(key) is not None


def test_a_checkpoint_is_read_back_as_it_was_written() -> None:
    read = Note.parse(SIGNED.data)
    assert read == SIGNED
    assert Head.parse(read.text) == HEAD
    assert read.signed_by(KEY) is not None
    assert read.time_by(KEY) == 1_800_000_000
    assert VerifierKey.parse(str(KEY)) == KEY
    assert VerifierKey.parse(str(KEY.of_kind(COSIGNATURE))) == KEY.of_kind(COSIGNATURE)


@settings(deadline=None)
@given(st.integers(0, len(SIGNED.data) - 1), st.integers(1, 255))
def test_no_changed_byte_of_a_checkpoint_passes(place: int, change: int) -> None:
    """Unless it is in the other of the two signatures, each of which stands for itself."""
    data = bytearray(SIGNED.data)
    data[place] ^= change
    try:
        note = Note.parse(bytes(data))
    except InvalidNote:
        return
    line_of_note = SIGNED.data.index(b"\xe2\x80\x94")
    line_of_time = SIGNED.data.index(b"\xe2\x80\x94", line_of_note + 1)
    assert (note.signed_by(KEY) is not None) == (place >= line_of_time)
    assert (note.time_by(KEY) is not None) == (line_of_note <= place < line_of_time)


@pytest.mark.parametrize("cut", range(1, len(SIGNED.data), 17))
def test_no_part_of_a_checkpoint_is_a_signed_one(cut: int) -> None:
    try:
        note = Note.parse(SIGNED.data[:cut])
    except InvalidNote:
        return
    assert note.time_by(KEY) is None


@settings(deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, unique=True), st.integers(1, 61), st.data())
def test_a_cover_proves_exactly_its_leaves(chosen: list[int], size: int, data: st.DataObject) -> None:
    leaves = [tree.leaf(b"%d" % number) for number in range(size)]
    indices = sorted(one for one in chosen if one < size)
    known = {one: leaves[one] for one in indices}
    hashes, root = Leaves(leaves), slow_root(leaves)
    proof = list(tree.cover(hashes, indices, size))
    assert tree.root_from_cover(known, size, proof) == root
    if len(indices) == 1:
        assert sorted(proof) == sorted(tree.inclusion(hashes, indices[0], size))
    if indices:
        other = data.draw(st.sampled_from(indices))
        assert tree.root_from_cover(known | {other: b"x" * 32}, size, proof) != root
        del known[other]
        assert tree.root_from_cover(known, size, proof) != root
    assert tree.root_from_cover({one: leaves[one] for one in indices}, size, [*proof, b"x" * 32]) is None
    assert tree.root_from_cover({size: b"x" * 32}, size, proof) is None


@pytest.mark.parametrize("indices", [[3], [-1], [1, 1], [2, 1]])
def test_there_is_no_cover_for_leaves_that_are_not_there(indices: list[int]) -> None:
    with pytest.raises(ValueError, match=r"^they are no leaves of a tree of 3, in order$"):
        list(tree.cover(PUBLISHED, indices, 3))


def test_another_implementation_agrees() -> None:
    other = pytest.importorskip("aics_tlog", reason="aics-tlog needs Python 3.12")
    key = other.parse_vkey(str(KEY))
    note = other.parse_note(SIGNED.data)
    assert other.verify_checkpoint(note, key, expected_origin=HEAD.origin).ok
    (blob,) = [one.data for one in SIGNED.signatures if one.key_id == KEY.of_kind(COSIGNATURE).key_id]
    assert other.verify_cosignature(blob, KEY.name, KEY.public, HEAD.origin, HEAD.size, HEAD.root)
    for size in (1, 2, 3, 7, 8, 9, 64, 100, 257):
        leaves = [b"%d" % number for number in range(size)]
        theirs, ours = other.MerkleTree(leaves), Leaves([tree.leaf(one) for one in leaves])
        assert theirs.root() == tree.root(ours, size)
        for index in range(0, size, 5):
            assert tree.inclusion(ours, index, size) == theirs.inclusion_proof(index)
            assert tree.consistency(ours, index + 1, size) == theirs.consistency_proof(index + 1)
