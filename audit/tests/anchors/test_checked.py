"""What anchors prove: agreement, contradiction, or nothing; never on the word of what lies beside the log."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from licet.record import AnchorReceipt
from licet.settings import Anchors, TimestampAuthority
from licet.settings import Witness as WitnessSetting
from licet.state import StateDirectory
from licet_audit import tree
from licet_audit.anchors import anchored, receipts
from licet_audit.anchors.anchoring import SignedHead
from licet_audit.anchors.checked import CheckedAnchor, Trust, checked
from licet_audit.notes import Head, Signer, VerifierKey, origin_of
from licet_audit.seen import of
from servers import Authority, Grow, Serve, Witness
from slow_tree import Leaves


@pytest.fixture
def leaves(state: StateDirectory, grow: Grow) -> list[bytes]:
    """Those of a log of ten records."""
    grow(10)
    lines = (state.path / "log" / f"seg-{0:020d}.jsonl").read_bytes().splitlines()
    return [tree.leaf(line) for line in lines]


@pytest.fixture
def medium(tmp_path: Path) -> Path:
    (tmp_path / "medium").touch()
    return tmp_path / "medium"


@pytest.fixture
def wanted(
    witness: Witness, authorities: Sequence[Authority], serve: Serve, grow: Grow, medium: Path
) -> Anchors:
    """One of each kind."""
    witness.trusted[grow(10).origin] = _key(grow(10))
    return Anchors(
        files=(medium,),
        timestamps=(TimestampAuthority(url=serve(authorities[0].reply).url, roots=authorities[0].roots),),
        witnesses=(WitnessSetting(url=serve(witness.reply).url, key=str(witness.key)),),
    )


@pytest.fixture
def stored(state: StateDirectory, grow: Grow, wanted: Anchors) -> Anchors:
    """Ten records that each kind of anchor has seen."""
    for one in anchored(grow(10), wanted):
        assert isinstance(one, AnchorReceipt), one
        assert receipts.store(state, 10, one)
    return wanted


def _key(head: SignedHead) -> VerifierKey:
    known = of(head.origin.removeprefix("licet/"))
    assert known is not None and known.key is not None
    return known.key


def brief(found: Sequence[CheckedAnchor]) -> dict[str, tuple[int, bool | None]]:
    return {one.kind: (one.size, one.ok) for one in found}


def test_all_agree_with_the_log_that_they_saw(
    state: StateDirectory, grow: Grow, leaves: list[bytes], stored: Anchors
) -> None:
    found = checked(state, Leaves(leaves), 10, Trust.of(stored, _key(grow(10))))
    assert brief(found) == {"witness": (10, True), "timestamp": (10, True), "file": (10, True)}
    assert all(one.time is not None for one in found)
    longer = [*leaves, b"x" * 32]
    assert brief(checked(state, Leaves(longer), 11, Trust.of(stored))) == brief(found)


def test_each_contradicts_a_log_that_was_rewritten_whoever_signed_it(
    state: StateDirectory, leaves: list[bytes], stored: Anchors
) -> None:
    rewritten = [*leaves[:4], b"x" * 32, *leaves[5:]]
    found = checked(state, Leaves(rewritten), 10, Trust.of(stored))
    assert brief(found) == {"witness": (10, False), "timestamp": (10, False), "file": (10, False)}
    assert {one.detail for one in found} == {"the first 10 records of the log are not those that it saw"}


def test_a_log_that_was_cut_contradicts_those_who_signed_how_much_they_saw(
    state: StateDirectory, leaves: list[bytes], stored: Anchors
) -> None:
    found = checked(state, Leaves(leaves[:9]), 9, Trust.of(stored))
    assert brief(found) == {"witness": (10, False), "timestamp": (10, None), "file": (10, False)}
    assert [one.detail for one in found if one.kind == "timestamp"] == [
        "the log has 9 records, and it saw 10; its time stamp can't be held against anything"
    ]


def test_nobody_is_trusted_because_a_receipt_says_so(
    state: StateDirectory, leaves: list[bytes], stored: Anchors
) -> None:
    for records in (leaves, [b"x" * 32, *leaves[1:]]):
        found = checked(state, Leaves(records), 10, Trust())
        assert brief(found) == {"witness": (10, None), "timestamp": (10, None), "file": (10, None)}


def test_another_key_of_the_same_name_vouches_for_nothing(
    state: StateDirectory, leaves: list[bytes], stored: Anchors
) -> None:
    found = checked(state, Leaves(leaves), 10, Trust(witnesses=(Witness(seed=b"x" * 32).key,)))
    assert brief(found)["witness"] == (10, None)


def test_a_file_that_holds_what_the_log_never_signed_accuses_nobody(
    state: StateDirectory, grow: Grow, leaves: list[bytes], stored: Anchors, medium: Path
) -> None:
    forged = Signer(origin_of(state.log_id), b"f" * 32).sign(Head(origin_of(state.log_id), 3, b"0" * 32), 1)
    medium.write_bytes(forged.data + b"\n")
    trust = Trust(files=(medium,), log=_key(grow(10)))
    (found,) = [one for one in checked(state, Leaves(leaves), 10, trust) if one.kind == "file"]
    assert (found.ok, found.detail) == (None, "1 in it are not signed by its key")
    medium.unlink()
    (found,) = [one for one in checked(state, Leaves(leaves), 10, trust) if one.kind == "file"]
    assert (found.ok, found.detail) == (None, "it can't be read: no such file or directory")


def test_a_broken_receipt_proves_nothing_and_names_are_kept_short(
    state: StateDirectory, leaves: list[bytes]
) -> None:
    name = "w/" + "../" * 100
    assert receipts.store(state, 5, AnchorReceipt("witness", name, b"rubbish"))
    assert receipts.store(state, 5, AnchorReceipt("strange", "s", b""))
    assert not receipts.store(state, 5, AnchorReceipt("strange", "s", b"later"))
    (state.path / "anchors" / "junk").mkdir()
    (state.path / "anchors" / f"{6:020d}").touch()
    (state.path / "anchors" / f"{7:020d}").mkdir()
    (state.path / "anchors" / f"{7:020d}" / "witness-link").symlink_to(state.path / "checkpoint")
    (state.path / "anchors" / f"{7:020d}" / "timestamp-folder").mkdir()
    (state.path / "anchors" / f"{5:020d}" / "junk").touch()
    found = checked(state, Leaves(leaves), 10, Trust())
    strange, witness = [one for one in found if one.size == 5]
    assert {one.ok for one in found if one.size == 7} == {None}
    assert (witness.ok, witness.detail) == (
        None,
        "its receipt is broken: it is no text with signatures below an empty line",
    )
    assert (strange.ok, strange.detail) == (None, "licet does not know how to check the kind `strange`")
    assert all(len(path.name) < 140 for path in (state.path / "anchors" / f"{5:020d}").iterdir())
