"""What an exception of a tool may tell the code."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.messages import MOST_MESSAGE, told, without_places


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("[Errno 2] missing: '/home/Ann Smith/x.txt'", "[Errno 2] missing: '…/x.txt'"),
        ("open /srv/app/keys/a.pem failed", "open …/a.pem failed"),
        ("at /srv/y/z.py:12", "at …/z.py:12"),
        ("word./etc/passwd", "word.…/passwd"),
        ("x=/etc/passwd,/etc/shadow", "x=…/passwd,…/shadow"),
        ("path:/srv/y/z (/srv/y)", "path:…/z (…/y)"),
        ("//srv/x/y", "…/y"),
        ("file:///srv/x/y.txt", "…/y.txt"),
        ("~/x/.ssh/id_rsa ~bob/x", "…/id_rsa …/x"),
        ("C:\\Users\\ann\\secret.txt: denied", "…/secret.txt: denied"),
        ("'C:\\Users\\Ann S\\x.txt'", "'…/x.txt'"),
        ("\\\\host\\share\\f.txt", "…/f.txt"),
        ("ünï /srv/ö/é", "ünï …/é"),
    ],
)  # fmt: skip
def test_a_path_of_this_host_is_cut_to_its_last_name(message: str, shown: str) -> None:
    assert without_places(message) == shown


@pytest.mark.parametrize(
    "message",
    [
        "order A1 is 3/4 paid and/or refunded",
        "see https://api.example.com/v1/orders?page=2",
        "./x and ../y are relative",
        "a/b/c",
        "404: not found",
        "",
    ],
)
def test_what_is_no_place_of_this_host_stays(message: str) -> None:
    assert without_places(message) == message


def test_known_places_are_found_with_blanks_in_them() -> None:
    home = str(Path.home())
    assert without_places(f"{home} is full, {sys.prefix}/x too") == "… is full, …/x too"
    assert without_places("in /srv/My Data/a b", ["/srv/My Data"]) == "in …/a b"
    assert without_places("/srv/My Database", ["/srv/My Data"]) != "…base"


def test_control_characters_are_escaped_and_the_length_is_bounded() -> None:
    assert told(ValueError("a\x1b[31mred\nline\0")) == r"a\x1b[31mred\nline\x00"
    assert told(ValueError("x" * 10**7)) == "x" * (MOST_MESSAGE - 1) + "…"


def test_a_message_that_cannot_be_had_is_said_to_be_missing() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert told(Odd()) == "its message can't be shown"
    assert told(OSError(13, "denied", "/srv/a/b")) == "[Errno 13] denied: '…/b'"


def test_the_text_of_a_key_error_is_told_without_the_quotes_that_the_code_adds_again() -> None:
    class Own(KeyError):
        def __str__(self) -> str:
            return "mine"

    assert (told(KeyError("")), told(KeyError("it's /srv/a/b"))) == ("", "it's …/b")
    assert (told(KeyError(3)), told(KeyError("a", "b")), told(Own("x"))) == ("3", "('a', 'b')", "mine")


_NAMES = st.text("abcXYZ019._-é", min_size=1, max_size=8).filter(lambda name: name.strip("."))


@given(
    st.lists(_NAMES, min_size=2, max_size=5),
    st.sampled_from(["{}", "'{}'", "at {}: x", "({})", "x={}", '"{}" y', "a {},", "file://{}", "{}\n"]),
)
def test_no_directory_of_an_absolute_path_survives(names: list[str], around: str) -> None:
    secret = "secretdir" + names[0]
    path = "/" + "/".join([secret, *names[1:]])
    assert secret not in without_places(around.format(path))
