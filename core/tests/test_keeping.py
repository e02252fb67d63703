"""What content stays beside the records: all that was digested under `kept`, and nothing under `digest`."""

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import ExecutionRequest, Runtime, values
from licet.backend import GuestError, Host, Outcome, Termination, ToolCall
from licet.digests import HostDigest
from licet.plan import ExecutionPlan
from licet.record import MemoryLog, Record, commitment
from puppet import HEAD, Puppet

ENDED_WELL = Outcome(Termination.exited, exit_code=0)
Told = Callable[..., "Run"]


class Talker(Puppet):
    """Calls `order` twice, writes, and ends as a test says."""

    def __init__(self, outcome: Outcome, stdout: bytes = b"") -> None:
        super().__init__()
        self.outcome = outcome
        self.stdout = stdout

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        for number in (1, 2) if plan.opened.opens("tool", "order") else ():
            await host.call(ToolCall("order", (number,), {"note": "gift"}, line=1))
        host.write("stdout", self.stdout)
        return self.outcome


@dataclasses.dataclass
class Run:
    """The records of one run, and their log."""

    log: MemoryLog

    def kept(self, kind: str, phase: str | None = None, number: int = 0) -> dict[str, bytes | None]:
        record = self.record(kind, phase, number)
        return {name: self.log.content(committed) for name, committed in record.kept.items()}

    def record(self, kind: str, phase: str | None = None, number: int = 0) -> Record:
        found = [r for r in self.log.records() if (r.entry.kind, r.entry.phase) == (kind, phase)]
        return found[number]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))

    def run(
        policy: str,
        outcome: Outcome = ENDED_WELL,
        stdout: bytes = b"",
        **fields: Any,
    ) -> Run:
        (tmp_path / "p.yaml").write_text(HEAD + policy)
        log = MemoryLog()

        async def one() -> None:
            backends = [Talker(outcome, stdout)]
            with Runtime("p.yaml", log=log, backends=backends, managed=tmp_path / "none") as runtime:
                await runtime.run(ExecutionRequest(**({"code": "1"} | fields)))

        asyncio.run(one())
        return Run(log)

    return run


KEPT = "audit: {content: kept}\nallow: [tool order]\n"


def order(number: int, note: str) -> dict[str, object]:
    if number == 2:
        raise ValueError("sold out")
    return {"order": number, "note": note}


def test_a_run_keeps_all_that_went_in_and_came_out(told: Told) -> None:
    outcome = Outcome(Termination.exited, 1, [1, 2.5], "[1, 2.5]", error=GuestError("KeyError", "'x'", 1))
    run = told(
        KEPT,
        outcome,
        b"h\xc3\xa9\xff",
        code="x = 1\r\n",
        stdin="in",
        inputs={"b": 1, "a": "é"},
        tools={"order": order},
    )
    assert run.kept("request") == {
        "code": b"x = 1\n",
        "stdin": b"in",
        "inputs": values.to_json({"a": "é", "b": 1}).encode(),
    }
    assert run.kept("tool_call", "before") == {"arguments": b'[[1],{"note":"gift"}]'}
    assert run.kept("tool_call", "after") == {"result": b'{"order":1,"note":"gift"}'}
    assert run.kept("tool_call", "after", 1) == {"error": b"sold out"}
    assert run.kept("result", "after") == {
        "stdout": "hé\ufffd".encode(),
        "value": b"[1,2.5]",
        "error": b"'x'",
    }


def test_what_is_kept_is_what_the_digest_beside_it_covers(told: Told) -> None:
    run = told(KEPT, stdout=b"out", code="x = 1\r\n", stdin="in", inputs={"b": (1, {2}), "a": "é"})
    digest = HostDigest()
    for record in (run.record("request"), run.record("result", "after")):
        digests = record.entry.body["digests"]
        for name, data in run.kept(record.entry.kind, record.entry.phase).items():
            assert data is not None
            assert digests[name] == digest(name, data)


def test_under_digest_not_a_byte_of_it_stays(told: Told) -> None:
    run = told(
        "allow: [tool order]\n", stdout=b"canary", code="'canary'", stdin="canary", tools={"order": order}
    )
    for record in run.log.records():
        assert not record.kept
        assert not record.entry.kept
        assert "kept" not in record.as_json()
        assert "canary" not in str(record.as_json())


def test_bodies_are_the_same_whatever_is_kept(told: Told) -> None:
    kept, digested = (told(policy, stdout=b"x") for policy in (KEPT, "allow: [tool order]\n"))
    for mine, others in zip(kept.log.records(), digested.log.records(), strict=True):
        assert mine.entry.body.keys() == others.entry.body.keys()


def test_a_rule_that_applies_and_says_digest_wins(told: Told) -> None:
    rule = "rules: [{id: a, audit: {content: digest}, unless: {tenant: house}}]\n"
    assert not told(KEPT + rule).kept("request")
    assert told(KEPT + rule, subject={"tenant": "house"}).kept("request")


def test_a_run_that_is_denied_keeps_the_code_that_was_refused(told: Told) -> None:
    run = told("audit: {content: kept}\ndeny: [run]\n", code="import os")
    assert run.kept("request") == {"code": b"import os"}
    assert run.kept("result", "after") == {}


def test_what_was_refused_for_its_size_is_named_and_not_kept(told: Told) -> None:
    run = told("audit: {content: kept}\nlimits: {code: 3, stdin: 3}\n", code="1" * 4, stdin="abcd")
    assert run.kept("request") == {}
    assert run.record("request").entry.body["not_kept"] == {
        "code": "larger than its limit",
        "stdin": "larger than its limit",
    }


def test_output_that_was_shortened_is_kept_as_shortened(told: Told) -> None:
    run = told("audit: {content: kept}\nlimits: {stdout: 4}\n", stdout=b"ab" + b"canary" * 1000 + b"yz")
    assert run.kept("result", "after") == {"stdout": "ab\n… 6000 bytes left out …\nyz".encode()}
    assert run.record("result", "after").entry.body["stdout_truncated"] is True


def test_a_commitment_names_content_and_salt_alone(told: Told) -> None:
    run = told(KEPT, code="x = 1")
    (kept,) = run.record("request").entry.kept
    assert run.record("request").kept == {"code": commitment(kept.salt, b"x = 1")}
    assert len(kept.salt) == 32
    assert told(KEPT, code="x = 1").record("request").kept != run.record("request").kept


@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.text() | st.integers() | st.none()))
def test_inputs_have_one_spelling_in_whatever_order_they_come(inputs: dict[str, Any]) -> None:
    once = values.from_json(values.to_json({name: inputs[name] for name in sorted(inputs)}))
    assert values.to_json(dict(sorted(once.items()))) == values.to_json(dict(sorted(inputs.items())))
