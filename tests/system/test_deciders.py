"""A decider by somebody else: it votes beside the policy, by a name that licet gives it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import licet
from licet import Runtime, Settings, Subject, Termination
from licet.backend import Descriptor, Host, Language, Outcome, Sandbox, ToolCall
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.plan import ExecutionPlan
from licet.record import MemoryLog

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "licet-house"
PAGE = EXAMPLE.parents[1] / "how-to" / "write-a-decider.md"
HOUSE = {"suspended": ["initech"], "ask_for": ["math"], "most_paid": 100}
ACME, INITECH = (Subject(id="ann", tenant=name) for name in ("acme", "initech"))
POLICY = "licet: 1\nextends: licet:compute\nsandbox: {evidence: declared}\nallow: [tool pay]\n"

EVERYTHING = SandboxEnforcementContract(
    **{control.value: Enforcement(Level.enforced, "kernel", "a test") for control in Control}
)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Install modules as plugins by name, the house's own among them; returns the file of its policy."""
    site, policy = tmp_path / "site", tmp_path / "house.json"
    policy.write_text(json.dumps(HOUSE))
    monkeypatch.setenv("HOUSE_POLICY", str(policy))
    before = set(sys.modules)

    def make(**texts: str) -> Path:
        points = ["house = licet_house.plugin"]
        for name, text in texts.items():
            (site / f"stranger_{name}.py").parent.mkdir(exist_ok=True)
            (site / f"stranger_{name}.py").write_text(text)
            points.append(f"{name} = stranger_{name}")
        known = site / "strangers-1.dist-info"
        known.mkdir(parents=True)
        (known / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 1\n")
        (known / "entry_points.txt").write_text("\n".join(["[licet]", *points, ""]))
        for path in (site, EXAMPLE / "src"):
            monkeypatch.syspath_prepend(path)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(site), str(EXAMPLE / "src"))))
        return policy

    yield make
    for name in set(sys.modules) - before:
        if name.startswith(("licet_house", "stranger_")):
            del sys.modules[name]


class Puppet:
    """A backend that does what a test says."""

    def __init__(self, act: Any) -> None:
        self._act = act
        self._descriptor = Descriptor("puppet", "1", EVERYTHING, Language("Puppet"), frozenset({"tool"}), 1.0)

    def describe(self) -> Descriptor:
        return self._descriptor

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return self

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        outcome: Outcome = await self._act(host)
        return outcome

    async def close(self) -> None:
        pass


async def done(host: Host) -> Outcome:
    return Outcome(Termination.exited, 0)


def runtime(*deciders: str, act: Any = done, log: MemoryLog | None = None) -> Runtime:
    Path("policy.yaml").write_text(POLICY)
    settings = Settings(enabled=("policies", *deciders))
    return Runtime("policy.yaml", backends=[Puppet(act)], log=log or MemoryLog(), settings=settings)


def decision_in(log: MemoryLog) -> dict[str, Any]:
    [body] = [record.entry.body for record in log.records() if record.entry.kind == "decision"]
    return json.loads(json.dumps(body, default=dict))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("subject", "code", "termination", "votes"),
    [
        (ACME, "1", Termination.exited, []),
        (INITECH, "1", Termination.policy_denied, [("deny", "the tenant `initech` is suspended")]),
        (Subject(), "1", Termination.policy_denied, [("deny", "it names no tenant")]),
        (ACME, "import math", Termination.approval_denied, [("ask", "somebody looks at `math` first")]),
    ],
)
def test_it_denies_and_asks_by_a_policy_of_its_own(
    installed: Callable[..., Path],
    subject: Subject,
    code: str,
    termination: Termination,
    votes: list[tuple[str, str]],
) -> None:
    policy, log = installed(), MemoryLog()
    result = runtime("house", log=log).run_sync(code, subject=subject)
    assert result.termination is termination
    digest = "sha256:" + hashlib.sha256(policy.read_bytes()).hexdigest()
    assert decision_in(log)["ballots"] == [
        {"decider": "house", "effect": effect, "reason": reason, "policy_digest": digest}
        for effect, reason in votes
    ]
    if termination is Termination.policy_denied:
        assert result.detail == f"`house` denies it: {votes[0][1]}"


def test_it_can_not_loosen(installed: Callable[..., Path]) -> None:
    installed()
    result = runtime("house").run_sync("import os; os.system('id')", subject=ACME)
    assert result.termination is Termination.policy_denied


def test_what_is_not_enabled_does_not_vote(installed: Callable[..., Path]) -> None:
    installed()
    assert runtime().run_sync("1", subject=INITECH).success
    assert "licet_house.plugin" not in sys.modules


def test_it_votes_on_each_call(installed: Callable[..., Path]) -> None:
    installed()

    async def act(host: Host) -> Outcome:
        replies = [await host.call(ToolCall("pay", ("A1",), {"amount": n})) for n in (100, 101)]
        said = [r.value if r.error is None else f"{r.error.type}: {r.error.message}" for r in replies]
        return Outcome(Termination.exited, 0, value=said)

    def pay(order: str, amount: int) -> str:
        return f"paid {amount}"

    result = runtime("house", act=act).run_sync("1", subject=ACME, tools={"pay": pay})
    assert result.value == ["paid 100", "PermissionError: `house` denies it: at most 100 are paid at once"]
    assert [(call.decision, call.outcome) for call in result.tool_calls] == [
        ("allow", "returned"),
        ("deny", "denied"),
    ]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.unlink(), "the decider `house` failed: FileNotFoundError: "),
        (lambda path: path.write_text("{"), "the decider `house` failed: JSONDecodeError: "),
        (lambda path: path.write_text("{}"), "the decider `house` failed: KeyError: 'suspended'"),
    ],
)
def test_one_that_fails_denies(
    installed: Callable[..., Path], damage: Callable[[Path], Any], reason: str
) -> None:
    policy, log = installed(), MemoryLog()
    damage(policy)
    result = runtime("house", log=log).run_sync("1", subject=ACME)
    assert result.termination is Termination.policy_denied
    [vote] = decision_in(log)["ballots"]
    assert (vote["effect"], vote["policy_digest"]) == ("deny", None)
    assert vote["reason"].startswith(reason)


WAITING = """
import threading
from licet.hookspecs import hookimpl
asked, answered = threading.Event(), threading.Event()
@hookimpl
def licet_decide():
    asked.set()
    answered.wait(30)
"""


def test_one_that_takes_long_holds_up_its_own_run_alone(installed: Callable[..., Path]) -> None:
    installed(slow=WAITING)

    async def both() -> list[str]:
        order = []
        with runtime("slow") as waiting, runtime() as other:
            first = asyncio.create_task(waiting.run("1", subject=ACME))
            module = sys.modules["stranger_slow"]
            await asyncio.to_thread(module.asked.wait, 30)
            order.append(f"other {(await other.run('1')).termination}")
            assert not first.done()
            module.answered.set()
            order.append(f"first {(await first).termination}")
        return order

    assert asyncio.run(both()) == ["other exited", "first exited"]


def test_the_command_line_asks_it_too(
    installed: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed()
    assert licet("explain", "-c", "1", "--json").json["effect"] == "allow"
    monkeypatch.setenv("LICET_ENABLED", "audit,policies,monty,house")
    assert licet("explain", "-c", "1", "--json").json["effect"] == "deny"  # the command line knows no tenant
    ran = licet("run", "-c", "1")
    assert (ran.code, ran.out) == (3, "")
    assert "it names no tenant" in ran.err


def test_the_page_shows_the_example() -> None:
    page = PAGE.read_text("utf-8")
    for file in ("pyproject.toml", "src/licet_house/plugin.py"):
        text = (EXAMPLE / file).read_text("utf-8").strip()
        [shown] = [block for block in page.split("```") if block.partition("\n")[2].startswith(f"# {file}\n")]
        body = shown.partition("\n")[2].partition("\n")[2].strip()
        assert body in text, file
