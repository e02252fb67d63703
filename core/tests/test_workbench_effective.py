"""What is in force, and where it comes from."""

from collections.abc import Callable
from dataclasses import replace

from licet.policy import PolicyStack
from licet.policy.stack import digest_of
from licet.testing.strategies import document_of
from licet.workbench import words
from licet.workbench.effective import effective

StackOf = Callable[..., PolicyStack]


def settings(stack: PolicyStack) -> dict[str, tuple[str, list[str], list[tuple[str, str]]]]:
    return {
        one.key: (one.shown, [str(p) for p in one.stated], [(t, str(p)) for t, p in one.outweighed])
        for one in effective(stack).settings
    }


def test_every_setting_names_the_lines_that_make_it_so_and_those_that_it_outweighs(stack_of: StackOf) -> None:
    found = settings(
        stack_of(
            "limits: {memory: 1GiB, wall_time: 10s}\nscreen: {mode: report}\nenv: {LANG: C, X: y}",
            "limits: {memory: 128MiB}\nscreen: {mode: refuse, modules: {deny: [ctypes]}}\nenv: {LANG: x}",
            "limits: {memory: 128MiB}\nsandbox: {require: {timeout: partial}, only: [a, b]}\nlearn: false",
        )
    )
    assert found["limits.memory"] == ("128 MiB", ["bound1:2:10", "bound2:2:10"], [("1 GiB", "root:2:10")])
    assert found["limits.wall_time"] == ("10 s", ["root:2:24"], [])
    assert found["limits.code"] == ("1 MiB", [], [])
    assert found["screen.mode"] == ("refuse", ["bound1:3:10"], [("report", "root:3:10")])
    assert found["screen.modules.deny.ctypes"] == ("denied", ["bound1:3:34"], [])
    assert found["sandbox.require.timeout"] == ("partial", ["bound2:3:21"], [])
    assert found["sandbox.only"] == ("a, b", ["bound2:3:40"], [])
    assert found["sandbox.evidence"] == ("probed", [], [])
    assert found["env.LANG"] == ("C", ["root:4:7"], [])
    assert found["env.X"] == ("not handed on", ["bound1:4:1"], [("y", "root:4:16")])
    assert found["learn"] == ("false", ["bound2:4:1"], [])
    assert found["clock"] == ("real", [], [])


def test_what_code_sees_of_the_world_is_the_roots_to_say(stack_of: StackOf) -> None:
    found = settings(stack_of("clock: frozen", "clock: real\nrandom: seeded"))
    assert found["clock"] == ("frozen", ["root:2:1"], [("real", "bound1:2:1")])
    assert found["random"] == ("real", [], [("seeded", "bound1:3:1")])


def test_tools_and_approvals_are_told_for_each_document(stack_of: StackOf) -> None:
    stack = stack_of(
        "tools: {refund: {order: string, amount: decimal?}}\nallow: [tool refund]\napproval: {count: 2}",
        "tools: {refund: {}}\nask: [tool refund]\napproval: {reviewer: human}",
    )
    found = effective(stack).settings
    tools = [(one.key, one.shown, str(one.stated[0])) for one in found if one.key.startswith("tools")]
    assert tools == [
        ("tools.refund", "order: string, amount: decimal?", "root:2:9"),
        ("tools", "only refund", "bound1:2:1"),
    ]
    approvals = [(one.document, one.key, one.shown) for one in found if one.stated and "approval" in one.key]
    assert approvals == [("root", "approval.count", "2"), ("bound1", "approval.reviewer", "human")]


def test_every_document_in_force_has_its_digest_also_one_that_rehearses(stack_of: StackOf) -> None:
    rehearsed = document_of("licet: 1\nmode: dry_run\ndeny: [shell]", "trial", "/p")
    stack = replace(stack_of("allow: [shell]", "name: org"), rehearsed=(rehearsed,))
    found = effective(stack)
    assert found.digest == stack.digest
    assert [(part.role, part.file, part.name) for part in found.parts] == [
        ("root", "root", None),
        ("bound", "bound1", "org"),
        ("dry_run", "trial", None),
    ]
    assert found.parts[2].digest == digest_of(rehearsed)
    assert len({part.digest for part in found.parts}) == 3


def test_the_digest_of_a_document_is_about_what_it_says() -> None:
    one = document_of("licet: 1\nallow: [shell, read ./a]", "one", "/p")
    same = document_of("licet: 1\n# why\nallow:\n  - read /p/a\n  - shell", "two", "/q")
    other = document_of("licet: 1\nallow: [shell]", "one", "/p")
    assert digest_of(one) == digest_of(same) != digest_of(other)


def test_a_rule_in_words(stack_of: StackOf) -> None:
    (rule,) = stack_of(
        "rules:\n  - id: big\n    ask: tool refund\n    if: {group: [a, b], tenant: acme}\n"
        "    unless: {subject: ada}\n    during: {days: [sat], zone: UTC}\n"
        "    approval: {count: 2, from: [finance], reviewer: human, expires: 1d, unattended: queue}\n"
        "    limits: {memory: 1MiB}\n    sandbox: {require: {network_deny: enforced}, only: [monty]}"
    ).root.rules
    assert words.sentence(rule) == (
        "asks before `tool refund` (2 human persons of finance within 1 d, queued where nobody is there); "
        "limits memory to 1 MiB; requires network_deny enforced; admits only monty, "
        "if `group: [a, b]` and `tenant: acme` during `days: [sat], zone: UTC` unless `subject: ada`"
    )
    (plain,) = stack_of("rules:\n  - {id: x, deny: run}").root.rules
    assert words.sentence(plain) == "denies `run`, always"


def test_targets_are_shown_as_people_write_them() -> None:
    assert words.target("/p/data/x", "/p") == "./data/x"
    assert words.target("/p", "/p") == "."
    assert words.target("/q", "/p") == "/q"
    assert words.target("/(workdir)/out") == "workdir/out"
    assert words.target("/(workdir)") == "workdir"
    assert words.target("a.x.com:443", "/p") == "a.x.com:443"
