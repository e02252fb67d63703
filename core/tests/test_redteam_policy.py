"""Attacks on policies as files: what would never match, what would be left behind, what would be untrue."""

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import machine
from licet.applying import applied_to
from licet.decide import Decision
from licet.errors import InvalidPolicy, InvalidSettings
from licet.hosts import endpoint
from licet.plugins import GROUP, Plugins
from licet.policy import LivePolicy, PolicySource, PolicyStack, load_stack
from licet.policy.document import settled
from licet.policy.facts import Facts
from licet.policy.truth import Truth
from licet.request import Intent, NormalizedRequest, Subject
from licet.rules import Rules
from licet.settings import Settings, load_settings, under_administrator
from licet.testing.strategies import document_of
from licet.workbench.comparison.differences import differences
from licet.workbench.lint import lint

StackOf = Callable[..., PolicyStack]
AT = datetime(2026, 3, 4, tzinfo=UTC)
links_only = pytest.mark.skipif(sys.platform == "win32", reason="needs links that anybody may make")


def source(root: Path) -> PolicySource:
    return PolicySource({}, root / "managed")


def vote(stack: PolicyStack, action: str, target: Path) -> str:
    return Rules.of(stack, "/w").vote(Intent(cast("Any", action), target.as_posix())).effect


@pytest.mark.parametrize("name", ["org.YAML", "org.Yaml", "org.yml", "ORG.YML"])
def test_a_managed_bound_is_never_passed_over_for_how_its_name_is_spelled(tmp_path: Path, name: str) -> None:
    (tmp_path / "root.yaml").write_text("licet: 1\nallow: [shell]\n")
    (tmp_path / "managed").mkdir()
    (tmp_path / "managed" / name).write_text("licet: 1\ndeny: [shell]\n")
    with pytest.raises(InvalidPolicy, match=f"`{name}` would never be read"):
        load_stack(tmp_path / "root.yaml", source(tmp_path))
    (tmp_path / "managed" / name).rename(tmp_path / "managed" / "org.yaml")
    assert len(load_stack(tmp_path / "root.yaml", source(tmp_path)).bounds) == 1


def test_no_variable_moves_what_an_administrator_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = machine.administrators_directory()
    for name in ("PROGRAMDATA", "ProgramData", "ALLUSERSPROFILE", "SYSTEMDRIVE", "HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path))
    assert machine.administrators_directory() == before
    assert before.is_absolute()


@links_only
@pytest.mark.parametrize("entry", ["deny: [read ./secrets]", "rules: [{id: a, deny: read ./secrets}]"])
def test_a_denied_link_that_is_turned_is_denied_where_it_leads_now(tmp_path: Path, entry: str) -> None:
    root = Path(os.path.realpath(tmp_path))
    for name in ("first", "second"):
        (root / name).mkdir()
    (root / "secrets").symlink_to("first")
    (root / "p.yaml").write_text(f"licet: 1\nallow: [read .]\n{entry}\n")
    policy = LivePolicy(root / "p.yaml", source(root))

    def denied() -> list[str]:
        stack = policy.current()
        stack = stack.applying(stack.rulebook.rules)
        return [name for name in ("first", "second") if vote(stack, "read", root / name) == "deny"]

    assert denied() == ["first"]
    unchanged = policy.current()
    assert policy.current() is unchanged
    (root / "secrets").unlink()
    (root / "secrets").symlink_to("second")
    assert denied() == ["second"]


@links_only
def test_what_entries_lead_to_is_watched_and_not_sealed(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    (root / "data").mkdir()
    (root / "link").symlink_to("data")
    (root / "p.yaml").write_text("licet: 1\nallow: [read ./link]\n")
    policy = LivePolicy(root / "p.yaml", source(root))
    assert vote(policy.current(), "read", root / "data") == "allow"
    (root / "p.yaml").write_text("licet: 1\nalow: []\n")
    assert policy.current().stale is not None
    assert vote(policy.current(), "read", root / "data") == "allow"


@pytest.mark.parametrize(
    "entry",
    [
        "read ./data except ./data",
        "read ./data/x except ./data",
        "read ./data/x except ./data/x/y except /",
        "write workdir/a except workdir",
        "network 10.1.2.3:443 except 10.1.0.0/16",
        "network api.example.com:443 except *.example.com",
        "network any except any",
        "tool refund except re*",
        "tool * except *",
    ],
)
@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
def test_an_entry_that_takes_itself_back_is_an_error(stack_of: StackOf, effect: str, entry: str) -> None:
    with pytest.raises(InvalidPolicy, match="leaves nothing of"):
        stack_of(f"{effect}: ['{entry}']")
    if effect != "allow":
        with pytest.raises(InvalidPolicy, match="leaves nothing of"):
            stack_of(f"rules: [{{id: a, {effect}: '{entry}'}}]")


def policy(rule: str) -> PolicyStack:
    return PolicyStack(
        settled(document_of(f"licet: 1\nrules: [{{id: r, deny: run, if: {rule}}}]", "B", "/p"))
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{property.a: true}", "{property.a: 1}"),
        ("{property.a: 0}", "{property.a: false}"),
        ("{property.a: 1}", "{property.a: '1'}"),
        ("{property.a: true}", "{property.a: 'true'}"),
    ],
)
def test_a_difference_that_python_calls_equal_is_told(old: str, new: str) -> None:
    [told] = differences(policy(old), policy(new), "/p")
    was, now = (f"`{text.strip('{}')}`" for text in (old, new))
    assert told.text == f"the rule `r` denies `run`, if {now}; before, if {was}"
    assert told.direction == "other"


def test_a_rule_is_not_called_superfluous_for_what_python_calls_equal(stack_of: StackOf) -> None:
    stack = stack_of(
        "rules:\n"
        "  - {id: yes, deny: run, if: {property.a: true}}\n"
        "  - {id: one, deny: run, if: {property.a: 1}}\n"
        "  - {id: both, limits: {memory: 1MiB}, if: [{property.a: [true, 1]}, {property.a: 1}]}\n"
    )
    assert [one.code for one in lint(stack, AT)] == []
    again = stack_of(
        "rules:\n  - {id: a, deny: run, if: {property.a: 1}}\n  - {id: b, deny: run, if: {property.a: 1}}\n"
    )
    assert [one.code for one in lint(again, AT)] == ["shadowed-rule"]


ODD = ["a", "A", "a ", "", "1", "true", "é", "e\u0301", "ß", "ss", "\ufb00", "ff", "x" * 5000, "\u212a", "k"]
VALUES: list[Any] = [*ODD, 0, 1, 1.0, True, False, -0.0, 0.1, 10**20, 1e20, 2**53, float(2**53)]


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["tenant", "group", "subject", "type", "property.p", "property.a.b", "language"]),
            st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
            min_size=1,
            max_size=3,
        ),
        min_size=1,
        max_size=6,
    ),
    st.builds(
        Subject,
        id=st.sampled_from([*ODD, "unknown"]),
        type=st.sampled_from(ODD),
        groups=st.lists(st.sampled_from(ODD), max_size=3).map(tuple),
        tenant=st.none() | st.sampled_from(ODD),
        properties=st.dictionaries(
            st.sampled_from(["p", "a.b", "a"]), st.sampled_from([*VALUES, float("nan")])
        ),
    ),
)
def test_the_index_drops_no_rule(conditions: list[dict[str, list[Any]]], subject: Subject) -> None:
    texts = []
    for number, condition in enumerate(conditions):
        kept = {
            key: values
            for key, values in condition.items()
            if key.startswith("property.") or all(isinstance(value, str) for value in values)
        }
        texts.append(f"  - {{id: r{number}, deny: run, if: {json.dumps(kept)}}}" if kept else "")
    body = "\n".join(text for text in texts if text)
    if not body:
        return
    stack = PolicyStack(settled(document_of(f"licet: 1\nrules:\n{body}\n")))
    facts = Facts(subject, AT)
    slow = {rule.id for rule in stack.rulebook.rules if rule.condition.truth(facts) is not Truth.false}
    assert {rule.id for rule in applied_to(stack, facts).rules} == slow


def test_a_message_ends_however_much_it_quotes(stack_of: StackOf) -> None:
    with pytest.raises(InvalidPolicy) as problem:
        stack_of(f"screen: {{mode: {'x' * 1_000_000}}}")
    assert len(problem.value.message) == 4000


def test_a_policy_can_not_write_lines_into_the_log_of_its_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "p.yaml").write_text("licet: 1\n")
    policy = LivePolicy(tmp_path / "p.yaml", source(tmp_path))
    (tmp_path / "p.yaml").write_text('licet: 1\nmode: "x\\nWARNING all is well\\e[2K"\n')
    assert policy.current().stale is not None
    [record] = caplog.records
    assert "\n" not in record.getMessage() and "\x1b" not in record.getMessage()


@pytest.mark.parametrize("host", ["\u212aey.example.com:443", "x.\u212a\u212a.example:443"])
def test_the_sign_for_kelvin_is_no_letter(host: str) -> None:
    with pytest.raises(ValueError, match="letters that programs read differently"):
        endpoint(host)


def test_what_an_administrator_enables_denies_while_it_can_not_be_used(tmp_path: Path) -> None:
    managed = tmp_path / "config.toml"
    managed.write_text('enabled = ["guard"]\n')
    asked = cast("tuple[NormalizedRequest, Decision]", (SimpleNamespace(), SimpleNamespace()))
    for found in (
        [],
        [EntryPoint("guard", "no_such_module_at_all", GROUP)],
        [EntryPoint("guard", "json", GROUP), EntryPoint("guard", "email", GROUP)],
    ):
        plugins = Plugins(load_settings(None, {"LICET_ENABLED": ""}, managed=managed), found=found)
        assert plugins.has_deciders
        [vote] = plugins.ballots(*asked)
        assert (vote.decider, vote.effect) == ("guard", "deny")
        assert vote.reason == "the administrator enables the plugin `guard`, and it can't be used here"
    usable = Plugins(load_settings(None, {}, managed=managed), found=[EntryPoint("guard", "json", GROUP)])
    assert not usable.has_deciders
    elsewhere = Plugins(Settings(enabled=("guard",)), found=[])
    assert not elsewhere.has_deciders


def test_no_program_leaves_the_floor_of_the_administrator(tmp_path: Path) -> None:
    managed = tmp_path / "config.toml"
    managed.write_text('enabled = ["guard"]\npass_environment = []\n')
    settings = under_administrator(Settings(enabled=(), pass_environment=("*",)), managed=managed)
    assert (settings.enabled, settings.demanded, settings.pass_environment) == (("guard",), ("guard",), ())
    with pytest.raises(InvalidSettings, match="demanded"):
        managed.write_text("demanded = []\n")
        load_settings(None, {}, managed=managed)
