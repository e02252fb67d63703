"""Who enforces what, and what no backend could open."""

from datetime import UTC, datetime
from typing import Any

import pytest
from licet.backend import Descriptor, Language
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.enforcers import enforcers
from licet.policy import PolicyStack
from licet.policy.document import settled
from licet.prepare import Prepared, prepare
from licet.request import ExecutionRequest
from licet.select import Offer
from licet.testing.strategies import document_of
from licet.workbench.lint import lint

NOW = datetime(2026, 3, 2, tzinfo=UTC)
HELD = Enforcement(Level.enforced, "kernel", "a wall")


def offer(name: str = "walls", *, opens: str = "", without: tuple[Control, ...] = (), **claims: Any) -> Offer:
    held = {control.value: HELD for control in Control if control not in without}
    contract = SandboxEnforcementContract(**{**held, **claims})
    actions: Any = frozenset(opens.split())
    return Offer(Descriptor(name, "1", contract, Language("python"), opens=actions))


def stack_of(text: str) -> PolicyStack:
    sandbox = "" if "sandbox:" in text else "sandbox: {evidence: declared}\n"
    return PolicyStack(settled(document_of(f"licet: 1\n{sandbox}{text}\n", "p", "/p")))


def plain(stack: PolicyStack, *offers: Offer) -> Prepared:
    return prepare(
        ExecutionRequest(code="1", workdir="/"),
        stack,
        offers,
        at=NOW,
        directory="/",
        host_environment={},
        digest=lambda name, content: name,
    )


def held(text: str, *offers: Offer) -> dict[str, list[tuple[str, str | None, str | None]]]:
    found: dict[str, list[tuple[str, str | None, str | None]]] = {}
    ready = plain(stack_of(text), *offers)
    told = enforcers(ready.stack, ready.decision, ready.request.limits, ready.selection.chosen)
    for one in told:
        found.setdefault(one.setting, []).append((one.who, one.control, one.evidence))
    return found


def test_each_setting_names_who_holds_it_under_the_chosen_backend() -> None:
    language = Enforcement(Level.enforced, "language", "no such function", ("a bug",))
    supervisor = Enforcement(Level.enforced, "supervisor", "a watchdog")
    found = held(
        "limits: {memory: 1MiB}\nscreen: {modules: {deny: [os]}}\nrules: [{id: a, deny: run}]\n"
        "allow: [tool f]\nenv: {A: x}",
        offer(network_deny=language, timeout=supervisor, opens="tool"),
    )
    assert found["network"] == [
        ("the language", "network_deny", "declared"),
        ("the kernel", "unix_socket_deny", "declared"),
    ]
    assert found["read"] == [("the kernel", "filesystem_read_deny", "declared")]
    assert found["limits.wall_time"] == [
        ("the supervisor", "timeout", "declared"),
        ("the kernel", "process_tree_cleanup", "declared"),
    ]
    assert found["limits.memory"] == [("the kernel", "memory_limit", "declared")]
    assert found["limits.code"] == [("licet", None, None)]
    assert found["limits.recursion"] == [("the language", None, None)]
    assert found["env"] == [("the kernel", "environment_allowlist", "declared")]
    assert found["screen.mode"] == found["screen.modules.deny"] == [("the screen alone", None, None)]
    assert found["tool"] == found["rules"] == found["audit"] == [("licet", None, None)]


def test_hosts_are_let_through_by_a_broker() -> None:
    broker = Enforcement(Level.enforced, "supervisor", "a proxy")
    found = held("allow: [network a.com:443]", offer(opens="network", network_filter=broker))
    assert found["network"][0] == ("the broker", "network_filter", "declared")


def test_what_is_opened_whole_is_held_by_nobody() -> None:
    found = held("allow: [read /]", offer(opens="read"))
    assert found["read"] == [("nobody", None, None)]


def test_where_no_backend_qualifies_nobody_holds_anything_of_the_sandbox() -> None:
    found = held("limits: {memory: 1MiB}", offer(without=(Control.network_deny,)))
    assert found["limits.memory"] == [("nobody", "memory_limit", None)]
    assert found["network"][0] == ("nobody", "network_deny", None)


def test_what_is_still_to_be_attacked_is_missing() -> None:
    one = offer()
    provable = Offer(one.descriptor, provable=frozenset(Control))
    found = held("sandbox: {evidence: probed, require: {privilege_drop: enforced}}", provable)
    assert found["sandbox.require.privilege_drop"] == [("the kernel", "privilege_drop", "missing")]


# What nobody opens


def nobody(text: str, *offers: Offer) -> list[tuple[str, str | None]]:
    stack = stack_of(text)
    found = lint(stack, NOW, plain(stack, *offers), offers)
    return [(one.message, one.witness) for one in found if one.code == "nobody-opens"]


def test_an_entry_that_no_backend_opens() -> None:
    text = "allow: [read ./a, tool f]\nask: [shell]"
    assert nobody(text, offer(opens="read shell"), offer("other", opens="read")) == [
        ("no enabled backend can open `allow: tool f`", "walls can't open tool; other can't open tool")
    ]
    assert nobody(text, offer(opens="read shell tool")) == []


def test_an_entry_that_only_a_backend_opens_which_falls_short() -> None:
    weak = offer(opens="read", without=(Control.filesystem_read_deny, Control.network_deny))
    assert nobody("allow: [read ./a]", weak) == [
        ("no enabled backend can open `allow: read ./a`", "walls lacks filesystem_read_deny and network_deny")
    ]


def test_a_backend_without_walls_opens_what_is_allowed_together() -> None:
    walls = ("filesystem_read_deny", "filesystem_write_deny", "network_deny", "network_filter")
    bare = offer(
        opens="read write network shell",
        without=tuple(map(Control, (*walls, "unix_socket_deny", "shell_execution"))),
    )
    everything = "allow: [read /, write /, network any, network private, shell]"
    assert nobody(everything, bare) == []
    assert len(nobody("allow: [read /, write /, shell]", bare)) == 3


@pytest.mark.parametrize("text", ["allow: [read workdir]", "ask: [write ./a]", "allow: [network any]"])
def test_without_any_backend_nobody_opens_anything(text: str) -> None:
    assert [witness for _, witness in nobody(text)] == ["no backend is enabled"]
