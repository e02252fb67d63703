"""The key of a log: made once, private, never replaced, and never taken from beside the log."""

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from licet.errors import AuditUnavailable
from licet.record import Entry, Record
from licet.state import StateDirectory
from licet_audit import keys, seen
from licet_audit.checkpointer import Notary
from licet_audit.notes import InvalidNote, Signer

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX owners and modes")
OPEN = "other users may read or own `{}`, expected mode 0600 and this user"


@pytest.fixture
def key(
    state: StateDirectory, home: Path, append: Callable[..., list[Record]], entry: Callable[..., Entry]
) -> Path:
    """The key file of a log that was signed."""
    append([entry()])
    return home / "keys" / state.log_id


def refusal(state: StateDirectory) -> str:
    with pytest.raises(AuditUnavailable) as caught:
        keys.signer(state)
    return caught.value.message


def test_a_key_is_made_once_and_is_private(state: StateDirectory, home: Path) -> None:
    assert keys.published(state) is None
    made = keys.signer(state)
    path = home / "keys" / state.log_id
    assert (len(path.read_bytes()), stat.S_IMODE(path.parent.stat().st_mode)) == (32, 0o700)
    assert sys.platform == "win32" or stat.S_IMODE(path.stat().st_mode) == 0o600
    assert made.key == keys.signer(state).key == Signer(f"licet/{state.log_id}", path.read_bytes()).key
    assert keys.published(state) == made.key
    assert not any(path.read_bytes() in file.read_bytes() for file in state.path.rglob("*") if file.is_file())


@posix_only
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_signs_nothing(state: StateDirectory, key: Path, mode: int) -> None:
    key.chmod(mode)
    assert refusal(state) == OPEN.format(key)
    key.chmod(0o600)
    keys.signer(state)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="needs root, to give a file away")
def test_a_key_of_somebody_else_signs_nothing(state: StateDirectory, key: Path) -> None:
    os.chown(key, 12345, -1)
    assert refusal(state) == OPEN.format(key)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_of_another_size_signs_nothing(state: StateDirectory, key: Path, size: int) -> None:
    key.write_bytes(bytes(size))
    assert refusal(state) == f"`{key}` is not a key of 32 bytes"


@posix_only
def test_a_link_is_no_key(state: StateDirectory, key: Path, tmp_path: Path) -> None:
    key.rename(tmp_path / "elsewhere")
    key.symlink_to(tmp_path / "elsewhere")
    assert refusal(state) == f"`{key}` is a symbolic link"


def test_a_lost_key_is_not_replaced(state: StateDirectory, key: Path) -> None:
    seed = key.read_bytes()
    key.unlink()
    assert refusal(state) == f"the key of this log is gone from `{key}`"
    assert not key.exists()
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    known = seen.of(state.log_id)
    assert known is not None and known.key is not None
    assert refusal(state) == (
        f"`{key}` is another key than the one that signed this log (SHA-256 {known.key.fingerprint})"
    )
    key.write_bytes(seed)
    Notary(state).checkpoint(renew=True)


def test_a_log_goes_on_without_its_key_but_unsigned(
    state: StateDirectory, key: Path, append: Callable[..., list[Record]], entry: Callable[..., Entry]
) -> None:
    key.unlink()
    (record,) = append([entry()])
    known = seen.of(state.log_id)
    assert known is not None and known.head is not None
    assert (record.seq, known.head.size) == (2, 2)


def test_the_key_beside_the_log_is_put_right_and_trusted_by_nobody(state: StateDirectory, key: Path) -> None:
    right = keys.published(state)
    public = state.path / "log.vkey"
    public.write_text(f"{Signer(f'licet/{state.log_id}', bytes(32)).key}\n")
    assert keys.published(state) != right
    assert keys.signer(state).key == keys.published(state) == right
    public.write_text("no key")
    with pytest.raises(InvalidNote):
        keys.published(state)
