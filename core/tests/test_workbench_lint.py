"""What can never matter is told, with what makes it so; what can matter is left alone."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.opening import opened
from licet.policy import PolicyStack
from licet.policy.document import settled
from licet.policy.patterns import Effect
from licet.request import Intent
from licet.rules import Rules
from licet.testing import strategies
from licet.workbench.lint import lint

StackOf = Callable[..., PolicyStack]
EFFECTS: tuple[Effect, ...] = ("allow", "ask", "deny")
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def found(stack: PolicyStack) -> list[tuple[str, str, str]]:
    bounds = tuple(map(settled, stack.bounds))
    loaded = replace(stack, root=settled(stack.root), bounds=bounds)
    return [(one.severity, f"{one.where} {one.code}", one.message) for one in lint(loaded, NOW)]


def rule(text: str) -> str:
    return f"rules:\n  - {{id: r, {text}}}"


# Entries


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            "allow: [read ./a, read ./a/b]",
            "root:2:19 redundant-entry `allow: read ./a/b` adds nothing: "
            "`read ./a` in root:2:9 says all of it",
        ),
        (
            "deny: [network x.com, network x.com:443]",
            "root:2:23 redundant-entry `deny: network x.com:443` adds nothing: "
            "`network x.com` in root:2:8 says all of it",
        ),
        (
            "ask: [tool f, tool f]",
            "root:2:15 redundant-entry `ask: tool f` adds nothing: `tool f` in root:2:7 says the same",
        ),
    ],
)
def test_an_entry_that_another_one_says_is_redundant(stack_of: StackOf, policy: str, message: str) -> None:
    assert [f"{place} {text}" for _, place, text in found(stack_of(policy))] == [message]


@pytest.mark.parametrize(
    "policy",
    [
        "allow: [read ./a except ./a/b, read ./a/b/c]",
        "ask: [read ./a, read ./a/b]",  # each opens only where it is named
        "allow: [read ./a, write ./a]",
        "deny: [network x.com:443]\nallow: [network x.com:80]",
    ],
)
def test_entries_that_differ_are_left_alone(stack_of: StackOf, policy: str) -> None:
    assert found(stack_of(policy)) == []


def test_an_entry_that_an_unconditional_rule_denies_is_dead(stack_of: StackOf) -> None:
    stack = stack_of("allow: [read ./a/b, read ./c]\nrules:\n  - {id: no-a, deny: read ./a}")
    assert found(stack)[0] == (
        "error",
        "root:2:9 dead-entry",
        "`allow: read ./a/b` can never matter: "
        "the rule `no-a` in root:4:5 denies `read ./a`, and always applies",
    )


@pytest.mark.parametrize(
    ("root", "bound", "messages"),
    [
        (
            "allow: [network a.com:443, network b.com:443]",
            "name: org\nallow: [network a.com:443]",
            ["`allow: network b.com:443` opens nothing: the bound `org` leaves it out"],
        ),
        ("allow: [network '*.x.com:443']".replace("'", ""), "allow: [network a.x.com:443]", []),
        ("allow: ['tool find*']", "allow: ['tool *_order']", []),
        ("allow: ['tool find*']", "tools: {find_order: {}}", []),
        (
            "allow: ['tool find*']",
            "tools: {refund: {}}",
            ["`allow: tool find*` opens nothing: the bound `bound1` does not list it in `tools`"],
        ),
        ("allow: [read ./a]", "allow: [read ./a/b]", []),
        ("allow: [read workdir]", "allow: [read ./a]", []),  # only a run can tell
        (
            "allow: [shell]",
            "rules: [{id: no-shell, deny: shell}]",
            ["`allow: shell` opens nothing: the rule `no-shell` (bound1:2) denies it"],
        ),
    ],
)
def test_an_entry_that_the_bounds_close(
    stack_of: StackOf, root: str, bound: str, messages: list[str]
) -> None:
    got = found(stack_of(root, bound))
    assert [text for _, _, text in got] == messages
    assert all(place.endswith("closed-by-bound") for _, place, _ in got)


def test_two_bounds_can_close_an_entry_together(stack_of: StackOf) -> None:
    got = found(stack_of("allow: [read ./a]", "allow: [read ./a/b]", "allow: [read ./a/c]"))
    assert [place for _, place, _ in got] == ["root:2:9 closed-by-bound"]


def test_an_entry_inside_licets_own_state_opens_nothing(stack_of: StackOf) -> None:
    stack = stack_of("allow: [read ./s/log]", sealed=("/p/s",))
    assert found(stack) == [
        (
            "warning",
            "root:2:9 sealed-entry",
            "`allow: read ./s/log` opens nothing: `/p/s` belongs to licet itself and is never opened",
        )
    ]


# Rules that can't bite


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("deny: tool f", "`deny: tool f`: it is denied anyway: nothing allows it"),
        ("ask: tool f", "`ask: tool f`: it is denied anyway: nothing allows it"),
        ("deny: read ./no/x", "`deny: read ./no/x`: it is denied anyway: root:3 denies it"),
        ("ask: read ./ask", "`ask: read ./ask`: root:4:7 asks about it just so anyway"),
        ("limits: {memory: 2GiB}", "`limits.memory`: memory is 1 GiB already"),
        ("limits: {wall_time: 60s}", "`limits.wall_time`: wall_time is 1 min already"),
        (
            "sandbox: {require: {timeout: partial}}",
            "`require timeout`: it is required as enforced already",
        ),
        ("sandbox: {evidence: probed}", "`evidence`: probed is asked for already"),
        ("sandbox: {only: [a, b, c]}", "`only`: only a and b is admitted already"),
        ("audit: {mode: required}", "`audit.mode`: it is required already"),
        ("audit: {content: digest}", "`audit.content`: it is digest already"),
    ],
)
@pytest.mark.parametrize("when", ["", ", if: {tenant: acme}"])
def test_a_rule_that_can_never_bite(stack_of: StackOf, text: str, because: str, when: str) -> None:
    stack = stack_of(
        "allow: [read ./ok, write ./ok]\ndeny: [read ./no]\nask: [read ./ask]\n"
        "limits: {memory: 1GiB}\nsandbox: {require: {timeout: enforced}, only: [a, b]}\n" + rule(text + when)
    )
    assert found(stack) == [
        ("error", "root:8:5 idle-rule", f"the rule `r` can never change anything ({because})")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "deny: run",
        "ask: run",
        "deny: read ./ok/x",
        "deny: read ., if: {group: a}",
        "ask: read ./ok",
        "ask: read ./ask/x",
        "ask: read ./ask, approval: {reviewer: human}",
        "ask: read ./ask/x, approval: {count: 2}",
        "deny: read workdir/x",
        "limits: {memory: 1023MiB}",
        "limits: {cpu_time: 1h}",
        "limits: {wall_time: 59s}",
        "sandbox: {require: {timeout: enforced, cancellation: partial}}",
        "sandbox: {only: [a]}",
        "approval: {count: 2}",
    ],
)
def test_a_rule_that_can_bite(stack_of: StackOf, text: str) -> None:
    stack = stack_of(
        "allow: [read ./ok, write ./ok]\ndeny: [read ./no]\nask: [read ./ask]\n"
        "limits: {memory: 1GiB}\nsandbox: {require: {timeout: partial}, only: [a, b]}\n" + rule(text)
    )
    assert found(stack) == []


def test_a_rule_of_a_bound_is_held_against_its_own_document_alone(stack_of: StackOf) -> None:
    stack = stack_of("", rule("deny: shell, limits: {wall_time: 5m}") + "\n")
    assert found(stack) == []
    mentions = stack_of("", "allow: [tool f]\n" + rule("deny: tool g"))
    assert [place for _, place, _ in found(mentions)] == ["bound1:4:5 idle-rule"]


def test_a_part_of_a_rule_can_be_idle(stack_of: StackOf) -> None:
    stack = stack_of("limits: {memory: 1MiB}\n" + rule("limits: {memory: 2MiB, files: 1MiB}"))
    assert found(stack) == [
        (
            "warning",
            "root:4:5 idle-part",
            "`limits.memory` of the rule `r` changes nothing: memory is 1 MiB already",
        )
    ]


def test_a_rule_that_bites_only_without_the_bounds(stack_of: StackOf) -> None:
    stack = stack_of("allow: [shell]\n" + rule("ask: shell, if: {group: a}"), "deny: [shell]")
    assert [place for _, place, _ in found(stack)] == [
        "root:2:9 closed-by-bound",
        "root:4:5 idle-under-bounds",
    ]


def test_a_tool_that_a_bound_lists_is_one_that_a_rule_may_be_about(stack_of: StackOf) -> None:
    assert found(stack_of("allow: [tool f*]\n" + rule("ask: tool f*"), "tools: {fa: {}}")) == []
    assert found(stack_of("", "tools: {fa: {}}\n" + rule("ask: tool f*"))) == []


def test_an_approval_without_anything_that_asks(stack_of: StackOf) -> None:
    got = found(stack_of("allow: [tool f]\n" + rule("approval: {count: 2}")))
    assert got == [
        (
            "warning",
            "root:4:5 idle-approval",
            "the rule `r` demands an approval, and no entry or rule ever asks",
        )
    ]


@pytest.mark.parametrize(
    ("first", "second", "shadowed"),
    [
        ("deny: shell", "deny: shell, if: {group: a}", "second"),
        ("deny: shell, if: {group: a}", "deny: shell", "first"),
        ("deny: shell", "deny: shell", "second"),
        ("deny: shell, if: {tenant: [a, b]}", "deny: shell, if: {tenant: a}", "second"),
        ("deny: shell, if: {tenant: a}", "ask: shell, if: {tenant: a, group: g}", "second"),
        ("deny: shell, unless: {group: a}", "deny: shell, unless: {group: [a, b]}", "second"),
        ("deny: shell", "limits: {memory: 1MiB}", None),
        ("ask: shell", "ask: shell, approval: {count: 2}", None),
        ("deny: shell, if: {tenant: a}", "deny: shell, if: {tenant: b}", None),
        ("deny: shell, unless: {group: a}", "deny: shell, if: {tenant: b}", None),
        ("limits: {memory: 1MiB}", "limits: {memory: 2MiB}, if: {group: a}", "second"),
        ("limits: {memory: 2MiB}", "limits: {memory: 1MiB}, if: {group: a}", None),
    ],
)
def test_a_rule_that_another_one_covers(
    stack_of: StackOf, first: str, second: str, shadowed: str | None
) -> None:
    stack = stack_of(f"rules:\n  - {{id: first, {first}}}\n  - {{id: second, {second}}}\nask: [shell]")
    told = [text.split("`")[1] for _, place, text in found(stack) if place.endswith("shadowed-rule")]
    assert told == ([shadowed] if shadowed else [])


# Conditions


@pytest.mark.parametrize(
    "when",
    [
        "if: {tenant: a}, unless: {tenant: [a, b]}",
        "if: [{tenant: a}, {tenant: b}]",
        "if: {group: a}, unless: {group: a}",
        "if: {property.pro: true}, unless: {property.pro: true}",
        "if: {after: 2026-03-01, before: 2026-02-01}",
        "if: {language: javascript}",
        "if: {before: 2026-01-03T00:00:00Z, after: 2026-01-01T00:00:00Z}, during: {days: mon, zone: UTC}",
    ],
)
def test_a_condition_that_nothing_meets(stack_of: StackOf, when: str) -> None:
    codes = [place for _, place, _ in found(stack_of(rule(f"deny: run, {when}")))]
    assert "root:3:5 impossible-condition" in codes


@pytest.mark.parametrize(
    "when",
    [
        "if: {tenant: a}, unless: {tenant: b}",
        "if: [{group: a}, {group: b}]",
        "if: {group: [a, b]}, unless: {group: a}",
        "if: {property.plan: [1, 2]}, unless: {property.plan: 1}",
        "if: {after: 2026-02-01, before: 2027-03-01}",
        "if: {before: 2027-01-06T00:00:00Z, after: 2027-01-01T00:00:00Z}, during: {days: mon, zone: UTC}",
        "during: [{days: sun, hours: '02:30-03:00', zone: Europe/Berlin}]",
        "unless: {subject: ada, group: a}",
    ],
)
def test_a_condition_that_something_meets(stack_of: StackOf, when: str) -> None:
    assert found(stack_of(rule(f"deny: run, {when}"))) == []


def test_what_is_over_is_told(stack_of: StackOf) -> None:
    stack = stack_of(
        "rules:\n"
        "  - {id: freeze, deny: run, during: {from: 2026-01-01, until: 2026-02-01, zone: UTC}}\n"
        "  - {id: waived, deny: shell, unless: {before: 2026-03-02T12:00:00Z}}\n"
        "  - {id: later, deny: run, unless: {before: 2026-03-02T12:00:01Z}}\n"
        "ask: [shell]"
    )
    assert found(stack) == [
        (
            "warning",
            "root:3:29 ended-rule",
            "the rule `freeze` applies no more: `from: 2026-01-01, until: 2026-02-01, zone: UTC` ended at "
            "2026-02-01T00:00Z",
        ),
        (
            "warning",
            "root:4:40 ended-exception",
            "the exception `before: 2026-03-02T12:00:00Z` of the rule `waived` ended at 2026-03-02T12:00Z",
        ),
    ]


# Bounds


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (
            ["name: org"],
            "the bound `org` can never change anything, since it says nothing that could restrict",
        ),
        (
            ["deny: [shell]", "deny: [shell]"],
            "the bound `bound2` can never change anything, beside `bound1`",
        ),
        (
            ["limits: {memory: 2MiB}", "limits: {memory: 1MiB}"],
            "the bound `bound1` can never change anything, beside `bound2`",
        ),
        (
            ["allow: [read ./a, read ./b]", "allow: [read ./a/c]"],
            "the bound `bound1` can never change anything, beside `bound2`",
        ),
        (
            ["deny: [shell]", "limits: {memory: 1MiB}", "deny: [shell]\nlimits: {memory: 2MiB}"],
            "the bound `bound3` can never change anything, beside the other bounds together",
        ),
    ],
)
def test_a_bound_that_changes_nothing(stack_of: StackOf, bounds: list[str], message: str) -> None:
    told = [text for _, place, text in found(stack_of("", *bounds)) if place.endswith("superfluous-bound")]
    assert told == [message]


@pytest.mark.parametrize(
    "bounds",
    [
        ["deny: [shell]"],  # the root allows no shell today
        ["screen: {mode: refuse}"],
        ["limits: {memory: 1MiB}", "limits: {files: 1MiB}"],
        ["ask: [shell]", "ask: [shell]\napproval: {count: 2}"],
        ["deny: [read ./a]", "deny: [read ./a/b, write ./a]"],
        ["tools: {f: {}}", "tools: {g: {}}"],
        ["rules: [{id: a, deny: shell}]", "rules: [{id: b, deny: run}]"],
        ["sandbox: {only: [a]}", "sandbox: {only: [b]}"],
    ],
)
def test_bounds_that_each_change_something(stack_of: StackOf, bounds: list[str]) -> None:
    told = [text for _, place, text in found(stack_of("", *bounds)) if place.endswith("superfluous-bound")]
    assert told == []


# What is called idle is idle: decisions are the same without it

INTENTS = st.lists(strategies.intents(), max_size=4, unique=True)


def votes(stack: PolicyStack, intents: list[Intent]) -> list[tuple[str, frozenset[object]]]:
    """The answers of a stack all of whose rules apply."""
    hits = tuple(one for document in stack.documents for one in document.rules)
    rules = Rules.of(stack.applying(hits), "/w")
    found = [rules.vote(intent) for intent in (Intent("run"), *intents)]
    return [(v.effect, frozenset(v.demands) if v.effect == "ask" else frozenset()) for v in found]


@settings(deadline=None, max_examples=40)
@given(strategies.policies(), INTENTS)
def test_without_a_redundant_entry_all_is_the_same(policy: strategies.Policy, intents: list[Intent]) -> None:
    whole = policy.document
    for one in lint(PolicyStack(whole), NOW):
        assert one.code == "redundant-entry"
        kept = {
            effect: tuple(entry for entry in whole.of(effect) if entry.where != one.where)
            for effect in EFFECTS
        }
        without = PolicyStack(whole.model_copy(update=kept))
        assert votes(without, intents) == votes(PolicyStack(whole), intents)
        opens = [_opened(stack, intents) for stack in (without, PolicyStack(whole))]
        assert opens[0] == opens[1]


def _opened(stack: PolicyStack, intents: list[Intent]) -> list[bool]:
    """Which of the intents are open, among all that is allowed."""
    found = opened(Rules.of(stack, "/w"), (), everything=True, tools=())
    return [found.opens(one.action, one.target or "") for one in intents if one.action != "tool"]


@settings(deadline=None, max_examples=40)
@given(
    strategies.policies(), st.lists(strategies.policies(), min_size=1, max_size=3), INTENTS, st.integers(0, 2)
)
def test_without_a_superfluous_bound_all_is_the_same(
    root: strategies.Policy, bounds: list[strategies.Policy], intents: list[Intent], repeat: int
) -> None:
    documents = [*(one.document for one in bounds), bounds[repeat % len(bounds)].document]
    named = tuple(d.model_copy(update={"file": f"bound{n}"}) for n, d in enumerate(documents))
    stack = PolicyStack(root.document, named)
    superfluous = {one.where.file for one in lint(stack, NOW) if one.code == "superfluous-bound"}
    assert superfluous
    without = replace(stack, bounds=tuple(bound for bound in named if bound.file not in superfluous))
    assert votes(without, intents) == votes(stack, intents)
    assert without.limits == stack.limits


@settings(deadline=None, max_examples=40)
@given(strategies.policies(), st.lists(strategies.intents().map(str), min_size=1, max_size=3), INTENTS)
def test_without_an_idle_rule_all_is_the_same(
    policy: strategies.Policy, denied: list[str], intents: list[Intent]
) -> None:
    listed = ", ".join(f"{{id: r{number}, deny: {text!r}}}" for number, text in enumerate(denied))
    whole = strategies.document_of(f"{policy.text}rules: [{listed}]\n")
    stack = PolicyStack(settled(whole))
    idle = {one.where for one in lint(stack, NOW) if one.code in ("idle-rule", "shadowed-rule")}
    kept = tuple(one for one in whole.rules if one.where not in idle)
    without = PolicyStack(whole.model_copy(update={"rules": kept}))
    assert votes(without, intents) == votes(stack, intents)


@settings(deadline=None, max_examples=40)
@given(strategies.policies())
def test_a_policy_that_loads_has_no_error_in_its_entries(policy: strategies.Policy) -> None:
    assert [one for one in lint(PolicyStack(policy.document), NOW) if one.severity == "error"] == []
