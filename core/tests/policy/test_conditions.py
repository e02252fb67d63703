"""`if`, `during` and `unless` together: grammar, places, what is unknown, and what an index may use."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.errors import InvalidPolicy
from licet.policy.conditions import Condition, build
from licet.policy.engine import TextPlace
from licet.policy.facts import Facts
from licet.policy.leaves import index_words
from licet.policy.signatures import Signature
from licet.policy.truth import Truth, both, negated
from licet.policy.yaml import load
from licet.request import Subject

NOON = datetime(2026, 2, 27, 12, tzinfo=UTC)
ANN = Subject(
    id="ann",
    type="service",
    groups=("finance", "oncall"),
    tenant="acme",
    properties={"plan": "pro", "level": 3, "beta": True, "share": 0.5},
)


@dataclass(frozen=True)
class Said:
    """A text of the test's own language: `yes`, `no` or `maybe`, and after a colon `call`."""

    text: str
    asked: list[str]

    @property
    def reads_call(self) -> bool:
        return self.text.endswith("call")

    def evaluate(self, facts: Facts) -> tuple[Truth, str]:
        self.asked.append(self.text)
        answers = {"yes": Truth.true, "no": Truth.false}
        return answers.get(self.text.split(":")[0], Truth.unknown), f"it says {self.text}"

    def check(self, tool: str, signature: Signature) -> None:
        self.asked.append(f"checked against {tool}")


@dataclass
class Engine:
    """Compiles every text, and keeps where it stands and what it may read."""

    asked: list[str] = field(default_factory=list)
    compiled: list[tuple[str, TextPlace, bool]] = field(default_factory=list)

    def compile(self, text: str, place: TextPlace, *, calls: bool) -> Said:
        self.compiled.append((text, place, calls))
        return Said(text, self.asked)


def condition(text: str, engine: Engine | None = None, **options: Any) -> Condition:
    used = engine or Engine()
    return build(load(text.encode(), "p.yaml"), file="p.yaml", engine=lambda: used, **options)


def truth(text: str, subject: Subject = ANN, at: datetime = NOON) -> Truth:
    return condition(text).truth(Facts(subject, at))


def refusal(text: str) -> tuple[str, str | None]:
    with pytest.raises(InvalidPolicy) as problem:
        condition(text)
    return str(problem.value), problem.value.advice


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if: {tenant: acme}", Truth.true),
        ("if: {tenant: [globex, acme]}", Truth.true),
        ("if: {tenant: globex}", Truth.false),
        ("if: {tenant: ACME}", Truth.false),
        ("if: {group: oncall}", Truth.true),
        ("if: {group: [hr, finance]}", Truth.true),
        ("if: {group: hr}", Truth.false),
        ("if: {subject: ann}", Truth.true),
        ("if: {type: user}", Truth.false),
        ("if: {language: python}", Truth.true),
        ("if: {language: [ruby, javascript]}", Truth.false),
        ("if: {property.plan: pro}", Truth.true),
        ("if: {property.plan: [free, basic]}", Truth.false),
        ("if: {property.level: 3}", Truth.true),
        ("if: {property.level: 3.0}", Truth.true),
        ("if: {property.level: [1, 2]}", Truth.false),
        ("if: {property.beta: true}", Truth.true),
        ("if: {property.share: 0.5}", Truth.true),
        ("if: {tenant: acme, group: hr}", Truth.false),
        ("if: [{tenant: acme}, {group: oncall}]", Truth.true),
        ("if: {before: 2026-02-27T12:00Z}", Truth.false),
        ("if: {after: 2026-02-27T12:00Z}", Truth.true),
        ("unless: {group: oncall}", Truth.false),
        ("unless: {group: hr}", Truth.true),
        ("unless: {group: oncall, before: 2026-01-01T00:00Z}", Truth.true),
        ("during: {days: fri, zone: UTC}", Truth.true),
        ("during: {days: sat, zone: UTC}", Truth.false),
        ("if: {tenant: acme}\nduring: {days: fri, zone: UTC}\nunless: {group: hr}", Truth.true),
        ("deny: run", Truth.true),
    ],
)
def test_what_is_known_is_answered(text: str, expected: Truth) -> None:
    assert truth(text) is expected


@pytest.mark.parametrize(
    ("text", "subject", "why"),
    [
        ("tenant: acme", Subject(id="ann"), "nobody said the tenant"),
        ("tenant: ''", Subject(id="ann", tenant=""), "nobody said the tenant"),
        ("property.plan: pro", Subject(id="ann"), "nobody said the property.plan"),
        ("subject: ann", Subject(), "nobody said the subject"),
        ("type: user", Subject(), "nobody said the type"),
        ("group: oncall", Subject(groups=("oncall",)), "nobody said the group"),
        ("property.level: '3'", ANN, "the property.level is `3`, which is of another type than the policy's"),
        (
            "property.level: true",
            ANN,
            "the property.level is `3`, which is of another type than the policy's",
        ),
        ("property.beta: 1", ANN, "the property.beta is `True`, which is of another type than the policy's"),
        ("property.x: 1", Subject(id="a", properties={"x": float("nan")}), "nobody said the property.x"),
    ],
)
def test_a_missing_identity_is_unknown_and_counts_either_way(text: str, subject: Subject, why: str) -> None:
    facts = Facts(subject, NOON)
    for clause in ("if", "unless"):
        built = condition(f"{clause}: {{{text}}}")
        assert built.truth(facts) is Truth.unknown
        assert [(answer.truth, answer.why) for answer in built.trace(facts)] == [(Truth.unknown, why)]


def test_one_matching_value_of_several_types_is_enough() -> None:
    assert truth("if: {property.level: ['3', 3]}") is Truth.true
    assert truth("if: {property.level: ['3', 4]}") is Truth.unknown


def test_a_known_subject_without_groups_is_in_none() -> None:
    facts = Facts(Subject(id="ann"), NOON)
    answer = condition("if: {group: oncall}").trace(facts)[0]
    assert (answer.truth, answer.why) == (Truth.false, "the subject is in no group")


def test_a_trace_says_of_every_leaf_where_it_stands_and_what_was_found() -> None:
    built = condition(
        "if:\n  - yes\n  - {tenant: [acme, globex], property.level: 4}\n"
        "during: {days: fri, zone: Europe/Berlin}\nunless: {group: hr, before: 2026-03-01}\n"
    )
    trace = built.trace(Facts(ANN, NOON))
    assert [(one.leaf.index, one.leaf.clause, one.leaf.text, str(one.leaf.where)) for one in trace] == [
        (0, "if", "yes", "p.yaml:2:5"),
        (1, "if", "tenant: [acme, globex]", "p.yaml:3:6"),
        (2, "if", "property.level: 4", "p.yaml:3:30"),
        (3, "during", "days: fri, zone: Europe/Berlin", "p.yaml:4:1"),
        (4, "unless", "group: hr", "p.yaml:5:10"),
        (5, "unless", "before: 2026-03-01", "p.yaml:5:21"),
    ]
    assert [(one.truth, one.why) for one in trace] == [
        (Truth.true, "it says yes"),
        (Truth.true, "the tenant is `acme`"),
        (Truth.false, "the property.level is `3`"),
        (Truth.true, "it is Fri 2026-02-27 13:00 in Europe/Berlin"),
        (Truth.false, "the groups are `finance`, `oncall`"),
        (Truth.true, "it is 2026-02-27T12:00:00Z"),
    ]


def test_a_day_that_depends_on_the_zone_says_so() -> None:
    answer = condition("if: {after: 2026-02-28}").trace(Facts(ANN, NOON))[0]
    assert (answer.truth, answer.why) == (
        Truth.unknown,
        "it is 2026-02-27T12:00:00Z, and whether that day has begun depends on the time zone; "
        "write a time with its offset",
    )


LEAVES = st.sampled_from(["yes", "no", "maybe"])


@given(st.lists(LEAVES, max_size=3), st.sampled_from([None, "fri", "sat"]), st.lists(LEAVES, max_size=3))
def test_the_truth_is_that_of_the_trace(ifs: list[str], day: str | None, unlesses: list[str]) -> None:
    lines = [f"if: [{', '.join(ifs)}]"] if ifs else []
    lines += [f"during: {{days: {day}, zone: UTC}}"] if day else []
    lines += [f"unless: [{', '.join(unlesses)}]"] if unlesses else []
    engine = Engine()
    built = condition("\n".join(lines) or "deny: run", engine)
    facts = Facts(ANN, NOON)
    trace = built.trace(facts)
    clauses = [one.truth for one in trace if one.leaf.clause != "unless"]
    if unlesses:
        clauses.append(negated(both(one.truth for one in trace if one.leaf.clause == "unless")))
    assert built.truth(facts) is both(clauses)
    assert len(trace) == len(ifs) + len(unlesses) + (day is not None)


def test_the_truth_reads_no_further_than_it_must() -> None:
    engine = Engine()
    built = condition("if: [maybe, no, yes]\nunless: yes", engine)
    assert built.truth(Facts(ANN, NOON)) is Truth.false
    assert engine.asked == ["maybe", "no"]
    built.trace(Facts(ANN, NOON))
    assert engine.asked[2:] == ["maybe", "no", "yes", "yes"]


def test_a_rule_without_conditions_always_applies() -> None:
    always = condition("deny: run")
    assert always == Condition()
    assert always.truth(Facts(Subject(), NOON)) is Truth.true
    assert (always.trace(Facts(Subject(), NOON)), always.reads_call) == ((), False)


def test_what_is_known_only_in_a_call_is_told() -> None:
    assert condition("if: [yes, 'maybe:call']").reads_call
    assert condition("unless: no:call").reads_call
    assert not condition("if: yes").reads_call


def test_no_engine_is_made_for_a_policy_without_texts() -> None:
    def none() -> Any:
        raise AssertionError("an engine was asked for")

    tree = load(b"if: {tenant: acme}\nunless: {group: hr}\nduring: {days: fri, zone: UTC}", "p.yaml")
    assert build(tree, file="p.yaml", engine=none).truth(Facts(ANN, NOON)) is Truth.true


def test_a_missing_engine_is_an_error_at_the_text() -> None:
    def none() -> Any:
        raise InvalidPolicy("no language for texts", advice="install it")

    with pytest.raises(InvalidPolicy) as problem:
        build(load(b"if: {tenant: acme}\nunless: yes", "p.yaml"), file="p.yaml", engine=none)
    assert (str(problem.value), problem.value.advice) == ("p.yaml:2:9: no language for texts", "install it")


@pytest.mark.parametrize("calls", [False, True])
def test_a_text_may_read_calls_where_the_rule_is_about_tools(calls: bool) -> None:
    engine = Engine()
    condition("if: yes", engine, calls=calls)
    assert engine.compiled == [("yes", TextPlace("p.yaml", 1, 5), calls)]


@pytest.mark.parametrize(
    ("text", "inside", "expected"),
    [
        ("if: a.b == 1", (1, 3), "p.yaml:1:7"),
        ('if:    "a.b == 1"', (1, 3), "p.yaml:1:11"),
        ("if: 'a.b == 1'", (1, 3), "p.yaml:1:8"),
        ("if:\n  - {tenant: x}\n  -  a.b == 1", (1, 3), "p.yaml:3:8"),
        ("if:\n  - {tenant: x}\n  - 'a.b == 1'", (1, 3), "p.yaml:3:8"),
        ("if: |\n  a.b == 1 &&\n  c", (2, 1), "p.yaml:3"),
        ("if: >\n  a.b == 1 &&\n  c", (1, 12), "p.yaml:1"),
        ("if: a.b == 1 &&\n  c", (1, 12), "p.yaml:1"),
        ("unless: [a.b == 1]", (1, 1), "p.yaml:1:10"),
    ],
)
def test_a_place_inside_a_text_is_found_in_the_file(
    text: str, inside: tuple[int, int], expected: str
) -> None:
    engine = Engine()
    condition(text, engine)
    assert str(engine.compiled[0][1].at(*inside)) == expected


@pytest.mark.parametrize(
    ("text", "message", "advice"),
    [
        (
            "if: {tennant: acme}",
            "p.yaml:1:6: unknown key `tennant` of a condition",
            "did you mean `tenant`?",
        ),
        (
            "if:\n  - yes\n  - {Group: x}",
            "p.yaml:3:6: unknown key `Group` of a condition",
            "did you mean `group`?",
        ),
        (
            "unless: {property: x}",
            "p.yaml:1:10: unknown key `property` of a condition",
            "write `property.NAME`",
        ),
        (
            "unless: {property.: x}",
            "p.yaml:1:10: unknown key `property.` of a condition",
            "write `property.NAME`",
        ),
        (
            "if: {tenant: 7}",
            "p.yaml:1:6: `tenant` needs a text, found `7`",
            'put it in quotes: `tenant: "7"`',
        ),
        (
            "if: {group: [a, 7]}",
            "p.yaml:1:17: `group` needs a text, found `7`",
            'put it in quotes: `group: "7"`',
        ),
        ("if: {group: }", "p.yaml:1:6: `group` needs a text, found `None`", None),
        ("if: {group: {a: b}}", "p.yaml:1:6: `group` needs a text, found `{'a': 'b'}`", None),
        (
            "if: {property.x: .nan}",
            "p.yaml:1:6: `property.x` needs a text, a number, true or false, found `nan`",
            None,
        ),
        ("if: {tenant: []}", "p.yaml:1:6: `tenant` lists nothing", "name at least one value"),
        (
            "if:",
            "p.yaml:1:1: `if` needs a condition, found nothing",
            "write a text such as `args.amount > 100`, or a mapping such as `{group: oncall}`",
        ),
        (
            "unless: {}",
            "p.yaml:1:1: `unless` needs a condition, found nothing",
            "write a text such as `args.amount > 100`, or a mapping such as `{group: oncall}`",
        ),
        (
            "if: [yes, []]",
            "p.yaml:1:11: `if` needs a condition, found nothing",
            "write a text such as `args.amount > 100`, or a mapping such as `{group: oncall}`",
        ),
        (
            "if: [yes, 7]",
            "p.yaml:1:11: `if` needs a condition, found `7`",
            "write a text such as `args.amount > 100`, or a mapping such as `{group: oncall}`",
        ),
        ("if: '  '", "p.yaml:1:5: `if` is an empty text", None),
        (
            "unless: {before: 2026-03-01T00:00}",
            "p.yaml:1:10: `2026-03-01T00:00` says no offset from UTC, so it is another instant in every zone",
            "write `2026-03-01T00:00Z`, or `2026-03-01T00:00+01:00`",
        ),
    ],
)
def test_what_is_no_condition_fails_at_load(text: str, message: str, advice: str | None) -> None:
    assert refusal(text) == (message, advice)


def test_only_texts_of_if_are_necessary() -> None:
    built = condition(
        "if:\n  - {tenant: [acme, globex], group: a, property.plan: free, property.level: 3}\n"
        "  - {group: b, before: 2026-03-01}\nunless: {subject: ann}\n"
    )
    assert built.necessary == {
        "tenant": frozenset({"acme", "globex"}),
        "group": frozenset({"a"}),
        "property.plan": frozenset({"free"}),
    }


WORDS = st.sampled_from(["a", "b", "c"])
SUBJECTS = st.builds(
    Subject,
    id=st.sampled_from(["unknown", "a", "b", ""]),
    type=WORDS,
    groups=st.lists(WORDS, max_size=2).map(tuple),
    tenant=st.none() | st.just("") | WORDS,
    properties=st.dictionaries(st.just("p"), WORDS | st.integers(0, 1) | st.booleans()),
)
KEYS = st.sampled_from(["tenant", "group", "subject", "type", "property.p", "language"])
MAPPINGS = st.dictionaries(KEYS, st.lists(WORDS, min_size=1, max_size=2), min_size=1)


@given(st.lists(MAPPINGS, min_size=1, max_size=2), SUBJECTS)
def test_what_lacks_a_necessary_word_is_certainly_not_met(
    mappings: list[dict[str, list[str]]], who: Subject
) -> None:
    items = [_written(one) for one in mappings]
    built = condition(f"if: [{', '.join(items)}]")
    excluded = [
        key
        for key, words in built.necessary.items()
        if (has := index_words(key, Facts(who, NOON))) is not None and not has & words
    ]
    if excluded:
        assert built.truth(Facts(who, NOON)) is Truth.false


def _written(mapping: dict[str, list[str]]) -> str:
    return "{" + ", ".join(f"{key}: [{', '.join(words)}]" for key, words in mapping.items()) + "}"
