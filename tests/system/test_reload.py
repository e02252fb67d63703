"""A policy that changes under a running runtime: which run has which, and who is told."""

from __future__ import annotations

import asyncio
import logging
import threading
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from licet import Runtime, Termination
from licet.backend import Descriptor, Host, Language, Outcome, Sandbox, ToolCall
from licet.cli import cards
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.plan import ExecutionPlan
from licet.policy import live, load_stack
from licet.record import MemoryLog
from licet.result import ExecutionResult
from licet.screen import VERSION as SCREEN_VERSION

ALL_HELD = SandboxEnforcementContract(
    **{control.value: Enforcement(Level.enforced, "kernel", "a test") for control in Control}
)
AT_ITS_WORD = "licet: 1\nextends: licet:compute\nsandbox: {evidence: declared}\n"


class Caller:
    """A backend whose code calls a tool twice, with something happening in between."""

    def __init__(self, between: Any = lambda: None) -> None:
        self._between = between

    def describe(self) -> Descriptor:
        return Descriptor("caller", "1", ALL_HELD, Language("Puppet"), frozenset({"tool"}), 1.0)

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return self

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        first = await host.call(ToolCall("refund"))
        self._between()
        second = await host.call(ToolCall("refund"))
        told = [reply.error.type if reply.error else str(reply.value) for reply in (first, second)]
        return Outcome(Termination.exited, exit_code=0, value=told, value_repr=repr(told))

    async def close(self) -> None:
        pass


def body(log: MemoryLog, result: ExecutionResult, kind: str) -> dict[str, Any]:
    found = [r.entry.body for r in log.records() if (r.entry.kind, r.entry.run_id) == (kind, result.run_id)]
    return dict(found[0])


def test_a_run_has_one_policy_to_its_last_tool_call_and_the_next_run_has_the_new_one(tmp_path: Path) -> None:
    policy = tmp_path / "licet.yaml"
    policy.write_text(AT_ITS_WORD + "allow: [tool refund]\n")
    log = MemoryLog()

    def deny() -> None:
        policy.write_text(AT_ITS_WORD + "deny: [tool refund]\n")

    with Runtime(policy, backends=[Caller(deny)], log=log) as runtime:
        before = runtime.stack
        first = runtime.run_sync("1", tools={"refund": lambda: "paid"})
        second = runtime.run_sync("1", tools={"refund": lambda: "paid"})
    assert (first.value, second.value) == (["paid", "paid"], ["PermissionError", "PermissionError"])
    assert first.decision is not None and second.decision is not None
    assert first.decision.policy_digest == before.digest
    assert second.decision.policy_digest == runtime.stack.digest != before.digest
    assert body(log, first, "decision")["policy_digest"] == before.digest
    assert body(log, second, "decision")["policy_digest"] == runtime.stack.digest


def test_a_broken_policy_is_told_by_log_record_result_and_card(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = tmp_path / "licet.yaml"
    policy.write_text(AT_ITS_WORD)
    log = MemoryLog()
    with Runtime(policy, backends=[Caller()], log=log) as runtime:
        good = runtime.run_sync("1")
        name = runtime.stack.name
        policy.write_text(AT_ITS_WORD + "alow: []\n")
        with caplog.at_level(logging.WARNING, "licet"):
            stale = [runtime.run_sync("1"), runtime.run_sync("1")]
        explained = runtime.decide("1")
        policy.write_text(AT_ITS_WORD)
        mended = runtime.run_sync("1")
    why = f"{policy}:4:1: unknown key `alow`"
    assert [record.getMessage() for record in caplog.records] == [
        f"the policy has changed and can't be used, so `{name}` stays in force: {why}"
    ]
    assert [body(log, run, "decision")["policy_stale"] for run in (good, *stale, mended)] == [
        None,
        why,
        why,
        None,
    ]
    row = ("policy", f"{name} stays in force, its files have changed: {why}")
    assert all(run.success for run in (good, *stale, mended))
    assert [row in cards.of_result(run, tmp_path).rows for run in (good, *stale, mended)] == [
        False,
        True,
        True,
        False,
    ]
    assert row in cards.of_explanation(explained).rows
    assert explained.as_json()["policy_stale"] == why
    assert explained.policy_digest == body(log, good, "decision")["policy_digest"]


def test_a_refusal_under_a_stale_policy_says_so_too(tmp_path: Path) -> None:
    policy = tmp_path / "licet.yaml"
    policy.write_text(AT_ITS_WORD + "deny: [run]\n")
    with Runtime(policy, backends=[Caller()], log=MemoryLog()) as runtime:
        policy.unlink()
        result = runtime.run_sync("1")
    assert result.termination is Termination.policy_denied
    assert result.decision is not None
    assert (result.decision.policy_stale or "").endswith("can't be read: no such file or directory")
    assert "policy" in dict(cards.of_result(result, tmp_path).rows)


def test_every_decision_names_its_policy_and_what_decided(tmp_path: Path) -> None:
    log = MemoryLog()
    policy = tmp_path / "licet.yaml"
    policy.write_text(AT_ITS_WORD)
    with Runtime(policy, backends=[Caller()], log=log) as runtime:
        result = runtime.run_sync("1")
        told = runtime.decide("1").as_json()
    named = {
        "policy": runtime.stack.name,
        "policy_digest": runtime.stack.digest,
        "policy_stale": None,
        "licet": version("licet"),
        "screen": SCREEN_VERSION,
    }
    recorded = body(log, result, "decision")
    assert {key: recorded[key] for key in named} == named
    assert {key: told[key] for key in named} == named


def test_runs_at_once_have_each_a_whole_policy(tmp_path: Path) -> None:
    """Rewritten all the time by renaming: each run has one of the versions, and none is refused."""
    policy, draft = tmp_path / "licet.yaml", tmp_path / "draft.yaml"
    texts = [AT_ITS_WORD + f"deny: [tool t{n}]\nallow: [tool refund]\n" for n in range(8)]
    policy.write_text(texts[0])
    digests = set()

    def rewrite() -> None:
        draft.write_text(texts[len(digests) % len(texts)])
        draft.replace(policy)
        digests.add(runtime.stack.digest)

    async def many() -> list[ExecutionResult]:
        return await asyncio.gather(*(runtime.run("1", tools={"refund": lambda: "paid"}) for _ in range(24)))

    with Runtime(policy, backends=[Caller(rewrite)], log=MemoryLog()) as runtime:
        digests.add(runtime.stack.digest)
        results = asyncio.run(many())
    assert all(result.value == ["paid", "paid"] for result in results)
    assert {result.decision.policy_digest for result in results if result.decision} <= digests
    assert len(digests) == len(texts)


def test_a_change_is_read_beside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tmp_path / "licet.yaml"
    policy.write_text(AT_ITS_WORD)
    runtime = Runtime(policy, backends=[Caller()], log=MemoryLog())
    readers = []

    def load(*given: Any, **named: Any) -> Any:
        readers.append(threading.current_thread())
        return load_stack(*given, **named)

    monkeypatch.setattr(live, "load_stack", load)
    policy.write_text(AT_ITS_WORD + "deny: [shell]\n")

    async def twice() -> list[ExecutionResult]:
        return [await runtime.run("1"), await runtime.run("1")]

    results = asyncio.run(twice())
    assert all(result.success for result in results)
    assert len(readers) == 1
    assert readers[0] is not threading.current_thread()
