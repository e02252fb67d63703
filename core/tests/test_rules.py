"""What documents answer to one intent, and who is named for it."""

from collections.abc import Callable

import pytest
from licet.policy import PolicyStack
from licet.request import RUN, Intent
from licet.rules import By, Rules, includes

StackOf = Callable[..., PolicyStack]


def vote(stack: PolicyStack, intent: Intent) -> tuple[str, list[str], str]:
    found = Rules.of(stack, "/w").vote(intent)
    return found.effect, [f"{by} {by.rule}" for by in found.by], found.reason


READ = Intent("read", "/p/a")


@pytest.mark.parametrize(
    ("policy", "effect", "by", "reason"),
    [
        ("", "deny", ["root no `read`"], "nothing allows it"),
        ("allow: [read ./a]", "allow", ["root:2 allow: read ./a"], "root:2 allows it"),
        ("ask: [read ./a]", "ask", ["root:2 ask: read ./a"], "root:2 asks about it"),
        ("deny: [read .]\nallow: [read ./a]", "deny", ["root:2 deny: read ."], "root:2 denies it"),
        ("allow: [read .]\nask: [read ./a]", "ask", ["root:3 ask: read ./a"], "root:3 asks about it"),
        (
            "allow: [read ., read ./a]",
            "allow",
            ["root:2 allow: read .", "root:2 allow: read ./a"],
            "root:2 allows it",
        ),
        (
            "allow: [read ./a/b]",
            "deny",
            ["root:2 allow: read ./a/b"],
            "only a part of it is allowed: `read ./a/b` (root:2)",
        ),
        ("allow: [read . except ./a]", "deny", ["root no `read`"], "nothing allows it"),
        ("allow: [write ./a]", "deny", ["root no `read`"], "nothing allows it"),
        (
            "deny: [read . except ./a]\nallow: [read ./a]",
            "allow",
            ["root:3 allow: read ./a"],
            "root:3 allows it",
        ),
    ],
)
def test_one_document(stack_of: StackOf, policy: str, effect: str, by: list[str], reason: str) -> None:
    assert vote(stack_of(policy), READ) == (effect, by, reason)


@pytest.mark.parametrize(
    ("bound", "effect", "by", "reason"),
    [
        ("", "allow", ["root:2 allow: read ./a"], "root:2 allows it"),
        ("allow: [shell]", "allow", ["root:2 allow: read ./a"], "root:2 allows it"),  # silent about `read`
        (
            "allow: [read .]",
            "allow",
            ["root:2 allow: read ./a", "bound1:2 allow: read ."],
            "root:2 allows it",
        ),
        ("ask: [read ./a]", "ask", ["bound1:2 ask: read ./a"], "bound1:2 asks about it"),
        ("deny: [read /]", "deny", ["bound1:2 deny: read /"], "bound1:2 denies it"),
        ("allow: [read ./b]", "deny", ["bound1 no `read`"], "the bound `bound1` leaves it out"),
        (
            "name: acme/org\nask: [read ./b]",
            "deny",
            ["bound1 no `read`"],
            "the bound `acme/org` leaves it out",
        ),
        ("deny: [read ./b]", "allow", ["root:2 allow: read ./a"], "root:2 allows it"),  # `deny` is no mention
    ],
)
def test_a_bound_omits_what_it_mentions_and_abstains_where_it_is_silent(
    stack_of: StackOf, bound: str, effect: str, by: list[str], reason: str
) -> None:
    assert vote(stack_of("allow: [read ./a]", bound), READ) == (effect, by, reason)


def test_everybody_who_gives_the_worst_answer_is_named(stack_of: StackOf) -> None:
    stack = stack_of("allow: [read ./a]", "deny: [read ./a]", "ask: [read ./a]", "deny: [read .]")
    assert vote(stack, READ) == (
        "deny",
        ["bound1:2 deny: read ./a", "bound3:2 deny: read ."],
        "bound1:2 denies it",
    )


def test_bounds_never_grant(stack_of: StackOf) -> None:
    assert vote(stack_of("", "allow: [read /]"), READ)[0] == "deny"


@pytest.mark.parametrize(
    ("texts", "effect"),
    [
        ([""], "allow"),
        (["allow: [run]"], "allow"),
        (["ask: [run]"], "ask"),
        (["deny: [run]"], "deny"),
        (["", "deny: [run]"], "deny"),
        (["", "ask: [run]"], "ask"),
        (["deny: [shell]", "allow: [shell]"], "allow"),
    ],
)
def test_running_is_allowed_unless_something_asks_or_denies(
    stack_of: StackOf, texts: list[str], effect: str
) -> None:
    assert vote(stack_of(*texts), RUN)[0] == effect


@pytest.mark.parametrize("action", ["read", "write"])
@pytest.mark.parametrize(
    ("target", "effect"),
    [
        ("/p/.licet", "deny"),
        ("/p/.licet/log/1", "deny"),
        ("/p/.licets", "allow"),
        ("/p", "allow"),
        ("/", "allow"),
    ],
)
def test_what_is_sealed_is_never_granted(stack_of: StackOf, action: str, target: str, effect: str) -> None:
    stack = stack_of("allow: [read /, write /]", sealed=("/p/.licet",))
    found = vote(stack, Intent(action, target))  # type: ignore[arg-type]
    assert found[0] == effect
    if effect == "deny":
        assert found[1:] == (
            ["licet never grantable: /p/.licet"],
            "`/p/.licet` belongs to licet itself and is never opened",
        )


@pytest.mark.parametrize(
    ("policy", "bounds", "action", "effect"),
    [
        ("", [], "read", "deny"),
        ("allow: [read ./a]", [], "read", "allow"),
        ("ask: [read ./a]", [], "read", "allow"),
        ("allow: [read ./a]\ndeny: [read .]", [], "read", "deny"),
        ("allow: [read ./a]\ndeny: [read ./a/b]", [], "read", "allow"),
        ("allow: [read ./a]", ["allow: [read ./b]"], "read", "deny"),
        ("allow: [read ./a]", ["allow: [read ./a/b, read ./a/c]", "deny: [read ./a/b]"], "read", "allow"),
        ("allow: [read ./a]", ["allow: [read ./a/b]", "allow: [read ./a/c]"], "read", "deny"),
        ("allow: ['network *.x.com:443']", ["allow: ['network a.x.com:443']"], "network", "allow"),
        ("allow: ['network *.x.com:443']", ["allow: ['network a.x.com:80']"], "network", "deny"),
        ("allow: ['network any']", ["deny: ['network any']"], "network", "deny"),
    ],
)
def test_an_unknown_target_is_denied_only_if_no_target_is_obtainable(
    stack_of: StackOf, policy: str, bounds: list[str], action: str, effect: str
) -> None:
    found = vote(stack_of(policy, *bounds), Intent(action, None, "inferred"))  # type: ignore[arg-type]
    reasons = {
        "allow": "its target is not known yet: it is decided when it is accessed",
        "deny": f"nothing allows `{action}`, whatever its target",
    }
    assert (found[0], found[2]) == (effect, reasons[effect])


def test_an_unknown_target_names_the_entries_that_might_allow_it(stack_of: StackOf) -> None:
    stack = stack_of("allow: [read ./a, read ./b]\nask: [read ./c]\ndeny: [read ./b]")
    by = ["root:2 allow: read ./a", "root:3 ask: read ./c"]
    assert vote(stack, Intent("read", None, "inferred"))[1] == by


def test_workdir_is_the_directory_of_the_run(stack_of: StackOf) -> None:
    rules = Rules.of(
        stack_of("allow: [read workdir]\ndeny: [read workdir/keys]", "ask: [read workdir/x]"), "/w"
    )
    answers = {t: rules.vote(Intent("read", t)).effect for t in ("/w", "/w/keys/k", "/w/x", "/wx", "/p")}
    assert answers == {"/w": "deny", "/w/keys/k": "deny", "/w/x": "ask", "/wx": "deny", "/p": "deny"}


def test_what_decided_reads_as_a_place() -> None:
    assert str(By("agents.yaml", 5, "allow: run")) == "agents.yaml:5"
    assert str(By("licet", 0, "never grantable")) == "licet"


@pytest.mark.parametrize(
    ("outer", "inner", "included"),
    [
        (Intent("read", "/a"), Intent("read", "/a/b"), True),
        (Intent("read", "/a"), Intent("read", "/ab"), False),
        (Intent("read", "/a"), Intent("write", "/a"), False),
        (Intent("read", "/a"), Intent("read", None), True),
        (Intent("network", "any"), Intent("network", "x.com:1"), True),
        (Intent("network", "x.com:1"), Intent("network", "x.com:2"), False),
        (Intent("tool", "a"), Intent("tool", "a"), True),
        (Intent("tool", "a"), Intent("tool", "b"), False),
        (Intent("shell"), Intent("shell"), True),
    ],
)
def test_which_intent_includes_which(outer: Intent, inner: Intent, included: bool) -> None:
    assert includes(outer, inner) == included


# Rules that apply, and bounds that list tools


def ruled(stack: PolicyStack) -> PolicyStack:
    """The stack, with all of its rules applying."""
    return stack.applying(stack.rulebook.rules)


@pytest.mark.parametrize(
    ("rule", "effect", "by", "reason"),
    [
        ("deny: read ./a", "deny", ["root:3 r"], "the rule `r` (root:3) denies it"),
        ("deny: [read ./b, read .]", "deny", ["root:3 r"], "the rule `r` (root:3) denies it"),
        ("ask: read .", "ask", ["root:3 r"], "the rule `r` (root:3) asks about it"),
        ("ask: read ., deny: read ./a", "deny", ["root:3 r"], "the rule `r` (root:3) denies it"),
        ("ask: read ./b", "allow", ["root:2 allow: read ./a"], "root:2 allows it"),  # no mention
        ("deny: read ./a/b", "allow", ["root:2 allow: read ./a"], "root:2 allows it"),
        ("deny: write ./a", "allow", ["root:2 allow: read ./a"], "root:2 allows it"),
        ("deny: read . except ./a", "allow", ["root:2 allow: read ./a"], "root:2 allows it"),
        ("limits: {memory: 1}", "allow", ["root:2 allow: read ./a"], "root:2 allows it"),
    ],
)
def test_a_rule_that_applies_answers_beside_the_documents(
    stack_of: StackOf, rule: str, effect: str, by: list[str], reason: str
) -> None:
    stack = stack_of(f"allow: [read ./a]\nrules: [{{id: r, {rule}}}]")
    assert vote(ruled(stack), READ) == (effect, by, reason)
    assert vote(stack, READ)[0] == "allow"


def test_a_rule_of_a_bound_answers_too_and_grants_nothing(stack_of: StackOf) -> None:
    stack = ruled(stack_of("", "rules: [{id: r, ask: read ./a}]"))
    assert vote(stack, READ) == ("deny", ["root no `read`"], "nothing allows it")
    stack = ruled(stack_of("ask: [read ./a]", "rules: [{id: r, ask: read ./a}]"))
    assert vote(stack, READ)[1] == ["root:2 ask: read ./a", "bound1:2 r"]


def test_an_unknown_target_knows_of_the_rules_that_apply(stack_of: StackOf) -> None:
    stack = stack_of("allow: [read ./a]\nrules: [{id: r, deny: read .}]")
    unknown = Intent("read", None, "inferred")
    assert (vote(stack, unknown)[0], vote(ruled(stack), unknown)[0]) == ("allow", "deny")
    inside = ruled(stack_of("allow: [read ./a]\nrules: [{id: r, deny: read ./a/b}]"))
    assert Rules.of(inside, "/w").points("read") == {"/p/a", "/p/a/b"}


def test_workdir_in_a_rule_is_bound_too(stack_of: StackOf) -> None:
    stack = ruled(stack_of("allow: [read /]\nrules: [{id: r, deny: read workdir}]"))
    assert (vote(stack, Intent("read", "/w/x"))[0], vote(stack, Intent("read", "/v"))[0]) == ("deny", "allow")


@pytest.mark.parametrize(
    ("bound", "effect", "reason"),
    [
        ("tools: {pay: {}}", "allow", "root:3 allows it"),
        ("tools: {find: {}}", "deny", "the bound `bound1` does not list it in `tools`"),
        ("tools: {}", "deny", "the bound `bound1` does not list it in `tools`"),
        ("name: org\ntools: {}\nallow: [tool pay]", "deny", "the bound `org` does not list it in `tools`"),
        ("tools: {pay: {}}\nallow: [tool find]", "deny", "the bound `bound1` leaves it out"),
        ("tools: {pay: {}}\nask: [tool p*]", "ask", "bound1:3 asks about it"),
        ("allow: [shell]", "allow", "root:3 allows it"),
    ],
)
def test_a_bound_that_states_tools_denies_all_others(
    stack_of: StackOf, bound: str, effect: str, reason: str
) -> None:
    stack = stack_of("tools: {other: {}}\nallow: [tool *, shell]", bound)
    found = vote(stack, Intent("tool", "pay"))
    assert (found[0], found[2]) == (effect, reason)
    assert vote(stack, Intent("shell"))[0] == "allow"


def test_who_asks_says_what_it_demands(stack_of: StackOf) -> None:
    stack = ruled(
        stack_of(
            "allow: [read .]\nask: [read ./a]\napproval: {count: 2}\n"
            "rules:\n  - {id: r, ask: read ., approval: {from: [x]}}\n  - {id: s, ask: read .}\n"
            "  - {id: t, ask: write ., approval: {count: 9}}\n"
            "  - {id: u, deny: shell, approval: {count: 8}}\n"
        )
    )
    demands = Rules.of(stack, "/w").vote(READ).demands
    assert [str(demand) for demand in demands] == ["2 persons", "2 persons of x"]
    for silent in (Intent("write", "/p/a"), Intent("shell")):
        assert Rules.of(stack, "/w").vote(silent).demands == ()


@pytest.mark.parametrize(
    ("texts", "intent", "silent"),
    [
        ([""], READ, True),
        (["allow: [read ./a/b]"], READ, True),
        (["deny: [read .]"], READ, False),
        (["", "deny: [read .]"], READ, False),
        (["", "allow: [read ./b]"], READ, False),
        (["allow: [read ./a]", "deny: [read .]"], READ, False),
        (["rules: [{id: r, deny: read .}]"], READ, False),
        (["rules: [{id: r, ask: read .}]"], READ, True),
        (["allow: [read ./a]"], READ, False),
        ([""], Intent("read", None, "inferred"), True),
        (["deny: [read ./a]"], Intent("read", None, "inferred"), True),
        (["deny: [read /]"], Intent("read", None, "inferred"), False),
        (["deny: [write /]"], Intent("read", None, "inferred"), True),
        (["", "deny: [read /]"], Intent("read", None, "inferred"), False),
        (["rules: [{id: r, deny: read /}]"], Intent("read", None, "inferred"), False),
        (["allow: [read ./a]"], Intent("read", None, "inferred"), False),
    ],
)
def test_only_the_silence_of_the_root_is_an_omission(
    stack_of: StackOf, texts: list[str], intent: Intent, silent: bool
) -> None:
    assert Rules.of(ruled(stack_of(*texts)), "/w").vote(intent).omitted == silent
