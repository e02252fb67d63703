"""Runs with kept content, as a runtime leaves them, for tests of what becomes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from licet.cli.app import execute
from licet.record import Entry, Kept, Record
from licet.state import StateDirectory
from licet_audit import contents
from licet_audit.events import EVENTS
from licet_audit.log import DurableLog
from licet_audit.reader import LogReader

DAY = "2026-05-01T10:00:00.000000000Z"


@dataclass
class Trail:
    """A log that tests write runs into, and command lines about it."""

    state: StateDirectory
    capsys: pytest.CaptureFixture[str]
    segment_bytes: int = 2**26
    committed: dict[str, dict[str, str]] = field(default_factory=dict)

    def run(
        self,
        run_id: str,
        *,
        time: str = DAY,
        content: Mapping[str, bytes] | None = None,
        between: Sequence[Sequence[Entry]] = ((),),
        ends: str | None = None,
        **subject: object,
    ) -> dict[str, str]:
        """One run that keeps its code and its output (or `content`); returns their commitments by name.

        Before its end, at `ends` if that is another time, come the entries of `between`: one batch each, the
        first together with its beginning and the last with its end.
        """
        subject = {"id": "ada", "on_behalf_of": None, "tenant": None} | subject
        code = (Kept("code", f"print('{run_id}')".encode()),)
        if content is not None:
            code = tuple(Kept(name, data) for name, data in content.items())
        out = (Kept("stdout", run_id.encode()),) if content is None else ()
        entries = [
            Entry("request", run_id, {"subject": subject}, time, 1, kept=code),
            Entry("decision", run_id, {"effect": "allow"}, time, 1),
            Entry("execution", run_id, {"backend": "x"}, time, 1, phase="before"),
        ]
        end = Entry("result", run_id, {"termination": "exited"}, ends or time, 1, phase="after", kept=out)
        batches = [list(batch) for batch in between]
        batches[0] = entries + batches[0]
        batches[-1].append(end)
        records = self.append(*batches)
        kept = {name: one for record in records for name, one in record.kept.items()}
        self.committed[run_id] = kept
        return kept

    def append(self, *batches: list[Entry]) -> list[Record]:
        async def write() -> list[Record]:
            log = DurableLog(self.state, segment_bytes=self.segment_bytes)
            try:
                return [record for batch in batches for record in await log.append(batch)]
            finally:
                await log.close()

        return asyncio.run(write())

    def records(self, event: str | None = None) -> list[Record]:
        """The records of the log, or those of one event, each as the schema of records has it."""
        found = list(LogReader(self.state).records())
        for record in found:
            if record.entry.kind == "log":
                (model,) = [
                    one for one in EVENTS if one.model_fields["event"].default == record.entry.body["event"]
                ]
                model.model_validate(dict(record.entry.body))
        return [r for r in found if event is None or r.entry.body.get("event") == event]

    def states(self, run_id: str) -> set[str]:
        """What became of the content of a run."""
        return {contents.state_of(self.state, one) for one in self.committed[run_id].values()}

    def __call__(self, *arguments: str) -> Ran:
        """`licet audit ARGUMENTS` about this log."""
        code = execute(["audit", *arguments, "--state", str(self.state.path)])
        out, err = self.capsys.readouterr()
        return Ran(code, out, err)


@dataclass
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)
