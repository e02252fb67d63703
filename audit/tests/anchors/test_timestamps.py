"""Time stamps of a real authority count where a trusted certificate vouches for them, and for their text."""

import base64
import subprocess
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from licet.settings import TimestampAuthority
from licet_audit.anchors import NotAnchored, timestamps
from licet_audit.notes import Note
from servers import Authority, Grow, Reply, Serve


def test_a_stamp_of_a_trusted_authority_counts_and_openssl_agrees(
    authorities: Sequence[Authority], serve: Serve, grow: Grow, tmp_path: Path
) -> None:
    head, trusted = grow(10), authorities[0]
    text = Note.parse(head.note).text
    data, time = timestamps.see(head, TimestampAuthority(url=serve(trusted.reply).url, roots=trusted.roots))
    assert timestamps.stamped(data, text, [trusted.roots]) == time
    (tmp_path / "receipt").write_bytes(data)
    stamp = ("-digest", sha256(text).hexdigest(), "-in", tmp_path / "receipt", "-CAfile", trusted.roots)
    done = subprocess.run(
        ["openssl", "ts", "-verify", *stamp],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "Verification: OK")


def test_a_stamp_nobody_vouches_for_does_not_count(
    authorities: Sequence[Authority], serve: Serve, grow: Grow, tmp_path: Path
) -> None:
    trusted, unknown = authorities
    there = TimestampAuthority(url=serve(unknown.reply).url, roots=trusted.roots)
    with pytest.raises(NotAnchored, match=r"^no certificate that is trusted vouches for the time stamp: "):
        timestamps.see(grow(10), there)
    both = tmp_path / "both.pem"
    both.write_bytes(trusted.roots.read_bytes() + unknown.roots.read_bytes())
    timestamps.see(grow(10), TimestampAuthority(url=there.url, roots=both))
    timestamps.see(grow(10), TimestampAuthority(url=there.url))


def test_an_old_stamp_of_the_same_text_is_not_taken_for_an_answer(
    authorities: Sequence[Authority], serve: Serve, grow: Grow
) -> None:
    head, trusted = grow(10), authorities[0]
    old, _ = timestamps.see(head, TimestampAuthority(url=serve(trusted.reply).url))
    replaying = serve(lambda path, body: (200, "application/timestamp-reply", old))
    with pytest.raises(NotAnchored, match=r"^the time stamp answers another question than was asked: "):
        timestamps.see(head, TimestampAuthority(url=replaying.url, roots=trusted.roots))


def test_a_stamp_is_of_one_text(authorities: Sequence[Authority], serve: Serve, grow: Grow) -> None:
    trusted = authorities[0]
    data, time = timestamps.see(grow(10), TimestampAuthority(url=serve(trusted.reply).url))
    for roots in ([], [trusted.roots]):
        with pytest.raises(timestamps.OtherText, match=r"^the time stamp is of something else$") as other:
            timestamps.stamped(data, b"another text\n", roots)
        assert other.value.time == time


def test_any_changed_byte_of_a_stamp_is_noticed(
    authorities: Sequence[Authority], serve: Serve, grow: Grow
) -> None:
    head, trusted = grow(10), authorities[0]
    data, time = timestamps.see(head, TimestampAuthority(url=serve(trusted.reply).url))
    text = Note.parse(head.note).text
    passed = []
    for place in range(0, len(data), 7):
        changed = data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]
        try:
            passed.append((place, timestamps.stamped(changed, text, [trusted.roots])))
        except NotAnchored:
            continue
    assert [(place, found) for place, found in passed if found != time] == []


REPLIES: dict[str, tuple[Callable[[bytes], Reply], str]] = {
    "a fault": (
        lambda body: (500, "text/plain", b"down"),
        "it does not answer with a time stamp: status 500: down",
    ),
    "a page": (lambda body: (200, "text/html", b"<p>"), "it does not answer with a time stamp: status 200"),
    "rubbish": (lambda body: (200, "application/timestamp-reply", b"rubbish"), "that is no time stamp: "),
    "nothing": (lambda body: (200, "application/timestamp-reply", b""), "that is no time stamp: "),
    "a refusal": (
        lambda body: (200, "application/timestamp-reply", base64.b64decode("MAUwAwIBAg==")),
        "it refuses: status 2",
    ),
}


@pytest.mark.parametrize("kind", REPLIES)
def test_what_is_no_stamp_is_told(kind: str, serve: Serve, grow: Grow) -> None:
    reply, why = REPLIES[kind]
    server = serve(lambda path, body: reply(body))
    with pytest.raises(NotAnchored) as refused:
        timestamps.see(grow(3), TimestampAuthority(url=server.url))
    assert str(refused.value).startswith(why)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "the certificates in `{}` can't be read: no such file or directory"),
        ("x", "`{}` holds no certificates in PEM"),
    ],
)
def test_roots_that_are_none_are_told(
    text: str | None, why: str, authorities: Sequence[Authority], serve: Serve, grow: Grow, tmp_path: Path
) -> None:
    roots = tmp_path / "roots.pem"
    if text is not None:
        roots.write_text(text)
    with pytest.raises(NotAnchored) as refused:
        timestamps.see(grow(3), TimestampAuthority(url=serve(authorities[0].reply).url, roots=roots))
    assert str(refused.value) == why.format(roots)
