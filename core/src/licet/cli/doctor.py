"""`licet doctor`: what this host can enforce, by whom, and a forbidden act that is seen to fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from licet.cli.terminal import Card, Tone
    from licet.diagnosis import Diagnosis
    from licet.diagnosis.coverage import Coverage, Hold
    from licet.diagnosis.facts import Fact
    from licet.diagnosis.ordeal import Act, Layer
    from licet.runtime import Runtime


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def doctor(as_json: bool) -> int:
    """Say what this host can enforce, by which backend, and what could be switched on.

    Attacks every claim of every backend that is not proved here yet, and ends in forbidden acts under
    `licet:compute` that have to fail.

    \b
    Exit codes: 0 a sandbox holds and the acts failed · 1 a claim was refuted, an act got through, or nothing
    was shown · 2 usage · 5 no backend here can hold `licet:compute` · 7 audit unavailable
    """
    from licet.cli.progress import AttackProgress
    from licet.cli.terminal import put_json, show_card
    from licet.diagnosis.document import document
    from licet.runtime import Runtime

    with AttackProgress() as progress:
        runtime = Runtime(progress=progress)
        found = asyncio.run(_diagnose(runtime))
    if as_json:
        put_json(document(found))
    else:
        _put_controls(found)
        _put_host(found)
        show_card(_card(found, runtime))
    return found.verdict.exit_code


async def _diagnose(runtime: Runtime) -> Diagnosis:
    from licet.diagnosis import diagnose

    async with runtime:
        return await diagnose(runtime)


# -- what was asked for, on stdout


def _put_controls(found: Diagnosis) -> None:
    from licet.cli.terminal import put_blocks, put_heading, put_table
    from licet.controls import MEANINGS

    put_heading("what is enforced here, and by whom")
    columns = ("control", "held by", "level", "boundary", "evidence")
    put_table(columns, (row for one in found.controls for row in _rows(one)))
    if found.unheld:
        meanings = (f"{control}: {MEANINGS[control].means}" for control in found.unheld)
        put_blocks([("held by nobody here", meanings)])


def _rows(one: Coverage) -> Iterator[tuple[str, ...]]:
    name = one.control.value
    for backend, why in one.refuted:
        yield name, backend, "REFUTED", "none", why
        name = ""
    for hold in one.holds:
        yield name, hold.backend, hold.claim.level.value, hold.claim.boundary, _evidence(hold)
        name = ""
    if not (one.refuted or one.holds):
        yield name, "nobody", "", "", ""


def _evidence(hold: Hold) -> str:
    from licet.units import show_age

    if hold.proved is not None:
        return f"proved here {show_age(time.time() - hold.proved)}"
    return hold.unproved or f"{hold.claim.evidence.value} by the backend, not proved"


def _put_host(found: Diagnosis) -> None:
    from licet.cli.terminal import put_blocks

    put_blocks([("what decides it", ())])
    width = max(len(fact.name) for fact in found.facts) + 2
    put_blocks((f"  {fact.name:<{width}}{fact.found}", _advice(fact)) for fact in found.facts)
    if found.unused:
        put_blocks([("what is not in use", ())])
        put_blocks((f"  {one.found}", [f"you can {one.advice}"]) for one in found.unused)


def _advice(fact: Fact) -> Iterator[str]:
    if fact.advice is not None:
        yield f"an administrator could {fact.advice}"


# -- what it comes to, on stderr

_HEADINGS: dict[str, tuple[Tone, str]] = {
    "trail_unavailable": ("bad", "the trail can't be written, so nothing runs and nothing was attacked"),
    "got_through": ("bad", "A FORBIDDEN ACT GOT THROUGH"),
    "refuted": ("bad", "A CLAIM WAS REFUTED HERE"),
    "nothing_holds": ("bad", "nothing here can hold `licet:compute`"),
    "undecided": ("bad", "nothing was shown: what failed here failed at no wall"),
    "holds": ("good", "a sandbox holds here, and every forbidden act failed"),
}
_LAYERS: dict[Layer, str] = {
    "policy": "policy, nothing ran",
    "selection": "selection, nothing ran",
    "sandbox": "the sandbox",
}


def _card(found: Diagnosis, runtime: Runtime) -> Card:
    from licet.cli.terminal import Card

    tone, heading = _HEADINGS[found.verdict.value]
    return Card(tone, heading, runtime.stack.name, tuple(_card_rows(found, runtime)))


def _card_rows(found: Diagnosis, runtime: Runtime) -> Iterator[tuple[str, str]]:
    from licet import state
    from licet.cli import cards, places, refusals

    for backend, control, why in found.refuted:
        yield "refuted", f"{backend}, {control}: {why}"
    if found.ordeal is None:
        assert found.problem is not None
        yield "because", found.problem.message
        if found.problem.advice:
            yield "you can", found.problem.advice
        yield "policy", f"{runtime.stack.name} says `audit: {runtime.stack.audit_mode}`"
        return
    if found.explanation.selection.chosen is None:
        yield from refusals.rows(found.explanation, runtime.stack.name)
        yield from (("you can", f"{one.advice}: {one.found}") for one in found.unused)
    else:
        yield "sandbox", cards.sandbox(found.explanation)
        result = found.ordeal.allowed
        worked = "a computation came out right" if found.ordeal.answered else f"failed: {result.summary}"
        yield "allowed", worked
    yield from _acts(found.ordeal.acts)
    yield "trail", f"written to {runtime.state_path}, digests under the key in {state.user_state_path()}"
    yield "", f"policy {runtime.stack.name} says `audit: {runtime.stack.audit_mode}`"
    shown = f"audit show {found.ordeal.acts[-1].run_id}" if found.ordeal.acts else "audit list"
    yield "more", places.command(shown, runtime.state_path)


def _acts(acts: Iterable[Act]) -> Iterator[tuple[str, str]]:
    for act in acts:
        yield "tried", act.attempted
        if act.got_through:
            yield "", f"GOT THROUGH, run {act.run_id} by {act.backend}"
        elif act.stopped_by is None:
            yield "", f"failed, and not at a wall: {act.observed}"
        else:
            by = f" {act.backend}" if act.stopped_by == "sandbox" else ""
            yield "", f"stopped by {_LAYERS[act.stopped_by]}{by}: {act.observed}"
        yield "", "without walls the same program " + ("got through" if act.twin else "failed too")
