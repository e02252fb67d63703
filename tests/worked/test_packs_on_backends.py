"""What of each pack runs with the backends of today, and what exactly keeps the rest from running.

The pages of the packs tell the same; when a backend comes that opens files or tools, these tests fail, and
the pages have news to tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from licet.contract import Control
from licet.policy import PolicySource, load_stack
from licet.prepare import Prepared, prepare
from licet.request import ExecutionRequest, Intent, Subject
from licet.runtime import Runtime
from licet.select import Offer
from licet_controlled_process.claims import claimed
from licet_controlled_process.plugin import licet_backends as process_backends
from licet_monty.plugin import licet_backends as monty_backends
from licet_policies.plugin import licet_policy_packs

PACKS = licet_policy_packs()
ANN = Subject(id="ann")

WALLS = [
    "filesystem_read_deny",
    "filesystem_write_deny",
    "network_deny",
    "unix_socket_deny",
    "shell_execution",
]
SUPERVISED = ["fresh_state"]
LIMITED = ["memory_limit", "process_count_limit"]


def selected(pack: str, *intents: Intent, **fields: Any) -> Prepared:
    """Select for a request, among both backends as they are at best: nothing refuted, and all confined."""
    (monty,) = monty_backends()
    (process,) = process_backends()
    best = replace(process.describe(), sandbox_enforcement_contract=claimed(True, ()))
    return prepare(
        ExecutionRequest(code="1", intents=intents or None, subject=ANN, **fields),
        load_stack(f"licet:{pack}", PolicySource(PACKS, Path("/no-such-directory/policy.d"))),
        [Offer(one, provable=frozenset(Control)) for one in (monty.describe(), best)],
        at=datetime(2026, 3, 4, tzinfo=UTC),
        directory="/w",
        host_environment={},
        digest=lambda name, content: name,
    )


def blockers(prepared: Prepared) -> Mapping[str, list[str]]:
    return {one.name: [blocker.what for blocker in one.blockers] for one in prepared.selection.candidates}


@pytest.mark.parametrize("pack", [pack for pack in PACKS if pack != "nothing"])
def test_computation_runs_under_every_pack_but_nothing(pack: str) -> None:
    with Runtime.from_policy(f"licet:{pack}") as runtime:
        result = runtime.run_sync("21 * 2", subject=ANN)
    assert (result.termination, result.value) == ("exited", 42)
    assert result.backend is not None
    assert result.backend.name == "monty"


def test_nothing_runs_under_nothing() -> None:
    with Runtime.from_policy("licet:nothing") as runtime:
        assert runtime.run_sync("21 * 2", subject=ANN).termination == "policy_denied"


@pytest.mark.parametrize(
    ("pack", "intent", "monty", "process"),
    [
        (
            "data",
            Intent("read", "/w"),
            [],
            [*WALLS, *SUPERVISED, *LIMITED, "filesystem_bytes_limit"],
        ),
        (
            "data",
            Intent("write", "/w/out"),
            [],
            [*WALLS, *SUPERVISED, *LIMITED, "filesystem_bytes_limit"],
        ),
        (
            "agent",
            Intent("read", "/w"),
            [],
            [*WALLS, *SUPERVISED, *LIMITED, "filesystem_bytes_limit"],
        ),
        (
            "agent",
            Intent("network", "api.example.com:443"),
            ["opens network"],
            [
                *("network_filter" if wall == "network_deny" else wall for wall in WALLS),
                *SUPERVISED,
                *LIMITED,
                "filesystem_bytes_limit",
            ],
        ),
        (
            "regulated",
            Intent("write", "/w/out"),
            [],
            [
                *WALLS,
                *SUPERVISED,
                "cpu_time_limit",
                *LIMITED,
                "filesystem_bytes_limit",
                "process_isolation",
            ],
        ),
    ],
)
def test_what_keeps_files_and_hosts_from_being_opened(
    pack: str, intent: Intent, monty: list[str], process: list[str]
) -> None:
    prepared = selected(pack, intent)
    assert prepared.decision.effect in ("allow", "ask")
    assert blockers(prepared) == {"monty": monty, "controlled_process": process}


@pytest.mark.parametrize("pack", ["agent", "trusted"])
def test_every_backend_calls_tools(pack: str) -> None:
    found = blockers(selected(pack, tools={"find_order": len}))
    assert [name for name, shortfalls in found.items() if "opens tool" in shortfalls] == []


def test_everything_runs_under_trusted() -> None:
    prepared = selected(
        "trusted", Intent("read", "/"), Intent("write", "/"), Intent("network", "any"), Intent("shell")
    )
    assert prepared.selection.backend == "controlled_process"
