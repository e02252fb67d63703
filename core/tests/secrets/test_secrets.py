"""The scrubber for secrets: usual keys go, wherever they stand; what is only long and random stays."""

from __future__ import annotations

import base64
import hashlib
import random
import sys
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from licet import values
from licet.backend import GuestError, Outcome, Termination
from licet.output import BoundedSink
from licet.plugins import Plugins
from licet.scrubbing import Clean, Finding, Leavings, Secret, clean, scrub
from licet.secrets import detector
from licet.secrets.plugin import as_read, licet_lacks, licet_scrub
from licet.settings import Settings
from made_keys import KEYS


def scrubbed(text: str) -> str:
    return scrub(text, "stdout", licet_scrub).text


@pytest.mark.parametrize("around", ["{}", "out: {} end", "k={}\n", "'{}'", '["{}"]', "é {} é", "\ud800 {}"])
def test_a_key_goes_and_its_surroundings_stay(kind: str, around: str) -> None:
    done = scrub(around.format(KEYS[kind]), "stdout", licet_scrub)
    assert done.text == around.format(f"[redacted: {kind}]")
    assert done.findings == (Finding("stdout", kind, 1),)


def test_a_key_is_seen_through_the_escapes_of_a_repr(kind: str) -> None:
    text = repr(f"line\n{KEYS[kind]}\t{KEYS[kind]}")
    assert KEYS[kind] not in scrubbed(text)
    assert KEYS[kind].splitlines()[1:2] == [] or KEYS[kind].splitlines()[1] not in scrubbed(text)
    assert scrubbed(f"\0\0{KEYS[kind]}\0") == f"\0\0[redacted: {kind}]\0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('password = "tr0ub4dor"', 'password = "[redacted: password]"'),
        ("{'passwd': 'hunter2', 'user': 'bob'}", "{'passwd': '[redacted: password]', 'user': 'bob'}"),
        ("DB_PASSWORD=correct4horse", "DB_PASSWORD=[redacted: password]"),
        ("API_KEY=a1b2c3d4e5", "API_KEY=[redacted: named_secret]"),
        ('"client_secret": "a1b2c3d4e5"', '"client_secret": "[redacted: named_secret]"'),
        ("https://bob:pw@host/x", "https://bob:[redacted: basic_auth]@host/x"),
        ("postgres://u:a:b@localhost:5432", "postgres://u:[redacted: basic_auth]@localhost:5432"),
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer [redacted: authorization]"),
        ("İ password = 'tr0ub4dor'", "İ password = '[redacted: password]'"),
    ],
)
def test_what_is_named_a_secret_goes(text: str, expected: str) -> None:
    assert scrubbed(text) == expected


def test_what_is_left_of_a_private_key_goes_too() -> None:
    key = KEYS["private_key"]
    assert scrubbed(f"a {key[:150]}") == "a [redacted: private_key]"
    assert scrubbed(f"{key[150:]} b") == "[redacted: private_key] b"
    assert scrubbed(f"{key}\nbetween\n{key}") == "[redacted: private_key]\nbetween\n[redacted: private_key]"
    told = "it begins with -----BEGIN PRIVATE " + "KEY-----!"
    assert scrubbed(told) == told


@pytest.mark.parametrize(
    "text",
    [
        "token count: 12345678",
        "tokens = ['abc', 'def']",
        "api_key = os.environ['X']",
        "password: incorrect",
        'password = "<yours>"',
        'password = "${SECRET1}"',
        "secret = None",
        "https://example.com/a@b",
        "AKIA",
        "sk-fading-circle",
        "eyJ.eyJ.x",
    ],
)
def test_harmless_text_stays(text: str) -> None:
    assert scrubbed(text) == text


def test_long_and_random_is_not_secret_by_that() -> None:
    draw = random.Random(4711)
    texts = [hashlib.sha256(draw.randbytes(8)).hexdigest() for _ in range(300)]
    texts += [hashlib.md5(draw.randbytes(8)).hexdigest() for _ in range(300)]
    texts += [str(uuid.UUID(int=draw.getrandbits(128))) for _ in range(300)]
    texts += [base64.b64encode(draw.randbytes(3000)).decode() for _ in range(50)]
    texts += [str(draw.getrandbits(400)) for _ in range(50)] + [repr(draw.random()) for _ in range(300)]
    assert [text for text in ("\n".join(texts), *texts) if scrubbed(text) != text] == []


def left(text: str, place: str, cut: int, chunk: int) -> Leavings:
    out, err = BoundedSink(cut), BoundedSink(cut)
    sink = {"stdout": out, "stderr": err}.get(place)
    if sink is not None:
        data = text.encode()
        for start in range(0, len(data), chunk):
            sink.write(data[start : start + chunk])
    outcome = {
        "list": {"value": [1, [text]], "value_repr": repr([1, [text]])},
        "bytes": {"value": {"a": text.encode()}, "value_repr": repr({"a": text.encode()})},
        "key": {"value": {text: 1}, "value_repr": repr({text: 1})},
        "error": {"error": GuestError("ValueError", text, 1)},
        "detail": {"detail": text},
    }.get(place, {})
    return Leavings(Outcome(Termination.exited, 0, **outcome), out.pieces(), err.pieces())


def said(cleaned: Clean) -> str:
    output = cleaned.output
    kept = b"".join((*output.stdout_kept, *output.stderr_kept)).decode("utf-8", "replace")
    texts = (output.stdout, output.stderr, repr(cleaned.outcome), values.to_json(cleaned.outcome.value))
    return "\n".join((kept, *texts))


WORDS = st.text("abc \n.:日", max_size=300)


@settings(deadline=None, max_examples=150)
@given(
    kind=st.sampled_from(sorted(KEYS)),
    before=WORDS,
    after=WORDS,
    place=st.sampled_from(["stdout", "stderr", "list", "bytes", "key", "error", "detail"]),
    cut=st.integers(0, 700),
    chunk=st.integers(1, 90),
)
def test_no_secret_survives_in_any_channel(
    kind: str, before: str, after: str, place: str, cut: int, chunk: int
) -> None:
    """At any place, across cuts and chunks, in nested values; nor does a telling part of it."""
    key = KEYS[kind]
    cleaned = clean(left(f"{before} {key} {after}", place, cut, chunk), licet_scrub)
    body = key.splitlines()[len(key.splitlines()) // 2]
    parts = [body[i : i + 12] for i in range(max(len(body) - 11, 1))]
    assert not any(part in said(cleaned) for part in parts)


_MIB = 1 << 20
_HOSTILE = [
    "secret=a", "secret_", 'password="', "eyJ", "eyJabcdefghij.", "://a:", "curl -u a:b ", "key=",
    "authorization:", "-----BEGIN PRIVATE " + "KEY-----", "-----BEGIN PRIVATE " + "KEY-----!",
    "-----END PRIVATE " + "KEY-----!", KEYS["github_token"] + "\n", "aB1", "\\n" + KEYS["aws_access_key"],
]  # fmt: skip


@pytest.mark.parametrize("piece", _HOSTILE)
def test_hostile_text_is_read_in_steps_in_proportion_to_it(
    piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The detector gets windows of one size, however long a line is; and the whole comes to an end."""
    sizes: list[int] = []
    real = detector._in_window

    def spied(text: str) -> object:
        sizes.append(len(text))
        return real(text)

    monkeypatch.setattr(detector, "_in_window", spied)
    text = ("x@ " + piece * (_MIB // len(piece)))[:_MIB]
    licet_scrub(text, "stdout")
    assert max(sizes, default=0) <= 64 << 10
    assert len(sizes) <= _MIB // (56 << 10) + 1


def test_where_the_detector_is_not_installed_shapes_do_what_they_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = f"{KEYS['github_token']} {KEYS['gitlab_pat']}"
    assert licet_lacks() == {}
    assert scrubbed(text) == "[redacted: github_token] [redacted: gitlab_pat]"
    monkeypatch.setitem(sys.modules, "kingfisher_sdk", None)
    assert licet_lacks() == {"detector": "pip install 'licet[secrets]'"}
    assert scrubbed(text) == f"[redacted: github_token] {KEYS['gitlab_pat']}"


def test_a_detector_that_is_installed_and_fails_has_not_read_the_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "kingfisher_sdk.py"
    broken.write_text("raise ImportError('no such symbol')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "kingfisher_sdk", raising=False)
    detector._scanner.cache_clear()
    plugins = Plugins(Settings(enabled=("secrets",)))
    assert scrub(KEYS["gitlab_pat"], "stdout", plugins.secrets).text == (
        "[withheld: the scrubber `secrets` failed: ImportError]"
    )
    assert scrub("harmless", "stdout", plugins.secrets).text == "harmless"


def test_a_key_across_two_windows_of_the_detector_goes() -> None:
    key = KEYS["gitlab_pat"]
    for at in range((56 << 10) - 30, (56 << 10) + 10, 7):
        assert key not in scrubbed("x " * (at // 2) + key + " x" * 20_000)
    for at in range((64 << 10) - 40, (64 << 10) + 10, 7):
        assert key not in scrubbed("x " * (at // 2) + key + " x" * 20_000)


def test_what_a_rule_found_and_does_not_stand_there_is_a_failure() -> None:
    assert [*detector._anywhere("ab ab", "ab", "k")] == [Secret("k", 0, 2), Secret("k", 3, 5)]
    with pytest.raises(ValueError, match="a rule found what does not stand in the text"):
        next(detector._anywhere("ab", "x", "k"))


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ("betterleaks.github-pat", "github_pat"),
        ("veles.secrets/npmjsaccesstoken", "npmjsaccesstoken"),
        ("betterleaks.apollo-api-key.1", "apollo_api_key_1"),
    ],
)
def test_kinds_are_words(rule: str, kind: str) -> None:
    assert detector.kind_of(rule) == kind


@given(st.text())
def test_reading_keeps_every_place(text: str) -> None:
    assert len(as_read(text)) == len(text)
