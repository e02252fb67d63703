"""Entries: how they read, what they match, which other entries they make useless."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.errors import InvalidPolicy, Position
from licet.hosts import endpoint
from licet.policy.patterns import Effect, Pattern, canonical_target, denies_address, parse

HERE = Position("policy", 3, 5)


def entry(text: str, effect: Effect = "allow", base: str = "/p") -> Pattern:
    return parse(text, effect, base=base, where=HERE)


@pytest.mark.parametrize(
    ("text", "action", "target", "excepts"),
    [
        ("run", "run", None, ()),
        ("shell", "shell", None, ()),
        ("read ./data", "read", "/p/data", ()),
        ("read /", "read", "/", ()),
        ("  read   ./a b/  ", "read", "/p/a b", ()),
        ("write ../x except ../x/y except ../x/z", "write", "/x", ("/x/y", "/x/z")),
        ("read ./exceptional", "read", "/p/exceptional", ()),
        ("read ./except", "read", "/p/except", ()),
        ("read workdir", "read", "workdir", ()),
        ("read workdir/a/./b/ except workdir/a/b/c", "read", "workdir/a/b", ("workdir/a/b/c",)),
        ("read ./workdir", "read", "/p/workdir", ()),
        ("read workdirs", "read", "/p/workdirs", ()),
        ("network API.example.com:443", "network", "api.example.com:443", ()),
        (
            "network *.example.com:443 except api.example.com:443",
            "network",
            "*.example.com:443",
            ("api.example.com:443",),
        ),
        (
            "network *.example.com:443 except api.example.com",
            "network",
            "*.example.com:443",
            ("api.example.com",),
        ),
        ("network any", "network", "any", ()),
        ("tool find_*", "tool", "find_*", ()),
    ],
)
def test_entries_read_as_written(
    text: str, action: str, target: str | None, excepts: tuple[str, ...]
) -> None:
    read = entry(text)
    assert (read.action, read.target, read.excepts, read.text, read.where) == (
        action,
        target,
        excepts,
        text,
        HERE,
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begins with no action; write one of run, read, write, network, shell, tool"),
        ("raed ./x", "`raed ./x` begins with no action"),
        ("read\t./x", "begins with no action"),
        ("read", "`read` needs a target: `read ./data`"),
        ("network", "`network` needs a target: `network api.example.com:443`"),
        ("run fast", "`run` takes no target, found `fast`"),
        ("shell except ls", "`shell` takes no target"),
        ("read ./x except", "says `except` and not what"),
        ("read except ./x", "`read` needs a target"),
        ("read ./x except except ./x/y", "says `except` and not what"),
        ("read ./x except ./y", "`except ./y` takes nothing away from `./x`"),
        ("read ./x\0y", "it holds a NUL byte"),
        ("read workdir/\0", "it holds a NUL byte"),
        ("read workdir/../x", "it climbs out of the directory of the run"),
        ("read workdir/a/../../..", "it climbs out of the directory of the run"),
        ("network api.example.com", "names no port"),
        ("network *.example.com:443 except other.test:443", "takes nothing away"),
        (
            "network any except 169.254.169.254",
            "takes nothing away from `any`: `any` opens public hosts alone, as far as no other entry",
        ),
        (
            "network 169.254.0.0/16:80 except 169.254.169.254",
            "would open `169.254.170.2`, where a cloud hands out credentials; write "
            "`network 169.254.0.0/16:80 except 169.254.169.254 except 169.254.170.2:80`",
        ),
        ("network [fc00::/7]:80", "would open `fd00:ec2::254`, where a cloud hands out credentials"),
        ("network any or private", "names no port"),
        ("network https://a.example/", "is a URL; write `a.example:443`"),
        ("tool a b", "`a b` is no name of a tool, or pattern with `*`"),
        ("tool a?", "`a?` is no name of a tool"),
        ("tool é", "is no name of a tool"),
    ],
)
def test_what_is_no_entry_says_why(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as problem:
        entry(text)
    assert reason in str(problem.value)


def test_deny_may_leave_the_port_out_and_means_every_port() -> None:
    denial = entry("network api.example.com", "deny")
    assert denial.covers("api.example.com:443")
    assert denial.covers("api.example.com:8443")
    assert not denial.covers("www.example.com:443")


def test_what_closes_closes_everything() -> None:
    """`any` opens what is public, and means all there is in `deny` and after `except`."""
    assert entry("network any", "deny").covers("10.0.0.1:80")
    assert entry("network any", "deny").covers("private")
    assert entry("network any", "deny").covers(None)
    assert not entry("network any except 10.0.0.0/8", "deny").covers("10.0.0.1:80")
    assert entry("network any", "deny").shadows(entry("network 10.0.0.1:80"))
    assert not entry("network any", "ask").shadows(entry("network 10.0.0.1:80"))
    assert entry("network 169.254.0.0/16", "deny").covers("169.254.169.254:80")


@pytest.mark.parametrize(
    ("text", "effect", "address", "denied"),
    [
        ("network 8.8.8.8", "deny", "8.8.8.8:53", True),
        ("network 8.8.0.0/16:53", "deny", "8.8.8.8:53", True),
        ("network 8.8.0.0/16:53", "deny", "8.8.8.8:443", False),
        ("network 8.8.0.0/16 except 8.8.8.8", "deny", "8.8.8.8:53", False),
        ("network private", "deny", "10.0.0.1:53", True),
        ("network any", "deny", "8.8.8.8:53", False),
        ("network any except dns.example", "deny", "8.8.8.8:53", False),
        ("network *.example.com", "deny", "8.8.8.8:53", False),
        ("read /", "deny", "8.8.8.8:53", False),
    ],
)
def test_which_entries_deny_an_address_whatever_name_leads_there(
    text: str, effect: Effect, address: str, denied: bool
) -> None:
    assert denies_address(entry(text, effect), endpoint(address)) is denied


@pytest.mark.parametrize(
    ("text", "target", "covered"),
    [
        ("read ./data", "/p/data", True),
        ("read ./data", "/p/data/x", True),
        ("read ./data", "/p/database", False),
        ("read ./data", "/p", False),
        ("read ./data except ./data/s", "/p/data", True),
        ("read ./data except ./data/s", "/p/data/s", False),
        ("read ./data except ./data/s", "/p/data/s/x", False),
        ("read ./data", None, False),
        ("read /", None, True),
        ("network any", None, False),
        ("network any", "any", True),
        ("network any", "private", False),
        ("network any", "10.0.0.1:80", False),
        ("network private", "10.0.0.1:80", True),
        ("network private except 10.0.0.0/8", "10.0.0.1:80", False),
        ("network 10.0.0.0/8:80", "10.0.0.1:80", True),
        ("network *.corp.internal:80", "a.corp.internal:80", True),
        ("network *.example.com:443", None, False),
        ("tool *", None, True),
        ("tool find_*", "find_order", True),
        ("tool find_*", "Find_order", False),
        ("tool find", "find_order", False),
        ("tool * except refund", "refund", False),
        ("shell", None, True),
    ],
)
def test_what_an_entry_covers(text: str, target: str | None, covered: bool) -> None:
    assert entry(text).covers(target) == covered


@pytest.mark.parametrize(
    ("cover", "other", "shadowed"),
    [
        ("read ./a", "read ./a", True),
        ("read ./a", "read ./a/b", True),
        ("read ./a/b", "read ./a", False),
        ("read ./a", "write ./a", False),
        ("read ./a except ./a/b", "read ./a", False),
        ("read ./a except ./a/b", "read ./a/c", True),
        ("read ./a except ./a/b", "read ./a/b", False),
        ("read ./a except ./a/b", "read ./a except ./a/b", True),
        ("read ./a except ./a/b/c", "read ./a except ./a/b", True),
        ("read workdir", "read workdir/x", True),
        ("read /", "read workdir/x", True),
        ("read /p", "read workdir", False),
        ("network any", "network *.example.com:443", True),
        ("network *.example.com:443", "network a.example.com:443", True),
        ("network *.example.com:443", "network a.example.com:80", False),
        ("network *.example.com:443 except a.example.com", "network a.example.com:443", False),
        ("network *.example.com:443 except a.example.com", "network *.example.com:443", False),
        ("tool *", "tool a*", True),
        ("tool a*", "tool *", False),
        ("tool * except *b", "tool a*", False),
        ("tool * except b*", "tool a*", True),
        ("shell", "shell", True),
        ("run", "shell", False),
    ],
)
def test_what_an_entry_shadows(cover: str, other: str, shadowed: bool) -> None:
    assert entry(cover).shadows(entry(other)) == shadowed


@pytest.mark.parametrize(
    ("text", "target", "touched"),
    [
        ("read ./a/b", "/p/a", True),
        ("read ./a", "/p/a/b", True),
        ("read ./a", "/p/b", False),
        ("network *.a.example:443", "x.a.example", True),  # one port of it
        ("network any", "8.8.8.8:80", True),
        ("network any", "10.0.0.1:80", False),
        ("network 10.0.0.0/8:80", "10.1.0.0/16", True),
        ("tool a*", "*b", True),
        ("tool a*", "b*", False),
        ("tool *a", "*b", False),
        ("tool ab", "a*", True),
        ("tool ab", "b", False),
    ],
)
def test_what_an_entry_touches(text: str, target: str, touched: bool) -> None:
    assert entry(text).touches(target) == touched


def test_workdir_is_bound_to_the_directory_of_the_run(tmp_path: Path) -> None:
    bound = entry("read workdir/in except workdir/in/keys").bind(str(tmp_path))
    assert (bound.target, bound.excepts) == (f"{tmp_path}/in", (f"{tmp_path}/in/keys",))
    assert entry("read workdir").bind(str(tmp_path)).target == str(tmp_path)
    plain = entry("read ./workdir")
    assert plain.bind(str(tmp_path)) is plain


def test_an_entry_that_a_run_makes_impossible_names_its_place(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InvalidPolicy) as problem:
        entry("write workdir/loop").bind(str(tmp_path))
    assert str(problem.value) == (
        "policy:3:5: `write workdir/loop` can't be used here: its symbolic links form a loop"
    )


def test_links_in_an_entry_are_resolved_when_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to("elsewhere")
    assert entry("read ./data/x", base=str(tmp_path)).target == f"{tmp_path}/elsewhere/x"


def test_targets_of_intents_have_one_spelling() -> None:
    assert canonical_target("read", "a/../b/", base="/w") == "/w/b"
    assert canonical_target("read", "workdir", base="/w") == "/w/workdir"  # the path word is for policies
    assert canonical_target("network", "A.example:443", base="/w") == "a.example:443"
    assert canonical_target("network", "any", base="/w") == "any"
    assert canonical_target("network", "private", base="/w") == "private"
    assert canonical_target("tool", "find_order", base="/w") == "find_order"
    assert canonical_target("shell", "", base="/w") is None
    for action, target, reason in (
        ("shell", "ls", "`shell` takes no target, found `ls`"),
        ("tool", "a-b", "`a-b` is no name of a tool"),
        ("network", "*.example.com:443", "`*.example.com:443` has a `*`"),
        ("network", "10.0.0.0/8:443", "`10.0.0.0/8` is no host name"),
        ("read", "", "the path `` can't be used: it is empty"),
    ):
        with pytest.raises(ValueError) as problem:
            canonical_target(action, target, base="/w")  # type: ignore[arg-type]
        assert str(problem.value).startswith(reason)


TREE = ["/", "/a", "/a/b", "/a/b/c", "/a/d", "/ab", "/e"]
PATHS = st.sampled_from(TREE)


@st.composite
def entries(draw: st.DrawFn) -> Pattern:
    target = draw(PATHS)
    inside = [p for p in TREE if p.startswith(target.rstrip("/") + "/") and p != target]
    gaps = draw(st.lists(st.sampled_from(inside), max_size=2)) if inside else []
    return entry(" except ".join([f"read {target}", *gaps]))


@given(entries(), entries(), PATHS)
def test_what_shadows_covers_all_that_the_other_does(cover: Pattern, other: Pattern, path: str) -> None:
    if cover.shadows(other) and other.covers(path):
        assert cover.covers(path)


@given(st.text(max_size=40), st.sampled_from(["allow", "ask", "deny"]))
def test_any_text_is_an_entry_or_a_reason(text: str, effect: Effect) -> None:
    for line in (text, f"read {text}", f"network {text}", f"tool {text}", f"write workdir/{text}"):
        try:
            read = entry(line, effect)
        except ValueError as problem:
            assert str(problem)
        else:
            assert read.text == line
