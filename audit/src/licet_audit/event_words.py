"""What the log says of itself, in words: gaps, anchors, erasures, holds and the like.

Rules this module keeps:

- lists are counted, never written out: an erasure names thousands of commitments;
- a body may hold anything: what is missing or of another type is `?`, and an event that is unknown here
  is told by its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from licet.units import show_size
from licet.workbench.history.bodies import mappings, text, texts

from licet_audit.retention.choosing import choice_of

Body = Mapping[str, Any]

_SHOWN = 3  # runs that are named
_LONGEST = 200  # characters of a field that is unknown here


def event_words(body: Body) -> str:
    """One sentence about a `log` record, without the name of its event."""
    told = _TOLD.get(str(body.get("event")))
    return told(body) if told else "; ".join(_field(*one) for one in body.items() if one[0] != "event")


def _field(name: str, value: object) -> str:
    shown = f"{len(value)}" if isinstance(value, (list, dict)) else str(value)
    return f"{name} {shown[:_LONGEST]}"


def _torn(body: Body) -> str:
    return f"{_size(body)} of a line without an end, set aside in `{_text(body, 'file')}`"


def _gap(body: Body) -> str:
    return f"{_count(body.get('missing'), 'record')} could not be written"


def _writes(body: Body) -> str:
    what = f"the files of run {_text(body, 'run')} ({_count(len(texts(body.get('paths'))), 'path')})"
    reason = f": {why}" if (why := text(body, "reason")) else ""
    return f"writing {what} was interrupted, and is {_text(body, 'outcome')}{reason}"


def _anchored(body: Body) -> str:
    at = f", at {time}" if (time := text(body, "time")) else ""
    return f"{_anchor(body)} has seen {_covered(body)}{at}"


def _anchor_failed(body: Body) -> str:
    return f"{_anchor(body)} has not seen {_covered(body)}: {_text(body, 'reason')}"


def _erased(body: Body) -> str:
    named = mappings(body.get("commitments"))
    pieces = sum(len(kept) for one in named if isinstance(kept := one.get("kept"), dict))
    runs = dict.fromkeys(text(one, "run_id") or "?" for one in named)
    parts = [f"{_count(pieces, 'piece')} of content of {_named(list(runs))}"] if named else []
    if orphans := texts(body.get("orphans")):
        parts.append(f"{_count(len(orphans), 'piece')} of content that no record names")
    if approvals := texts(body.get("approvals")):
        parts.append(f"what was stored of the approvals of {_named(approvals)}")
    if altered := texts(body.get("altered")):
        parts.append(f"{len(altered)} of them no longer what was committed to")
    return "; ".join((*parts, _why(body)))


def _held(body: Body) -> str:
    try:
        what = str(choice_of(body.get("what")))
    except ValueError:
        what = "everything, since what it says can't be understood"
    return f"hold {_text(body, 'hold')} on {what}; {_why(body)}"


def _released(body: Body) -> str:
    return f"hold {_text(body, 'hold')} ends; {_why(body)}"


def _pruned(body: Body) -> str:
    files = mappings(body.get("segments"))
    cut = texts(body.get("cut"))
    parts = [f"{_count(len(files), 'file')} of records; the log begins with #{body.get('begins')} now"]
    parts += [f"the newest of them was of {newest}"] if (newest := text(body, "newest")) else []
    parts += [f"without its beginning stays {_named(cut)}"] if cut else []
    return "; ".join((*parts, _why(body)))


def _why(body: Body) -> str:
    return f"by {_text(body, 'by')}: {_text(body, 'reason')}"


def _anchor(body: Body) -> str:
    return f"{_text(body, 'kind')} {_text(body, 'anchor')}"


def _covered(body: Body) -> str:
    return f"the first {_count(body.get('size'), 'record')}"


def _named(runs: list[str]) -> str:
    more = f" and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
    return f"{_count(len(runs), 'run')} ({', '.join(runs[:_SHOWN])}{more})"


def _count(number: object, noun: str) -> str:
    known = isinstance(number, int) and not isinstance(number, bool)
    return f"{number if known else '?'} {noun}{'' if number == 1 else 's'}"


def _size(body: Body) -> str:
    size = body.get("bytes")
    return show_size(size) if isinstance(size, int) and 0 <= size < 2**53 else "?"


def _text(body: Body, name: str) -> str:
    return text(body, name) or "?"


_TOLD: dict[str, Callable[[Body], str]] = {
    "opened": lambda body: f"log {_text(body, 'log')} begins",
    "reopened": lambda body: f"written to again after a failure: {_text(body, 'reason')}",
    "sealed": lambda _: "its file is full, and the next record begins another",
    "torn_tail_quarantined": _torn,
    "gap": _gap,
    "writes_recovered": _writes,
    "anchored": _anchored,
    "anchor_failed": _anchor_failed,
    "erased": _erased,
    "held": _held,
    "released": _released,
    "pruned": _pruned,
}
