"""Network targets: one spelling each, patterns by whole labels, and the rows of the corpus."""

import ipaddress
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import hosts
from licet.hosts import Endpoint, canonical_host, endpoint, is_public
from licet.testing import strategies

CORPUS = Path(__file__).parent / "data/paths_hosts.jsonl"
ROWS = [json.loads(line) for line in CORPUS.read_text().splitlines()]
BY_ID = {row["id"]: row for row in ROWS}

LATER = {
    **dict.fromkeys(
        [i for i in BY_ID if i.startswith("dns-")],
        "answers of a resolver are judged when the runtime connects, not by a pattern",
    ),
    **dict.fromkeys(
        [i for i in BY_ID if i.startswith("url-redirect-")],
        "redirects are followed by a client; each hop is a connection of its own",
    ),
    **dict.fromkeys(
        [i for i in BY_ID if i.startswith("ip-") and BY_ID[i]["answer"] == "allowed"],
        "`allow_any_public`: no pattern for all public addresses yet",
    ),
    "ip-63": "`allow_cidrs`: no pattern for ranges of addresses yet",
    "host-39": "a rule in Unicode is refused, so that there is nothing to fold",
    "host-38": "a target in Unicode is refused; its `xn--` form is what a caller has to write",
}
"""Rows that this version can't answer, each with its reason; the issue *Policy* takes them up."""


def allows(patterns: list[str], target: str) -> bool:
    """Whether a rule of the corpus admits a target; a rule without a port means HTTPS."""
    read = [endpoint(p if ":" in p else f"{p}:443", patterns=True) for p in patterns]
    try:
        wanted = endpoint(target if ":" in target else f"{target}:443")
    except ValueError:
        return False
    return any(pattern.covers(wanted) for pattern in read)


def rows(kind: str) -> list[Any]:
    return [pytest.param(r, id=r["id"]) for r in ROWS if r["class"] == kind and r["id"] not in LATER]


@pytest.mark.parametrize("row", rows("host"))
def test_host_rows_of_the_corpus(row: dict[str, Any]) -> None:
    patterns = row["rule"]["allow_hosts"]
    if row["answer"] == "config-error":
        with pytest.raises(ValueError, match="`"):
            endpoint(f"{patterns[0]}:443", patterns=True)
        return
    assert allows(patterns, row["target"]) == (row["answer"] == "allowed"), row["why"]


@pytest.mark.parametrize("row", rows("ip"))
def test_address_rows_of_the_corpus(row: dict[str, Any]) -> None:
    """Refused, or exactly the address it says; that private ranges are closed is judged when connecting."""
    assert row["answer"] == "denied"
    try:
        host = canonical_host(row["target"])
    except ValueError:
        return
    if host.endswith((".localhost", ".localdomain")):
        return
    assert ipaddress.ip_address(host) == ipaddress.ip_address(row["target"]), row["why"]


@pytest.mark.parametrize("row", [r for r in ROWS if r["class"] == "ip"], ids=lambda row: row["id"])
def test_addresses_inside_are_not_public_however_they_are_wrapped(row: dict[str, Any]) -> None:
    try:
        address = ipaddress.ip_address(row["target"])
    except ValueError:
        return  # no address, or one in a spelling that is refused before
    assert is_public(address) == (row["answer"] == "allowed"), row["why"]


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("::ffff:8.8.8.8", True),
        ("64:ff9b::808:808", True),
        ("2002:808:808::", True),
        ("2001:0:53aa:64c:0:0:f7f7:f7f7", True),
        ("2606:4700::1111", True),
        ("64:ff9b:1::a00:1", False),
        ("224.0.0.1", False),
        ("ff02::1", False),
        ("fe80::1", False),
        ("2001:db8::1", False),
    ],
)
def test_what_is_public(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


@pytest.mark.parametrize("row", rows("url"))
def test_url_rows_of_the_corpus(row: dict[str, Any]) -> None:
    """licet takes no URL as a target: what a careful client makes of one is a host and a port."""
    target = row["target"]
    with pytest.raises(ValueError, match="`"):
        endpoint(target)
    if row["answer"] == "allowed":
        parts = urlsplit(target)
        assert allows(row["rule"]["allow_hosts"], f"{parts.hostname}:{parts.port or 443}")


def test_every_row_of_the_corpus_is_answered_somewhere() -> None:
    answered = {"host", "ip", "url", "path-posix", "path-rule", "env-name"}
    elsewhere = {r["id"] for r in ROWS if r["class"] not in answered | {"path-windows"}}
    assert elsewhere <= set(LATER)
    assert set(LATER) <= set(BY_ID)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("API.Example.COM:443", "api.example.com:443"),
        ("api.example.com.:0443", "api.example.com:443"),
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("[::1]:80", "[::1]:80"),
        ("[0:0:0:0:0:0:0:1]:80", "[::1]:80"),
        ("[2606:2800:0220:0001::1946]:80", "[2606:2800:220:1::1946]:80"),
        ("a_b.example.com:1", "a_b.example.com:1"),
        ("localhost:65535", "localhost:65535"),
    ],
)
def test_targets_have_one_spelling(written: str, canonical: str) -> None:
    assert str(endpoint(written)) == canonical
    assert endpoint(canonical) == endpoint(written)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("api.example.com", "`api.example.com` names no port; write `api.example.com:443`"),
        ("api.example.com:0", "has no port between 1 and 65535"),
        ("api.example.com:65536", "has no port between 1 and 65535"),
        ("api.example.com:", "has no port between 1 and 65535"),
        ("api.example.com:٤٤٣", "has no port between 1 and 65535"),
        ("::1:80", "an IPv6 address stands in brackets"),
        ("[::1", r"is no `\[IPv6\]:PORT`"),
        ("[::1]80", r"is no `\[IPv6\]:PORT`"),
        ("[localhost]:80", r"is no `\[IPv6\]:PORT`"),
        ("*.example.com:443", r"has a `\*` that is not a whole first label"),
        ("bücher.example:443", "is not ASCII; write its `xn--` form"),
        ("127.1:80", "is no address of four plain decimal numbers"),
        ("0177.0.0.1:80", "is no address of four plain decimal numbers"),
        ("0x7f000001:80", "is no address of four plain decimal numbers"),
        ("2130706433:80", "is no address of four plain decimal numbers"),
        ("169.254.169.254.:80", "is no address of four plain decimal numbers"),
        ("[::ffff:127.0.0.1]:80", "is an IPv4 address in disguise; write `127.0.0.1`"),
        ("[::ffff:7f00:1]:80", "is an IPv4 address in disguise; write `127.0.0.1`"),
        ("[fe80::1%eth0]:80", "names a zone"),
        ("[::1%api.example.com]:80", "names a zone"),
        ("any:443", "every target there is reads `any`, without a port"),
        ("any:443".upper(), "every target there is reads `any`, without a port"),
        ("a b:443", "is no host name"),
        ("-a.example:443", "is no host name"),
        ("a..example:443", "is no host name"),
        ("a\n:443", "is no host name"),
        (":443", "is no host name"),
        ("a" * 64 + ".example:443", "is no host name"),
        ("a." * 127 + "ab:443", "is no host name"),
    ],
)
def test_other_spellings_are_refused(written: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        endpoint(written)


@pytest.mark.parametrize(
    "written", ["*.com:443", "*:443", "a.*.com:443", "*a.com:443", "*.*.com:443", "*.1.2.3.4:1", "**.a.b:1"]
)
def test_patterns_that_promise_too_much_are_refused(written: str) -> None:
    with pytest.raises(ValueError, match="`"):
        endpoint(written, patterns=True)


def test_deny_cannot_be_walked_around_by_spelling() -> None:
    """`deny` of an address holds for every spelling that is accepted at all."""
    loopback = endpoint("[::1]:80", patterns=True)
    for spelling in ("[::1%lo]:80", "[::1%25lo]:80", "[0::1]:80", "[::0001]:80", "[0:0:0:0:0:0:0.0.0.1]:80"):
        try:
            assert loopback.covers(endpoint(spelling)), spelling
        except ValueError:
            continue


def test_any_stands_alone_and_covers_everything() -> None:
    anywhere = endpoint("any", patterns=True)
    assert anywhere == hosts.EVERYWHERE
    assert str(anywhere) == "any"
    assert all(anywhere.covers(endpoint(t)) for t in ("a.b:1", "[::1]:80", "10.0.0.1:9"))
    assert not endpoint("*.example.com:443", patterns=True).covers(anywhere)
    with pytest.raises(ValueError, match="names no port"):
        endpoint("any")


PATTERNS = strategies.host_patterns()
TARGETS = strategies.hosts()


def matches(pattern: Endpoint, target: Endpoint) -> bool:
    """The meaning of a pattern, spelled out label by label."""
    if pattern.host == "any":
        return True
    if pattern.port not in (None, target.port):
        return False
    if not pattern.host.startswith("*."):
        return pattern.host == target.host
    suffix, labels = pattern.host[2:].split("."), target.host.split(".")
    return not labels[-1].isdigit() and len(labels) > len(suffix) and labels[-len(suffix) :] == suffix


@given(PATTERNS, TARGETS)
def test_patterns_match_whole_labels(pattern: Endpoint, target: Endpoint) -> None:
    assert pattern.covers(target) == matches(pattern, target)


@given(PATTERNS, PATTERNS, TARGETS)
def test_meet_is_exactly_what_both_match(left: Endpoint, right: Endpoint, target: Endpoint) -> None:
    shared = left.meet(right)
    assert shared == right.meet(left)
    assert (shared is not None and shared.covers(target)) == (left.covers(target) and right.covers(target))


@given(PATTERNS, PATTERNS)
def test_covers_is_an_order(left: Endpoint, right: Endpoint) -> None:
    assert left.covers(left)
    assert not (left.covers(right) and right.covers(left)) or left == right
    if left.covers(right):
        assert left.meet(right) == right


@given(PATTERNS)
def test_patterns_read_back_as_they_are_written(pattern: Endpoint) -> None:
    assert endpoint(str(pattern), patterns=True, port_optional=True) == pattern


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read = endpoint(text)
    except ValueError as problem:
        assert str(problem).startswith("`")
    else:
        assert endpoint(str(read)) == read
