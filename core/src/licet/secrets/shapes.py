"""Keys that are known by their shape alone, and passwords by what stands before them.

Rules this module keeps:

- each pattern begins at a place that few texts have, and looks no further than a bound or the end of one run
  of characters: together they take time in proportion to the text;
- a shape is looked for only where a part of it stands that can be found at once;
- what is long and random but has no name is not secret by that: digests, numbers, ids and images pass.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from licet.scrubbing import Secret

_HERE = r"(?<![A-Za-z0-9])"  # the beginning of a word


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of secret: its pattern, whose last group is the secret, and texts one of which it contains."""

    kind: str
    marks: tuple[str, ...]
    pattern: re.Pattern[str]


def _shape(kind: str, marks: str, pattern: str) -> Shape:
    return Shape(kind, tuple(marks.split()), re.compile(pattern, re.ASCII))


_SHAPES = (
    _shape("aws_access_key", "AKIA ASIA ABIA ACCA A3T",
           _HERE + r"((?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16})(?![A-Za-z0-9])"),
    _shape("github_token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
           _HERE + r"(gh[opsur]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})"),
    _shape("slack_token", "xox xapp-", _HERE + r"((?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,500})"),
    _shape("stripe_key", "_live_ _test_", _HERE + r"((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,255})"),
    _shape("anthropic_key", "sk-ant-", _HERE + r"(sk-ant-[A-Za-z0-9_-]{20,255})"),
    _shape("openai_key", "sk-", _HERE + r"(sk-(?!ant-)(?=[A-Za-z_-]{0,250}[0-9])[A-Za-z0-9_-]{32,255})"),
    _shape("jwt", "eyJ",
           r"(?<![A-Za-z0-9_-])(eyJ[A-Za-z0-9_-]{10,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+)"),
    _shape("basic_auth", "://", r"://[^\s/:@'\"]{0,128}+:([^\s/@'\"]{1,256}+)(?=@)"),
)  # fmt: skip
"""Every shape that stands in one line."""

_AUTHORIZATION = re.compile(
    r"authorization[\"']?\s{0,4}[:=,]\s{0,4}[\"']?(?:bearer|basic|token)\s{1,4}([A-Za-z0-9._~+/=-]{8,4096})",
    re.IGNORECASE | re.ASCII,
)
_PASSWORDS = ("passwd", "password", "passphrase", "pwd")
_NAMES = ("secret", "token", "credential", "apikey", "accesskey", "authkey", "accountkey", "privatekey",
          "signingkey", "api_key", "access_key", "auth_key", "account_key", "private_key", "signing_key",
          "api-key", "access-key", "auth-key", "account-key", "private-key", "signing-key")  # fmt: skip
_ASSIGNED = re.compile(
    rf"(?:({'|'.join(_PASSWORDS)})|{'|'.join(_NAMES)})[\w-]{{0,40}}+[\"']?\]?\s{{0,4}}+(?::=|=>|[=:])\s{{0,4}}+",
    re.ASCII,
)
"""A name that says what is assigned to it, in lower case, up to the value."""
_QUOTED = re.compile(r"[\"'`](?![<$%{\[(*])([^\s\"'`]{4,256})")
_BARE = re.compile(r"(?![<$%{\[(*])([^\s\"'`<>$%{}()\[\],;]{8,256})")
_MIXED = re.compile(r"(?=[^0-9]*+[0-9])(?=[^A-Za-z]*+[A-Za-z])")

_BEGIN = re.compile(r"-----BEGIN[A-Z0-9 _-]{0,100}PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE | re.ASCII)
_END = re.compile(r"-----END[A-Z0-9 _-]{0,100}PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE | re.ASCII)
_MATERIAL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=:,\"' \t\r\n-"
_MATERIAL_RUN = re.compile(r"[A-Za-z0-9+/=:,\"'\s-]*+", re.ASCII)


def secrets(text: str) -> Iterator[Secret]:
    """Every secret of a known shape in `text`, whose escapes are read."""
    for shape in _SHAPES:
        if any(mark in text for mark in shape.marks):
            yield from _matches(shape.kind, shape.pattern, text)
    lower = text.lower()
    if len(lower) != len(text):  # a letter whose small form is two
        lower = "".join(c.lower() if c.isascii() else c for c in text)
    if "authorization" in lower:
        yield from _matches("authorization", _AUTHORIZATION, text)
    yield from _assigned(text, lower)
    if "private key" in lower:
        yield from _private_keys(text)


def _matches(kind: str, pattern: re.Pattern[str], text: str) -> Iterator[Secret]:
    for match in pattern.finditer(text):
        yield Secret(kind, match.start(1), match.end(1))


def _assigned(text: str, lower: str) -> Iterator[Secret]:
    """What is assigned to a name; unless that means a password, only what mixes letters and digits."""
    if not any(name in lower for name in (*_PASSWORDS, *_NAMES)):
        return
    for match in _ASSIGNED.finditer(lower):
        quoted = _QUOTED.match(text, match.end())
        value = quoted or _BARE.match(text, match.end())
        if value is None:
            continue
        mixed = len(value[1]) >= 8 and _MIXED.match(value[1])
        if mixed or (quoted and match[1]):
            kind = "password" if match[1] else "named_secret"
            yield Secret(kind, value.start(1), value.end(1))


def _private_keys(text: str) -> Iterator[Secret]:
    """Whole keys, and what is left of those whose beginning or end was cut off."""
    ends = [match.end() for match in _END.finditer(text)]
    whole: set[int] = set()
    done = 0
    for match in _BEGIN.finditer(text):
        if match.start() < done:
            continue
        following = bisect_left(ends, match.end())
        if following < len(ends):
            end = ends[following]
        else:
            run = _MATERIAL_RUN.match(text, match.end())
            end = run.end() if run else match.end()
        if following < len(ends) or end > match.end():
            yield Secret("private_key", match.start(), end)
            whole.add(end)
            done = end
    before = 0
    for match in _END.finditer(text):
        if match.end() not in whole:
            start = before + len(text[before : match.start()].rstrip(_MATERIAL))
            yield Secret("private_key", start, match.end())
        before = match.end()
