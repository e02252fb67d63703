"""Reading a rule: every way in which it can be wrong is told with its place, and what to write instead."""

from collections.abc import Callable
from pathlib import Path

import pytest
from licet.contract import Control, Evidence, Level
from licet.errors import InvalidPolicy
from licet.policy import PolicyStack
from licet.policy.load import PolicySource, load_stack
from licet.testing.strategies import document_of

StackOf = Callable[..., PolicyStack]

NAMING = "name it after its reason, as in `id: weekend-freeze`; records and tests use that name"
NOTHING = "give it one of `deny`, `ask`, `limits`, `sandbox`, `approval`, `audit`"
AN_ID = "a rule needs an `id` of letters, digits, `-`, `_` and `.`, found "


def problem_of(rules: str) -> tuple[str, str, str | None]:
    """What is said of the text of `rules`, which begins in line 2."""
    with pytest.raises(InvalidPolicy) as problem:
        document_of(f"licet: 1\n{rules}\n", "p.yaml", "/p")
    return str(problem.value.where), problem.value.message, problem.value.advice


@pytest.mark.parametrize(
    ("text", "where", "message", "advice"),
    [
        (
            "rules: 3",
            "p.yaml:2:1",
            "`rules`: expected a list of rules, each a mapping that begins with `id`",
            None,
        ),
        (
            "rules: {id: a}",
            "p.yaml:2:1",
            "`rules`: expected a list of rules, each a mapping that begins with `id`",
            None,
        ),
        (
            "rules:\n  - deny run",
            "p.yaml:3:5",
            "expected a rule, a mapping that begins with `id`, found `deny run`",
            None,
        ),
        ("rules:\n  - deny: run", "p.yaml:3:5", "a rule needs an `id`", NAMING),
        ("rules: [{deny: run, id: 3}]", "p.yaml:2:21", f"{AN_ID}`3`", NAMING),
        ("rules: [{id: '', deny: run}]", "p.yaml:2:10", f"{AN_ID}``", NAMING),
        ("rules: [{id: a b, deny: run}]", "p.yaml:2:10", f"{AN_ID}`a b`", NAMING),
        ("rules: [{id: -a, deny: run}]", "p.yaml:2:10", f"{AN_ID}`-a`", NAMING),
        ("rules: [{id: é, deny: run}]", "p.yaml:2:10", f"{AN_ID}`é`", NAMING),
        (f"rules: [{{id: {'a' * 101}, deny: run}}]", "p.yaml:2:10", f"{AN_ID}`{'a' * 101}`", NAMING),
        (
            "rules:\n  - id: a\n    deny: run\n  - {id: a, ask: run}",
            "p.yaml:5:5",
            "the rule `a` stands in p.yaml:3:5 already",
            "give one of them another id",
        ),
        (
            "rules: [{id: a, deny: run, allow: shell}]",
            "p.yaml:2:28",
            "a rule has no `allow`: rules only tighten",
            "allow it at the top of the document, and deny or ask in the rule",
        ),
        (
            "rules: [{id: a, denny: run}]",
            "p.yaml:2:17",
            "unknown key `denny` in a rule",
            "did you mean `deny`?",
        ),
        ("rules: [{id: a, screen: {mode: refuse}}]", "p.yaml:2:17", "unknown key `screen` in a rule", None),
        ("rules: [{id: a}]", "p.yaml:2:9", "the rule `a` does nothing", NOTHING),
        ("rules: [{id: a, if: {tenant: x}, tests: []}]", "p.yaml:2:9", "the rule `a` does nothing", NOTHING),
        ("rules: [{id: a, deny: [], ask: []}]", "p.yaml:2:9", "the rule `a` does nothing", NOTHING),
        ("rules: [{id: a, limits: {}}]", "p.yaml:2:9", "the rule `a` does nothing", NOTHING),
        ("rules: [{id: a, sandbox: {require: {}}}]", "p.yaml:2:9", "the rule `a` does nothing", NOTHING),
        ("rules: [{id: a, audit: {}, approval: null}]", "p.yaml:2:9", "the rule `a` does nothing", NOTHING),
        (
            "rules: [{id: a, sandbox: {prefer: [monty]}}]",
            "p.yaml:2:17",
            "`sandbox.prefer` in a rule tightens nothing",
            "rank backends at the top of the document; a rule can narrow them by `only`",
        ),
        (
            "rules: [{id: a, deny: run, sandbox: {evidence: declared}}]",
            "p.yaml:2:28",
            "`sandbox.evidence` in a rule tightens nothing",
            "a rule can demand `read_back` or `probed`",
        ),
        (
            "rules: [{id: a, audit: {mode: best_effort}}]",
            "p.yaml:2:17",
            "`audit.mode` in a rule tightens nothing",
            "a rule can demand `required`",
        ),
        (
            "rules: [{id: a, audit: {content: kept}}]",
            "p.yaml:2:17",
            "`audit.content` in a rule tightens nothing",
            "a rule can demand `digest`",
        ),
        (
            "rules: [{id: a, deny: 3}]",
            "p.yaml:2:17",
            "`deny`: expected a list of entries such as `read ./data`",
            None,
        ),
        (
            "rules: [{id: a, deny: [3]}]",
            "p.yaml:2:24",
            "expected an entry such as `read ./data`, found `3`",
            None,
        ),
        (
            "rules:\n  - id: a\n    deny:\n      - run\n      - reed ./a",
            "p.yaml:6:9",
            "`reed ./a` begins with no action; write one of run, read, write, network, shell, tool",
            None,
        ),
        (
            "rules: [{id: a, ask: network x.com}]",
            "p.yaml:2:17",
            "`x.com` names no port; write `x.com:443`",
            None,
        ),
        (
            "rules: [{id: a, deny: run, tests: {}}]",
            "p.yaml:2:28",
            "`tests` is a list of cases, found `{}`",
            None,
        ),
        (
            "rules: [{id: a, deny: run, tests: three}]",
            "p.yaml:2:28",
            "`tests` is a list of cases, found `three`",
            None,
        ),
        (
            "rules: [{id: a, limits: {memori: 1}}]",
            "p.yaml:2:26",
            "unknown key `rule a.limits.memori`",
            "did you mean `memory`?",
        ),
        ("rules: [{id: a, limits: {memory: lots}}]", "p.yaml:2:26", "`rule a.limits.memory`: ", None),
        ("rules: [{id: a, approval: {count: 0}}]", "p.yaml:2:28", "`rule a.approval.count`: ", None),
        (
            "rules: [{id: a, deny: run, if: {args.x: 1}}]",
            "p.yaml:2:33",
            "unknown key `args.x` of a condition",
            None,
        ),
        ("rules: [{id: a, deny: run, if: }]", "p.yaml:2:28", "`if` needs a condition, found nothing", None),
        (
            "rules: [{id: a, deny: run, during: {days: [sat, sunn], zone: UTC}}]",
            "p.yaml:2:37",
            "unknown weekday `sunn`",
            "did you mean `sun`?",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    text: str, where: str, message: str, advice: str | None
) -> None:
    found = problem_of(text)
    assert (found[0], message in found[1]) == (where, True), found
    if advice is not None:
        assert found[2] == advice


@pytest.mark.parametrize("text", ["if: args.amount > 1", "if: tool == 'pay'", "unless: args.amount > 1"])
@pytest.mark.parametrize("entries", ["deny: run", "ask: [tool pay, run]", "limits: {memory: 1}"])
def test_only_rules_about_tools_alone_read_calls(text: str, entries: str) -> None:
    where, message, advice = problem_of(f"rules: [{{id: a, {entries}, {text}}}]")
    name = "tool" if "tool ==" in text else "args"
    column = len(f"rules: [{{id: a, {entries}, {text.partition(' ')[0]} ") + 1
    assert (where, message) == (f"p.yaml:2:{column}", f"`{name}` is known only where a tool is called")
    assert advice == "read it in a rule about tools, such as `ask: tool NAME`"


def test_a_repeated_id_is_told_also_through_extends(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("licet: 1\nrules: [{id: a, deny: run}]\n")
    (tmp_path / "p.yaml").write_text("licet: 1\nextends: ./base.yaml\nrules:\n  - {id: a, ask: run}\n")
    with pytest.raises(InvalidPolicy) as problem:
        load_stack(tmp_path / "p.yaml", PolicySource(managed=tmp_path / "none"))
    assert str(problem.value.where) == f"{tmp_path}/p.yaml:4:5"
    assert problem.value.message == f"the rule `a` stands in {tmp_path}/base.yaml:2:9 already"


def test_two_documents_may_use_one_id(stack_of: StackOf) -> None:
    stack = stack_of("rules: [{id: a, deny: run}]", "rules: [{id: a, deny: shell}]")
    assert [str(rule.where) for rule in stack.rulebook.rules] == ["root:2:9", "bound1:2:9"]


def test_a_rule_is_read_whole() -> None:
    [rule] = document_of(
        "licet: 1\nrules:\n  - id: weekend.Freeze-1_b\n    deny: write ./out\n"
        "    ask: [read ./a, 'network x.com:443']\n    if: {tenant: acme}\n    unless: [{group: oncall}]\n"
        "    limits: {memory: 1MiB}\n"
        "    sandbox: {require: {timeout: partial}, evidence: read_back, only: [b]}\n"
        "    approval: {count: 2, from: [finance]}\n    audit: {mode: required, content: digest}\n"
        "    tests: [{run: true, expect: deny}]\n",
        "p.yaml",
        "/p",
    ).rules
    assert (rule.id, str(rule.where)) == ("weekend.Freeze-1_b", "p.yaml:3:5")
    assert [(e.effect, f"{e.action} {e.target}", str(e.where)) for e in rule.entries] == [
        ("deny", "write /p/out", "p.yaml:4:5"),
        ("ask", "read /p/a", "p.yaml:5:11"),
        ("ask", "network x.com:443", "p.yaml:5:21"),
    ]
    assert [(leaf.clause, leaf.text) for leaf in rule.condition.leaves] == [
        ("if", "tenant: acme"),
        ("unless", "group: oncall"),
    ]
    assert rule.limits.stated() == {"memory": 1 << 20}
    assert rule.sandbox.require == {Control.timeout: Level.partial}
    assert (rule.sandbox.evidence, rule.sandbox.only) == (Evidence.read_back, ("b",))
    assert rule.approval is not None
    assert (rule.approval.count, rule.approval.sources, rule.approval.expires) == (2, ("finance",), 1800.0)
    assert (rule.audit.mode, rule.audit.content) == ("required", "digest")
    assert [case.expect.effect for case in rule.tests] == ["deny"]
    assert rule.source == {"if": {"tenant": "acme"}, "unless": [{"group": "oncall"}]}


def test_what_an_approval_leaves_open_is_the_documents() -> None:
    document = document_of(
        "licet: 1\napproval: {count: 3, reviewer: human}\nrules:\n"
        "  - {id: own, ask: run, approval: {count: 2}}\n"
        "  - {id: none, ask: run}\n  - {id: empty, deny: run, approval: {}}\n  - {id: silent, deny: run}\n"
    )
    assert [rule.approval and str(rule.approval) for rule in document.rules] == [
        "2 human persons",
        "3 human persons",
        "3 human persons",
        None,
    ]


def test_workdir_in_a_rule_is_the_directory_of_the_run() -> None:
    [rule] = document_of("licet: 1\nrules: [{id: a, deny: read workdir/x, ask: write workdir}]").rules
    assert [entry.target for _, entry in rule.index.bind("/w")] == ["/w/x", "/w"]


def test_a_rule_matches_tools_by_its_entries_for_tools() -> None:
    [other] = document_of("licet: 1\nrules: [{id: a, deny: 'tool find*', ask: read /x}]").rules
    assert other.index.bind("/w") == ()
    assert (other.matches_tool("find_all"), other.matches_tool("pay"), other.matches_tool("/x")) == (
        True,
        False,
        False,
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("deny: [run, shell]", "deny: [shell, run, run]", True),
        ("deny: run", "ask: run", False),
        ("deny: run", "deny: shell", False),
        ("deny: run, if: {tenant: a}", "deny: run, if: {tenant: b}", False),
        ("deny: run, if: {tenant: a}", "deny: run, unless: {tenant: a}", False),
        ("deny: run, during: {days: mon, zone: UTC}", "deny: run, during: {days: tue, zone: UTC}", False),
        ("deny: run, limits: {memory: 1MiB}", "deny: run, limits: {memory: 1048576}", True),
        ("deny: run, limits: {memory: 1}", "deny: run, limits: {memory: 2}", False),
        ("deny: run, sandbox: {only: [a]}", "deny: run, sandbox: {only: [b]}", False),
        ("ask: run, approval: {count: 1}", "ask: run, approval: {count: 2}", False),
        ("deny: run, audit: {mode: required}", "deny: run, audit: {content: digest}", False),
        ("deny: run, tests: [{run: true, expect: deny}]", "deny: run", True),
    ],
)
def test_the_digest_is_of_what_a_rule_decides(stack_of: StackOf, one: str, other: str, same: bool) -> None:
    digests = {stack_of(f"rules: [{{id: a, {text}}}]").digest for text in (one, other)}
    assert (len(digests) == 1) == same
    assert stack_of(f"rules: [{{id: a, {one}}}]").digest != stack_of(f"rules: [{{id: b, {one}}}]").digest


def test_the_digest_knows_no_order_of_rules(stack_of: StackOf) -> None:
    a, b = "{id: a, deny: run}", "{id: b, ask: shell}"
    assert stack_of(f"rules: [{a}, {b}]").digest == stack_of(f"rules: [{b}, {a}]").digest
