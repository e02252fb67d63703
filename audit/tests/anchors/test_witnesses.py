"""A witness cosigns what continues what it saw; whatever else it answers is told, and nothing is kept."""

import sys
import threading
from collections.abc import Callable

import pytest
from licet.settings import Witness as WitnessSetting
from licet_audit.anchors import NotAnchored, posting, witnesses
from licet_audit.notes import Head, Note, VerifierKey
from licet_audit.seen import of
from servers import Grow, Reply, Serve, Witness


@pytest.fixture
def setting(witness: Witness, serve: Serve, grow: Grow) -> WitnessSetting:
    """A witness that trusts the log, which has ten records."""
    head = grow(10)
    known = of(head.origin.removeprefix("licet/"))
    assert known is not None and known.key is not None
    witness.trusted[head.origin] = known.key
    return WitnessSetting(url=serve(witness.reply).url + "/", key=str(witness.key))


def test_a_cosignature_comes_with_its_time_and_verifies(
    setting: WitnessSetting, witness: Witness, grow: Grow
) -> None:
    head = grow(10)
    data, time = witnesses.see(head, setting)
    note = Note.parse(data)
    assert time == "2027-01-15T08:00:00Z"
    assert note.time_by(witness.key) == witness.time
    assert note.text == Note.parse(head.note).text
    assert len(note.signatures) == len(Note.parse(head.note).signatures) + 1


def test_a_witness_is_asked_how_far_it_has_seen_and_gets_the_proof(
    witness: Witness, serve: Serve, setting: WitnessSetting, grow: Grow
) -> None:
    server = serve(witness.reply)
    there = WitnessSetting(url=server.url, key=setting.key)
    witnesses.see(grow(10), there)
    assert [body.partition(b"\n")[0] for body in server.asked] == [b"old 0"]
    witnesses.see(grow(300), there)
    witnesses.see(grow(300), there)
    assert [body.partition(b"\n")[0] for body in server.asked[1:]] == [
        b"old 0",
        b"old 10",
        b"old 0",
        b"old 300",
    ]
    assert witness.seen[grow(300).origin].size == 300


def test_a_witness_that_has_seen_more_shows_that_records_are_missing(
    setting: WitnessSetting, witness: Witness, grow: Grow
) -> None:
    head = grow(10)
    witness.seen[head.origin] = Head(head.origin, 12, b"\0" * 32)
    with pytest.raises(NotAnchored, match=r"^it has seen 12 records of this log, which has 10 here: "):
        witnesses.see(head, setting)


@pytest.mark.parametrize(
    ("size", "why"),
    [
        (10, "it has seen another log of this name: with other records among the first 10"),
        (
            7,
            "it refuses: it refuses the proof that this log continues the one it saw: "
            "records were rewritten, or it errs",
        ),
    ],
)
def test_a_witness_that_has_seen_other_records_does_not_cosign(
    setting: WitnessSetting, witness: Witness, grow: Grow, size: int, why: str
) -> None:
    head = grow(10)
    witness.seen[head.origin] = Head(head.origin, size, b"\0" * 32)
    with pytest.raises(NotAnchored) as refused:
        witnesses.see(head, setting)
    assert str(refused.value) == why


def test_a_witness_that_does_not_know_the_log_or_its_key_says_so(
    setting: WitnessSetting, witness: Witness, grow: Grow
) -> None:
    head = grow(10)
    witness.trusted[head.origin] = VerifierKey(head.origin, b"\1" * 32)
    with pytest.raises(
        NotAnchored, match=r"^it refuses: it does not trust the key that signed this checkpoint$"
    ):
        witnesses.see(head, setting)
    witness.trusted.clear()
    with pytest.raises(NotAnchored, match=r"^it refuses: it does not know this log; give its operator the "):
        witnesses.see(head, setting)


LYING: dict[str, tuple[Callable[[Witness, Note], Reply], str]] = {
    "another key of that name": (
        lambda witness, note: (200, "text/plain", Witness(seed=b"x" * 32).cosign(note.text)),
        "its answer holds no cosignature by witness.example/w1, SHA-256 ",
    ),
    "another root": (
        lambda witness, note: (200, "text/plain", witness.cosign(Head("o", 10, b"\0" * 32).text)),
        "its answer holds no cosignature by witness.example/w1, SHA-256 ",
    ),
    "a time that is none": (
        lambda witness, note: (200, "text/plain", _at(witness, 2**63, note)),
        "it cosigned with a time that is none: 9223372036854775808",
    ),
    "no signature": (
        lambda witness, note: (200, "text/plain", b"thank you\n"),
        "it answers with no cosignature: a line below it is no signature",
    ),
    "nothing": (
        lambda witness, note: (200, "text/plain", b""),
        "it answers with no cosignature: it is no text with signatures below an empty line",
    ),
    "a conflict without a size": (
        lambda witness, note: (409, "text/plain", b"no"),
        "it answers with a conflict, and not with a size: status 409: no",
    ),
    "a conflict about nothing": (
        lambda witness, note: (409, "text/x.tlog.size", b"0\n"),
        "it has seen another log of this name: with other records among the first 0",
    ),
    "a fault": (
        lambda witness, note: (500, "text/plain", b"out of order"),
        "it refuses: status 500: out of order",
    ),
    "another place": (lambda witness, note: (302, "text/plain", b""), "it refuses: status 302"),
    "too much": (
        lambda witness, note: (200, "text/plain", b"x" * (posting.MOST_BYTES + 1)),
        "asking `{url}/add-checkpoint` failed: it answered with more than 64 KiB",
    ),
}


def _at(witness: Witness, time: int, note: Note) -> bytes:
    witness.time = time
    return witness.cosign(note.text)


@pytest.mark.parametrize("lie", LYING)
def test_a_lying_witness_is_not_believed(
    lie: str, setting: WitnessSetting, witness: Witness, serve: Serve, grow: Grow
) -> None:
    answer, why = LYING[lie]
    server = serve(lambda path, body: answer(witness, Note.parse(body.partition(b"\n\n")[2])))
    with pytest.raises(NotAnchored) as refused:
        witnesses.see(grow(10), WitnessSetting(url=server.url, key=setting.key))
    assert str(refused.value).startswith(why.format(url=server.url))


def test_an_old_cosignature_is_not_believed(
    setting: WitnessSetting, witness: Witness, serve: Serve, grow: Grow
) -> None:
    old = witness.cosign(Note.parse(grow(10).note).text)
    server = serve(lambda path, body: (200, "text/plain", old))
    with pytest.raises(NotAnchored, match=r"^its answer holds no cosignature by witness.example/w1"):
        witnesses.see(grow(11), WitnessSetting(url=server.url, key=setting.key))


def test_sizes_that_change_all_the_time_end_somewhere(
    setting: WitnessSetting, serve: Serve, grow: Grow
) -> None:
    sizes = iter(range(1, 99))
    server = serve(lambda path, body: (409, "text/x.tlog.size", b"%d\n" % next(sizes)))
    with pytest.raises(NotAnchored, match=r"^it names another size each time"):
        witnesses.see(grow(10), WitnessSetting(url=server.url, key=setting.key))
    assert len(server.asked) == 4


def test_a_dead_witness_is_told(setting: WitnessSetting, grow: Grow) -> None:
    dead = WitnessSetting(url="http://127.0.0.1:1/w", key=setting.key)
    with pytest.raises(
        NotAnchored, match=r"^asking `http://127.0.0.1:1/w/add-checkpoint` failed: connection refused$"
    ):
        witnesses.see(grow(10), dead)


def test_a_witness_that_never_answers_is_left(
    setting: WitnessSetting, serve: Serve, grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "PATIENCE", 0.2)
    over = threading.Event()
    server = serve(lambda path, body: (over.wait(30), (500, "text/plain", b""))[1])
    with pytest.raises(NotAnchored, match=r"failed: it took more than 0 s$"):
        witnesses.see(grow(10), WitnessSetting(url=server.url, key=setting.key))
    over.set()


def test_a_missing_library_is_told(
    setting: WitnessSetting, grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "urllib3", None)
    monkeypatch.delitem(sys.modules, "licet.web", raising=False)
    advice = "`urllib3` is not installed; install what anchors need: `pip install 'licet-audit[anchors]'`"
    with pytest.raises(NotAnchored) as missing:
        witnesses.see(grow(10), setting)
    assert str(missing.value) == advice


def test_a_key_that_is_none_is_told(setting: WitnessSetting, grow: Grow) -> None:
    wrong = WitnessSetting(url=setting.url, key="w+00000000+AA==")
    with pytest.raises(NotAnchored, match=r"^the key in the settings is none: that is no Ed25519 key"):
        witnesses.see(grow(10), wrong)
