"""What the cards of `run` and `explain` say, from results alone.

Rules this module keeps:

- a card names the command that shows more, as it can be typed in the current directory;
- a run that left no record, or not all of them, says so, however it ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from licet import units
from licet.backend import Termination
from licet.cli import advising, because, pending, places, refusals, scrubbed
from licet.cli.nearby import near, nearby
from licet.cli.terminal import Card, Tone
from licet.contract import Evidence
from licet.report import Explanation
from licet.request import Change
from licet.result import ExecutionResult, Protection
from licet.select import Chosen

REFUSALS = (Termination.policy_denied, Termination.approval_denied, Termination.no_backend)
"""How a run ends that policy, an approver or the lack of a sandbox refused."""

_MOST_ARTIFACTS = 8

_HEADINGS = {
    Termination.policy_denied: "denied, nothing ran",
    Termination.approval_denied: "needs an approval, nothing ran",
    Termination.approval_pending: "waits for an approval",
    Termination.no_backend: "no sandbox can run this, nothing ran",
    Termination.timeout: "stopped at its time limit",
    Termination.cpu_limit: "stopped at its CPU limit",
    Termination.memory_limit: "stopped at its memory limit",
    Termination.process_limit: "stopped at its process limit",
    Termination.output_limit: "stopped at its output limit",
    Termination.file_limit: "stopped at its file limit",
    Termination.tool_limit: "stopped at its limit of tool calls",
    Termination.cancelled: "cancelled",
    Termination.launch_failed: "the sandbox did not start, nothing ran",
    Termination.backend_error: "the sandbox failed",
    Termination.backend_lost: "the sandbox was lost",
    Termination.audit_unavailable: "the trail can't be written, nothing ran",
    Termination.unknown: "nobody knows how it ended",
}


def of_result(
    result: ExecutionResult, state: Path, disabled: Sequence[str] = (), *, policy: str | None = None
) -> Card:
    """The card of a finished run, whose log is in the state directory `state`.

    `disabled` are plugins that are installed and not enabled; `policy` is the name that the run was given.
    """
    note = _note(result)
    refuted = _refuted(result.decision) if result.decision else ()
    waits = result.termination is Termination.approval_pending
    body = _refusal(result, disabled) if _is_refusal(result) else () if waits else _body(result)
    stale = _stale(result.decision) if result.decision else ()
    taken = scrubbed.rows(result.scrubbed)
    asked = pending.rows(result, state, policy)
    ends = (*_rehearsed(result), *stale, *_trail(result), *_more(result, state))
    rows = (*body, *asked, *taken, *refuted, *ends)
    if result.success:
        return Card("good", "ran", f"{note} · {result.decision.policy}" if result.decision else note, rows)
    if result.termination is Termination.exited:
        heading = _failed_heading(result)
    elif result.termination is Termination.audit_unavailable and result.backend is not None:
        heading = "the code ran, but its result could not be recorded"
    elif result.termination is Termination.policy_denied and result.backend is not None:
        heading = "denied while it ran"
    else:
        heading = pending.heading(result) or _HEADINGS.get(result.termination, result.termination.value)
    return Card("warn" if waits else "bad", heading, note, rows)


def of_cancelled(state: Path) -> Card:
    """The card of a run that was cancelled."""
    more = places.command("audit list", state)
    return Card(
        "bad", _HEADINGS[Termination.cancelled], "", (("more", f"what had begun is recorded, see {more}"),)
    )


def of_explanation(
    explanation: Explanation, disabled: Sequence[str] = (), *, everything: bool = False
) -> Card:
    """The card of `licet explain`; `disabled` as for `of_result`. `everything` lists all."""
    note = f"policy {explanation.policy}"
    beside = _grounds_of(explanation, everything=everything)
    ends = (*_refuted(explanation), *_stale(explanation))
    if explanation.exit_code == 0:
        rows = [*_opened(explanation), ("sandbox", sandbox(explanation)), *beside, *ends]
        return Card("good", "allowed", note, tuple(rows))
    headings = {3: "denied", 4: "needs an approval", 5: "allowed, but no sandbox here can run it"}
    tone: Tone = "warn" if explanation.exit_code == 4 else "bad"
    rows = [*_why_not(explanation, disabled, beside, everything=everything), *ends]
    return Card(tone, headings[explanation.exit_code], note, tuple(rows))


def _note(result: ExecutionResult) -> str:
    place = f" · audit #{result.audit.seq}" if result.audit else ""
    return f"run {result.run_id}{place}"


def _is_refusal(result: ExecutionResult) -> bool:
    return result.decision is not None and result.termination in REFUSALS


def _refusal(result: ExecutionResult, disabled: Sequence[str]) -> Iterable[tuple[str, str]]:
    assert result.decision is not None
    told = result.decision.account.as_json() if result.decision.account else None
    beside = because.rows({**told, "rehearsals": ()}) if told else ()
    unmet = result.detail if result.termination is Termination.approval_denied else None
    yield from _why_not(result.decision, disabled, (*beside, *([("ended", unmet)] if unmet else ())))


def _body(result: ExecutionResult) -> Iterable[tuple[str, str]]:
    if result.termination is Termination.exited:
        yield from _ran(result)
    else:
        if result.detail:
            yield "because", result.detail
        if result.advice:
            yield "you can", result.advice
        yield from _used(result)


def _grounds_of(explanation: Explanation, *, everything: bool) -> tuple[tuple[str, str], ...]:
    """What the decision rests on beside the entries that the verdicts name."""
    if explanation.account is None:
        return ()
    told = explanation.account.as_json()
    documents = (
        [(one["role"].replace("_", " "), near(one["file"])) for one in told["documents"]]
        if everything
        else []
    )
    return (*because.rows(told, everything=everything), *documents)


def _more(result: ExecutionResult, state: Path) -> Iterable[tuple[str, str]]:
    if _is_refusal(result) and result.audit is not None:
        yield "more", places.command(f"explain {result.run_id}", state)


def _rehearsed(result: ExecutionResult) -> Iterable[tuple[str, str]]:
    if result.decision is not None and result.decision.account is not None:
        yield from because.of_rehearsals(result.decision.account.as_json()["rehearsals"])


def _refuted(explanation: Explanation) -> Iterable[tuple[str, str]]:
    """Claims that an attack here has disproved, whether or not this run needs them."""
    for candidate in explanation.selection.candidates:
        for text in candidate.refuted:
            yield "refuted", f"{candidate.name}, {text}"


def _stale(explanation: Explanation) -> Iterable[tuple[str, str]]:
    if explanation.policy_stale is not None:
        yield (
            "policy",
            f"{explanation.policy} stays in force, its files have changed: {explanation.policy_stale}",
        )


def _trail(result: ExecutionResult) -> Iterable[tuple[str, str]]:
    if result.unrecorded is not None:
        yield "trail", f"not recorded: {result.unrecorded}; policy says `best_effort`"


def _failed_heading(result: ExecutionResult) -> str:
    if result.exit_code == 0:
        return "the code ran, and what it wrote was dropped"
    if result.error is None:
        return f"the code exited with {result.exit_code}"
    place = f"line {result.error.line}: " if result.error.line else ""
    return f"{place}{result.summary.removesuffix(f' in line {result.error.line}')}"


def _ran(result: ExecutionResult) -> Iterable[tuple[str, str]]:
    if result.decision is not None and result.backend is not None:
        yield from _opened(result.decision)
    if result.detail:
        yield "note", result.detail
    if result.advice:
        yield "you can", result.advice
    yield from _used(result)


def _wrote(result: ExecutionResult) -> Iterable[tuple[str, str]]:
    label = "wrote"
    for artifact in result.artifacts[:_MOST_ARTIFACTS]:
        yield label, f"{artifact.path} ({units.show_size(artifact.bytes)})"
        label = ""
    if len(result.artifacts) > _MOST_ARTIFACTS:
        yield "", f"and {len(result.artifacts) - _MOST_ARTIFACTS} more"


def _used(result: ExecutionResult) -> Iterable[tuple[str, str]]:
    if result.backend is None:
        return
    chosen = result.decision.selection.chosen if result.decision else None
    grounds = _grounds(chosen) if chosen else "as declared by the backend"
    seen = _read_back(result.protection, chosen) if chosen else ""
    yield "sandbox", f"{result.backend.name}, {_walls(result.backend.isolation)}, {grounds}{seen}"
    usage = result.usage
    parts = [units.show_duration(usage.wall_time)]
    if usage.peak_memory is not None:
        parts.append(units.show_size(usage.peak_memory))
    if result.tool_calls:
        parts.append(f"{len(result.tool_calls)} tool calls")
    yield "used", " · ".join(parts)
    yield from _wrote(result)
    for stream in ("stdout", "stderr"):
        if getattr(result, f"{stream}_truncated"):
            yield stream, f"{units.show_size(getattr(result, f'{stream}_bytes'))} written, shortened here"
    yield from _changes(result.changes)


def _changes(changes: Iterable[Change]) -> Iterable[tuple[str, str]]:
    for change in changes:
        requested, effective = change.requested, change.effective
        if change.field.startswith("limits."):
            name = change.field.removeprefix("limits.")
            requested, effective = units.show_limit(name, requested), units.show_limit(name, effective)
        yield "changed", f"{change.field}: {requested} → {effective}, {change.reason}"


def _read_back(protection: Protection, chosen: Chosen) -> str:
    """How many of the controls that were asked for the system showed something of."""
    asked = len(chosen.requirements)
    seen = asked - len(protection.unknown)
    return f", {seen} of {asked} controls read back" if seen else ""


def _walls(isolation: str) -> str:
    if isolation == "none":
        return "no walls: files and network are open"
    return f"{isolation.replace('_', ' ')} walls"


def _grounds(chosen: Chosen) -> str:
    """What the claims rest on that this run relies on."""
    contract = chosen.descriptor.sandbox_enforcement_contract
    if chosen.missing:
        return "to be proved here by the first run"
    declared = [c for c in chosen.requirements if contract[c].evidence is not Evidence.probed]
    if chosen.proof is None or len(declared) == len(chosen.requirements):
        return "as declared by the backend"
    proved = f"proved here {units.show_age(time.time() - chosen.proof.when)}"
    return proved if not declared else f"{proved}, but for {', '.join(declared)}"


def _opened(explanation: Explanation) -> Iterable[tuple[str, str]]:
    chosen = explanation.selection.chosen
    allowed = [v for v in explanation.verdicts if v.intent.action != "run" and v.effect == "allow"]
    opens = chosen.descriptor.opens if chosen else frozenset()
    opened = [verdict for verdict in allowed if verdict.intent.action in opens]
    bys = (f"  {nearby(str(verdict.by[0]))}" if verdict.by else "" for verdict in opened)
    label = "opened"
    for line in dict.fromkeys(f"{verdict.intent}{by}" for verdict, by in zip(opened, bys, strict=True)):
        yield label, line
        label = ""
    if closed := [str(verdict.intent) for verdict in allowed if verdict.intent.action not in opens]:
        yield "not opened", f"{', '.join(closed)}: allowed, but this sandbox opens less"


def sandbox(explanation: Explanation) -> str:
    """The sandbox that was chosen, its walls, and what they rest on."""
    chosen = explanation.selection.chosen
    assert chosen is not None
    walls = _walls(chosen.isolation)
    return f"{chosen.descriptor.name}, {walls}, {_grounds(chosen)}"


def _why_not(
    explanation: Explanation,
    disabled: Sequence[str],
    beside: Iterable[tuple[str, str]],
    *,
    everything: bool = False,
) -> Iterable[tuple[str, str]]:
    most = len(explanation.verdicts) + len(explanation.refusals) if everything else refusals.SHOWN
    for violation in explanation.refusals[:most]:
        yield f"line {violation.line}" if violation.line else "code", violation.message
    shown = [v for v in explanation.verdicts if everything or v.effect != "allow"]
    for verdict in shown[:most]:
        intent = verdict.intent
        yield (
            because.label(asdict(intent)),
            f"{intent.excerpt}   needs {intent}" if intent.excerpt else str(intent),
        )
        yield "because", because.reason(verdict.reason, verdict.effect, map(asdict, verdict.by))
    if len(shown) > most:
        yield "", f"and {len(shown) - most} more"
    if not everything:
        yield from advising.besides(explanation)
    yield from beside
    if explanation.effect != "deny" and explanation.selection.chosen is None:
        yield from refusals.rows(explanation, explanation.policy, disabled)
    yield from advising.rows(explanation.repair, None if everything else refusals.SHOWN)
