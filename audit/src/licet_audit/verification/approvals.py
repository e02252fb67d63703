"""What records say of approvals: that each use was granted by those who may, for this, in time, and once.

Rules this module keeps:

- an approval may be asked for by one run and used by another one, so all of them are followed together;
- the store of approvals decides in which order things happen, and each process records its own part: an
  answer or a grant that another process records late still counts, and what began before an end goes on;
- memory holds approvals that may still be used, or were and lack something; of one that is over its id
  alone, so that another use of it is told for what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from licet_audit.verification import counting

_SLACK = 1.0  # seconds that a record may be later than what it tells
_OVER = frozenset({"denied", "expired", "withdrawn", "revoked"})
_NEEDS_ONE = frozenset({"granted", "consumed", "executed", "failed_to_start", "unknown"})

Body = Mapping[str, Any]


class Told(NamedTuple):
    """What a record comes to: the digest that a use was `spent` on, or given `back`; and what it contradicts.

    `lack`: a record that is missing could explain that; `early`: also one of before the log begins.
    """

    spent: str | None = None
    back: str | None = None
    why: str | None = None
    lack: bool = False
    early: bool = False


class Lacking(NamedTuple):
    """A use that nothing on record grants so far: where it was spent, by which run, and what is lacking."""

    seq: int
    run_id: str
    why: str


@dataclass(slots=True)
class _Attempt:
    """A record that a use is about to be spent."""

    record: Body
    run_id: str
    digest: str
    covered: Body | None


@dataclass(slots=True)
class _Approval:
    """An approval that may still be used; `record` is that of its asking."""

    name: str
    record: Body
    asked: Body
    answers: list[Body] = field(default_factory=list)
    denied_at: int | None = None
    granted: Body | None = None
    over: tuple[int, str] | None = None
    attempts: dict[int, _Attempt] = field(default_factory=dict)
    spent: set[int] = field(default_factory=set)
    running: dict[int, str] = field(default_factory=dict)
    spender: object = None
    lacking: Lacking | None = None
    unsettled: list[_Attempt] = field(default_factory=list)

    def ungranted(self) -> str | None:
        """What its grant lacks, as far as there are records."""
        if self.granted is None:
            return "no grant"
        return counting.shortfall(self.asked, self.granted, self.answers)

    def misused(self, began: int, attempt: _Attempt) -> str | None:
        """Why a use that began with this record was none, whoever granted it."""
        if self.over is not None and self.over[0] < began:
            return f"and was {self.over[1]} before"
        if self.denied_at is not None and self.denied_at < began:
            return "and somebody who counts had denied it"
        if attempt.covered is None:
            what = self.asked["digest"], self.record["run_id"]
            if (attempt.digest, attempt.run_id) != what:
                return "on something else than was asked for"
        return self._late(attempt, self.asked["expires"])

    def overused(self, attempt: _Attempt) -> str | None:
        """Why its grant does not reach as far as this use."""
        reach = self.granted["reach"] if self.granted is not None else {}
        if reach["uses"] is not None and len(self.spent) > reach["uses"]:
            return "more often than it was granted for"
        if attempt.covered is not None and (why := counting.uncovered(self.asked, reach, attempt.covered)):
            return f"on something that it does not reach to: {why}"
        return self._late(attempt, reach["expires"])

    def is_spent(self) -> bool:
        """Whether no use is left, or none may begin, and all that began have ended."""
        uses = self.granted["reach"]["uses"] if self.granted is not None else None
        none_left = uses is not None and len(self.spent) >= uses
        if none_left:
            return not self.running
        return self.over is not None and not self.running and not self.attempts

    def _late(self, attempt: _Attempt, expires: str) -> str | None:
        in_time = _passed(self.record, attempt.record) <= float(expires) + _SLACK
        return None if in_time else "after it had expired"


class Approvals:
    """Follows all approvals of a log, in the order of their records."""

    def __init__(self) -> None:
        self._known: dict[str, _Approval] = {}
        self._lacking: dict[str, _Approval] = {}
        self._over: dict[str, str] = {}

    def follow(self, record: Body) -> Told:
        """Follow one record of this kind, as it stands in its line."""
        try:
            return self._follow(record)
        except (KeyError, TypeError, ValueError, AttributeError):
            return Told(why="what it says of an approval can't be understood")

    def lacking(self) -> list[Lacking]:
        """The uses that nothing on record grants, once the log has ended."""
        return [one.lacking for one in self._lacking.values() if one.lacking is not None]

    def _follow(self, record: Body) -> Told:
        body = record["body"]
        event, name = body["event"], body["approval"]
        one = self._known.get(name) or self._lacking.get(name)
        if event == "asked":
            if one is not None or name in self._over:
                return Told(why=f"the approval `{name}` is asked for a second time")
            self._known[name] = _Approval(name, record, body)
            return Told()
        if one is None:
            return self._of_none(event, name)
        match event:
            case "answered":
                return self._answered(one, record)
            case "granted":
                if not (one.spent and one.spender == record["writer"]["instance"]):
                    one.granted = body  # who spends it has to be granted it before
                return self._looked_again(one)
            case "consuming":
                one.attempts[record["seq"]] = _Attempt(
                    record, record["run_id"], _text(body["digest"]), body["covered"]
                )
            case "consumed":
                return self._consumed(one, record)
            case "executed" | "failed_to_start" | "unknown":
                return self._ended(one, body)
            case _ if event in _OVER:
                one.over = one.over or (record["seq"], event)
                self._forget(one)
        return Told()

    def _of_none(self, event: str, name: str) -> Told:
        """A record about an approval that is over, or that none asks for."""
        how = self._over.get(name)
        if event not in _NEEDS_ONE or (how is not None and event == "granted"):  # recorded late
            return Told()
        if how is not None:
            return Told(why=f"the approval `{name}` is {event.replace('_', ' ')}, and was {how} before")
        why = f"the approval `{name}` is {event.replace('_', ' ')}, and nothing before it asks for it"
        return Told(why=why, lack=True, early=True)

    def _answered(self, one: _Approval, record: Body) -> Told:
        body = record["body"]
        if body["counts"] is not True:
            return Told()
        if body["shown"] != one.asked["shown"]:
            return Told(why=f"an answer to the approval `{one.name}` is to something else than was shown")
        one.answers.append(body)
        if body["answer"] == "deny":
            one.denied_at = record["seq"] if one.denied_at is None else one.denied_at
        return self._looked_again(one)

    def _consumed(self, one: _Approval, record: Body) -> Told:
        body, run_id, use = record["body"], record["run_id"], record["body"]["use"]
        attempt = one.attempts.pop(body["consuming"], None)
        if attempt is None or attempt.run_id != run_id:
            why = f"the approval `{one.name}` is spent, and no record before it says that it was about to be"
            return Told(why=why, lack=True)
        told = Told(spent=attempt.digest)
        if use in one.spent:
            return told._replace(why=_spent(one, f"for use {use} a second time"))
        one.spent.add(use)
        one.running[use] = attempt.digest
        one.spender = record["writer"]["instance"]
        if how := one.misused(body["consuming"], attempt):
            return told._replace(why=_spent(one, how))
        if lack := one.ungranted():
            one.lacking = one.lacking or Lacking(record["seq"], run_id, _spent(one, f"and has {lack}"))
            one.unsettled.append(attempt)
            self._lacking[one.name] = one
        elif how := one.overused(attempt):
            return told._replace(why=_spent(one, how))
        return told

    def _ended(self, one: _Approval, body: Body) -> Told:
        digest = one.running.pop(body["use"], None)
        if digest is None:
            if body["event"] == "unknown" and one.attempts and body["use"] not in one.spent:
                one.spent.add(body["use"])  # whoever spent it died before it could say so
                self._forget(one)
                return Told()
            return Told(why=f"a use of the approval `{one.name}` has ended that was not spent", lack=True)
        self._forget(one)
        return Told(back=digest if body["event"] == "failed_to_start" else None)

    def _looked_again(self, one: _Approval) -> Told:
        """Whether what was lacking is on record now, and reaches as far as it was used."""
        if one.name not in self._lacking or one.ungranted() is not None:
            return Told()
        del self._lacking[one.name]
        one.lacking, unsettled, one.unsettled = None, one.unsettled, []
        why = next(filter(None, map(one.overused, unsettled)), None)
        self._forget(one)
        return Told(why=_spent(one, why)) if why else Told()

    def _forget(self, one: _Approval) -> None:
        if one.is_spent():
            self._known.pop(one.name, None)
            self._over[one.name] = one.over[1] if one.over is not None else "spent"


def _spent(one: _Approval, how: str) -> str:
    return f"the approval `{one.name}` is spent{',' if how.startswith('and') else ''} {how}"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _passed(earlier: Body, later: Body) -> float:
    """Seconds from one record to another: the longer of what both clocks of one host say."""
    wall = (datetime.fromisoformat(later["time"]) - datetime.fromisoformat(earlier["time"])).total_seconds()
    mine, theirs = earlier["writer"], later["writer"]
    if mine.get("boot") is None or any(mine.get(name) != theirs.get(name) for name in ("host", "boot")):
        return wall
    return max(wall, (int(later["mono_ns"]) - int(earlier["mono_ns"])) / 1e9)
