"""Rules that cover one another are all found, though not all of them are compared."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from licet.policy import PolicyStack
from licet.workbench.lint.covering import _covers, shadowed

StackOf = Callable[[str], PolicyStack]

DOES = (
    "deny: shell",
    "ask: shell",
    "deny: read /a",
    "deny: read /a/b",
    "ask: read /a/b",
    "deny: [read /, shell]",
    "ask: read workdir/x",
    "deny: read workdir",
    "deny: network any",
    "ask: 'network api.example.com:443'",
    "ask: tool pay*",
    "deny: tool *",
    "limits: {memory: 1MiB}",
    "limits: {memory: 2MiB}",
)
WHEN = (
    "",
    ", if: {tenant: a}",
    ", if: {tenant: [a, b]}",
    ", if: {tenant: b, group: g}",
    ", if: {group: [h, g]}, unless: {subject: ann}",
    ", unless: {group: g}",
    ", unless: {group: [g, h]}",
    ", unless: {tenant: a, group: h}",
    ", unless: {subject: [ann, bob]}",
    ", during: {days: [sat], zone: UTC}",
)


@given(st.lists(st.tuples(st.sampled_from(DOES), st.sampled_from(WHEN)), min_size=2, max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_all_rules_that_another_one_covers_are_found(stack_of: StackOf, rules: list[tuple[str, str]]) -> None:
    lines = (f"  - {{id: r{number}, {does}{when}}}" for number, (does, when) in enumerate(rules))
    document = stack_of("rules:\n" + "\n".join(lines)).root
    slowly = [
        rule.where
        for number, rule in enumerate(document.rules)
        if any(
            n != number and _covers(other, rule, later=n > number) for n, other in enumerate(document.rules)
        )
    ]
    assert [one.where for one in shadowed(document)] == slowly
