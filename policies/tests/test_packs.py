"""What each pack permits, asks about and refuses, and what it demands of a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from licet.contract import Control, Evidence, Level
from licet.decide import decide_call
from licet.policy import PolicySource, PolicyStack, load_stack
from licet.policy.facts import CallFacts
from licet.prepare import Prepared, prepare
from licet.request import ExecutionRequest, Intent, Limits, Subject
from licet.requirements import require
from licet_policies.plugin import licet_policy_packs

PACKS = licet_policy_packs()
SOURCE = PolicySource(PACKS, Path("/no-such-directory/policy.d"))
ANN = Subject(id="ann", groups=("staff",))
NOBODY = Subject()
WORKDIR = "/w"
AT = datetime(2026, 3, 4, 12, tzinfo=UTC)


def stack_of(pack: str) -> PolicyStack:
    return load_stack(f"licet:{pack}", SOURCE)


def within(tmp_path: Path, pack: str, text: str) -> PolicyStack:
    """A policy of a team, with the pack as its bound."""
    file = tmp_path / "team.yaml"
    file.write_text(f"licet: 1\nwithin: [licet:{pack}]\n{text}\n")
    return load_stack(file, SOURCE)


def asked(stack: PolicyStack, *intents: str, code: str = "1", **fields: Any) -> Prepared:
    """Decide on a request of `ann` that lists `intents`, or none at all: then all that is allowed is open."""
    listed = tuple(Intent(*text.split(" ", 1)) for text in intents)  # type: ignore[arg-type]
    fields = {"intents": listed or None, "subject": ANN, **fields}
    return prepare(
        ExecutionRequest(code=code, **fields),
        stack,
        (),
        at=AT,
        directory=WORKDIR,
        host_environment={},
        digest=lambda name, content: name,
    )


def effects(prepared: Prepared) -> dict[str, str]:
    return {str(verdict.intent): verdict.effect for verdict in prepared.decision.verdicts}


def demanded(prepared: Prepared) -> Mapping[Control, Level]:
    """What a sandbox has to hold that opens all that the decision allows."""
    found = require(prepared.decision, prepared.request.limits, prepared.decision.opened)
    return {control: asked.level for control, asked in found.items()}


def test_these_are_the_packs() -> None:
    assert list(PACKS) == ["agent", "compute", "data", "nothing", "regulated", "trusted"]


@pytest.mark.parametrize("pack", PACKS)
def test_every_pack_loads_without_a_warning_and_names_no_backend(pack: str) -> None:
    stack = stack_of(pack)
    assert stack.warnings == ()
    assert stack.root.name == f"licet:{pack}"
    assert stack.only is None
    assert stack.prefer == ()
    assert stack.evidence is Evidence.probed
    assert (stack.audit_mode, stack.content_mode) == ("required", "digest")
    assert not stack.may_learn


@pytest.mark.parametrize("pack", PACKS)
def test_every_pack_states_how_long_and_how_much(pack: str) -> None:
    stated = stack_of(pack).root.limits.stated()
    if pack != "nothing":
        assert {"wall_time", "stdout", "stderr", "output"} <= stated.keys()
    if pack not in ("nothing", "trusted"):
        assert {"memory", "processes", "code", "stdin", "recursion", "tool_calls"} <= stated.keys()


IN, OUT = f"read {WORKDIR}/a.csv", f"write {WORKDIR}/out/b.csv"
BESIDE, ABOVE = f"write {WORKDIR}/a.csv", "read /etc/passwd"
HOST, SHELL = "network api.example.com:443", "shell"

ANSWERS = {
    #            IN       OUT      BESIDE   ABOVE    HOST     SHELL
    "nothing": ("deny", "deny", "deny", "deny", "deny", "deny"),
    "compute": ("deny", "deny", "deny", "deny", "deny", "deny"),
    "data": ("allow", "allow", "deny", "deny", "deny", "deny"),
    "agent": ("allow", "allow", "ask", "deny", "ask", "deny"),
    "trusted": ("allow", "allow", "allow", "allow", "allow", "allow"),
    "regulated": ("deny", "ask", "ask", "deny", "ask", "deny"),
}


@pytest.mark.parametrize("pack", PACKS)
def test_what_a_pack_answers_to_each_act(pack: str) -> None:
    for intent, answer in zip((IN, OUT, BESIDE, ABOVE, HOST, SHELL), ANSWERS[pack], strict=True):
        found = effects(asked(stack_of(pack), intent))
        assert found[intent] == answer, intent
        assert found["run"] == ("deny" if pack == "nothing" else "allow")


@pytest.mark.parametrize("pack", PACKS)
def test_which_tools_a_pack_lets_code_call(pack: str) -> None:
    prepared = asked(stack_of(pack), tools={"find_order": len})
    call = answer_to_call(prepared, "find_order")
    assert call == ("allow" if pack in ("agent", "trusted") else "deny")


def answer_to_call(prepared: Prepared, tool: str, **args: Any) -> str:
    facts = replace(prepared.facts, call=CallFacts(tool, args))
    return decide_call(facts, prepared.stack).effect


def test_what_a_run_without_a_list_of_intents_finds_open() -> None:
    opened = {pack: asked(stack_of(pack)).decision.opened for pack in PACKS}
    assert (opened["compute"].read, opened["compute"].write) == ((), ())
    assert (opened["data"].read, opened["data"].write) == ((WORKDIR,), (f"{WORKDIR}/out",))
    # what asks stays closed until somebody names it
    assert (opened["agent"].read, opened["agent"].write) == ((WORKDIR,), (f"{WORKDIR}/out",))
    assert (opened["agent"].network, opened["regulated"].network) == ((), ())
    assert (opened["regulated"].read, opened["regulated"].write) == ((), ())
    assert (opened["trusted"].read, opened["trusted"].write) == (("/",), ("/",))


WALLS = {
    Control.filesystem_read_deny,
    Control.filesystem_write_deny,
    Control.network_deny,
    Control.unix_socket_deny,
    Control.shell_execution,
}


@pytest.mark.parametrize("pack", ["compute", "data", "agent", "regulated"])
def test_what_opens_only_a_part_demands_walls(pack: str) -> None:
    levels = demanded(asked(stack_of(pack)))
    # a host that is asked about when the code connects may come to be opened: others have to stay closed
    walls = (
        WALLS if pack in ("compute", "data") else WALLS - {Control.network_deny} | {Control.network_filter}
    )
    assert {control for control in walls if levels.get(control) is Level.enforced} == walls
    for control in (Control.timeout, Control.memory_limit, Control.process_count_limit, Control.fresh_state):
        assert levels[control] is Level.enforced


def test_what_opens_everything_demands_no_wall() -> None:
    assert WALLS & demanded(asked(stack_of("trusted"))).keys() == set()


def test_a_host_that_is_approved_demands_a_filter() -> None:
    levels = demanded(asked(stack_of("agent"), HOST))
    assert levels[Control.network_filter] is Level.enforced
    assert Control.network_deny not in levels


def test_an_agent_asks_one_person() -> None:
    (demand,) = asked(stack_of("agent"), HOST, BESIDE).decision.demands
    assert (demand.count, demand.sources, demand.reviewer) == (1, (), "human")
    assert (demand.expires, demand.unattended) == (3600, "queue")


def test_an_agent_may_write_everywhere_in_its_directory_once_that_is_approved() -> None:
    opened = asked(stack_of("agent"), BESIDE).decision.opened
    assert opened.write == (f"{WORKDIR}/a.csv",)


def test_regulated_work_needs_two_persons() -> None:
    (demand,) = asked(stack_of("regulated"), HOST, OUT).decision.demands
    assert (demand.count, demand.sources, demand.reviewer) == (2, (), "human")
    assert (demand.expires, demand.unattended) == (4 * 3600, "queue")


@pytest.mark.parametrize(
    ("subject", "effect"),
    [
        (ANN, "allow"),
        (Subject(type="service", id="build-7"), "allow"),
        (Subject(type="agent", id="helper", on_behalf_of="ann"), "allow"),
        (Subject(type="robot", id="r2"), "deny"),
        (NOBODY, "deny"),  # nobody can rule out that the rule is about this one
    ],
)
def test_regulated_work_is_done_for_somebody(subject: Subject, effect: str) -> None:
    prepared = asked(stack_of("regulated"), subject=subject)
    assert prepared.decision.effect == effect
    assert [hit.rule.id for hit in prepared.decision.hits] == (
        ["somebody-answers-for-it"] if effect == "deny" else []
    )


def test_regulated_walls_stand_even_where_a_team_opens_everything(tmp_path: Path) -> None:
    stack = within(tmp_path, "regulated", "allow: [read /, write /, network any, shell]")
    levels = demanded(asked(stack))
    assert levels[Control.filesystem_read_deny] is Level.enforced
    assert levels[Control.filesystem_write_deny] is Level.enforced
    assert levels[Control.shell_execution] is Level.enforced
    assert levels[Control.handle_isolation] is Level.enforced
    assert (levels[Control.process_isolation], levels[Control.orphan_cleanup]) == (
        Level.partial,
        Level.partial,
    )


def test_a_team_can_not_loosen_the_regulated_pack(tmp_path: Path) -> None:
    stack = within(
        tmp_path,
        "regulated",
        "allow: [read /, write /, network any, network private, shell, tool find_order]\n"
        "limits: {wall_time: 1h, tool_calls: 5000}\n"
        "screen: {mode: report}\n"
        "sandbox: {evidence: declared}\n"
        "audit: {mode: best_effort}\n"
        "approval: {count: 1}\n"
        "learn: true",
    )
    assert stack.evidence is Evidence.probed
    assert (stack.screen_mode, stack.audit_mode, stack.may_learn) == ("refuse", "required", False)
    assert (stack.limits.wall_time, stack.limits.tool_calls) == (600, 100)
    prepared = asked(stack, HOST, OUT, BESIDE, "write /srv/x", "shell", ABOVE)
    assert effects(prepared) == {
        "run": "allow",
        HOST: "ask",
        OUT: "ask",
        BESIDE: "ask",
        "write /srv/x": "deny",
        "shell": "deny",
        ABOVE: "allow",  # the pack says nothing of reading: that is the team's to answer for
    }
    assert effects(asked(stack, "network 10.1.2.3:5432")) == {"run": "allow", "network 10.1.2.3:5432": "deny"}
    assert [demand.count for demand in asked(stack, HOST).decision.demands] == [2]
    assert answer_to_call(asked(stack, tools={"find_order": len}), "find_order") == "allow"


def test_data_within_compute_is_computation(tmp_path: Path) -> None:
    file = tmp_path / "team.yaml"
    file.write_text("licet: 1\nextends: licet:data\nwithin: [licet:nothing]\n")
    assert asked(load_stack(file, SOURCE)).decision.effect == "deny"


def test_a_policy_can_start_from_every_pack(tmp_path: Path) -> None:
    for pack in PACKS:
        file = tmp_path / f"{pack}.yaml"
        file.write_text(f"licet: 1\nname: mine\nextends: licet:{pack}\nlimits: {{wall_time: 1s}}\n")
        stack = load_stack(file, SOURCE)
        assert stack.warnings == ()
        assert (stack.root.name, stack.limits.wall_time) == ("mine", 1)
        assert stack.limits.stdout == stack_of(pack).limits.stdout


@pytest.mark.parametrize("pack", ["compute", "data", "agent", "regulated"])
def test_the_screen_refuses_what_it_takes_for_an_escape(pack: str) -> None:
    escape = "().__class__.__bases__[0].__subclasses__()"
    assert asked(stack_of(pack), code=escape).decision.effect == "deny"


def test_trusted_only_reports_what_the_screen_sees() -> None:
    prepared = asked(stack_of("trusted"), code="().__class__.__bases__[0].__subclasses__()")
    assert prepared.decision.effect == "allow"
    assert prepared.decision.violations != ()


def test_limits_of_a_request_are_lowered_to_those_of_the_pack() -> None:
    prepared = asked(stack_of("agent"), limits=Limits(wall_time=3600, tool_calls=5))
    assert (prepared.request.limits.wall_time, prepared.request.limits.tool_calls) == (120, 5)
