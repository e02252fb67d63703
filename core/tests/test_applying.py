"""Which rules apply, which wait, and how a request finds them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from licet.applying import NONE_APPLIED, applied_to, canonical, facts_of, traced
from licet.policy import PolicyStack
from licet.policy.facts import CallFacts, Facts
from licet.policy.rulebook import Rulebook
from licet.policy.signatures import Parameter, Signature, Type
from licet.policy.truth import Truth
from licet.request import CodeNeeds, Intent, Limits, NormalizedRequest, ScreenReport, Subject

StackOf = Callable[..., PolicyStack]
Normalized = Callable[..., NormalizedRequest]

WEDNESDAY = datetime(2026, 3, 4, 12, tzinfo=UTC)
ANN = Subject(id="ann", tenant="acme", groups=("staff",), properties={"plan": "pro"})

PAY = Signature((Parameter("amount", Type("int")),))


def facts(subject: Subject = ANN, at: datetime = WEDNESDAY, tool: str | None = None, **args: Any) -> Facts:
    return Facts(subject, at, call=None if tool is None else CallFacts(tool, args, PAY))


def test_without_rules_nothing_applies(stack_of: StackOf) -> None:
    assert applied_to(stack_of(""), facts()) is NONE_APPLIED
    assert NONE_APPLIED.rules == ()


def test_what_applies_keeps_the_order_of_the_documents(stack_of: StackOf) -> None:
    stack = stack_of(
        "rules:\n  - {id: c, deny: run, if: {tenant: acme}}\n  - {id: b, deny: run}\n"
        "  - {id: a, deny: run, if: {group: staff}}\n",
        "rules: [{id: d, deny: run, if: {tenant: [globex, acme]}}]",
    )
    assert [hit.rule.id for hit in applied_to(stack, facts()).hits] == ["c", "b", "a", "d"]


@pytest.mark.parametrize(
    ("subject", "truths"),
    [
        (ANN, {"acme": "true", "not-pro": None, "not-staff": None}),
        (Subject(id="ann"), {"acme": "unknown", "not-pro": "unknown", "not-staff": "true"}),
        (Subject(tenant="globex"), {"acme": None, "not-pro": "unknown", "not-staff": "unknown"}),
    ],
)
def test_what_is_not_known_counts_as_a_hit(
    stack_of: StackOf, subject: Subject, truths: dict[str, str | None]
) -> None:
    stack = stack_of(
        "rules:\n  - {id: acme, deny: run, if: {tenant: acme}}\n"
        "  - {id: not-pro, deny: run, unless: {property.plan: pro}}\n"
        "  - {id: not-staff, deny: run, unless: {group: staff}}\n"
    )
    found = {hit.rule.id: hit.truth.value for hit in applied_to(stack, facts(subject)).hits}
    assert found == {name: truth for name, truth in truths.items() if truth is not None}


def test_a_hit_says_of_each_leaf_what_it_found(stack_of: StackOf) -> None:
    stack = stack_of(
        "rules: [{id: a, deny: run, if: {tenant: [acme, globex]}, unless: {property.branch: main}}]"
    )
    [hit] = applied_to(stack, facts()).hits
    assert [(a.leaf.clause, a.truth.value, a.why) for a in hit.answers] == [
        ("if", "true", "the tenant is `acme`"),
        ("unless", "unknown", "nobody said the property.branch"),
    ]


WAITING = (
    "tools: {pay: {amount: int}}\nrules:\n"
    "  - {id: big, ask: tool pay, if: args.amount > 100}\n"
    "  - {id: theirs, ask: tool pay, if: [args.amount > 1, {tenant: globex}]}\n"
    "  - {id: later, ask: tool pay, if: args.amount > 1, during: {days: sun, zone: UTC}}\n"
    "  - {id: plain, ask: tool pay}\n"
)


def test_a_rule_that_reads_a_call_waits_for_it_unless_it_is_certainly_missed(stack_of: StackOf) -> None:
    applied = applied_to(stack_of(WAITING), facts())
    assert [hit.rule.id for hit in applied.hits] == ["plain"]
    assert [rule.id for rule in applied.pending] == ["big"]
    sunday = facts(at=datetime(2026, 3, 8, tzinfo=UTC))
    assert [rule.id for rule in applied_to(stack_of(WAITING), sunday).pending] == ["big", "later"]


@pytest.mark.parametrize(("amount", "hits"), [(250, ["big", "plain"]), (50, ["plain"])])
def test_a_call_settles_what_waited(stack_of: StackOf, amount: int, hits: list[str]) -> None:
    applied = applied_to(stack_of(WAITING), facts(tool="pay", amount=amount))
    assert [hit.rule.id for hit in applied.hits] == hits
    assert applied.pending == ()


def test_a_call_whose_arguments_say_nothing_is_a_hit(stack_of: StackOf) -> None:
    applied = applied_to(stack_of(WAITING), facts(tool="pay"))
    assert [(hit.rule.id, hit.truth) for hit in applied.hits] == [
        ("big", Truth.unknown),
        ("plain", Truth.true),
    ]


def test_a_trace_tells_of_every_rule(stack_of: StackOf) -> None:
    told = {rule.id: (truth, len(answers)) for rule, truth, answers in traced(stack_of(WAITING), facts())}
    assert told == {
        "big": (None, 0),
        "theirs": (Truth.false, 2),
        "later": (Truth.false, 2),
        "plain": (Truth.true, 0),
    }


# The index


def book(stack_of: StackOf, *conditions: str) -> Rulebook:
    lines = "".join(f"  - {{id: r{n}, deny: run, {one}}}\n" for n, one in enumerate(conditions))
    return stack_of(f"rules:\n{lines}").rulebook


@pytest.mark.parametrize(
    ("condition", "subject", "found"),
    [
        ("if: {tenant: acme}", Subject(tenant="acme"), True),
        ("if: {tenant: acme}", Subject(tenant="globex"), False),
        ("if: {tenant: acme}", Subject(), True),
        ("if: {group: [a, b]}", Subject(id="ann", groups=("b", "c")), True),
        ("if: {group: [a, b]}", Subject(id="ann", groups=("c",)), False),
        ("if: {group: [a, b]}", Subject(id="ann"), False),
        ("if: {group: [a, b]}", Subject(), True),
        ("if: {subject: ann}", Subject(id="bob"), False),
        ("if: {subject: ann}", Subject(id=""), True),
        ("if: {type: service}", Subject(id="ann"), False),
        ("if: {language: rust}", Subject(), False),
        ("if: {language: python}", Subject(), True),
        ("if: {property.plan: pro}", Subject(properties={"plan": "free"}), False),
        ("if: {property.plan: pro}", Subject(properties={"plan": 3}), True),
        ("if: {property.plan: pro}", Subject(), True),
        ("if: {property.seats: 3}", Subject(properties={"seats": 4}), True),  # only texts are indexed
        ("if: {property.seats: [3, x]}", Subject(properties={"seats": "y"}), True),
        ("unless: {tenant: acme}", Subject(tenant="acme"), True),  # an exception finds no rule
        ("if: {tenant: [a, b, c], group: staff}", Subject(id="x", tenant="z", groups=("staff",)), True),
        ("if: {tenant: [a, b, c], group: staff}", Subject(id="x", tenant="a", groups=("guest",)), False),
    ],
)
def test_a_rule_is_left_out_only_where_it_is_certainly_missed(
    stack_of: StackOf, condition: str, subject: Subject, found: bool
) -> None:
    rules = book(stack_of, condition)
    assert [rule.id for rule in rules.candidates(facts(subject))] == (["r0"] if found else [])
    if not found:
        assert rules.rules[0].condition.truth(facts(subject)) is Truth.false


def test_each_rule_is_found_once_and_in_order(stack_of: StackOf) -> None:
    rules = book(
        stack_of, "if: {group: [a, b]}", "limits: {memory: 1}", "if: {tenant: acme}", "if: {group: b}"
    )
    assert [r.id for r in rules.candidates(facts(Subject(id="x", groups=("b", "a"), tenant="acme")))] == [
        "r0",
        "r1",
        "r2",
        "r3",
    ]
    assert [r.id for r in rules.candidates(facts(Subject(id="x", tenant="other")))] == ["r1"]
    assert [r.id for r in rules.candidates(facts(Subject()))] == ["r0", "r1", "r2", "r3"]


def test_rules_about_calls_are_known(stack_of: StackOf) -> None:
    book = stack_of(WAITING).rulebook
    assert [rule.id for rule in book.about_calls] == ["big", "theirs", "later"]


# What conditions read


def test_facts_are_what_the_stages_before_made(normalized: Normalized, stack_of: StackOf) -> None:
    request = normalized(
        "é",
        inputs={"b": 1, "a": 2},
        tools={"t": len, "s": len},
        metadata={"k": "v"},
        intents=(Intent("read", "x"),),
        subject=ANN,
    )
    report = ScreenReport(
        intents=(Intent("read", "./y", "inferred", 3),), needs=CodeNeeds(modules={"os": 1, "json": 2})
    )
    made = facts_of(request, report, WEDNESDAY, stack_of(""))
    assert (made.subject, made.at, made.call) == (ANN, WEDNESDAY, None)
    told = made.request
    assert (told.code_bytes, told.workdir, told.inputs, told.tools) == (2, "/w", ("a", "b"), ("s", "t"))
    assert (told.metadata, told.narrows, told.modules) == ({"k": "v"}, True, ("json", "os"))
    assert told.limits == request.limits != Limits()
    assert told.intents == (Intent("read", "/w/x"), Intent("read", "/w/y", "inferred", 3))
    assert facts_of(replace(request, intents=None), report, WEDNESDAY, stack_of("")).request.narrows is False


@pytest.mark.parametrize(
    ("policy", "listed", "complete"),
    [
        ("allow: [read /srv]", False, False),
        ("allow: [read /srv]", True, True),
        ("allow: [run, tool refund]", False, True),  # a call is looked at by itself
        ("ask: [read /srv]", False, True),  # what asks opens only where it is named
        ("", False, True),
    ],
)
def test_a_request_that_lists_nothing_wants_what_policy_opens(
    stack_of: StackOf, normalized: Normalized, policy: str, listed: bool, complete: bool
) -> None:
    stack = stack_of(policy)
    request = normalized(stack=stack, intents=() if listed else None)
    assert facts_of(request, ScreenReport(), WEDNESDAY, stack).request.complete is complete


def test_a_rule_about_intents_hits_where_they_are_not_all_known(
    stack_of: StackOf, normalized: Normalized
) -> None:
    text = "request.intents.exists(i, i.action == 'read' && i.path.startsWith('/srv/hr'))"
    stack = stack_of(f'allow: [read /srv]\nrules: [{{id: hr, deny: run, if: "{text}"}}]')

    def hits(intents: tuple[Intent, ...] | None) -> list[tuple[str, str]]:
        request = normalized(stack=stack, intents=intents)
        applied = applied_to(stack, facts_of(request, ScreenReport(), WEDNESDAY, stack))
        return [(hit.truth.value, hit.answers[0].why) for hit in applied.hits]

    assert hits((Intent("read", "/srv/a"),)) == []
    assert hits((Intent("read", "/srv/hr/x"),)) == [("true", "")]
    why = "`request.intents` can't be read: the request lists none, so it wants all that the policy opens"
    assert hits(None) == [("unknown", why)]


def test_an_inferred_target_that_is_none_is_unknown(normalized: Any) -> None:
    seen = [Intent("read", "a\0b", "inferred"), Intent("network", "x.com", "inferred"), Intent("read", None)]
    report = canonical(ScreenReport(intents=tuple(seen)), normalized())
    assert [(intent.target, intent.source) for intent in report.intents] == [(None, "inferred")] * 3
    assert canonical(report, normalized(directory="/elsewhere")) is report
