"""What a user saw of a log: pinned, moving forward only, durable, and readable by hand."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from licet.errors import AuditUnavailable
from licet.locks import try_lock
from licet.state import StateDirectory
from licet_audit import seen
from licet_audit.notes import Head, Note, Signer, origin_of

Sign = Callable[..., Note]


@pytest.fixture
def signer(state: StateDirectory) -> Signer:
    return Signer(origin_of(state.log_id), bytes(32))


@pytest.fixture
def sign(signer: Signer) -> Sign:
    def make(size: int, root: bytes = bytes(32), at: int = 1) -> Note:
        return signer.sign(Head(signer.key.name, size, root), at)

    return make


def newest(state: StateDirectory) -> Note | None:
    known = seen.of(state.log_id)
    return known.checkpoint if known else None


def test_nothing_is_known_of_a_log_that_was_never_seen(state: StateDirectory, home: Path) -> None:
    assert (seen.of(state.log_id), seen.log_ids()) == (None, ())
    assert not (home / "seen").exists()


def test_it_says_what_was_seen_in_words_that_people_can_read(
    state: StateDirectory, home: Path, signer: Signer, sign: Sign, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(["2026-11-30T10:00:00.000000000Z", "2026-11-30T11:00:00.000000000Z"])
    monkeypatch.setattr(seen, "now", lambda: next(times))
    seen.begin(state)
    seen.remember(state, signer.key, sign(5), closed=True)
    seen.begin(state)
    path = home / "seen" / f"{state.log_id}.json"
    assert json.loads(path.read_text()) == {
        "key": str(signer.key),
        "checkpoint": sign(5).data.decode(),
        "opened": "2026-11-30T10:00:00.000000000Z",
        "closed": "2026-11-30T11:00:00.000000000Z",
        "path": str(state.path),
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert seen.log_ids() == (state.log_id,)
    known = seen.of(state.log_id)
    assert known is not None and (known.head, known.signed_at) == (Head(signer.key.name, 5, bytes(32)), 1)


def test_it_only_moves_forward(state: StateDirectory, signer: Signer, sign: Sign) -> None:
    for note, moved in (
        (sign(5, at=10), True),
        (sign(4, at=20), False),
        (sign(5, at=9), True),  # known is what it says; the later time stays
        (sign(5, at=11), True),
        (sign(6, at=3), True),
    ):
        assert seen.remember(state, signer.key, note) is moved
    assert newest(state) == sign(6, at=3)
    seen.remember(state, signer.key, sign(6, at=4))
    seen.remember(state, signer.key, sign(6, at=3))
    assert newest(state) == sign(6, at=4)


def test_closing_keeps_a_later_checkpoint(state: StateDirectory, signer: Signer, sign: Sign) -> None:
    seen.remember(state, signer.key, sign(6))
    assert seen.remember(state, signer.key, sign(5), closed=True) is False
    known = seen.of(state.log_id)
    assert known is not None and known.closed is not None
    assert known.checkpoint == sign(6)


def test_another_tree_of_the_same_size_is_refused(state: StateDirectory, signer: Signer, sign: Sign) -> None:
    seen.remember(state, signer.key, sign(5))
    with pytest.raises(AuditUnavailable) as caught:
        seen.remember(state, signer.key, sign(5, b"x" * 32, at=7))
    assert caught.value.message == (
        f"two checkpoints of `{signer.key.name}` cover 5 records and differ: "
        f"{bytes(32).hex()} was seen before, now {(b'x' * 32).hex()}"
    )
    assert newest(state) == sign(5)


def test_another_key_is_refused(state: StateDirectory, signer: Signer, sign: Sign) -> None:
    seen.remember(state, signer.key, sign(5))
    other = Signer(signer.key.name, b"x" * 32)
    with pytest.raises(
        AuditUnavailable, match=r"is signed by another key than the one that was seen before$"
    ):
        seen.remember(state, other.key, other.sign(Head(other.key.name, 6, bytes(32)), 1))
    with pytest.raises(AuditUnavailable, match=r"is not signed by the key of this log$"):
        seen.remember(state, signer.key, other.sign(Head(other.key.name, 6, bytes(32)), 1))
    assert newest(state) == sign(5)


def test_a_checkpoint_of_another_log_is_refused(state: StateDirectory) -> None:
    other = Signer("licet/other", bytes(32))
    with pytest.raises(AuditUnavailable, match=r"^the checkpoint of `licet/other` is not signed by the key"):
        seen.remember(state, other.key, other.sign(Head("licet/other", 6, bytes(32)), 1))
    with pytest.raises(AuditUnavailable, match=r"^that is no checkpoint: "):
        seen.remember(state, other.key, Note(b"licet/other\n", ()))
    assert seen.of(state.log_id) is None


@pytest.mark.parametrize(
    "change",
    [
        {"key": None},
        {"key": "licet/x+00000000+AAAA"},
        {"key": 5},
        {"checkpoint": "x"},
        {"checkpoint": 5},
        {"checkpoint": "licet/other\n5\n" + "A" * 43 + "=\n\n— z AAAAAAAA\n"},
        {"opened": None},
        {"closed": 5},
        {"path": []},
    ],
)
def test_a_file_that_says_something_else_is_an_error(
    state: StateDirectory, home: Path, signer: Signer, sign: Sign, change: dict[str, object]
) -> None:
    seen.remember(state, signer.key, sign(5))
    path = home / "seen" / f"{state.log_id}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    for look in (lambda: seen.of(state.log_id), lambda: seen.remember(state, signer.key, sign(6))):
        with pytest.raises(AuditUnavailable) as caught:
            look()
        assert caught.value.message.startswith(f"`{path}` does not say what was seen of the log: ")
        assert caught.value.advice == "run `licet audit verify`, then move that file aside"


def test_a_lock_that_is_never_given_back_hangs_nobody(
    state: StateDirectory, home: Path, signer: Signer, sign: Sign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "_PATIENCE", 0.05)
    seen.begin(state)
    with (home / "seen" / ".lock").open("rb+") as held:
        assert try_lock(held.fileno())
        with pytest.raises(AuditUnavailable, match=r"seen` stayed locked for 0 s$"):
            seen.remember(state, signer.key, sign(5))
    assert seen.remember(state, signer.key, sign(5))
