"""`licet audit rerun`: repeat a recorded run, and say whether it comes to the same.

Rules this module keeps:

- it is a new run of whoever types this, decided by the policy in force and recorded; no tool is called;
- what the log has not kept can be given; it has to be what was recorded, by its digest;
- exit codes tell apart: the same, another end, no repetition possible, and no permission.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from licet_audit.cli import options

if TYPE_CHECKING:
    from licet.record import AuditReader, Record
    from licet.request import ExecutionRequest
    from licet.rerun import Past, Rerun
    from licet.result import ExecutionResult
    from licet.runtime import Runtime
    from licet.workbench.history.repeated import Difference

Outcome = Literal["same", "differs", "denied", "not_replayable"]
_EXIT: dict[Outcome, int] = {"same": 0, "differs": 1, "denied": 3, "not_replayable": 4}


@click.command("rerun")
@click.argument("run")
@click.option("--policy", metavar="FILE", help="The policy to decide under; default: the one of then.")
@click.option("--state", metavar="DIR", help="The state directory that holds the log.")
@click.option("--code", "code_file", metavar="FILE", help="The code, where the log has not kept it.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=JSON|@FILE",
    help="An input, where the log has not kept them.",
)
@click.option("--stdin", "stdin_file", metavar="FILE", help="Standard input, where the log has not kept it.")
@options.as_json
def rerun(
    run: str,
    policy: str | None,
    state: str | None,
    code_file: str | None,
    inputs: tuple[str, ...],
    stdin_file: str | None,
    as_json: bool,
) -> int:
    """Repeat the run RUN (its id, or the beginning of one), and say whether it comes to the same.

    It is a new run, decided by the policy in force and recorded. Tools are not called: they answer as they
    did then. The clock shows what it showed, random bytes are the same. Nothing is opened to write, connect
    or start programs.

    \b
    Exit codes: 0 the same · 1 it differs · 2 usage · 3 denied now · 4 it can't be repeated
    """
    from licet.cli.logs import reader_of
    from licet.workbench.history.recorded import NotReplayable

    reader = reader_of(state, None if state is not None else policy)
    records = reader.records_of(run.upper())
    given = _given(code_file, inputs, stdin_file)
    try:
        told = _Told(records[0].entry.run_id, *_repeated(records, reader, policy, given))
    except NotReplayable as problem:
        told = _Told(records[0].entry.run_id, "not_replayable", reason=str(problem))
    told.show(as_json=as_json)
    return _EXIT[told.outcome]


def _given(code: str | None, inputs: tuple[str, ...], stdin: str | None) -> dict[str, bytes]:
    """What the command line brings, in the form in which it would have been kept."""
    from licet import values
    from licet.cli import inputs as reading

    found: dict[str, bytes] = {}
    if code is not None:
        found["code"] = reading.read_file(code)
    if stdin is not None:
        found["stdin"] = reading.read_stdin(stdin, code)
    if inputs:
        found["inputs"] = values.to_json(dict(sorted(reading.read_inputs(inputs).items()))).encode()
    return found


def _repeated(
    records: Sequence[Record], reader: AuditReader, policy: str | None, given: dict[str, bytes]
) -> tuple[Outcome, str | None, ExecutionResult, tuple[Difference, ...], tuple[str, ...]]:
    """Repeat the run.

    Raises:
        NotReplayable: it can't be repeated.
        UsageError: what was given is not what was recorded.
        AuditUnavailable: it can't be recorded, or content can't be read.
    """
    from licet.backend import Termination
    from licet.cli.progress import AttackProgress
    from licet.errors import AuditUnavailable
    from licet.runtime import Runtime
    from licet.workbench.history import repeated
    from licet.workbench.history.past import past_of
    from licet.workbench.history.recorded import NotReplayable

    past = past_of(records, reader.content)
    progress = AttackProgress()
    runtime = Runtime.from_policy(policy or _deciding(records), progress=progress)
    with progress:
        request = _request(records, reader, runtime, given)
        result, again = _run(runtime, request, past)
    if result.termination is Termination.audit_unavailable:
        raise AuditUnavailable(result.summary, advice=result.advice)
    if result.backend is None and result.termination is not Termination.exited:
        if result.termination is Termination.no_backend:
            raise NotReplayable(f"`{past.backend}`, on which it ran, can't run it here and now")
        return "denied", result.summary, result, (), ()
    if result.termination is Termination.launch_failed:
        raise NotReplayable(f"the sandbox did not start: {result.summary}")
    met = again.differences
    found = repeated.differences(records, result, met, again.digest, reader.content)
    if met and result.termination in (Termination.cancelled, Termination.policy_denied):
        found = found[: len(met)]  # a difference ended it, all others follow from that
        if result.termination is Termination.policy_denied:
            return "denied", met[-1], result, found, ()
    reasons = tuple(repeated.reasons(records, result, again.digests))
    return "differs" if found else "same", None, result, found, reasons


def _deciding(records: Sequence[Record]) -> str:
    from licet.errors import UsageError

    for record in records:
        documents = record.entry.body.get("documents")
        if record.entry.kind == "decision" and isinstance(documents, (list, tuple)) and documents:
            return str(documents[0])
    raise UsageError("no decision is recorded for that run", advice="name a policy with `--policy`")


def _request(
    records: Sequence[Record], reader: AuditReader, runtime: Runtime, given: dict[str, bytes]
) -> ExecutionRequest:
    """What was asked, by whoever asks for it again."""
    from licet.cli.inputs import os_user
    from licet.workbench.history.kept import request_of
    from licet.workbench.history.past import stand_ins

    request = request_of(records, reader.content, runtime.stack, given)
    return request.model_copy(update={"tools": stand_ins(records), "subject": os_user()})


def _run(runtime: Runtime, request: ExecutionRequest, past: Past) -> tuple[ExecutionResult, Rerun]:
    from licet.cli import signals

    async def main() -> tuple[ExecutionResult, Rerun]:
        task = asyncio.current_task()
        assert task is not None
        with signals.cancelling(task):
            async with runtime:
                return await runtime.rerun(request, past)

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


class _Told:
    """What came of it, for people and for programs."""

    def __init__(
        self,
        run_id: str,
        outcome: Outcome,
        reason: str | None = None,
        result: ExecutionResult | None = None,
        differences: Sequence[Difference] = (),
        reasons: Sequence[str] = (),
    ) -> None:
        self.run_id = run_id
        self.outcome = outcome
        self._reason = reason
        self._result = result
        self._differences = differences
        self._reasons = reasons

    def show(self, *, as_json: bool) -> None:
        """Write it to stdout."""
        from licet.cli.terminal import Card, put_json, show_card

        if as_json:
            put_json(self._as_json())
            return
        tone, heading = _HEADINGS[self.outcome]
        note = f"run {self._result.run_id}" if self._result else ""
        show_card(Card(tone, heading, note, list(self._rows())), err=False)

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "of", f"run {self.run_id}"
        if self._reason:
            yield "because", self._reason
        for reason in self._reasons if self._differences else ():
            yield "note", reason
        for difference in self._differences:
            yield difference.what, difference.how
            for line in difference.lines:
                yield "", line

    def _as_json(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "outcome": self.outcome,
            "reason": self._reason,
            "rerun": self._result.run_id if self._result else None,
            "differences": [one.as_json() for one in self._differences],
            "notes": list(self._reasons),
        }


_HEADINGS: dict[Outcome, tuple[Any, str]] = {
    "same": ("good", "came to the same"),
    "differs": ("bad", "differs from the recorded run"),
    "denied": ("bad", "denied now"),
    "not_replayable": ("warn", "can't be repeated"),
}
