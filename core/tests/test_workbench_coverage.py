"""What cases show of a policy, and the reasons for what they don't."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.errors import InvalidPolicy, Position, UsageError
from licet.policy import PolicyStack
from licet.policy.cases import parse_cases
from licet.policy.truth import Truth, both, negated
from licet.policy.yaml import load
from licet.testing.strategies import document_of
from licet.workbench.trials.asking import ask
from licet.workbench.trials.coverage import Coverage, Ledger, Shown, _what_failed
from licet.workbench.trials.junit import to_junit
from licet.workbench.trials.suites import suites_of
from licet.workbench.trials.tested import try_suite
from licet.workbench.trials.trial import try_case

StackOf = Callable[..., PolicyStack]


def coverage(stack: PolicyStack, *texts: str) -> Coverage:
    ledger = Ledger(stack)
    items = load("".join(f"- {{{text}, expect: allow}}\n" for text in texts).encode(), "t") or load(
        b"[]", "t"
    )
    for case in parse_cases(items, Position("t", 1)):
        ledger.see(ask(case, stack))
    return ledger.coverage()


def missing(found: Coverage) -> list[str]:
    return [f"{one}: {one.why}" for one in found.missing]


BIG = """\
allow: [tool refund, tool pay]
tools: {refund: {amount: decimal}, pay: {amount: decimal}}
rules: [{id: big, ask: tool refund, if: args.amount > 100, unless: {group: cfo}}]"""
CALL = "tool: refund, args: {amount: 500}"
PENDING = "no case calls `refund`, and before a call it is pending"
NOBODY = "nobody said the group"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (
            (),
            [
                f"`big` never applied: {PENDING}",
                f"`big` always applied: {PENDING}",
                f"`args.amount > 100` of `big` was never true: {PENDING}",
                f"`args.amount > 100` of `big` was never false: {PENDING}",
                f"`group: cfo` of `big` was never true: {PENDING}",
                f"`group: cfo` of `big` was never false: {PENDING}",
                "`ask: tool refund` of `big` never decided: the rule never applied",
                "`allow: tool refund` never decided: no case asks for anything that it covers",
                "`allow: tool pay` never decided: no case asks for anything that it covers",
            ],
        ),
        (
            (CALL, "tool: pay, args: {amount: 500}"),
            [
                "`big` always applied: it applied in the only case",
                "`args.amount > 100` of `big` was never false: it is true in the only case",
                f"`group: cfo` of `big` was never true: it is not known in the only case: {NOBODY}",
                f"`group: cfo` of `big` was never false: it is not known in the only case: {NOBODY}",
            ],
        ),
        (
            (
                f"{CALL}, subject: {{id: a, groups: [cfo]}}",
                f"{CALL}, subject: {{id: b, groups: [cfo]}}",
                "tool: pay, args: {amount: 1}",
            ),
            [
                "`big` never applied: in all 2 cases its `unless` holds: `group: cfo`",
                "`args.amount > 100` of `big` was never false: it is true in all 2 cases",
                "`group: cfo` of `big` was never false: it is true in all 2 cases",
                "`ask: tool refund` of `big` never decided: the rule never applied",
            ],
        ),
        (
            ("tool: refund, args: {amount: 5}", f"{CALL}, subject: {{id: b, groups: [cfo]}}"),
            [
                "`big` never applied: in 1 of 2 cases `args.amount > 100` is false",
                "`group: cfo` of `big` was never false: it is true in 1 of 2 cases, and not known in 1",
                "`ask: tool refund` of `big` never decided: the rule never applied",
                "`allow: tool pay` never decided: no case asks for anything that it covers",
            ],
        ),
        (
            (
                "tool: refund, args: {amount: 5}, subject: {id: b}",
                CALL,
                f"{CALL}, subject: {{id: b, groups: [cfo]}}",
                "tool: pay, args: {amount: 500}",
            ),
            [],
        ),
    ],
)
def test_what_is_not_covered_comes_with_the_reason(
    stack_of: StackOf, texts: tuple[str, ...], expected: list[str]
) -> None:
    found = coverage(stack_of(BIG), *texts)
    assert missing(found) == expected
    assert (found.possible, found.covered) == (9, 9 - len(expected))


def test_a_rule_without_conditions_can_only_apply(stack_of: StackOf) -> None:
    found = coverage(stack_of("rules: [{id: a, limits: {memory: 1MiB}}]"), "run: true")
    assert found.outcomes == (Shown(Position("root", 2, 9), "a", "hit", True, "there is no case"),)


def test_an_entry_decides_where_its_document_answers_with_it(stack_of: StackOf) -> None:
    stack = stack_of("allow: [read /d]\ndeny: [read /d/x]\nrules: [{id: a, deny: read /d}]")
    assert missing(coverage(stack, "read: /d/x")) == [
        "`allow: read /d` never decided: wherever it is asked for, `deny: read /d/x` (root:3) decides"
    ]
    assert missing(coverage(stack, "read: /d/x", "read: /d/y")) == []


def test_every_entry_of_a_rule_counts(stack_of: StackOf) -> None:
    stack = stack_of("rules: [{id: a, deny: [run, shell]}]")
    assert missing(coverage(stack, "run: true")) == [
        "`deny: shell` of `a` never decided: no case where it applies asks for that"
    ]


def test_what_other_files_say_is_for_their_own_tests(stack_of: StackOf) -> None:
    assert coverage(stack_of("", "rules: [{id: a, deny: run}]")).outcomes == ()
    assert coverage(stack_of("")).percent == 100.0


def test_the_share_is_rounded_down_for_people_and_exact_for_the_bound() -> None:
    shown = tuple(Shown(Position("f"), "x", "hit", number < 1999) for number in range(2000))
    found = Coverage(shown)
    assert (found.percent, found.reaches(99.95), found.reaches(99.96)) == (99.9, True, False)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(Truth)), max_size=5))
def test_a_reason_is_told_exactly_where_a_rule_certainly_does_not_apply(
    leaves: list[tuple[bool, Truth]],
) -> None:
    from licet.policy.conditions import Leaf

    made = [Leaf("unless" if out else "if", "x", Position("f"), n) for n, (out, _) in enumerate(leaves)]
    positive = both(truth for out, truth in leaves if not out)
    negative = [truth for out, truth in leaves if out]
    applies = both((positive, negated(both(negative)))) if negative else positive
    assert (_what_failed(made, [truth for _, truth in leaves]) is not None) is (applies is Truth.false)


@given(st.text())
def test_whatever_a_name_holds_junit_is_well_formed(name: str) -> None:
    stack = PolicyStack(document_of("licet: 1\n", "root", "/p"))
    [case] = parse_cases(load(b"- {run: true, expect: deny}", "t"), Position("t", 1))
    object.__setattr__(case, "title", name + "x")
    tree = ElementTree.fromstring(to_junit([(name, [try_case(case, stack)])]))
    [suite] = tree
    assert (suite.get("tests"), suite.get("failures"), suite[0].get("line")) == ("1", "1", "1")
    assert suite[0][0].get("message") == "effect: expected deny, found allow"


POLICY = """\
licet: 1
rules:
  - {id: a, deny: run, if: {tenant: t}, tests: [{run: true, subject: {tenant: t}, expect: deny}]}
"""
TESTS = "policy: ./licet.yaml\ntests: [{run: true, subject: {tenant: u}, expect: allow}]\n"


def test_whatever_way_leads_to_a_policy_it_is_one_suite(tmp_path: Path) -> None:
    (tmp_path / "licet.yaml").write_text(POLICY)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.test.yaml").write_text(TESTS.replace("./", "../"))
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "y.test.yaml").write_text("no")
    (tmp_path / "link.yaml").symlink_to("licet.yaml")
    names = [str(tmp_path), str(tmp_path / "link.yaml"), str(tmp_path / "sub" / "x.test.yaml")]
    [suite] = suites_of(names)
    assert suite.policy == str(tmp_path / "licet.yaml")
    assert [file.path.name for file in suite.files] == ["x.test.yaml"]
    tested = try_suite(suite, PolicyStack(document_of(POLICY, "root", "/p")))
    assert [trial.passed for trial in tested.trials] == [True, True]
    assert missing(tested.coverage) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "a file of tests is a mapping with `policy` and `tests`"),
        ("tests: []", "the key `policy` is missing"),
        ("policy: a.yaml", "`tests` is a list of cases, found `None`"),
        ("policy: a.yaml\ntests: []", "this file holds no test"),
        ("policy: a.yaml\ntets: []", "unknown key `tets` in a file of tests"),
        ("policy: 3\ntests: []", "`policy` names a policy, found `3`"),
        ("policy: a.yaml\ngiven: 3\ntests: []", "`given` is a mapping, found `3`"),
    ],
)
def test_a_malformed_file_of_tests_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "x.test.yaml"
    file.write_text(text)
    with pytest.raises(InvalidPolicy) as raised:
        suites_of([str(file)])
    assert raised.value.message == message
    assert raised.value.where is not None
    assert raised.value.where.file == str(file)


def test_a_directory_that_holds_nothing_to_try_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds neither `licet.yaml` nor any"):
        suites_of([str(tmp_path)])
    with pytest.raises(InvalidPolicy, match="the tests can't be read: no such file or directory"):
        suites_of([str(tmp_path / "x.test.yaml")])
