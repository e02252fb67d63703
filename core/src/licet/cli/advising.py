"""Lines of cards that say what would let a request pass.

Rules this module keeps:

- changes of the request are alternatives, each of which was tried, so they are joined by `or`;
- what other people would have to do is needed together, so it is joined by `and`;
- what is not shown is counted;
- the same advice is given once, however many intents call for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from licet.report import Explanation, Repair

Row = tuple[str, str]

_TOGETHER = frozenset(("allow", "ask_decider", "change_policy", "enable_backend", "get_approval"))


def rows(repairs: Sequence[Repair], most: int | None) -> Iterable[Row]:
    """What would help, the best first; at most `most` of it (None: all)."""
    first: dict[tuple[str, str | None], Repair] = {}
    for repair in repairs:
        first.setdefault((repair.text, repair.leads_to), repair)
    repairs = [*first.values()]
    before: Repair | None = None
    for repair in repairs[:most]:
        after = ", then it needs an approval" if repair.leads_to == "ask" else ""
        yield _label(before, repair), f"{repair.text}{after}"
        before = repair
    if most is not None and len(repairs) > most:
        yield "", f"and {len(repairs) - most} more, see `licet explain --all`"


def _label(before: Repair | None, repair: Repair) -> str:
    if before is None:
        return "you can"
    return "and" if before.kind in _TOGETHER and repair.kind in _TOGETHER else "or"


def besides(explanation: Explanation) -> Iterable[Row]:
    """Lines that policy allows and the first advice takes out, since no sandbox here could run them."""
    if explanation.effect != "deny" or not explanation.repair:
        return
    taken = [edit.lines for edit in explanation.repair[0].edits]
    refused = {v.intent.line for v in explanation.verdicts if v.effect == "deny"}
    refused |= {violation.line for violation in explanation.refusals}
    for verdict in explanation.verdicts:
        intent, line = verdict.intent, verdict.intent.line
        if verdict.effect == "deny" or line is None:
            continue
        if any(line in lines and refused.isdisjoint(lines) for lines in taken):
            yield f"line {line}", f"{intent.excerpt}   needs {intent}" if intent.excerpt else str(intent)
            yield "because", f"{verdict.reason}, but no sandbox here could run it"
