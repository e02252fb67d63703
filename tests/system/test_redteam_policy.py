"""Attacks on the policy of a whole run: what team files, requests and calls of tools can not loosen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from licet import Runtime, Settings, Subject, Termination
from licet.backend import Descriptor, Host, Language, Outcome, Sandbox, ToolCall
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.errors import InvalidPolicy
from licet.plan import ExecutionPlan
from licet.record import MemoryLog
from licet.request import ExecutionRequest, Intent, Limits
from licet.result import ExecutionResult

ALL_HELD = SandboxEnforcementContract(
    **{control.value: Enforcement(Level.enforced, "kernel", "a test") for control in Control}
)
OPENS = frozenset({"read", "write", "network", "shell", "tool"})
AT_ITS_WORD = "licet: 1\nsandbox: {evidence: declared}\n"


class Caller:
    """A backend whose code calls tools, and says what came back."""

    def __init__(self, *calls: ToolCall) -> None:
        self._calls = calls
        self.plans: list[ExecutionPlan] = []

    def describe(self) -> Descriptor:
        return Descriptor("caller", "1", ALL_HELD, Language("Puppet"), OPENS, 1.0)

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        self.plans.append(plan)
        return self

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        replies = [await host.call(call) for call in self._calls]
        told = [reply.error.type if reply.error else reply.value for reply in replies]
        return Outcome(Termination.exited, exit_code=0, value=told, value_repr=repr(told))

    async def close(self) -> None:
        pass


def run(
    root: str,
    *calls: ToolCall,
    org: str = "",
    managed: str = "",
    log: MemoryLog | None = None,
    **fields: Any,
) -> tuple[ExecutionResult, ExecutionPlan | None]:
    """Run under a team's `root`, within `org`, beside a managed bound; with the plan, if anything ran."""
    Path("managed").mkdir(exist_ok=True)
    Path("managed/all.yaml").write_text("licet: 1\n" + managed)
    Path("org.yaml").write_text("licet: 1\n" + org)
    Path("team.yaml").write_text(AT_ITS_WORD + "within: [org.yaml]\n" + root)
    backend = Caller(*calls)
    settings = Settings(enabled=("policies",))
    with Runtime(
        "team.yaml",
        backends=[backend],
        log=log or MemoryLog(),
        settings=settings,
        managed=Path("managed").absolute(),
    ) as runtime:
        result = runtime.run_sync(ExecutionRequest(code="1", **fields))
    return result, backend.plans[0] if backend.plans else None


def wipe(path: str, *rest: str, scope: str = "all") -> str:
    return f"{path} {scope}"


GUARD = "rules: [{id: guard, deny: tool wipe, if: \"args.scope == 'all'\"}]\n"


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        (ToolCall("wipe", ("x",), {"scope": "one"}), "x one"),
        (ToolCall("wipe", ("x",), {"scope": "all"}), "PermissionError"),
        (ToolCall("wipe", ("x",)), "PermissionError"),
        (ToolCall("wipe", ("x", "one")), "TypeError"),
        (ToolCall("wipe", ("x", "one", "two")), "TypeError"),
        (ToolCall("wipe", ("x",), {"rest": "one"}), "TypeError"),
        (ToolCall("wipe", ("x",), {"scope": None}), "PermissionError"),
        (ToolCall("wipe", ("x",), {"scope": b"one"}), "PermissionError"),
        (ToolCall("wipe", ("x",), {"scope": "one\0"}), "PermissionError"),
    ],
)
def test_no_way_to_pass_an_argument_gets_past_a_rule_that_reads_it(
    own_directories: Path, call: ToolCall, outcome: str
) -> None:
    declared = "tools: {wipe: {path: string, scope: string?}}\nallow: [tool wipe]\n"
    result, _ = run(declared, call, org=GUARD, tools={"wipe": wipe})
    assert result.value == [outcome]


def test_the_twin_without_the_rule_wipes_all(own_directories: Path) -> None:
    declared = "tools: {wipe: {path: string, scope: string?}}\nallow: [tool wipe]\n"
    result, _ = run(declared, ToolCall("wipe", ("x",)), tools={"wipe": wipe})
    assert result.value == ["x all"]


@pytest.mark.parametrize(
    "tools",
    [
        "",
        "tools: {wipe: {path: string, scope: any?}}\n",
        "tools: {wipe: {path: string, scope: int?}}\n",
        "tools: {wipe: {path: string}}\n",
    ],
)
def test_what_a_team_declares_of_a_tool_blinds_no_rule_of_the_org(own_directories: Path, tools: str) -> None:
    def honest(path: Any, scope: Any = "all") -> str:
        return f"{path} {scope}"

    call = ToolCall("wipe", ("x", "all"))
    result, _ = run(tools + "allow: [tool *]\n", call, org=GUARD, tools={"wipe": honest})
    assert result.value in (["PermissionError"], ["TypeError"])


ORG = (
    "limits: {memory: 64MiB, wall_time: 5s}\nsandbox: {only: [caller], require: {network_deny: partial}}\n"
    "deny: [shell]\nlearn: false\nscreen: {mode: refuse}\ntools: {find: {}}\nenv: {LANG: C}\n"
)


@pytest.mark.parametrize(
    "root",
    [
        "limits: {memory: 1TiB, wall_time: 9d}\nenv: {LANG: C, HOME: /root}\n",
        "within: [org.yaml]\nlimits: {memory: 1TiB}\n",
        "extends: loose.yaml\n",
        "within: [loose.yaml, org.yaml]\n",
        "rules: [{id: r, limits: {memory: 1TiB}}]\n",
    ],
)
@pytest.mark.parametrize("where", ["org", "managed"])
def test_nothing_that_a_team_writes_loosens_a_bound(own_directories: Path, root: str, where: str) -> None:
    Path("loose.yaml").write_text(
        "licet: 1\nmode: dry_run\nallow: [shell, tool '*']\nlimits: {memory: 1TiB}\nlearn: true\n".replace(
            "'", ""
        )
    )
    if "within" in root:
        root = root.replace("within: [org.yaml]\n", "")
    granted = root + "allow: [shell, tool *]\nlearn: true\nscreen: {mode: report}\n"
    if "within" in root:
        granted = granted.replace("within: [loose.yaml, org.yaml]\n", "extends: more.yaml\n")
        Path("more.yaml").write_text("licet: 1\nwithin: [loose.yaml]\n")
    asked: dict[str, Any] = {"limits": Limits(memory=1 << 40), "tools": {"find": str, "wipe": str}}
    calls = (ToolCall("find"), ToolCall("wipe"))
    result, plan = run(granted, *calls, **{where: ORG}, **asked)
    assert plan is not None
    assert (plan.limits.memory, plan.limits.wall_time) == (64 << 20, 5.0)
    assert not plan.opened.shell
    assert set(plan.environment) <= {"LANG"}
    assert result.value == ["", "PermissionError"]
    learned, _ = run(granted, *calls, **{where: ORG}, **asked, learn=True)
    assert learned.termination is Termination.policy_denied


def test_the_twin_without_the_bound_opens_all_of_it(own_directories: Path) -> None:
    result, plan = run("allow: [shell, tool *]\n", ToolCall("wipe"), tools={"wipe": str})
    assert plan is not None and plan.opened.shell
    assert result.value == [""]


def test_a_bound_of_a_rehearsed_bound_decides(own_directories: Path) -> None:
    Path("inner.yaml").write_text("licet: 1\ndeny: [shell]\n")
    _, plan = run("allow: [shell]\n", org="mode: dry_run\nwithin: [inner.yaml]\nlimits: {memory: 1MiB}\n")
    assert plan is not None
    assert (plan.opened.shell, plan.limits.memory) == (False, None)


def test_mode_is_not_inherited_so_no_parent_takes_a_bound_out_of_force(own_directories: Path) -> None:
    Path("rehearsal.yaml").write_text("licet: 1\nmode: dry_run\ndeny: [network any]\n")
    _, plan = run("allow: [shell]\n", org="extends: rehearsal.yaml\ndeny: [shell]\n")
    assert plan is not None and not plan.opened.shell


def test_what_a_rehearsed_bound_would_say_of_a_call_is_recorded(own_directories: Path) -> None:
    log = MemoryLog()
    org = "mode: dry_run\ntools: {find: {}}\n"
    calls = (ToolCall("find"), ToolCall("wipe"))
    result, _ = run("allow: [tool *]\n", *calls, org=org, log=log, tools={"find": str, "wipe": str})
    assert result.value == ["", ""]
    bodies = [
        json.loads(json.dumps(r.entry.body, default=dict))
        for r in log.records()
        if (r.entry.kind, r.entry.phase) == ("tool_call", "before")
    ]
    assert [[one["effect"] for one in body["rehearsals"]] for body in bodies] == [["allow"], ["deny"]]
    assert [body["effect"] for body in bodies] == ["allow", "allow"]


SUBJECTS: list[Callable[[], Subject]] = [
    Subject,
    lambda: Subject(id=""),
    lambda: Subject(id="unknown", groups=("oncall",), tenant="acme"),
    lambda: Subject(groups=("oncall",), properties={"plan": "pro"}, type="service"),
    lambda: Subject(id="ann", tenant="", properties={"plan": True}),
    lambda: Subject(id="ann", groups=("Oncall", "oncall ", "\uff4fncall"), properties={"plan": 1}),
    lambda: Subject(id="ann", on_behalf_of="oncall", session="oncall", properties={"group": "oncall"}),
]


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize(
    "rule",
    [
        "{id: r, deny: run, unless: {group: oncall}}",
        "{id: r, deny: run, unless: {group: oncall, tenant: acme}}",
        "{id: r, deny: run, unless: \"'oncall' in subject.groups\"}",
        "{id: r, deny: run, unless: {property.plan: pro, group: oncall}}",
    ],
)
def test_who_says_less_or_something_alike_is_no_exception(
    own_directories: Path, subject: Callable[[], Subject], rule: str
) -> None:
    result, _ = run("", org=f"rules: [{rule}]\n", subject=subject())
    assert result.termination is Termination.policy_denied


def test_the_twin_who_is_meant_runs(own_directories: Path) -> None:
    meant = Subject(id="ann", groups=("oncall",), tenant="acme")
    result, _ = run(
        "", org="rules: [{id: r, deny: run, unless: {group: oncall, tenant: acme}}]\n", subject=meant
    )
    assert result.termination is Termination.exited


@pytest.mark.parametrize(
    "target",
    [
        "EVIL.example.com:443",
        "evil.example.com.:443",
        "evil.example.com:0443",
        "EvIl.ExAmPlE.cOm.:443",
    ],
)
def test_a_denied_host_is_denied_however_it_is_spelled(own_directories: Path, target: str) -> None:
    asked = (Intent("network", target),)
    result, _ = run("allow: [network any]\n", org="deny: [network evil.example.com]\n", intents=asked)
    assert result.termination is Termination.policy_denied
    twin, plan = run("allow: [network any]\n", intents=asked)
    assert plan is not None and plan.opened.network == ("evil.example.com:443",)
    assert twin.termination is Termination.exited


def test_a_root_can_not_be_rehearsed_and_a_bound_that_is_gone_refuses_all(own_directories: Path) -> None:
    with pytest.raises(InvalidPolicy, match="`mode: dry_run` is for bounds"):
        run("mode: dry_run\n")
    Path("team.yaml").write_text(AT_ITS_WORD + "within: [gone.yaml]\n")
    with pytest.raises(InvalidPolicy, match=r"gone\.yaml"):
        Runtime("team.yaml", backends=[Caller()], log=MemoryLog())
