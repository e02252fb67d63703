"""Every record that is written is what the schema and its page say."""

import asyncio
import contextlib
import importlib.util
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
from licet import Runtime
from licet.approvals import telling
from licet.approvals.clocks import Moment
from licet.approvals.forms import Answer, ApprovalRequest, Person, Reach, StoredApproval
from licet.backend import (
    Access,
    Descriptor,
    Host,
    Language,
    Outcome,
    Sandbox,
    Target,
    Termination,
    ToolCall,
)
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.plan import ExecutionPlan
from licet.policy.parts import DEFAULT_APPROVAL, Approval
from licet.record import Entry, MemoryLog, Record
from licet.record_schema import BODIES, Envelope
from licet.request import Subject
from licet.state import open_state
from licet.writes.view import FileView
from licet_audit.events import EVENTS
from licet_audit.log import DurableLog
from licet_audit.reader import LogReader

ROOT = Path(__file__).parents[2]
POLICY = """
licet: 1
allow: [read ./data, write ./data/out, tool pay, run, 'network 127.0.0.1:9']
ask: ['network 127.0.0.2:9']
deny: [read ./data/secret]
sandbox: {evidence: declared}
rules:
  - id: large
    deny: tool pay
    if: args.amount > 100
  - id: small
    limits: {stdout: 64KiB}
    if: {tenant: somebody}
"""


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("records", ROOT / "docs" / "records.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Asker:
    """A backend that opens all there is, asks for a file, two calls and two hosts, and leaves a file."""

    def describe(self) -> Descriptor:
        claim = Enforcement(Level.enforced, "kernel", "a test")
        contract = SandboxEnforcementContract(**{control.value: claim for control in Control})
        opens = frozenset({"read", "write", "network", "shell", "tool"})
        return Descriptor("asker", "1", contract, Language("Asker"), opens)  # type: ignore[arg-type]

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return self

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        await host.access(Access("read", str(Path(plan.workdir) / "data" / "a")))
        await host.call(ToolCall("pay", (), {"amount": 5}, 1))
        await host.call(ToolCall("pay", (), {"amount": 500}, 1))
        for host_name in ("127.0.0.1", "127.0.0.2"):
            with contextlib.suppress(OSError):
                os.close(await host.connect(Target(host_name, 9)))
        view = FileView(plan.opened, plan.opened.opens)
        view.write(f"{plan.workdir}/data/out", b"written")
        return Outcome(Termination.exited, exit_code=0, staged=view.staged())

    async def close(self) -> None:
        return


def pay(amount: int) -> int:
    return amount


def _ran(folder: Path) -> Iterator[Record]:
    (folder / "data").mkdir()
    (folder / "p.yaml").write_text(POLICY)
    log = MemoryLog()
    with Runtime(folder / "p.yaml", log=log, backends=[Asker()], managed=folder / "none") as runtime:
        assert runtime.run_sync("pay(5)", tools={"pay": pay}, workdir=folder).success
        runtime.run_sync("import os; os.system('id')")
        runtime.run_sync("1 +")
        runtime.run_sync("1", subject={"id": "a", "properties": {"x": 1.5}}, limits={"wall_time": 1e9})
    with Runtime(log=log, managed=folder / "none") as runtime:
        assert runtime.run_sync("1/0").error is not None
    yield from log.records()


def _of_the_log(folder: Path) -> Iterator[Record]:
    """A log whose writer died in the middle of a run and of a line, and that was gone on with."""
    state = open_state(folder / "state")

    async def write(*entries: Entry) -> DurableLog:
        log = DurableLog(state, segment_bytes=900)
        await log.append(entries)
        return log

    def entry(kind: Any, phase: Any = None, **body: object) -> Entry:
        return Entry(kind, "R", body, "2026-11-29T17:00:00.000000000Z", 1, phase=phase)

    pid = _forked(lambda: asyncio.run(write(entry("execution", "before", backend="x"))))
    assert pid
    with sorted((state.path / "log").iterdir())[-1].open("ab") as file:
        file.write(b'{"torn')
    gap = {"event": "gap", "missing": 3}
    writes = {"event": "writes_recovered", "run": "R", "outcome": "undone", "paths": ["/a"], "reason": None}
    log = asyncio.run(write(*(Entry("log", "", body, "2026-11-29T17:00:00.0Z", 1) for body in (gap, writes))))
    asyncio.run(log.close())
    for record in LogReader(state).records():
        if record.entry.kind == "log" or "recovered" in record.entry.body:
            yield record


def _of_approvals() -> Iterator[Record]:
    """Each event of two approvals, as `telling` tells it."""
    human = Approval.model_validate({"count": 2, "from": ["finance"], "reviewer": "human", "expires": "1d"})
    subject = Subject(type="agent", id="bot", on_behalf_of="eve", properties={"x": 1.5})
    request = ApprovalRequest(
        id="A",
        run_id="R",
        kind="call",
        digest="hmac-sha256:1",
        shown="hmac-sha256:2",
        document={"code": "pay(0.5)"},
        fields={"code": "hmac-sha256:3"},
        policy_digest="p",
        requirements=(human.over(DEFAULT_APPROVAL), DEFAULT_APPROVAL),
        requester=subject,
        asked=Moment(1.0, 1.0),
        expires=86400.0,
    )
    other = replace(request, id="B", kind="run", requester=Subject(id="ann", tenant="t", session="s"))
    ann = Person("ann", ("finance",), tenant="t", reviewer="human", asserted_by="token")
    stored = StoredApproval(request, "granted", reach=Reach("shape", frozenset({"code"}), None, 60.5))
    answer = Answer(ann, True, "hmac-sha256:2", "queue", "shape", ("code",), 3, 60.5, "x" * 600, "T")
    bodies = [
        telling.asked(request, ["queue"], sequence=1),
        telling.asked(other, []),
        telling.answered(request, answer, is_self=False),
        telling.answered(
            request, replace(answer, approve=False, expires=None), is_self=True, objection="too late"
        ),
        telling.granted(stored, ["ann", "bob"]),
        *(telling.over("A", state, "why", ann) for state in sorted(telling.OVER)),
        telling.over("A", "expired", "nobody answered"),
        telling.waiting("A", b"sealed"),
        telling.waiting("A"),
        telling.resumed("A"),
        telling.consuming(stored, request, 1),
        telling.consuming(stored, other, 2),
        telling.consumed("A", 1, 7),
        telling.ended("A", 1, "executed"),
        telling.ended("A", 2, "failed_to_start"),
        telling.ended("A", 3, "unknown"),
    ]
    log = MemoryLog()
    entries = [Entry("approval", "R", body, "2026-11-29T17:00:00.0Z", 1) for body in bodies]
    entries[0] = replace(entries[0], kept=(telling.shown(request),))
    asyncio.run(log.append(entries))
    yield from log.records()


def _forked(work: Any) -> int:
    import os

    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("records")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "xdg"))
        patch.chdir(folder)
        return [*_ran(folder), *_of_the_log(folder), *_of_approvals()]


def test_every_kind_is_written_as_its_model_says(records: list[Record]) -> None:
    met = set()
    for record in records:
        Envelope.model_validate(record.as_json() if record.log != "memory" else _with_writer(record))
        entry = record.entry
        models = EVENTS if entry.kind == "log" else BODIES[entry.kind, entry.phase]
        fitting = [model for model in models if _fits(model, entry.body)]
        assert len(fitting) == 1, (entry.kind, entry.phase, entry.body)
        met.add(fitting[0].__name__)
    every = {model.__name__ for models in BODIES.values() for model in models}
    assert every - met == set()


def test_the_json_schema_takes_every_record_and_no_other(records: list[Record]) -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "record.schema.json").read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    for record in records:
        content = record.as_json() if record.log != "memory" else _with_writer(record)
        content = json.loads(json.dumps(content))
        validator.validate(content)
        assert not validator.is_valid({**content, "kind": "other"})
        assert not validator.is_valid({**content, "body": {**content["body"], "unheard": 1}})


@pytest.mark.parametrize(("file", "text"), [("PAGE", "page"), ("SCHEMA", "schema")])
def test_page_and_schema_are_those_of_the_code(file: str, text: str) -> None:
    generator = _generator()
    assert getattr(generator, file).read_text("utf-8") == getattr(generator, text)(), (
        "run `uv run python docs/records.py`"
    )


def _with_writer(record: Record) -> dict[str, Any]:
    """A record of a log in memory, with the writer that a durable one would name."""
    writer = {"host": "h", "pid": 1, "instance": "i", "version": "1"}
    return {**record.as_json(), "writer": writer}


def _fits(model: Any, body: Any) -> bool:
    try:
        model.model_validate(json.loads(json.dumps(body)))
    except ValueError:
        return False
    return True
