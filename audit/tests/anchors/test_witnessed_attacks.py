"""The attacks on a log by somebody who has its key and all that this user saw: what a witness still shows."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from forging import edited, failed, forge
from licet.errors import UsageError
from licet.record import AnchorReceipt
from licet.settings import Witness as WitnessSetting
from licet.state import StateDirectory
from licet_audit import keys
from licet_audit.anchors import NotAnchored, receipts, witnesses
from licet_audit.anchors.anchoring import SignedHead
from licet_audit.anchors.checked import Trust
from licet_audit.checkpointer import Notary
from licet_audit.claims import Verification
from licet_audit.notes import Head, Note
from licet_audit.prover import Prover
from licet_audit.verification.verify import Wanted
from licet_audit.verification.verify import verify as verified
from servers import Grow, Serve, Witness


@pytest.fixture
def segment(state: StateDirectory) -> Path:
    return state.path / "log" / f"seg-{0:020d}.jsonl"


@pytest.fixture
def setting(witness: Witness, serve: Serve, state: StateDirectory, grow: Grow) -> WitnessSetting:
    """A witness that has seen ten records of the log and then twenty, whose receipts lie beside it."""
    setting = WitnessSetting(url=serve(witness.reply).url, key=str(witness.key))
    for size in (10, 20):
        head = grow(size)
        witness.trusted[head.origin] = keys.signer(state).key
        data, time = witnesses.see(head, setting)
        receipts.store(state, size, AnchorReceipt("witness", witness.key.name, data, time))
    return setting


def outsider(state: StateDirectory, home: Path, witness: Witness) -> Verification:
    """What somebody finds who never saw the log and trusts the witness."""
    shutil.rmtree(home / "seen", ignore_errors=True)
    return verified(state, Wanted(keys.signer(state).key, Trust(witnesses=(witness.key,))))


def change_one(lines: list[bytes]) -> list[bytes]:
    return [*lines[:4], edited(lines[4], body={"n": "other"}), *lines[5:]]


def leave_one_out(lines: list[bytes]) -> list[bytes]:
    return [*lines[:4], *lines[5:]]


def cut(lines: list[bytes]) -> list[bytes]:
    return lines[:15]


def test_the_log_as_it_was_seen_is_proven(
    state: StateDirectory, home: Path, witness: Witness, setting: WitnessSetting
) -> None:
    result = outsider(state, home, witness)
    assert (result.status, failed(result)) == ("proven", {})
    assert {claim.ok for claim in result.claims if claim.name == "anchors"} == {True}


@pytest.mark.parametrize("edit", [change_one, leave_one_out, cut])
def test_whatever_is_rewritten_with_the_stolen_key_contradicts_the_witness(
    edit: Callable[[list[bytes]], list[bytes]],
    state: StateDirectory,
    home: Path,
    segment: Path,
    witness: Witness,
    setting: WitnessSetting,
) -> None:
    forge(state, segment, edit, keys.signer(state))
    result = outsider(state, home, witness)
    assert result.status in ("tampered", "incomplete")
    assert set(failed(result)) == {"anchors"}


def test_a_forger_who_drops_newer_receipts_too_is_stopped_by_the_witness_itself(
    state: StateDirectory, home: Path, segment: Path, witness: Witness, setting: WitnessSetting
) -> None:
    forge(state, segment, cut, keys.signer(state))
    shutil.rmtree(state.path / "anchors" / f"{20:020d}")
    assert outsider(state, home, witness).status == "proven"  # so far it is a log of fifteen records
    shutil.rmtree(home / "seen")
    head = SignedHead(state, Notary(state).checkpoint())
    with pytest.raises(NotAnchored, match=r"^it has seen 20 records of this log, which has 15 here: "):
        witnesses.see(head, setting)


def test_a_backup_that_was_put_back_is_stopped_by_the_witness(
    state: StateDirectory, home: Path, tmp_path: Path, witness: Witness, setting: WitnessSetting, grow: Grow
) -> None:
    backup, seen = tmp_path / "backup", tmp_path / "seen"
    shutil.copytree(state.path, backup)
    shutil.copytree(home / "seen", seen)
    later, _ = witnesses.see(grow(30), setting)
    for name in ("log", "tile", "checkpoints", "anchors"):
        shutil.rmtree(state.path / name, ignore_errors=True)
    shutil.copytree(backup, state.path, dirs_exist_ok=True)
    assert outsider(state, home, witness).status == "proven"
    shutil.rmtree(home / "seen")
    head = SignedHead(state, Notary(state).checkpoint())
    assert head.size == 20
    with pytest.raises(NotAnchored, match=r"^it has seen 30 records of this log, which has 20 here: "):
        witnesses.see(head, setting)
    with pytest.raises(UsageError, match=r"^the newest checkpoint covers 20 records, not 30$"):
        Prover(state).continues(Head.parse(Note.parse(later).text))


def test_a_rewrite_without_receipts_is_refused_by_the_witness(
    state: StateDirectory, home: Path, segment: Path, witness: Witness, setting: WitnessSetting
) -> None:
    forge(state, segment, change_one, keys.signer(state))
    shutil.rmtree(state.path / "anchors")
    (state.path / "sync.lock").unlink()  # what it tells of the log's end is not that of the rewritten one
    shutil.rmtree(home / "seen")
    head = SignedHead(state, Notary(state).checkpoint())
    with pytest.raises(
        NotAnchored, match=r"^it has seen another log of this name: with other records among "
    ):
        witnesses.see(head, setting)
