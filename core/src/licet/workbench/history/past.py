"""A run to be repeated, as its records and what was kept of its content have it.

Rules this module keeps:

- it is put together whole or not at all: what can't be had again is told, and nothing is guessed;
- a run that had an effect outside is not repeated, nor one that never ran or was ended from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn, cast, get_args

from licet import values
from licet.backend import GuestError, Reply
from licet.policy.signatures import stand_in
from licet.record import Phase, Record
from licet.rerun import Past, PastCall
from licet.result import CallOutcome
from licet.workbench.history import bodies
from licet.workbench.history.recorded import NotReplayable

Content = Callable[[str], bytes | None]

_ENDED_FROM_OUTSIDE = frozenset({"cancelled", "approval_pending", "unknown", "audit_unavailable"})
_NEVER_STARTED = frozenset({"launch_failed", "no_backend"})


def past_of(records: Sequence[Record], content: Content) -> Past:
    """What it takes to repeat the run of these records; `content` has what is kept under a commitment.

    Raises:
        NotReplayable: something of it can't be had again; with the reason.
        AuditUnavailable: content can't be read.
    """
    request, decision, execution = (_body(records, kind) for kind in ("request", "decision", "execution"))
    result = result_of(records)
    if request is None or decision is None:
        raise NotReplayable("the log has no request, or no decision, of it")
    if (of := bodies.text(request, "rerun_of")) is not None:
        raise NotReplayable(f"it repeats the run `{of}` itself: repeat that one")
    _refuse_unended(execution, result)
    assert execution is not None
    _refuse_effects(records)
    seen = result.get("surroundings")
    if isinstance(seen, Mapping) and seen.get("clock_unrecorded"):
        raise NotReplayable(
            f"it read its clock {seen.get('clock_readings')} times, and not all of that is recorded"
        )
    clock, random = decision.get("clock"), decision.get("random")
    if clock not in ("real", "frozen") or random not in ("real", "seeded"):
        raise NotReplayable("its record does not say which clock it had: an older licet wrote it")
    digests = request.get("digests")
    return Past(
        run_id=records[0].entry.run_id,
        backend=_text(execution, "backend"),
        plan_digest=_text(execution, "plan_digest"),
        digests=digests if isinstance(digests, Mapping) else {},
        at=_instant(request),
        clock=clock,
        random=random,
        readings=tuple(_readings(records)),
        calls=_calls(records, content),
        refusals=_refusals(records, content),
    )


def result_of(records: Iterable[Record]) -> Mapping[str, Any]:
    """What is recorded of the end of a run; empty if nothing is."""
    return _body(records, "result") or {}


def execution_of(records: Iterable[Record]) -> Mapping[str, Any]:
    """What is recorded of the start of a run; empty if nothing is."""
    return _body(records, "execution") or {}


def stand_ins(records: Sequence[Record]) -> dict[str, Callable[..., Any]]:
    """Tools of the names and parameters of those that a run had; none of them can be called.

    Raises:
        NotReplayable: the record does not say what they take.
    """
    request = _body(records, "request") or {}
    names, told = bodies.texts(request.get("tools")), request.get("signatures")
    if names and not isinstance(told, Mapping):
        raise NotReplayable("its record does not say what its tools take: an older licet wrote it")
    found = {}
    for name in names:
        act = _stand_in()
        try:
            found[name] = stand_in(told[name], act) if isinstance(told, Mapping) and name in told else act
        except ValueError:
            raise NotReplayable("its record can't be understood") from None
    return found


def _stand_in() -> Callable[..., Any]:
    def act(*_1: object, **_2: object) -> NoReturn:
        raise RuntimeError("a recorded tool can't be called")

    return act


def _refuse_unended(execution: Mapping[str, Any] | None, result: Mapping[str, Any]) -> None:
    ending = bodies.text(result, "termination")
    if ending is None:
        raise NotReplayable("it has no recorded end")
    if execution is None or ending in _NEVER_STARTED:
        raise NotReplayable(f"its code never ran ({ending.replace('_', ' ')})")
    if ending in _ENDED_FROM_OUTSIDE:
        raise NotReplayable(f"it did not end by itself ({ending.replace('_', ' ')})")


def _refuse_effects(records: Iterable[Record]) -> None:
    for record in records:
        body = record.entry.body
        if record.entry.kind == "access" and body.get("allowed") is True:
            action = bodies.text(body, "action")
            if action in ("write", "network"):
                raise NotReplayable(
                    f"it had an effect, `{action} {body.get('target')}`, which is not repeated"
                )


def _readings(records: Iterable[Record]) -> Iterable[tuple[str, float]]:
    for record in records:
        body = record.entry.body
        if record.entry.kind == "access" and body.get("action") == "clock":
            for reading in bodies.texts(body.get("readings")):
                yield _text(body, "target"), _number(reading)


def _calls(records: Sequence[Record], content: Content) -> dict[int, PastCall]:
    begins, ends = _numbered(records, "before"), _numbered(records, "after")
    order = [number for number in ends if number in begins]
    before = dict(zip(order[1:], order, strict=False))
    found: dict[int, PastCall] = {}
    for sequence, began in begins.items():
        body = began.entry.body
        if body.get("effect") not in ("allow", "ask", "deny"):
            raise NotReplayable("its record can't be understood")
        if (end := ends.get(sequence)) is None:
            raise NotReplayable(f"what came of call {sequence}, of `{body.get('tool')}`, is not recorded")
        outcome = _outcome(end)
        found[sequence] = PastCall(
            tool=_text(body, "tool"),
            digest=_text(body, "call_digest"),
            effect=body["effect"],
            outcome=outcome,
            reply=_reply(began, end, outcome, content),
            before=before.get(sequence),
        )
    return found


def _refusals(records: Sequence[Record], content: Content) -> dict[int, Reply | None]:
    """What the code was told of calls that it could not make, which have an end alone; None if not kept."""
    begins = _numbered(records, "before")
    return {
        sequence: _raised(end, content) if "error" in end.kept else None
        for sequence, end in _numbered(records, "after").items()
        if sequence not in begins
    }


def _numbered(records: Iterable[Record], phase: Phase) -> dict[int, Record]:
    """The records of calls, by the numbers of these and in the order of the log."""
    found: dict[int, Record] = {}
    for record in records:
        if record.entry.kind == "tool_call" and record.entry.phase == phase:
            sequence = record.entry.body.get("sequence")
            if type(sequence) is not int:
                raise NotReplayable("its record can't be understood")
            found[sequence] = record
    return found


def _outcome(end: Record) -> CallOutcome:
    said = end.entry.body.get("outcome")
    for outcome in get_args(CallOutcome):
        if outcome == said:
            return cast("CallOutcome", outcome)
    raise NotReplayable("its record can't be understood")


def _reply(began: Record, end: Record, outcome: CallOutcome, content: Content) -> Reply:
    """What a call was answered, where that is kept."""
    number = end.entry.body.get("sequence")
    if "arguments" not in began.kept:
        raise NotReplayable(f"what call {number} gave was not kept: the policy kept no content then")
    if outcome == "returned":
        kept = _kept(end, "result", content, number)
        try:
            return Reply(value=values.from_json(kept))
        except ValueError:
            raise NotReplayable(f"what is kept of call {number} can't be understood") from None
    return _raised(end, content)


def _raised(end: Record, content: Content) -> Reply:
    number, kind = end.entry.body.get("sequence"), bodies.text(end.entry.body, "error")
    if kind is None:
        raise NotReplayable(f"what call {number} raised is not recorded: an older licet wrote it")
    message = _kept(end, "error", content, number) if "error" in end.kept else b""  # empty ones are not kept
    return Reply(error=GuestError(kind, message.decode("utf-8", "surrogatepass")))


def _kept(record: Record, name: str, content: Content, number: object) -> bytes:
    committed = record.kept.get(name)
    try:
        found = content(committed) if isinstance(committed, str) else None
    except ValueError:  # no commitment
        found = None
    if found is None:
        raise NotReplayable(f"what call {number} gave is erased")
    return found


def _body(records: Iterable[Record], kind: str) -> Mapping[str, Any] | None:
    return next((one.entry.body for one in records if one.entry.kind == kind), None)


def _text(body: Mapping[str, Any], name: str) -> str:
    found = bodies.text(body, name)
    if found is None:
        raise NotReplayable("its record can't be understood")
    return found


def _instant(request: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(_text(request, "at")).timestamp()
    except (ValueError, OverflowError):
        raise NotReplayable("its record can't be understood") from None


def _number(reading: str) -> float:
    try:
        return float(reading)
    except ValueError:
        raise NotReplayable("its record can't be understood") from None
