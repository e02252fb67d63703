"""Whether answers meet what was demanded, counted again from records alone.

Rules this module keeps:

- nothing here is shared with what granted an approval: it is written from rules 16 and 17 alone;
- it never asks for more than these rules do, so a grant that follows them is not called forged;
- bodies are untrusted: what is missing or of another type raises, and whoever asks tells that.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

Body = Mapping[str, Any]


def same_person(one: str, other: str) -> bool:
    """Whether two ids are one person's, whoever asserts them, in whatever case."""
    return _name(one) == _name(other)


def shortfall(asked: Body, granted: Body, answers: Sequence[Body]) -> str | None:
    """What a grant lacks, given all answers that are on record; None if nothing."""
    named = [str(one) for one in granted["by"]]
    yes = [
        one
        for one in answers
        if one["answer"] == "approve" and any(same_person(one["person"]["id"], who) for who in named)
    ]
    if not asked["requirements"]:
        return "no requirement that it could meet"
    for demand in asked["requirements"]:
        persons = {
            _name(one["person"]["id"]) for one in yes if _fits(demand, one["person"], asked["requester"])
        }
        if len(persons) < demand["count"]:
            return f"{len(persons)} of {demand['count']} persons who may have approved it"
    return _too_wide(asked, granted["reach"], yes)


def uncovered(asked: Body, reach: Body, covered: Body) -> str | None:
    """Why a grant does not reach to something else than what was asked for; None if it does."""
    if reach["scope"] == "once":
        return "it was granted for one thing once"
    for name in ("of", "policy_digest"):
        if asked[name] != covered[name]:
            return f"its `{name}` is another one"
    mine, theirs = asked["requester"], covered["requester"]
    for name in (
        "id",
        "type",
        "tenant",
        "on_behalf_of",
        *(("session",) if reach["scope"] == "session" else ()),
    ):
        if mine.get(name) != theirs.get(name):
            return f"the `{name}` of who asks is another one"
    if reach["scope"] == "session" and mine.get("session") is None:
        return "it was granted for a session, and there is none"
    if any(demand not in asked["requirements"] for demand in covered["requirements"]):
        return "more is demanded than was met"
    return _other_field(asked["fields"], covered["fields"], reach["vary"])


def _fits(demand: Body, person: Body, requester: Body) -> bool:
    if demand["from"] and not set(demand["from"]) & set(person["groups"]):
        return False
    if demand["reviewer"] == "human" and person["reviewer"] != "human":
        return False
    if not demand["from"] and demand["count"] == 1:
        return True  # whoever it is
    own = [requester["id"], *([requester["on_behalf_of"]] if requester.get("on_behalf_of") else [])]
    return not any(same_person(person["id"], one) for one in own)


def _too_wide(asked: Body, reach: Body, yes: Sequence[Body]) -> str | None:
    if reach["scope"] != "once" and any(one["scope"] != reach["scope"] for one in yes):
        return "it reaches further than all agreed: its scope"
    if reach["scope"] != "once" and any(not set(reach["vary"]) <= _both(one["vary"]) for one in yes):
        return "it reaches further than all agreed: what may vary"
    most = [one["uses"] for one in yes if one["uses"] is not None]
    if reach["scope"] == "once":
        most.append(1)
    if most and (reach["uses"] is None or reach["uses"] > min(most)):
        return "it reaches further than all agreed: its uses"
    longest = [float(one["expires"]) for one in yes if one["expires"] is not None]
    if not float(reach["expires"]) <= min([float(asked["expires"]), *longest]):
        return "it reaches further than all agreed: its time"
    return None


def _other_field(mine: Body, theirs: Body, vary: Sequence[str]) -> str | None:
    may = _both(vary)
    for name in sorted({*mine, *theirs}):
        if name not in mine or name not in theirs or (mine[name] != theirs[name] and name not in may):
            return f"`{name}` is another one, and may not vary"
    return None


def _both(vary: Sequence[str]) -> set[str]:
    """What may vary, as persons name it and as fields are called."""
    plain = [name.partition(":")[2] or name for name in vary]
    return {*vary, *plain, *(f"{kind}:{name}" for kind in ("arg", "input") for name in plain)}


def _name(person: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", person).casefold())
