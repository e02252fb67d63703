"""Plugins: listed from metadata, imported only when enabled, and left out when they fail."""

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from licet.decide import Ballot, Decision
from licet.errors import AuditUnavailable, InvalidPolicy
from licet.plugins import GROUP, Plugins
from licet.request import NormalizedRequest
from licet.scrubbing import Secret
from licet.settings import Settings, load_settings
from licet.state import StateDirectory

STATE = cast("StateDirectory", SimpleNamespace())
Made = Callable[..., Plugins]

BACKEND = """
from types import SimpleNamespace
from licet.hookspecs import hookimpl
class Backend:
    def describe(self):
        return SimpleNamespace(name={name!r})
@hookimpl
def licet_backends():
    return [Backend()]
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Write each text as a module, list them all, and enable those that a test names (or all)."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(enabled: tuple[str, ...] | None = None, **texts: str) -> Plugins:
        found = []
        for name, text in texts.items():
            module = f"licet_test_plugin_{name}"
            monkeypatch.delitem(sys.modules, module, raising=False)
            (tmp_path / f"{module}.py").write_text(text)
            found.append(EntryPoint(name, module, GROUP))
        return Plugins(Settings(enabled=tuple(texts) if enabled is None else enabled), found=found)

    return make


def names(plugins: Plugins) -> list[str]:
    return [backend.describe().name for backend in plugins.backends()]


def test_what_is_enabled_is_used(plugins: Made) -> None:
    made = plugins(a=BACKEND.format(name="one"), b=BACKEND.format(name="two"))
    assert (sorted(names(made)), made.problems) == (["one", "two"], [])


def test_what_is_not_enabled_is_not_even_imported(plugins: Made, tmp_path: Path) -> None:
    trap = f"from pathlib import Path\nPath({str(tmp_path / 'imported')!r}).touch()\n"
    made = plugins(("a",), a=BACKEND.format(name="one"), trap=trap)
    assert names(made) == ["one"]
    assert not (tmp_path / "imported").exists()
    plugins(("trap",), trap=trap)  # the twin: enabled, it is imported
    assert (tmp_path / "imported").exists()


def test_what_is_not_installed_is_named(plugins: Made) -> None:
    assert plugins(("ghost",)).problems == ["plugin `ghost` is enabled, but it is not installed"]


def test_two_plugins_of_one_name_are_neither(plugins: Made) -> None:
    twice = [EntryPoint("a", "json", GROUP), EntryPoint("a", "csv", GROUP)]
    made = Plugins(Settings(enabled=("a",)), found=twice)
    assert made.problems == ["plugin `a` is enabled, but 2 plugins of this name are installed"]
    once = Plugins(Settings(enabled=("a",)), found=[twice[0], EntryPoint("a", "json", GROUP)])
    assert once.problems == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1/0", "ZeroDivisionError: division by zero"),
        ("def broken(:", "SyntaxError: "),
        ("import no_such_module_here", "ModuleNotFoundError: No module named 'no_such_module_here'"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        (
            "from licet.hookspecs import hookimpl\n@hookimpl\ndef licet_backends(wrong): ...",
            "PluginValidationError: ",
        ),
    ],
)
def test_a_plugin_that_fails_to_import_is_left_out_alone(plugins: Made, text: str, problem: str) -> None:
    made = plugins(bad=text, good=BACKEND.format(name="one"))
    assert names(made) == ["one"]
    assert len(made.problems) == 1
    assert made.problems[0].startswith(f"plugin `bad` can't be used: {problem}")


def test_a_plugin_that_is_half_wrong_is_left_out_whole(plugins: Made) -> None:
    half = BACKEND.format(name="half") + "@hookimpl\ndef licet_policy_packs(wrong): ...\n"
    made = plugins(half=half)
    assert names(made) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise OSError('no disk')", "OSError: no disk"),
        ("return None", "TypeError: 'NoneType' object is not iterable"),
        ("return 3", "TypeError: 'int' object is not iterable"),
        ("yield 1; raise OSError('late')", "OSError: late"),
    ],
)
def test_a_hook_that_fails_spoils_no_other(plugins: Made, body: str, problem: str) -> None:
    bad = f"from licet.hookspecs import hookimpl\n@hookimpl\ndef licet_backends():\n    {body}\n"
    made = plugins(bad=bad, good=BACKEND.format(name="one"))
    assert names(made) == ["one"]
    assert made.problems == [f"plugin `bad` failed: {problem}"]


def test_a_backend_that_cannot_describe_itself_is_left_out(plugins: Made) -> None:
    bad = BACKEND.format(name="x").replace(
        "return SimpleNamespace", "raise OSError('dumb')\n        SimpleNamespace"
    )
    made = plugins(bad=bad, good=BACKEND.format(name="one"))
    assert names(made) == ["one"]
    assert made.problems == ["a backend can't describe itself: OSError: dumb"]


def test_two_backends_of_one_name_are_both_refused(plugins: Made) -> None:
    same, other = BACKEND.format(name="monty"), BACKEND.format(name="two")
    made = plugins(a=same, b=same, c=other)
    assert names(made) == ["two"]
    assert made.problems == ["backend `monty` is offered 2 times, so none of them is used"]


def packs(**names: str) -> str:
    paths = ", ".join(f"{name!r}: Path({path!r})" for name, path in names.items())
    return (
        "from pathlib import Path\nfrom licet.hookspecs import hookimpl\n@hookimpl\n"
        f"def licet_policy_packs():\n    return {{{paths}}}\n"
    )


def test_packs_come_from_all_plugins_and_nobody_replaces_one(plugins: Made) -> None:
    made = plugins(
        a=packs(compute="/a/c.yaml", data="/a/d.yaml"), b=packs(compute="/b/c.yaml", mine="/b/m.yaml")
    )
    assert made.packs() == {"data": Path("/a/d.yaml"), "mine": Path("/b/m.yaml")}
    assert made.problems == ["policy pack `compute` is offered 2 times, so none of them is used"]


def test_packs_that_are_no_mapping_are_a_problem(plugins: Made) -> None:
    bad = "from licet.hookspecs import hookimpl\n@hookimpl\ndef licet_policy_packs():\n    return 3\n"
    made = plugins(bad=bad, good=packs(compute="/c.yaml"))
    assert made.packs() == {"compute": Path("/c.yaml")}
    assert made.problems == ["plugin `bad` failed: TypeError: 'int' object is not iterable"]


def log(body: str) -> str:
    head = "from licet.hookspecs import hookimpl\n@hookimpl\ndef licet_audit_log(settings, state):\n"
    return f"{head}    {body}\n"


def test_the_first_log_is_the_log(plugins: Made) -> None:
    assert cast("Any", plugins(none=log("return None"), one=log("return 'log'")).audit_log(STATE)) == "log"


def test_without_a_log_it_says_what_to_install(plugins: Made) -> None:
    for made in (plugins(), plugins(none=log("return None"))):
        with pytest.raises(AuditUnavailable) as problem:
            made.audit_log(STATE)
        assert str(problem.value) == "no plugin keeps a trail"
        assert problem.value.advice == "install one: `pip install 'licet[standard]'`"
    with pytest.raises(AuditUnavailable, match="no plugin keeps a trail"):
        plugins().audit_reader(STATE)


def test_a_log_that_fails_is_unavailable_with_its_reason(plugins: Made) -> None:
    with pytest.raises(AuditUnavailable) as problem:
        plugins(bad=log("raise RuntimeError('lost')")).audit_log(STATE)
    assert str(problem.value) == "the trail can't be opened: RuntimeError: lost"


def test_an_error_of_licet_goes_through_as_it_is(plugins: Made) -> None:
    body = "from licet.errors import InvalidPolicy; raise InvalidPolicy('said so')"
    with pytest.raises(InvalidPolicy, match="said so"):
        plugins(bad=log(body)).audit_log(STATE)


def test_the_standard_set_is_found_by_entry_points() -> None:
    made = Plugins(Settings())
    assert {"compute", "nothing", "trusted"} <= made.packs().keys()
    assert {"monty", "controlled_process"} <= {backend.describe().name for backend in made.backends()}
    assert made.problems == []


# Deciders

REQUEST = cast("NormalizedRequest", SimpleNamespace(code="1"))
DECISION = cast("Decision", SimpleNamespace(effect="allow"))


def decider(body: str, arguments: str = "request, decision") -> str:
    imports = "from licet.hookspecs import hookimpl\nfrom licet.decide import Ballot\n"
    return f"{imports}@hookimpl\ndef licet_decide({arguments}):\n    {body}\n"


@pytest.mark.parametrize(
    ("body", "votes"),
    [
        ("return [Ballot('me', 'deny', 'no', 'sha256:1')]", [("deny", "no", "sha256:1")]),
        (
            "return (Ballot('', 'ask', 'who?'), Ballot('', None, ''))",
            [("ask", "who?", None), (None, "", None)],
        ),
        ("return []", []),
        ("return None", []),
        ("yield Ballot('', 'deny', 'late')", [("deny", "late", None)]),
        ("return [Ballot('', 'deny', 'x' * 600)]", [("deny", "x" * 499 + "…", None)]),
    ],
)
def test_a_decider_votes_under_the_name_it_is_enabled_by(
    plugins: Made, body: str, votes: list[tuple[str | None, str, str | None]]
) -> None:
    ballots = plugins(other=decider(body)).ballots(REQUEST, DECISION)
    assert [(one.effect, one.reason, one.policy_digest) for one in ballots] == votes
    assert {one.decider for one in ballots} <= {"other"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise OSError('no answer')", "OSError: no answer"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("return 'deny'", "TypeError: it voted `d`, which is no ballot"),
        ("return 3", "TypeError: 'int' object is not iterable"),
        ("return Ballot('', 'deny', '')", "TypeError: 'Ballot' object is not iterable"),
        ("return [('ask', 'x')]", "TypeError: it voted `('ask', 'x')`, which is no ballot"),
        ("return [Ballot('', 'allow', '')]", "TypeError: it voted `Ballot(decider='', effect='allow', "),
        ("return [Ballot('', 'ask', None)]", "TypeError: it voted `Ballot(decider='', effect='ask', "),
        ("return [Ballot('', None, '', b'x')]", "TypeError: it voted `Ballot(decider='', effect=None, "),
        ("yield Ballot('', None, ''); raise OSError('late')", "OSError: late"),
    ],
)
def test_a_decider_that_fails_votes_to_deny(plugins: Made, body: str, reason: str) -> None:
    made = plugins(bad=decider(body), good=decider("return [Ballot('', 'ask', 'who?')]"))
    votes = {one.decider: one for one in made.ballots(REQUEST, DECISION)}
    assert votes["bad"].effect == "deny"
    assert votes["bad"].reason.startswith(f"the decider `bad` failed: {reason}")
    assert votes["good"] == Ballot("good", "ask", "who?")


def test_a_decider_takes_what_it_needs(plugins: Made) -> None:
    made = plugins(
        none=decider("return [Ballot('', 'ask', 'none')]", ""),
        one=decider("return [Ballot('', 'ask', decision.effect)]", "decision"),
        two=decider("return [Ballot('', 'ask', request.code)]", "request, decision"),
    )
    assert made.has_deciders
    votes = {one.decider: one.reason for one in made.ballots(REQUEST, DECISION)}
    assert votes == {"none": "none", "one": "allow", "two": "1"}


def test_without_a_decider_nobody_is_asked(plugins: Made) -> None:
    made = plugins(a=BACKEND.format(name="one"))
    assert (made.has_deciders, made.ballots(REQUEST, DECISION)) == (False, ())


SCRUBBER = """
from licet.hookspecs import hookimpl
from licet.scrubbing import Secret
@hookimpl
def licet_scrub(text, channel):
    {body}
"""


def scrubber(body: str) -> str:
    return SCRUBBER.format(body=body)


def test_scrubbers_are_asked_one_by_one_and_all_that_they_find_counts(plugins: Made) -> None:
    made = plugins(
        a=scrubber("return [Secret('a', 0, 2)]"), b=scrubber("return [Secret('b', 1, 3)]"), c="x = 1"
    )
    assert {*made.scrubbers} == {"a", "b"}
    assert made.find is not None
    assert {*made.find("text", "stdout")} == {Secret("a", 0, 2), Secret("b", 1, 3)}
    assert plugins(c="x = 1").find is None


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise KeyError(text)", "KeyError"),
        ("raise SystemExit(text)", "SystemExit"),
        ("return text", "TypeError"),
        ("return None", "TypeError"),
        ("return [('a', 0, 1)]", "TypeError"),
        ("return [Secret('a', 0, 99)]", "TypeError"),
        ("return [Secret('a', -1, 2)]", "TypeError"),
        ("return [Secret('a', 2, 1)]", "TypeError"),
        ("return [Secret('a', 0.0, 1)]", "TypeError"),
        ("return [Secret(text, 0, 1)]", "TypeError"),
        ("return [Secret('a', 0, 1, text)]", "TypeError"),
    ],
)
def test_a_scrubber_that_fails_withholds_the_text_and_tells_nothing_of_it(
    plugins: Made, body: str, error: str
) -> None:
    made = plugins(a=scrubber(body), b=scrubber("return [Secret('b', 1, 3)]"))
    assert {*made.secrets("My Secret", "stdout")} == {
        Secret("withheld", 0, 9, f"the scrubber `a` failed: {error}"),
        Secret("b", 1, 3),
    }


def test_a_scrubber_takes_what_it_needs(plugins: Made) -> None:
    narrow = scrubber("return [Secret('a', 0, len(text))]").replace("(text, channel)", "(text)")
    assert plugins(a=narrow).secrets("abc", "error") == (Secret("a", 0, 3),)


LACKING = """
from licet.hookspecs import hookimpl
@hookimpl
def licet_lacks():
    {body}
"""


def test_what_a_plugin_works_without_is_said(plugins: Made) -> None:
    finds = scrubber("return []")
    made = plugins(
        a=finds + LACKING.format(body="return {'detector': 'pip install x', 'model': ''}"),
        b=finds + LACKING.format(body="return {}"),
    )
    assert {*made.scrubbers} == {"a (no detector, no model)", "b"}
    assert made.problems == [
        "plugin `a` works without its detector: `pip install x`",
        "plugin `a` works without its model",
    ]
    assert not made.has_deciders


@pytest.mark.parametrize("body", ["raise OSError('dumb')", "return None", "return 3"])
def test_one_that_can_not_say_what_it_lacks_is_not_whole(plugins: Made, body: str) -> None:
    made = plugins(a=scrubber("return []") + LACKING.format(body=body))
    assert made.scrubbers == ("a (no known state)",)
    assert len(made.problems) == 2


def test_what_an_administrator_enables_has_to_be_whole(plugins: Made, tmp_path: Path) -> None:
    managed = tmp_path / "config.toml"
    managed.write_text('enabled = ["guard"]\n')
    text = scrubber("return []") + LACKING.format(body="return {'detector': 'pip install x'}")
    plugins(guard=text)  # writes the module
    found = [EntryPoint("guard", "licet_test_plugin_guard", GROUP)]
    made = Plugins(load_settings(None, {"LICET_ENABLED": ""}, managed=managed), found=found)
    [vote] = made.ballots(REQUEST, DECISION)
    assert (vote.decider, vote.effect) == ("guard", "deny")
    assert (
        vote.reason == "the administrator enables the plugin `guard`, and it is not whole here: no detector"
    )
    assert not Plugins(Settings(enabled=("guard",)), found=found).has_deciders  # the twin: nobody demands it
