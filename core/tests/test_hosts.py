"""Network targets: one spelling each, patterns by whole labels, and the rows of the corpus."""

import asyncio
import contextlib
import ipaddress
import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from licet import connecting, hosts
from licet.hosts import Endpoint, canonical_host, endpoint, from_url, is_public, with_meets
from licet.testing import strategies

CORPUS = Path(__file__).parent / "data/paths_hosts.jsonl"
ROWS = [json.loads(line) for line in CORPUS.read_text().splitlines()]


def patterns_of(rule: dict[str, Any]) -> list[Endpoint]:
    """The entries that a rule of the corpus is; one without a port means HTTPS."""
    if rule.get("allow_any_public"):
        assert rule["deny_private"]
        return [hosts.EVERYWHERE]
    written = rule.get("allow_hosts") or rule["allow_cidrs"]
    return [endpoint(p if ":" in p else f"{p}:443", patterns=True) for p in written]


def allows(rule: dict[str, Any], host: str, port: int = 443) -> str:
    """What becomes of a host as a client writes it."""
    try:
        wanted = endpoint(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except ValueError:
        return "denied"
    return "allowed" if any(pattern.covers(wanted) for pattern in patterns_of(rule)) else "denied"


def rows(*kinds: str) -> list[Any]:
    return [pytest.param(r, id=r["id"]) for r in ROWS if r["class"] in kinds]


@pytest.mark.parametrize("row", rows("host", "ip"))
def test_host_and_address_rows_of_the_corpus(row: dict[str, Any]) -> None:
    if row["answer"] == "config-error":
        with pytest.raises(ValueError, match="`"):
            patterns_of(row["rule"])
        return
    assert allows(row["rule"], row["target"]) == row["answer"], row["why"]


@pytest.mark.parametrize("row", rows("url", "url-redirect"))
def test_url_rows_of_the_corpus(row: dict[str, Any]) -> None:
    """Each hop is a connection of its own, and a URL itself is no target."""
    answers = []
    for url in row.get("chain") or [row["target"]]:
        with pytest.raises(ValueError, match="`"):
            endpoint(url)
        try:
            answers.append(allows(row["rule"], *from_url(url)))
        except ValueError:
            answers.append("denied")
    assert ("denied" if "denied" in answers else "allowed") == row["answer"], row["why"]


@pytest.mark.parametrize("row", rows("dns"))
def test_resolver_rows_of_the_corpus(row: dict[str, Any]) -> None:
    """`answers` are those of a resolver, one after the other; what was dialled says which was taken."""
    pattern, target = patterns_of(row["rule"])[0], endpoint(f"{row['target']}:443")
    answers, dialled = iter(row["answers"]), []

    async def resolve(wanted: Endpoint) -> list[connecting.Place]:
        found = next(answers)
        if found == ["TIMEOUT"]:
            await asyncio.Event().wait()
        return [(socket.AF_INET, (one, wanted.port)) for one in found if not one.startswith("CNAME ")]

    async def dial(place: connecting.Place) -> int:
        dialled.append(place[1][0])
        return 7

    assert pattern.covers(target)

    async def connect() -> int:
        judges = {"opens": pattern.covers, "denies": lambda address: False}
        places = await connecting.look_up(target, **judges, patience=0.01, resolve=resolve)
        return await connecting.reach(target, places, dial=dial)

    if row["answer"] == "denied":
        with pytest.raises(OSError, match=r"^`.*` (resolves to|was not resolved)"):
            asyncio.run(connect())
        assert dialled == [], row["why"]
    else:
        assert (asyncio.run(connect()), dialled) == (7, row["answers"][0]), row["why"]


@pytest.mark.parametrize("row", [r for r in ROWS if r["class"] == "ip"], ids=lambda row: row["id"])
def test_addresses_inside_are_not_public_however_they_are_wrapped(row: dict[str, Any]) -> None:
    try:
        address = ipaddress.ip_address(row["target"])
    except ValueError:
        return  # no address, or one in a spelling that is refused before
    assert is_public(address) == (row["answer"] == "allowed"), row["why"]


def test_every_row_of_the_corpus_is_answered_somewhere() -> None:
    elsewhere = {"path-posix", "path-windows", "path-rule", "env-name"}
    here = {"host", "ip", "url", "url-redirect", "dns"}
    assert {row["class"] for row in ROWS} == here | elsewhere
    assert len(ROWS) == len({row["id"] for row in ROWS}) == 158


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
        ("168.63.129.16", False),
        ("192.88.99.1", False),
        ("3fff::1", False),
        ("2001:20::1", False),
        ("4000::1", False),
        ("::2", False),
        ("ff02::1", False),
        ("fe80::1", False),
        ("2001:db8::1", False),
    ],
)
def test_what_is_public(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


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
        ("BÜCHER.Example.:443", "xn--bcher-kva.example:443"),
        ("bu\u0308cher.example:443", "xn--bcher-kva.example:443"),
        ("аpi.example:443", "xn--pi-6kc.example:443"),  # the first letter is Cyrillic: another name
        ("例え.テスト:443", "xn--r8jz45g.xn--zckzah:443"),
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
        ("straße.example:443", "letters that programs read differently; write its `xn--` form"),
        ("βόλος.example:443", "letters that programs read differently"),
        ("a\u200db.example:443", "letters that programs read differently"),
        ("a\u00adb.example:443", "letters that programs read differently"),
        ("ａpi.example.com:443", "letters that programs read differently"),
        ("api。example.com:443", "letters that programs read differently"),
        ("api．example.com:443", "letters that programs read differently"),
        ("ⓛocalhost:443", "letters that programs read differently"),
        ("١٢٧.0.0.1:443", "is no address of four plain decimal numbers"),
        ("xn--ü.example:443", "is no host name"),
        ("a/ü.example:443", "is no host name"),
        ("https://API.example.com/x:443", "is a URL; write `api.example.com:443`"),
        ("file://a.example/x", "is a URL; write the host and the port that it leads to"),
        ("user@api.example.com:443", "is no host name"),
        ("api.example.com/:443", "is no host name"),
        ("10.0.0.0/8:443", "is no host name"),
        ("private", "names no port"),
        ("127.1:80", "is no address of four plain decimal numbers"),
        ("0177.0.0.1:80", "is no address of four plain decimal numbers"),
        ("0x7f000001:80", "is no address of four plain decimal numbers"),
        ("2130706433:80", "is no address of four plain decimal numbers"),
        ("169.254.169.254.:80", "is no address of four plain decimal numbers"),
        ("[::ffff:127.0.0.1]:80", "is an IPv4 address in disguise; write `127.0.0.1`"),
        ("[::ffff:7f00:1]:80", "is an IPv4 address in disguise; write `127.0.0.1`"),
        ("[::127.0.0.1]:80", "is an IPv4 address in disguise; write `127.0.0.1`"),
        ("[::ffff:0:127.0.0.1]:80", "is an IPv4 address in disguise; write `127.0.0.1`"),
        ("[64:ff9b::7f00:1]:80", "is an IPv4 address in disguise; write `127.0.0.1`"),
        ("[2002:7f00:1::]:80", "is an IPv4 address in disguise; write `127.0.0.1`"),
        ("[2001:0:53aa:64c::80ff:fffe]:80", "is an IPv4 address in disguise; write `127.0.0.1`"),
        ("[fe80::1%eth0]:80", "names a zone"),
        ("[::1%api.example.com]:80", "names a zone"),
        ("any:443", "the word for many hosts reads `any`, without a port"),
        ("Any.:443", "the word for many hosts reads `any`, without a port"),
        ("private:443", "the word for many hosts reads `private`, without a port"),
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
    "written",
    [
        "*.com:443",
        "*:443",
        "a.*.com:443",
        "*a.com:443",
        "*.*.com:443",
        "*.1.2.3.4:1",
        "**.a.b:1",
        "*.co.uk:443",
    ],
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


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("10.0.0.0/8:5432", "10.0.0.0/8:5432"),
        ("[FC00::/7]:80", "[fc00::/7]:80"),
        ("[fd00:0::/8]", "[fd00::/8]"),
        ("8.8.8.8/32:53", "8.8.8.8:53"),
        ("[2606:4700::/32]:443", "[2606:4700::/32]:443"),
        ("224.0.0.0/3:1", "224.0.0.0/3:1"),
    ],
)
def test_ranges_have_one_spelling(written: str, canonical: str) -> None:
    read = endpoint(written, patterns=True, port_optional=True)
    assert str(read) == canonical
    assert hosts.read_back(canonical) == read


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("10.1.0.5/16:1", "has bits set beyond its first 16; write `10.1.0.0/16`, or `10.1.0.5` alone"),
        ("10.0.0.0/33:1", "`/33` is longer than the address"),
        ("10.0.0.0/255.0.0.0:1", "is no range of addresses"),
        ("10.0.0.0/08:1", "is no range of addresses"),
        ("10.0.0.0/:1", "is no range of addresses"),
        ("a.example/8:1", "is no range of addresses"),
        ("010.0.0.0/8:1", "is no address of four plain decimal numbers"),
        ("10/8:1", "is no address of four plain decimal numbers"),
        ("0.0.0.0/0:1", "holds public addresses and others"),
        ("172.0.0.0/8:1", "holds public addresses and others"),
        ("[::/0]:1", "holds public addresses and others"),
        ("[::/127]:1", "some that stand for an IPv4 address"),
        ("[2002::/16]:1", "is an IPv4 address in disguise"),
        ("[64:ff9b::/96]:1", "is an IPv4 address in disguise"),
        ("[2000::/3]:1", "holds public addresses and others"),
        ("[fe80::%1/10]:1", "names a zone"),
    ],
)
def test_ranges_that_say_too_little_or_too_much_are_refused(written: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        endpoint(written, patterns=True)


INSIDE = [
    "10.0.0.1:9",
    "127.0.0.1:80",
    "169.254.169.254:80",
    "168.63.129.16:80",
    "[::1]:1",
    "[fd00:ec2::254]:80",
    "localhost:80",
    "a.localhost:80",
    "localhost.localdomain:80",
    "metadata.google.internal:80",
    "printer.local:80",
    "nas.home.arpa:80",
    "db:5432",
]


def test_any_is_public_and_private_is_the_rest() -> None:
    anywhere, inside = (endpoint(word, patterns=True) for word in ("any", "private"))
    assert (anywhere, inside) == (hosts.EVERYWHERE, hosts.INSIDE)
    assert (str(anywhere), str(inside)) == ("any", "private")
    for target in map(endpoint, ["a.b:1", "8.8.8.8:53", "[2606:4700::1]:1", "local.example:1"]):
        assert (anywhere.covers(target), inside.covers(target)) == (True, False)
    for target in map(endpoint, INSIDE):
        assert (anywhere.covers(target), inside.covers(target)) == (False, True), target
        assert hosts.EVERYTHING.covers(target)
    assert not endpoint("*.example.com:443", patterns=True).covers(anywhere)
    assert hosts.EVERYTHING.covers(anywhere) and hosts.EVERYTHING.covers(inside)
    assert hosts.read_back(str(hosts.EVERYTHING)) == hosts.EVERYTHING
    with pytest.raises(ValueError, match="names no port"):
        endpoint("any")


@pytest.mark.parametrize(
    ("url", "leads_to"),
    [
        ("https://api.example.com", ("api.example.com", 443)),
        ("http://API.example.com.?a@b", ("api.example.com", 80)),
        ("wss://[2606:4700::1]:8443/x#y", ("2606:4700::1", 8443)),
        ("ws://bücher.example/", ("xn--bcher-kva.example", 80)),
        ("https://a.example:0443/%00/@b", ("a.example", 443)),
    ],
)
def test_a_url_leads_to_a_host_and_a_port(url: str, leads_to: tuple[str, int]) -> None:
    assert from_url(url) == leads_to


@pytest.mark.parametrize(
    "url",
    [
        "https:/a.example",
        "https:a.example",
        "//a.example",
        "https://",
        "https://:443/",
        "https://a.example:",
        "https://a.example:0/",
        "https://[a.example]/",
        "https://[::1]a.example/",
        "https://[::1%25eth0]/",
        "https://a%2eexample/",
        "https://a.example:44 3/",
        "https://127.1/",
        "https://0x7f000001/",
        "https://user@a.example/",
        "https://a.example\u2028/",
        "ftp://a.example/",
    ],
)
def test_urls_that_programs_read_differently_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="`"):
        from_url(url)


PATTERNS = strategies.host_patterns()
TARGETS = strategies.hosts()


def matches(pattern: Endpoint, target: Endpoint) -> bool:
    """The meaning of a pattern, spelled out label by label and address by address."""
    try:
        address = ipaddress.ip_address(target.host)
    except ValueError:
        address = None
    if pattern.host in ("any", "private"):
        labels = target.host.split(".")
        inside = len(labels) == 1 or labels[-1] == "internal" if address is None else not address.is_global
        return inside == (pattern.host == "private")
    if pattern.port not in (None, target.port):
        return False
    if "/" in pattern.host:
        return address is not None and address in ipaddress.ip_network(pattern.host)
    if not pattern.host.startswith("*."):
        return pattern.host == target.host
    suffix, labels = pattern.host[2:].split("."), target.host.split(".")
    return address is None and len(labels) > len(suffix) and labels[-len(suffix) :] == suffix


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


@given(st.lists(PATTERNS, max_size=6), TARGETS)
def test_with_meets_every_target_has_one_innermost_pattern(several: list[Endpoint], target: Endpoint) -> None:
    known = with_meets(several)
    assert known >= set(several)
    assert all(meet in known for a in several for b in several if (meet := a.meet(b)) is not None)
    around = [pattern for pattern in known if pattern.covers(target)]
    if around:
        assert any(all(other.covers(inner) for other in around) for inner in around)


def spellings(host: str, draw: st.DrawFn) -> str:
    """One of the ways in which people and attackers write a host."""
    for change in draw(st.lists(st.sampled_from(CHANGES), max_size=3)):
        host = change(host)
    return host


CHANGES = [
    str.upper,
    str.title,
    lambda host: host + ".",
    lambda host: host.replace(".", "。"),
    lambda host: host.replace(".", "．", 1),
    lambda host: host.replace("a", "ａ"),
    lambda host: host.replace("1", "１"),
    lambda host: host.replace("1", "①"),
    lambda host: host.replace("e", "\u00ad" + "e"),
    lambda host: host.replace("ü", "u\u0308"),
    lambda host: host.encode("idna").decode() if "。" not in host and host.strip(".") else host,
    lambda host: (
        str(int(ipaddress.IPv4Address(host))) if host.count(".") == 3 and host[0].isdigit() else host
    ),
    lambda host: host.replace(".0.0.", ".", 1),
    lambda host: host.replace("10.", "012.", 1).replace("127.", "0x7f.", 1),
    lambda host: f"::ffff:{host}" if host[:1].isdigit() and ":" not in host else host,
    lambda host: host.replace("::", ":0:", 1).replace("1", "0001", 1) if ":" in host else host,
    lambda host: host + "%eth0" if ":" in host else host,
]
NAMED = ["api.example.com", "bücher.example", "10.0.0.1", "127.0.0.1", "8.8.8.8", "::1", "2606:4700::1"]


def where_programs_go(host: str) -> set[str]:
    """All the hosts that the parsers of this machine make of a text."""
    found = set()
    with contextlib.suppress(UnicodeError):
        found.add(host.encode("idna").decode("ascii").lower().removesuffix("."))
    for name in [*found, host]:
        try:
            places = socket.getaddrinfo(name, 1, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
            found = {place[4][0].partition("%")[0] for place in places}
        except (OSError, UnicodeError):
            continue
    return found


@st.composite
def written_hosts(draw: st.DrawFn) -> tuple[str, str]:
    """A host, and one of its spellings."""
    host = draw(st.sampled_from(NAMED))
    try:
        return host, spellings(host, draw)
    except ValueError:  # a change that this spelling can't take
        return host, host


@given(written_hosts())
def test_every_spelling_of_a_host_is_refused_or_the_same(written: tuple[str, str]) -> None:
    """And it is where the parsers of this machine go."""
    host, spelling = written
    try:
        read = canonical_host(spelling)
    except ValueError:
        return
    assert read == canonical_host(host)
    assert where_programs_go(spelling) <= {read}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8))
@example("ß")
@example("İ")
@example("ﬀ")
@example("\u1160a")
def test_what_is_read_is_what_python_would_look_up(label: str) -> None:
    try:
        read = canonical_host(f"{label}.example")
    except ValueError:
        return
    assume(read.isascii())
    assert where_programs_go(f"{label}.example") <= {read}


@given(st.text(max_size=20))
def test_canonical_hosts_are_their_own_spelling(text: str) -> None:
    try:
        read = canonical_host(text)
    except ValueError:
        return
    assert canonical_host(read) == read
    assert canonical_host(read.upper()) == read


@given(written_hosts(), st.sampled_from([None, 443]))
def test_an_entry_that_denies_a_host_denies_all_its_spellings(
    written: tuple[str, str], port: int | None
) -> None:
    host, spelling = written
    denied = endpoint(target_text(host, port), port_optional=True)
    try:
        wanted = endpoint(target_text(spelling, 443))
    except ValueError:
        return
    assert denied.covers(wanted)


def target_text(host: str, port: int | None) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if port is None else f"{bracketed}:{port}"


@given(st.from_regex(r"(https?|HTTP|ftp)://?[a-c.@:\\\[\]%0-9\t]{0,12}[/?#]?[a-c@:]{0,4}", fullmatch=True))
def test_a_url_that_is_read_leads_where_the_standard_library_goes(url: str) -> None:
    try:
        host, port = from_url(url)
    except ValueError:
        return
    parts = urlsplit(url)
    assert (parts.username, parts.password) == (None, None)
    assert parts.hostname is not None
    assert canonical_host(parts.hostname) == host
    assert (parts.port or {"http": 80, "https": 443}[parts.scheme]) == port


@given(st.one_of(st.ip_addresses(v=4, network="0.0.0.0/0"), st.ip_addresses(v=6)), st.integers(0, 128))
def test_a_range_is_public_or_private_as_a_whole(start: Any, length: int) -> None:
    whole = ipaddress.ip_network(f"{start}/{min(length, start.max_prefixlen)}", strict=False)
    try:
        read = endpoint(f"[{whole}]:1" if start.version == 6 else f"{whole}:1", patterns=True)
    except ValueError:
        return
    for one in (whole[0], whole[-1], whole[whole.num_addresses // 2], whole[whole.num_addresses // 3]):
        assert hosts.EVERYWHERE.covers(read) == is_public(one)
        assert read.covers(Endpoint(str(one), 1))
