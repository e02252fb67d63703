"""What a decision opens: roots and gaps, of which the innermost decides."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from licet.opening import opened
from licet.plan import Opened
from licet.policy import PolicyStack
from licet.request import Intent
from licet.rules import Rules

StackOf = Callable[..., PolicyStack]


def opening(
    stack: PolicyStack, *permitted: Intent, everything: bool = True, tools: tuple[str, ...] = ()
) -> Opened:
    return opened(Rules.of(stack, "/w"), permitted, everything=everything, tools=tools)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([""], Opened()),
        (["allow: [read ./a, write ./b]"], Opened(read=("/p/a",), write=("/p/b",))),
        (["allow: [read ./a/b, read ./a]"], Opened(read=("/p/a",))),
        (["allow: [read ./work, read ./workspace]"], Opened(read=("/p/work", "/p/workspace"))),
        (["allow: [read ./a]\ndeny: [read ./a/s]"], Opened(read=("/p/a",), read_masked=("/p/a/s",))),
        (["allow: [read ./a]\nask: [read ./a/s]"], Opened(read=("/p/a",), read_masked=("/p/a/s",))),
        (["allow: [read ./a except ./a/s]"], Opened(read=("/p/a",), read_masked=("/p/a/s",))),
        (["allow: [read ./a]\ndeny: [read .]"], Opened()),
        (["allow: [read ./a]\ndeny: [read ./b]"], Opened(read=("/p/a",))),
        # what is kept back from one action is not kept back from the other
        (["allow: [read ./a]\nask: [write ./a]"], Opened(read=("/p/a",))),
        (
            ["allow: [read ./a, write ./a]\ndeny: [write ./a/s]"],
            Opened(read=("/p/a",), write=("/p/a",), write_masked=("/p/a/s",)),
        ),
        # a root inside a masked path
        (
            ["allow: [read ./a except ./a/s, read ./a/s/t]"],
            Opened(read=("/p/a", "/p/a/s/t"), read_masked=("/p/a/s",)),
        ),
        (
            ["allow: [read ./a]\ndeny: [read ./a/s except ./a/s/t]"],
            Opened(read=("/p/a", "/p/a/s/t"), read_masked=("/p/a/s",)),
        ),
        (["allow: [read ./a/b]\ndeny: [read ./a except ./a/b]"], Opened(read=("/p/a/b",))),
        # the meet with bounds
        (["allow: [read ./a]", "allow: [read ./a/b, read ./c]"], Opened(read=("/p/a/b",))),
        (["allow: [read ./a/b]", "allow: [read ./a]"], Opened(read=("/p/a/b",))),
        (["allow: [read ./a]", "allow: [write ./a]"], Opened(read=("/p/a",))),
        (["allow: [read ./a]", "deny: [read ./a/s]"], Opened(read=("/p/a",), read_masked=("/p/a/s",))),
        (["allow: [read ./a]", "allow: [read ./b]"], Opened()),
        (["allow: [read workdir]\ndeny: [read workdir/s]"], Opened(read=("/w",), read_masked=("/w/s",))),
    ],
)
def test_paths(stack_of: StackOf, texts: list[str], expected: Opened) -> None:
    assert opening(stack_of(*texts)) == expected


def test_licets_own_is_sealed_wherever_it_lies_inside(stack_of: StackOf) -> None:
    stack = stack_of("allow: [read ./a, write /]", sealed=("/p/a/.licet", "/etc/licet", "/p/a/policy.yaml"))
    found = opening(stack)
    assert found.sealed == ("/p/a/.licet", "/etc/licet", "/p/a/policy.yaml")
    assert opening(stack_of("allow: [read ./a]", sealed=("/p/b",))).sealed == ()
    assert not found.opens("write", "/p/a/.licet/log")
    assert found.opens("write", "/p/a/.licets")


@pytest.mark.parametrize(
    ("named", "everything", "expected"),
    [
        ((), True, Opened(read=("/p/a",), read_masked=("/p/a/s",))),
        ((), False, Opened()),
        (("/p/a/b",), False, Opened(read=("/p/a/b",))),
        (("/p/a",), False, Opened(read=("/p/a",), read_masked=("/p/a/s",))),
        (("/p/a/s",), True, Opened(read=("/p/a",))),
        (("/p/a/s",), False, Opened(read=("/p/a/s",))),
        # naming a part of what is asked about opens that part
        (("/p/a/s/t",), True, Opened(read=("/p/a", "/p/a/s/t"), read_masked=("/p/a/s",))),
        (("/p/a", "/p/a/s/t"), False, Opened(read=("/p/a", "/p/a/s/t"), read_masked=("/p/a/s",))),
    ],
)
def test_ask_targets_open_only_where_an_intent_names_them(
    stack_of: StackOf, named: tuple[str, ...], everything: bool, expected: Opened
) -> None:
    stack = stack_of("allow: [read ./a]\nask: [read ./a/s]")
    intents = [Intent("read", target) for target in named]
    assert opening(stack, *intents, everything=everything) == expected


def test_an_approval_does_not_reach_what_another_entry_asks_about(stack_of: StackOf) -> None:
    """Who approves `read ./a` was not asked by the bound about `./a/s`."""
    stack = stack_of("ask: [read ./a]", "ask: [read ./a/s]\nallow: [read ./a]")
    assert opening(stack, Intent("read", "/p/a")) == Opened(read=("/p/a",), read_masked=("/p/a/s",))
    assert opening(stack, Intent("read", "/p/a"), Intent("read", "/p/a/s")) == Opened(read=("/p/a",))


@pytest.mark.parametrize(
    ("texts", "network", "masked"),
    [
        (["allow: ['network a.x.com:443']"], ("a.x.com:443",), ()),
        (["allow: ['network *.x.com:443', 'network a.x.com:443']"], ("*.x.com:443",), ()),
        (["allow: ['network any']"], ("any",), ()),
        (["allow: ['network any']\ndeny: ['network a.x.com']"], ("any",), ("a.x.com",)),
        (["allow: ['network *.x.com:443']\ndeny: ['network a.x.com']"], ("*.x.com:443",), ("a.x.com:443",)),
        (["allow: ['network *.x.com:443 except a.x.com']"], ("*.x.com:443",), ("a.x.com:443",)),
        (
            ["allow: ['network *.x.com:443']\nask: ['network a.x.com:443']"],
            ("*.x.com:443",),
            ("a.x.com:443",),
        ),
        (
            ["allow: ['network a.x.com:443']\nask: ['network *.x.com:443 except a.x.com:443']"],
            ("a.x.com:443",),
            (),
        ),
        (
            ["allow: ['network any']\ndeny: ['network *.x.com except a.x.com']"],
            ("a.x.com", "any"),
            ("*.x.com",),
        ),
        (["allow: ['network any']", "allow: ['network *.x.com:443']"], ("*.x.com:443",), ()),
        (["allow: ['network *.x.com:443']", "allow: ['network *.b.x.com:443']"], ("*.b.x.com:443",), ()),
        (["allow: ['network *.x.com:443']", "allow: ['network *.x.com:80']"], (), ()),
        (["allow: ['network a.x.com:443']", "deny: ['network any']"], (), ()),
        # two gaps that meet in a target which neither of them names
        (
            ["allow: ['network any except *.x.com:443', 'network any except a.x.com']"],
            ("any",),
            ("a.x.com:443",),
        ),
    ],
)
def test_hosts(
    stack_of: StackOf, texts: list[str], network: tuple[str, ...], masked: tuple[str, ...]
) -> None:
    found = opening(stack_of(*texts))
    assert replace(found, network_asked=()) == Opened(network=network, network_masked=masked)


@pytest.mark.parametrize(
    ("texts", "asked"),
    [
        (["allow: ['network *.x.com:443']"], ()),
        (["ask: ['network *.x.com:443']"], ("*.x.com:443",)),
        (["ask: ['network *.x.com:443', 'network a.x.com:443']"], ("*.x.com:443",)),
        (["ask: ['network *.x.com:443']\nallow: ['network a.x.com:443']"], ("*.x.com:443",)),
        (["allow: ['network *.x.com:443']\nask: ['network a.x.com:443']"], ("a.x.com:443",)),
        (["ask: ['network *.x.com:443']\ndeny: ['network *.x.com']"], ()),
        (["ask: ['network *.x.com:443']", "allow: ['network any']"], ("*.x.com:443",)),
        (["ask: ['network *.x.com:443']", "allow: ['network y.com:443']"], ()),
        (["allow: ['network any']", "ask: ['network *.x.com:443']"], ("*.x.com:443",)),
    ],
)
def test_what_asks_is_kept_apart_to_be_asked_about_when_the_code_connects(
    stack_of: StackOf, texts: list[str], asked: tuple[str, ...]
) -> None:
    found = opening(stack_of(*texts))
    assert found.network_asked == asked
    assert not any(found.opens("network", one) for one in asked)


def test_a_list_of_intents_leaves_nothing_to_be_asked_about_later(stack_of: StackOf) -> None:
    stack = stack_of("ask: ['network *.x.com:443']")
    found = opening(stack, Intent("network", "a.x.com:443"), everything=False)
    assert (found.network, found.network_asked) == (("a.x.com:443",), ())


def test_a_plan_asks_about_what_a_pattern_covers_and_no_other_host_or_port() -> None:
    plan = Opened(network_asked=("*.x.com:443", "10.0.0.0/8:80"))
    asked = [
        one
        for one in ("a.x.com:443", "x.com:443", "a.x.com:80", "10.1.2.3:80", "1.1.1.1:80")
        if plan.asks(one)
    ]
    assert asked == ["a.x.com:443", "10.1.2.3:80"]


def test_a_named_host_opens_when_it_is_asked_about(stack_of: StackOf) -> None:
    stack = stack_of("allow: ['network *.x.com:443']\nask: ['network a.x.com:443']")
    found = opening(stack, Intent("network", "a.x.com:443"))
    assert (found.network, found.network_masked) == (("*.x.com:443",), ())
    found = opening(stack, Intent("network", "b.x.com:443"), everything=False)
    assert (found.network, found.network_masked) == (("b.x.com:443",), ())


@pytest.mark.parametrize(
    ("policy", "named", "everything", "shell"),
    [
        ("", False, True, False),
        ("allow: [shell]", False, True, True),
        ("allow: [shell]", False, False, False),
        ("allow: [shell]", True, False, True),
        ("ask: [shell]", False, True, False),
        ("ask: [shell]", True, True, True),
        ("deny: [shell]", True, True, False),
    ],
)
def test_shell(stack_of: StackOf, policy: str, named: bool, everything: bool, shell: bool) -> None:
    intents = (Intent("shell"),) if named else ()
    assert opening(stack_of(policy), *intents, everything=everything).shell == shell


def test_tools_that_were_passed_are_opened_and_decided_when_called(stack_of: StackOf) -> None:
    assert opening(stack_of("deny: ['tool *']"), tools=("find",)).tools == ("find",)


@pytest.mark.parametrize(
    ("action", "target", "opens"),
    [
        ("read", "/a", True),
        ("read", "/a/x", True),
        ("read", "/ab", False),
        ("read", "/a/s", False),
        ("read", "/a/s/x", False),
        ("read", "/a/s/t/x", True),
        ("read", "/a/own", False),
        ("write", "/a", False),
        ("write", "/b/s", True),
        ("network", "q.x.com:443", True),
        ("network", "q.x.com:80", False),
        ("network", "q.s.x.com:443", False),
        ("network", "t.s.x.com:443", True),
        ("shell", "", True),
        ("tool", "find", True),
        ("tool", "pay", False),
        ("run", "", False),
    ],
)
def test_of_roots_and_masks_the_innermost_decides(action: str, target: str, opens: bool) -> None:
    found = Opened(
        read=("/a", "/a/s/t"),
        write=("/b",),
        read_masked=("/a/s",),
        sealed=("/a/own",),
        network=("*.x.com:443", "t.s.x.com:443"),
        network_masked=("*.s.x.com:443",),
        shell=True,
        tools=("find",),
    )
    assert found.opens(action, target) == opens  # type: ignore[arg-type]


def test_the_root_directory_opens_everything_but_what_is_masked() -> None:
    found = Opened(read=("/",), read_masked=("/etc",))
    assert [found.opens("read", path) for path in ("/", "/usr", "/etc", "/etc/x")] == [
        True,
        True,
        False,
        False,
    ]
    assert not Opened(read=("/",), read_masked=("/",)).opens("read", "/x")
