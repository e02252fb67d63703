"""A recorded decision, told again as it was made, in the form of `licet explain --json`.

Rules this module keeps:

- it tells what the records say and decides nothing anew;
- a record may hold anything: what is missing or of another type is None or left out, never a crash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from licet.record import Record
from licet.workbench.history.bodies import action_and_target, mappings, texts

_OUTCOMES = {"true": "hit", "unknown": "unknown", "false": "missed"}
_BY = re.compile(r"(?::(\d+))? (.*)", re.DOTALL)


def recounted(records: Sequence[Record]) -> dict[str, Any] | None:
    """The decision of the run that `records` are of; None if none is recorded.

    Beside the fields of an explanation it has `run_id`, `recorded{log, seq, time}` and `termination`.
    """
    bodies = {record.entry.kind: record.entry.body for record in records}
    place = next((one for one in records if one.entry.kind == "decision"), None)
    if place is None:
        return None
    decision, request = bodies["decision"], bodies.get("request", {})
    selection = bodies.get("selection", {})
    files = texts(decision.get("documents"))
    return {
        "run_id": place.entry.run_id,
        "recorded": {"log": place.log, "seq": place.seq, "time": place.entry.time},
        "effect": decision.get("effect"),
        "verdicts": [_verdict(one, files) for one in mappings(decision.get("verdicts"))],
        "violations": [dict(one) for one in mappings(decision.get("violations"))],
        "selection": {
            "backend": selection.get("backend"),
            "candidates": [dict(one) for one in mappings(selection.get("candidates"))],
        },
        "repair": [],
        "policy": decision.get("policy"),
        "policy_digest": decision.get("policy_digest"),
        "plan_digest": selection.get("plan_digest"),
        "at": request.get("at"),
        "documents": [
            {"file": file, "role": "bound" if number else "root"} for number, file in enumerate(files)
        ],
        "rules": [*_rules(decision.get("rules")), *_pending(decision.get("pending"))],
        "demands": texts(decision.get("demands")),
        "rehearsals": [_rehearsal(one, files) for one in mappings(decision.get("rehearsals"))],
        "ballots": [dict(one) for one in mappings(decision.get("ballots"))],
        "licet": request.get("licet"),
        "screen": request.get("screen"),
        "termination": bodies.get("result", {}).get("termination"),
    }


def _verdict(one: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
    action, target = action_and_target(str(one.get("intent", "?")))
    return {
        "intent": {
            "action": action,
            "target": target,
            "source": one.get("source"),
            "line": one.get("line"),
            "when": one.get("when"),
            "excerpt": None,
        },
        "effect": one.get("effect"),
        "by": [_by(text, files) for text in texts(one.get("by"))],
        "reason": one.get("reason"),
    }


def _by(text: str, files: Sequence[str]) -> dict[str, Any]:
    """What decided, taken apart: a document is known by its name, since that may hold anything."""
    for file in sorted((*files, "licet"), key=len, reverse=True):
        found = _BY.fullmatch(text, len(file)) if text.startswith(file) else None
        if found is not None:
            return {"document": file, "line": int(found[1] or 0), "rule": found[2]}
    place, _, rule = text.partition(" ")
    file, _, line = place.rpartition(":")
    known = line.isdecimal() and line.isascii()
    return {"document": file if known else place, "line": int(line) if known else 0, "rule": rule}


def _rules(rules: object) -> Iterable[dict[str, Any]]:
    for one in mappings(rules):
        yield {
            "rule": one.get("rule"),
            "where": one.get("where"),
            "outcome": _OUTCOMES.get(str(one.get("truth")), "unknown"),
            "leaves": [dict(leaf) for leaf in mappings(one.get("leaves"))],
        }


def _pending(names: object) -> Iterable[dict[str, Any]]:
    return ({"rule": name, "where": None, "outcome": "pending", "leaves": []} for name in texts(names))


def _rehearsal(one: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
    document = str(one.get("document"))
    return {
        "document": document,
        "effect": one.get("effect"),
        "verdicts": [_verdict(each, (*files, document)) for each in mappings(one.get("verdicts"))],
        "rules": list(_rules(one.get("rules"))),
    }
