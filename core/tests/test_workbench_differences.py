"""What changes from one policy to another: all of it, in words, and the right way round."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.policy import PolicyDocument, PolicyStack
from licet.policy.document import settled
from licet.request import Limits
from licet.testing import strategies
from licet.testing.strategies import document_of
from licet.workbench.comparison.differences import differences


def policy(text: str, *bounds: str, name: str = "B") -> PolicyStack:
    root = settled(document_of(f"licet: 1\n{text}\n", name, "/p"))
    return PolicyStack(
        root,
        tuple(
            settled(document_of(f"licet: 1\n{one}\n", f"/p/bound{number}.yaml", "/p"))
            for number, one in enumerate(bounds)
        ),
    )


def told(old: PolicyStack, new: PolicyStack) -> list[str]:
    return [
        f"{one.direction}: {one.text}" + (f" ({one.where})" if one.where else "")
        for one in differences(old, new, "/p")
    ]


ASK = "1 person within 30 min"


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("", "clock: frozen", ["other: clock real → frozen (B:2:1)"]),
        ("random: seeded", "random: real", ["other: random seeded → real (B:2:1)"]),
        ("random: real", "clock: real", []),
        ("", "allow: [read ./data]", ["looser: may now read ./data (B:2)"]),
        ("allow: [read ./data]", "", ["tighter: may no longer read ./data (A:2)"]),
        ("", "ask: [write workdir/out]", [f"looser: may now write workdir/out, if approved by {ASK} (B:2)"]),
        ("allow: [shell]", "ask: [shell]", [f"tighter: now asks {ASK} before starting other programs (B:2)"]),
        ("ask: [tool f]", "allow: [tool f]", ["looser: no longer asks before calling f (B:2)"]),
        (
            "ask: [tool f]",
            "allow: [tool f]\ndeny: [tool f]",
            ["tighter: may no longer call f, approved or not (B:3)"],
        ),
        ("", "deny: [run]", ["tighter: may no longer run (B:2)"]),
        (
            "allow: [read ./data]",
            "allow: [read ./data]\ndeny: [read ./data/secrets]",
            ["tighter: may no longer read ./data/secrets (B:3)"],
        ),
        (
            "allow: ['network *.x.com:443']",
            "allow: ['network *.x.com:443 except a.x.com:443']",
            ["tighter: may no longer reach a.x.com:443 (A:2)"],
        ),
        (
            "allow: [read ./a, read ./a/b/c]",
            "allow: [read ./a/b/c]",
            ["tighter: may no longer read ./a (B:2)"],
        ),
        (
            "ask: [tool f]",
            "ask: [tool f]\napproval: {count: 2, from: [finance], reviewer: human, unattended: queue}",
            [
                "other: asks 2 human persons of finance within 30 min, queued where nobody is there instead "
                f"of {ASK} before calling f (B:2)"
            ],
        ),
        (
            "ask: [tool f]",
            "ask: [tool f]\napproval: {count: 2, expires: 10m}",
            [f"tighter: asks 2 persons within 10 min instead of {ASK} before calling f (B:2)"],
        ),
        (
            "limits: {memory: 2GiB, files: 1MiB}",
            "limits: {memory: 128MiB, wall_time: 2m}",
            [
                "looser: wall_time 1 min → 2 min (B:2:26)",
                "tighter: memory 2 GiB → 128 MiB (B:2:10)",
                "looser: files 1 MiB → none (A:2:24)",
            ],
        ),
        (
            "sandbox: {require: {timeout: partial}, only: [a, b], evidence: declared}",
            "sandbox: {require: {cancellation: enforced}, only: [b], prefer: [b]}",
            [
                "looser: timeout required partial → not required (A:2:21)",
                "tighter: cancellation not required → required enforced (B:2:21)",
                "tighter: evidence declared → probed (A:2:54)",
                "tighter: backends: a and b → b (B:2:46)",
                "other: prefers b instead of nothing (B:2:57)",
            ],
        ),
        (
            "env: {A: x, B: y}\nscreen: {mode: report, modules: {deny: [os]}}\naudit: {mode: best_effort}",
            "env: {B: z, C: pass}\nscreen: {modules: {deny: [re]}}\nlearn: true",
            [
                "tighter: the code no longer sees A (A:2:7)",
                "other: B=y → B=z (B:2:7)",
                "looser: the code now sees C=pass (B:2:13)",
                "tighter: screen.mode report → refuse (A:3:10)",
                "tighter: audit.mode best_effort → required (A:4:9)",
                "looser: learn false → true (B:4:1)",
                "looser: the screen lets code import os (A:3:34)",
                "tighter: the screen no longer lets code import re (B:3:20)",
            ],
        ),
        (
            "tools: {f: {a: int}}",
            "tools: {f: {a: string}, g: {}}",
            [
                "other: the signature of the tool f changed (B:2:9)",
                "other: the signature of the tool g is declared now (B:2:25)",
            ],
        ),
        (
            "rules: [{id: a, deny: shell}, {id: b, ask: shell, if: {group: g}}, {id: c, deny: run}]",
            "rules: [{id: b, deny: shell}, {id: c, ask: run}, {id: d, limits: {memory: 1MiB}}]",
            [
                "looser: the rule `a` is gone: it denies `shell`, always (A:2:9)",
                f"tighter: the rule `b` denies `shell`, always; before, it asks before `shell` ({ASK}), "
                "if `group: g` (B:2:9)",
                f"looser: the rule `c` asks before `run` ({ASK}), always; before, it denies `run`, always "
                "(B:2:31)",
                "tighter: the new rule `d` limits memory to 1 MiB, always (B:2:50)",
            ],
        ),
        (
            "rules: [{id: a, deny: shell, if: {group: g}}]",
            "rules: [{id: a, deny: shell, if: {group: h}}]",
            [
                "other: the rule `a` denies `shell`, if `group: h`; before, if `group: g` (B:2:9)",
            ],
        ),
    ],
)
def test_changes_in_words(old: str, new: str, changes: list[str]) -> None:
    assert told(policy(old, name="A"), policy(new)) == changes


def test_what_a_bound_changes_is_told_with_the_bound() -> None:
    root = "allow: [network any, read ./a]\nlimits: {memory: 1GiB}"
    bound = "name: org\nallow: [network a.com:443]\nlimits: {memory: 1MiB}"
    assert told(policy(root), policy(root, bound)) == [
        "tighter: may no longer reach any public host (/p/bound0.yaml:3)",
        "tighter: memory 1 GiB → 1 MiB (/p/bound0.yaml:4:10)",
        "tighter: now bound by `org` (/p/bound0.yaml)",
    ]
    assert [text.partition(":")[0] for text in told(policy(root, bound), policy(root))] == ["looser"] * 3


def test_layout_repetition_and_the_spread_over_documents_change_nothing() -> None:
    one = policy("allow: [read ./a, shell]\nlimits: {memory: 1MiB}", "deny: [run]")
    same = policy("limits:\n  memory: 1024KiB\nallow: [shell, read /p/a, shell]", "deny: [run, run]")
    assert differences(one, same) == ()


def test_a_bound_that_is_only_rehearsed_changes_no_decision() -> None:
    trial = document_of("licet: 1\nname: trial\nmode: dry_run\ndeny: [run]", "/p/trial.yaml", "/p")
    one = policy("")
    assert told(one, replace(one, rehearsed=(trial,))) == ["other: now rehearsing `trial` (/p/trial.yaml)"]


RULES = (
    "{id: a, deny: shell, if: {group: g}}",
    "{id: a, ask: read ./data, approval: {count: 2}}",
    "{id: a, limits: {memory: 1}, sandbox: {require: {timeout: enforced}}}",
)


@settings(deadline=None, max_examples=40)
@given(strategies.policies())
def test_no_policy_differs_from_itself(one: strategies.Policy) -> None:
    again = document_of(one.text)
    assert differences(PolicyStack(one.document), PolicyStack(again)) == ()


@settings(deadline=None, max_examples=40)
@given(strategies.policies(), strategies.policies())
def test_a_new_bound_is_told_as_tighter_and_never_as_looser(
    root: strategies.Policy, bound: strategies.Policy
) -> None:
    found = differences(PolicyStack(root.document), PolicyStack(root.document, (_as_bound(bound),)))
    assert found
    assert {one.direction for one in found} == {"tighter"}
    back = differences(PolicyStack(root.document, (_as_bound(bound),)), PolicyStack(root.document))
    assert {one.direction for one in back} == {"looser"}
    assert [one.subject for one in back] == [one.subject for one in found]


def _as_bound(policy: strategies.Policy) -> PolicyDocument:
    return policy.document.model_copy(update={"file": "bound.yaml", "name": "bound"})


@settings(deadline=None, max_examples=40)
@given(strategies.policies(), st.sampled_from(RULES))
def test_a_new_rule_is_told_as_tighter(one: strategies.Policy, text: str) -> None:
    with_rule = document_of(f"{one.text}rules: [{text}]\n")
    (change,) = differences(PolicyStack(one.document), PolicyStack(settled(with_rule)))
    assert change.direction == "tighter"


@settings(deadline=None, max_examples=40)
@given(strategies.policies(), strategies.limits(), strategies.limits())
def test_lower_limits_are_told_as_tighter(one: strategies.Policy, left: Limits, right: Limits) -> None:
    both = {name: min(left.stated().get(name, v), v) for name, v in right.stated().items()}
    looser = one.document.model_copy(update={"limits": left})
    tighter = one.document.model_copy(update={"limits": Limits(**{**left.stated(), **both})})
    found = differences(PolicyStack(looser), PolicyStack(tighter))
    changed = {
        name
        for name, value in PolicyStack(tighter).limits.stated().items()
        if PolicyStack(looser).limits.stated().get(name) != value
    }
    told_of = {one.subject.removeprefix("limits."): one.direction for one in found}
    default = {name for name in changed if name not in left.stated()}
    assert set(told_of) == changed
    assert all(which == "tighter" for name, which in told_of.items() if name not in default)
