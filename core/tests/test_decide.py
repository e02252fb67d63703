"""The decision: rules 7 to 12 of the language, on whole requests."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from licet.contract import Control, Evidence, Level
from licet.decide import Decision, decide_call
from licet.operations import Operation, intents_of
from licet.plan import Opened
from licet.policy import PolicyStack
from licet.policy.facts import CallFacts, Facts
from licet.request import Intent, ScreenReport, Subject, Violation

StackOf = Callable[..., PolicyStack]
Decided = Callable[..., Decision]

CORPUS = Path(__file__).parent / "data/paths_hosts.jsonl"
RULE_ROWS = [
    row for line in CORPUS.read_text().splitlines() if (row := json.loads(line))["class"] == "path-rule"
]
OPERATIONS: dict[str, Operation] = {
    "write": "write",
    "chmod": "change",
    "rmdir": "remove",
    "link": "link",
}

SHELL = Violation("shell", 3, "it starts a program", "leave it out")


def answers(decision: Decision) -> list[str]:
    return [f"{v.effect} {v.intent} {v.intent.source} {v.intent.when}" for v in decision.verdicts]


def seen(action: str, target: str | None = None, line: int = 1) -> Intent:
    return Intent(action, target, "inferred", line)  # type: ignore[arg-type]


@pytest.mark.parametrize("row", RULE_ROWS, ids=lambda row: row["id"])
def test_rule_rows_of_the_corpus(
    decided: Decided, stack_of: StackOf, tmp_path: Path, row: dict[str, Any]
) -> None:
    """`/sb` is a directory of this test."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/flink").symlink_to("../other/secret.txt")
    entries: dict[str, list[str]] = {"allow": [], "deny": []}
    for rule in row["rules"]:
        for key, path in rule.items():
            effect, _, action = key.partition("_")
            actions = [action] if action else ["read", "write"]
            entries[effect] += [f"{a} {path}".replace("/sb", str(tmp_path)) for a in actions]
    stack = stack_of("\n".join(f"{effect}: {json.dumps(lines)}" for effect, lines in entries.items()))
    named = row["path"].replace("/sb", str(tmp_path)).split(" -> ")
    decision = decided(stack, intents_of(OPERATIONS[row["op"]], *named))
    assert decision.effect == row["answer"], row["why"]


# Rule 8: None means all that is allowed, a list means exactly that


def test_none_opens_all_that_is_allowed_and_shows_it(decided: Decided, stack_of: StackOf) -> None:
    decision = decided(stack_of("allow: [read ./a, shell, 'network any']\nask: [write ./b]"))
    assert answers(decision) == [
        "allow run declared start",
        "allow read /p/a granted start",
        "allow network any granted start",
        "allow shell granted start",
    ]
    assert decision.effect == "allow"
    assert decision.opened == Opened(read=("/p/a",), network=("any",), shell=True)
    assert decision.wanted == frozenset()


def test_a_list_opens_exactly_what_it_names(decided: Decided, stack_of: StackOf) -> None:
    stack = stack_of("allow: [read ./a, write ./b, shell]")
    decision = decided(stack, [Intent("read", "/p/a/x")])
    assert answers(decision) == ["allow run declared start", "allow read /p/a/x declared start"]
    assert decision.opened == Opened(read=("/p/a/x",))
    assert decision.wanted == {"read"}
    assert decided(stack, []).opened == Opened()


def test_what_is_inferred_outside_the_list_is_not_declared(decided: Decided, stack_of: StackOf) -> None:
    decision = decided(stack_of("allow: [read /, shell]"), [Intent("read", "/p/a")], (seen("shell", line=7),))
    assert decision.effect == "deny"
    verdict = decision.verdicts[-1]
    assert (verdict.effect, verdict.intent.line) == ("deny", 7)
    assert verdict.reason == "not declared: the request lists its intents, and this is none of them"
    assert [str(by) for by in verdict.by] == ["licet"]


def test_what_is_inferred_inside_the_list_is_judged_by_policy(decided: Decided, stack_of: StackOf) -> None:
    stack = stack_of("allow: [read ./a]\ndeny: [read ./a/s]")
    declared = [Intent("read", "/p/a"), Intent("tool", "find")]
    assert decided(stack, declared, (seen("read", "/p/a/x"),)).effect == "allow"
    assert decided(stack, declared, (seen("read", "/p/a/s/x"),)).effect == "deny"
    assert decided(stack, declared, (seen("read", "/p/b"),)).effect == "deny"


def test_equal_decisions_are_one(decided: Decided, stack_of: StackOf) -> None:
    stack = stack_of("allow: [read ./a]")
    first = decided(stack, workdir="/p")
    assert decided(stack, workdir="/p") is first
    assert decided(stack, [Intent("read", "/p/a")], workdir="/p") is not first
    assert decided(stack, workdir="/p", report=ScreenReport(violations=(SHELL,))) is not first
    assert decided(stack_of("allow: [read ./a]"), workdir="/p") is not first


def test_entries_that_name_the_workdir_are_resolved_each_time(
    decided: Decided, stack_of: StackOf, tmp_path: Path
) -> None:
    stack, link = stack_of("allow: [read workdir/link]"), tmp_path / "link"
    link.symlink_to("first")
    first = decided(stack, workdir=str(tmp_path))
    assert first.opened.read == (f"{tmp_path}/first",)
    assert decided(stack, workdir=str(tmp_path)) is first
    link.unlink()
    link.symlink_to("second")
    assert decided(stack, workdir=str(tmp_path)).opened.read == (f"{tmp_path}/second",)


def test_workdir_grants_nothing_by_itself(decided: Decided, stack_of: StackOf) -> None:
    assert decided(stack_of(""), workdir="/p/a").opened == Opened()
    assert decided(stack_of(""), [Intent("read", ".")], workdir="/p/a").effect == "deny"


def test_paths_of_a_request_are_relative_to_its_workdir(decided: Decided, stack_of: StackOf) -> None:
    decision = decided(
        stack_of("allow: [read ./a]"), [Intent("read", "x")], (seen("read", "./y"),), workdir="/p/a"
    )
    assert answers(decision)[1] == "allow read /p/a/x declared start"
    assert answers(decision)[2] == "deny read /p/a/y inferred start"  # not within `/p/a/x`


# Rule 9: unknown targets


@pytest.mark.parametrize(
    ("policy", "answer", "effect"),
    [
        ("", "deny read (unknown) inferred start", "deny"),
        ("allow: [write /]", "deny read (unknown) inferred start", "deny"),
        ("allow: [read ./a]", "allow read (unknown) inferred access", "allow"),
        ("ask: [read ./a]", "allow read (unknown) inferred access", "allow"),
        ("allow: [read ./a]\ndeny: [read /]", "deny read (unknown) inferred start", "deny"),
    ],
)
def test_an_unknown_target_is_decided_at_access_unless_nothing_could_allow_it(
    decided: Decided, stack_of: StackOf, policy: str, answer: str, effect: str
) -> None:
    decision = decided(stack_of(policy), None, (seen("read"),))
    assert answers(decision)[1] == answer
    assert decision.effect == effect


def test_an_unknown_target_opens_nothing(decided: Decided, stack_of: StackOf) -> None:
    stack = stack_of("allow: [read ./a]\nask: [read ./b]")
    assert decided(stack, None, (seen("read"),)).opened == Opened(read=("/p/a",))
    assert decided(stack, [Intent("read", "/p/a/x")], (seen("read"),)).opened == Opened(read=("/p/a/x",))


@pytest.mark.parametrize("target", ["a\0b", "x" * 300, "/proc/self/mem"])
def test_a_target_that_cannot_be_one_path_counts_as_unknown(
    decided: Decided, stack_of: StackOf, target: str
) -> None:
    decision = decided(stack_of("allow: [read /]"), None, (seen("read", target),))
    assert answers(decision)[1] == "allow read (unknown) inferred access"


# Rule 10: inside, containing, partly


@pytest.mark.parametrize(
    ("intent", "effect", "opened"),
    [
        (Intent("read", "/p/work"), "allow", Opened(read=("/p/work",), read_masked=("/p/work/s",))),
        (Intent("read", "/p/workspace"), "deny", Opened()),
        (Intent("read", "/p/work/s"), "deny", Opened()),
        (Intent("read", "/p/work/s/x"), "deny", Opened()),
        (Intent("read", "/p/work/ss"), "allow", Opened(read=("/p/work/ss",))),
        (Intent("read", "/p"), "deny", Opened()),
        (Intent("read", "/"), "deny", Opened()),
        (Intent("write", "/p/work"), "deny", Opened()),
        (Intent("read", "/p/own"), "deny", Opened()),
    ],
)
def test_inside_is_denied_and_containing_is_masked(
    decided: Decided, stack_of: StackOf, intent: Intent, effect: str, opened: Opened
) -> None:
    stack = stack_of("allow: [read ./work, read ./own]\ndeny: [read ./work/s]", sealed=("/p/own",))
    decision = decided(stack, [intent])
    assert (decision.effect, decision.opened) == (effect, opened)


def test_what_is_only_partly_allowed_is_denied_and_says_so(decided: Decided, stack_of: StackOf) -> None:
    verdict = decided(stack_of("allow: [read ./a/b]"), [Intent("read", "/p/a")]).verdicts[1]
    assert (verdict.effect, verdict.reason) == ("deny", "only a part of it is allowed: `read ./a/b` (root:2)")


def test_an_intent_that_contains_an_ask_is_allowed_with_that_part_masked(
    decided: Decided, stack_of: StackOf
) -> None:
    stack = stack_of("allow: [read ./a]\nask: [read ./a/s]")
    decision = decided(stack, [Intent("read", "/p/a")])
    assert (decision.effect, decision.opened.read_masked) == ("allow", ("/p/a/s",))
    decision = decided(stack, [Intent("read", "/p/a"), Intent("read", "/p/a/s")])
    assert (decision.effect, decision.opened) == ("ask", Opened(read=("/p/a",)))


def test_what_is_opened_is_the_meet_of_all_documents(decided: Decided, stack_of: StackOf) -> None:
    stack = stack_of("allow: [read ./a, read ./b]", "allow: [read ./a/x, read ./b]", "deny: [read ./b/s]")
    assert decided(stack).opened == Opened(read=("/p/a/x", "/p/b"), read_masked=("/p/b/s",))


def test_what_licet_keeps_for_itself_is_named_as_sealed(decided: Decided, stack_of: StackOf) -> None:
    decision = decided(stack_of("allow: [read ., write .]", sealed=("/p/.licet", "/p/policy.yaml")))
    assert decision.opened.sealed == ("/p/.licet", "/p/policy.yaml")
    assert not decision.opened.opens("write", "/p/policy.yaml")


# Rule 7: tools and hosts


def test_tools_are_decided_when_they_are_called(decided: Decided, stack_of: StackOf) -> None:
    stack = stack_of("allow: [tool find]\nask: [tool refund]")
    declared = [Intent("tool", "find"), Intent("tool", "refund"), Intent("tool", "pay")]
    decision = decided(stack, declared, tools={"find": len})
    assert answers(decision)[1:] == [
        "allow tool find declared call",
        "ask tool refund declared call",
        "deny tool pay declared call",
    ]
    assert decision.effect == "allow"
    assert decision.opened.tools == ("find",)


@pytest.mark.parametrize(("name", "effect"), [("find", "allow"), ("refund", "ask"), ("pay", "deny")])
def test_a_call_is_decided_like_any_intent(stack_of: StackOf, name: str, effect: str) -> None:
    facts = Facts(Subject(), datetime(2026, 3, 7, tzinfo=UTC), call=CallFacts(name, {}))
    decision = decide_call(facts, stack_of("allow: [tool find]\nask: [tool refund]"), line=4)
    [verdict] = decision.verdicts
    assert (verdict.effect, verdict.intent) == (effect, Intent("tool", name, "declared", 4, "call"))
    assert decision.effect == effect


@pytest.mark.parametrize("source", ["declared", "inferred"])
def test_a_host_is_decided_and_asked_before_the_start(
    decided: Decided, stack_of: StackOf, source: str
) -> None:
    stack = stack_of("ask: ['network *.x.com:443']")
    intent = Intent("network", "a.x.com:443")
    declared, inferred = ([intent], ()) if source == "declared" else (None, (seen("network", "A.x.com:443"),))
    decision = decided(stack, declared, inferred)
    later = ("*.x.com:443",) if declared is None else ()
    opened = Opened(network=("a.x.com:443",), network_asked=later)
    assert (decision.effect, decision.opened) == ("ask", opened)
    asked = [f"ask network a.x.com:443 {source} start"]
    assert answers(decision)[1:] == [*asked, *(f"ask network {host} granted call" for host in later)]


# Rule 12: effect is about permission; the screen denies under `refuse`


@pytest.mark.parametrize(
    ("texts", "effect"),
    [
        (["screen: {mode: refuse}"], "deny"),
        ([""], "deny"),
        (["screen: {mode: report}"], "allow"),
        (["screen: {mode: report}", "screen: {mode: refuse}"], "deny"),
    ],
)
def test_violations_deny_under_refuse(
    decided: Decided, stack_of: StackOf, texts: list[str], effect: str
) -> None:
    decision = decided(stack_of(*texts), report=ScreenReport(violations=(SHELL,)))
    assert (decision.effect, decision.violations) == (effect, (SHELL,))
    assert decision.refusals == ((SHELL,) if effect == "deny" else ())


def test_violations_of_form_always_deny(decided: Decided, stack_of: StackOf) -> None:
    decision = decided(
        stack_of("screen: {mode: report}"), code="a\0", report=ScreenReport(violations=(SHELL,))
    )
    assert decision.effect == "deny"
    assert [v.code for v in decision.violations] == ["nul_byte", "shell"]
    assert [v.code for v in decision.refusals] == ["nul_byte"]


@pytest.mark.parametrize(
    ("policy", "declared", "effect"),
    [
        ("", [], "allow"),
        ("ask: [run]", [], "ask"),
        ("ask: [run]", [Intent("shell")], "deny"),
        ("ask: [run]\nallow: [shell]", [Intent("shell")], "ask"),
        ("deny: [run]\nask: [shell]", [Intent("shell")], "deny"),
    ],
)
def test_the_effect_is_the_worst_verdict(
    decided: Decided, stack_of: StackOf, policy: str, declared: list[Intent], effect: str
) -> None:
    assert decided(stack_of(policy), declared).effect == effect


def test_what_a_backend_must_be_able_to_open_is_what_was_permitted(
    decided: Decided, stack_of: StackOf
) -> None:
    stack = stack_of("allow: [read ./a]\nask: ['network a.x.com:443']")
    declared = [Intent("read", "/p/a"), Intent("network", "a.x.com:443"), Intent("shell")]
    assert decided(stack, declared).wanted == {"read", "network"}
    assert decided(stack, None, (seen("read"),)).wanted == {"read"}


def test_requirements_combine_by_maximum(decided: Decided, stack_of: StackOf) -> None:
    stack = stack_of(
        "sandbox: {require: {timeout: partial, cancellation: enforced}, evidence: read_back}",
        "sandbox: {require: {fresh_state: partial}}",
    )
    asked = {"timeout": "enforced", "cancellation": "partial", "orphan_cleanup": "partial"}
    decision = decided(stack, requirements=asked)
    assert decision.required == {
        Control.timeout: Level.enforced,
        Control.cancellation: Level.enforced,
        Control.fresh_state: Level.partial,
        Control.orphan_cleanup: Level.partial,
    }
    assert (decision.evidence, decision.policy_digest) == (Evidence.read_back, stack.digest)
