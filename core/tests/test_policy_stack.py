"""What a stack says with the rules that apply in it, and which texts of policies are one policy."""

from collections.abc import Callable
from typing import Any

import pytest
from licet.contract import Control, Evidence, Level
from licet.policy import PolicyStack

StackOf = Callable[..., PolicyStack]


def ruled(stack: PolicyStack) -> PolicyStack:
    """The stack, with all of its rules applying."""
    return stack.applying(stack.rulebook.rules)


@pytest.mark.parametrize(
    ("rule", "name", "value"),
    [
        ("limits: {memory: 1MiB}", "limits.memory", 1 << 20),
        ("limits: {memory: 9GiB}", "limits.memory", 2 << 20),
        ("limits: {wall_time: 5}", "limits.wall_time", 5.0),
        ("limits: {wall_time: 90}", "limits.wall_time", 60.0),
        ("limits: {files: 7}", "limits.files", 7),
        ("sandbox: {require: {timeout: enforced}}", "requirements", {Control.timeout: Level.enforced}),
        (
            "sandbox: {require: {cancellation: partial}}",
            "requirements",
            {Control.timeout: Level.partial, Control.cancellation: Level.partial},
        ),
        ("sandbox: {evidence: read_back}", "evidence", Evidence.read_back),
        ("sandbox: {evidence: probed}", "evidence", Evidence.probed),
        ("sandbox: {only: [a, c]}", "only", {"a"}),
        ("sandbox: {only: [c]}", "only", set()),
        ("audit: {mode: required}", "audit_mode", "required"),
        ("audit: {content: digest}", "content_mode", "digest"),
        ("deny: run", "audit_mode", "best_effort"),
        ("deny: run", "content_mode", "kept"),
        ("deny: run", "evidence", Evidence.declared),
        ("deny: run", "only", {"a", "b"}),
        ("deny: run", "requirements", {Control.timeout: Level.partial}),
        ("deny: run", "prefer", ("b",)),
    ],
)
def test_rules_that_apply_tighten_settings(stack_of: StackOf, rule: str, name: str, value: Any) -> None:
    stack = stack_of(
        "audit: {mode: best_effort, content: kept}\nlimits: {memory: 2MiB}\n"
        "sandbox: {evidence: declared, prefer: [b], only: [a, b], require: {timeout: partial}}\n"
        f"rules: [{{id: r, {rule}}}]"
    )
    found: Any = ruled(stack)
    for part in name.split("."):
        found = getattr(found, part)
    assert found == value
    assert (stack.limits.memory, stack.limits.wall_time, stack.evidence) == (2 << 20, 60.0, Evidence.declared)


@pytest.mark.parametrize(
    ("root", "bound", "audit", "content"),
    [
        ("", "", "required", "digest"),
        ("audit: {mode: best_effort}", "", "best_effort", "digest"),
        ("audit: {content: kept}", "", "required", "kept"),
        ("", "audit: {mode: best_effort, content: kept}", "required", "digest"),
        (
            "audit: {mode: best_effort, content: kept}",
            "audit: {mode: best_effort, content: kept}",
            "best_effort",
            "kept",
        ),
        ("audit: {mode: best_effort, content: kept}", "audit: {mode: required}", "required", "kept"),
        ("audit: {mode: best_effort, content: kept}", "audit: {content: digest}", "best_effort", "digest"),
    ],
)
def test_only_the_root_may_be_lax_about_the_trail(
    stack_of: StackOf, root: str, bound: str, audit: str, content: str
) -> None:
    stack = stack_of(root, bound)
    assert (stack.audit_mode, stack.content_mode) == (audit, content)


@pytest.mark.parametrize(
    ("texts", "learns"),
    [
        ([""], False),
        (["learn: true"], True),
        (["learn: false"], False),
        (["learn: true", ""], True),
        (["learn: true", "learn: true"], True),
        (["learn: true", "", "learn: false"], False),
        (["", "learn: true"], False),
    ],
)
def test_learning_is_the_roots_to_allow_and_any_bounds_to_forbid(
    stack_of: StackOf, texts: list[str], learns: bool
) -> None:
    assert stack_of(*texts).may_learn == learns


def test_without_only_every_backend_may_be_used(stack_of: StackOf) -> None:
    assert stack_of("", "").only is None
    assert stack_of("", "sandbox: {only: [a]}").only == {"a"}
    assert stack_of("sandbox: {only: []}").only == frozenset()


def test_the_digest_is_of_the_policy_whatever_rules_apply(stack_of: StackOf) -> None:
    stack = stack_of("rules: [{id: r, deny: run}, {id: s, limits: {memory: 1}}]")
    whole = ruled(stack)
    assert whole.loaded is stack
    assert (whole.digest, whole.name) == (stack.digest, stack.name)
    again = whole.applying(stack.rulebook.rules[:1])
    assert (again.loaded, again.digest, again.limits.memory) == (stack, stack.digest, None)
    assert stack.applying(()) is stack
    assert stack.applying(stack.rulebook.rules) is whole


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("allow: [run, shell]", "allow: [shell, run, shell]"),
        ("ask: [run, shell]", "ask: [shell, run]"),
        ("deny: [read /a, read /b]", "deny: [read /b, read /a]"),
        ("sandbox: {only: [a, b]}", "sandbox: {only: [b, a, a]}"),
        ("screen: {modules: {deny: [a, b]}}", "screen: {modules: {deny: [b, a]}}"),
        ("limits: {memory: 1MiB}", "limits: {memory: 1048576}"),
        ("env: {A: '1', B: '2'}", "env: {B: '2', A: '1'}"),
        ("# a comment", ""),
    ],
)
def test_what_means_the_same_is_one_policy(stack_of: StackOf, one: str, other: str) -> None:
    assert stack_of(one).digest == stack_of(other).digest
    assert stack_of("", one).digest == stack_of("", other).digest


@pytest.mark.parametrize(
    "text",
    [
        "allow: [shell]",
        "ask: [shell]",
        "deny: [shell]",
        "limits: {memory: 1}",
        "env: {A: '1'}",
        "screen: {mode: report}",
        "screen: {modules: {deny: [a]}}",
        "sandbox: {only: [a]}",
        "sandbox: {only: []}",
        "sandbox: {prefer: [a]}",
        "approval: {count: 1}",
        "audit: {mode: required}",
        "tools: {}",
        "tools: {pay: {n: int}}",
        "tools: {pay: {n: int?}}",
        "learn: false",
        "rules: [{id: r, deny: run}]",
    ],
)
def test_whatever_is_said_is_in_the_digest(stack_of: StackOf, text: str) -> None:
    assert stack_of(text).digest != stack_of("").digest
    assert stack_of("", text).digest != stack_of("", "").digest
    assert stack_of(text, "").digest != stack_of("", text).digest


def test_every_two_of_these_are_two_policies(stack_of: StackOf) -> None:
    texts = ["allow: [shell]", "ask: [shell]", "deny: [shell]", "tools: {}", "tools: {pay: {n: int}}"]
    texts += ["tools: {pay: {n: int?}}", "sandbox: {only: [a]}", "sandbox: {prefer: [a]}", "mode: dry_run"]
    assert len({stack_of("", text).digest for text in texts}) == len(texts)


def test_rehearsals_are_apart_and_part_of_the_digest(stack_of: StackOf) -> None:
    whole = stack_of("allow: [shell]", "deny: [shell]", "ask: [run]")
    stack = PolicyStack(whole.root, whole.bounds[:1], rehearsed=whole.bounds[1:])
    [(bound, would_be)] = stack.rehearsals
    assert (bound, would_be.bounds, would_be.rehearsed) == (whole.bounds[1], whole.bounds, ())
    assert would_be.digest == stack.digest != PolicyStack(whole.root, whole.bounds[:1]).digest
    assert stack.documents == (whole.root, whole.bounds[0])


def test_rules_of_all_documents_that_decide_stand_in_the_rulebook(stack_of: StackOf) -> None:
    whole = stack_of(*(f"rules: [{{id: r{n}, deny: run}}]" for n in range(3)))
    stack = PolicyStack(whole.root, whole.bounds[:1], rehearsed=whole.bounds[1:])
    assert [rule.id for rule in stack.rulebook.rules] == ["r0", "r1"]
    assert [rule.id for rule in stack.rehearsals[0][1].rulebook.rules] == ["r0", "r1", "r2"]
