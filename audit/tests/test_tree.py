"""The Merkle tree, beside one that is written down as RFC 6962 defines it."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet_audit import tree
from slow_tree import Leaves, slow_path, slow_proof, slow_root, some_leaves

sizes = st.integers(1, 70)


def test_a_leaf_and_a_node_are_told_apart() -> None:
    assert tree.leaf(b"x") == hashlib.sha256(b"\x00x").digest()
    assert tree.node(b"a", b"b") == hashlib.sha256(b"\x01ab").digest()
    assert tree.root(Leaves([]), 0) == tree.EMPTY == hashlib.sha256(b"").digest()


@given(st.integers(0, 200))
def test_the_root_is_that_of_the_rfc(size: int) -> None:
    leaves = some_leaves(size)
    assert tree.root(Leaves(leaves), size) == slow_root(leaves)


@given(st.data())
def test_inclusion_is_that_of_the_rfc_and_proves_it(data: st.DataObject) -> None:
    size = data.draw(sizes)
    index = data.draw(st.integers(0, size - 1))
    leaves = some_leaves(size)
    proof = tree.inclusion(Leaves(leaves), index, size)
    assert proof == slow_path(index, leaves)
    assert tree.root_from_inclusion(leaves[index], index, size, proof) == slow_root(leaves)


@given(st.data())
def test_nothing_else_passes_as_inclusion(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 40))
    index = data.draw(st.integers(0, size - 1))
    leaves = some_leaves(size)
    proof = tree.inclusion(Leaves(leaves), index, size)
    other = data.draw(st.integers(0, size - 1).filter(lambda found: found != index))
    root = slow_root(leaves)
    assert tree.root_from_inclusion(leaves[index], other, size, proof) != root
    assert tree.root_from_inclusion(leaves[other], index, size, proof) != root
    assert tree.root_from_inclusion(leaves[index], index, size, proof[:-1]) != root
    assert tree.root_from_inclusion(leaves[index], index, size, [*proof, root]) is None
    assert tree.root_from_inclusion(leaves[index], size, size, proof) is None
    assert tree.root_from_inclusion(leaves[index], -1, size, proof) is None


@given(st.data())
def test_consistency_is_that_of_the_rfc_and_proves_it(data: st.DataObject) -> None:
    new = data.draw(sizes)
    old = data.draw(st.integers(1, new))
    leaves = some_leaves(new)
    proof = tree.consistency(Leaves(leaves), old, new)
    assert proof == slow_proof(old, leaves)
    assert tree.is_consistent(old, slow_root(leaves[:old]), new, slow_root(leaves), proof)


@given(st.data())
def test_nothing_else_passes_as_consistency(data: st.DataObject) -> None:
    new = data.draw(st.integers(2, 40))
    old = data.draw(st.integers(1, new - 1))
    leaves = some_leaves(new)
    roots = (slow_root(leaves[:old]), slow_root(leaves))
    proof = tree.consistency(Leaves(leaves), old, new)
    changed = data.draw(st.integers(0, old - 1))
    rewritten = slow_root([*leaves[:changed], b"x" * 32, *leaves[changed + 1 : old]])
    assert not tree.is_consistent(old, rewritten, new, roots[1], proof)
    assert not tree.is_consistent(old, roots[0], new, rewritten, proof)
    assert not tree.is_consistent(old, roots[0], new, roots[1], [*proof, roots[0]])
    assert not tree.is_consistent(old, roots[0], new, roots[1], proof[:-1])
    assert not tree.is_consistent(new, roots[1], old, roots[0], proof)


def test_what_continues_nothing_or_itself_needs_no_proof() -> None:
    root = slow_root(some_leaves(3))
    assert tree.consistency(Leaves(some_leaves(3)), 0, 3) == []
    assert tree.is_consistent(0, tree.EMPTY, 3, root, [])
    assert tree.is_consistent(3, root, 3, root, [])
    assert not tree.is_consistent(3, root, 3, tree.EMPTY, [])
    assert not tree.is_consistent(0, root, 3, root, [])


@pytest.mark.parametrize(("index", "size"), [(3, 3), (-1, 3), (0, 0)])
def test_there_is_no_proof_for_a_leaf_that_is_not_there(index: int, size: int) -> None:
    with pytest.raises(ValueError, match=f"^a tree of {size} leaves has no leaf {index}$"):
        tree.inclusion(Leaves(some_leaves(size)), index, size)


def test_a_tree_can_not_continue_a_larger_one() -> None:
    with pytest.raises(ValueError, match=r"^a tree of 2 leaves can't continue one of 3$"):
        tree.consistency(Leaves(some_leaves(3)), 3, 2)
