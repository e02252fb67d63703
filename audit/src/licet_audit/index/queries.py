"""What is wanted of the index, as SQL.

Rules this module keeps:

- what a caller gives is always a bound parameter, never a part of a statement;
- text that no record can hold matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from licet_audit.index.schema import COLUMNS

By = Literal[
    "day",
    "hour",
    "effect",
    "termination",
    "backend",
    "subject",
    "tenant",
    "rule",
    "host",
    "tool",
    "denied",
    "approver",
    "approval_state",
]
Field = Literal[
    "decision",
    "subject",
    "tenant",
    "backend",
    "rule",
    "termination",
    "host",
    "tool",
    "isolation",
    "policy",
    "approval",
    "approver",
    "approval_state",
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs; None asks nothing.

    `run` is the beginning of an id, all others are equal to what a run has, or among what it has; a run is of
    its `subject`, and of the one that this acted for, so that a search finds what an erasure reaches. `since`
    (included) and `until` (excluded) bound the time of its first record, RFC 3339 in UTC, or the beginning of
    one. `after` is the `place` of the last run that was seen: only those that follow in the order asked for.
    """

    run: str | None = None
    decision: str | None = None
    subject: str | None = None
    tenant: str | None = None
    backend: str | None = None
    rule: str | None = None
    termination: str | None = None
    host: str | None = None
    tool: str | None = None
    approval: str | None = None
    approver: str | None = None
    approval_state: str | None = None
    since: str | None = None
    until: str | None = None
    limit: int | None = None
    newest_first: bool = False
    after: int | None = None


ALL = Wanted()

# those that leave the fewest runs first
COLUMN_OF: dict[Field, str] = {
    "tenant": "tenant",
    "decision": "effect",
    "backend": "backend",
    "termination": "termination",
    "approval_state": "approval_state",
    "isolation": "isolation",
    "policy": "policy",
}
LIST_OF: dict[Field, str] = {
    "approval": "approvals",
    "approver": "approvers",
    "rule": "rules",
    "host": "hosts",
    "tool": "tools",
    "subject": "subjects",
}

_GROUPS: dict[By, str] = {
    "day": "substr(run.time, 1, 10)",
    "hour": "substr(run.time, 1, 13)",
    "effect": "run.effect",
    "termination": "run.termination",
    "backend": "run.backend",
    "subject": "run.subject",
    "tenant": "run.tenant",
    "rule": "it.name",
    "host": "it.name",
    "tool": "it.name",
    "denied": "it.name",
    "approver": "it.name",
    "approval_state": "run.approval_state",
}
_LISTED: dict[By, str] = {
    "rule": "rules",
    "host": "hosts",
    "tool": "tools",
    "denied": "denied",
    "approver": "approvers",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL and its parameters."""

    sql: str
    parameters: tuple[Any, ...]


def page(wanted: Wanted, size: int) -> Statement:
    """The next `size` runs, in order."""
    chosen = _Chosen(wanted)
    order = "DESC" if wanted.newest_first else "ASC"
    columns = ", ".join(f"run.{name}" for name in COLUMNS.split(", "))
    return chosen.statement(columns, f"ORDER BY {chosen.place} {order} LIMIT ?", size)


def count(wanted: Wanted) -> Statement:
    """How many runs there are, whatever `limit` says."""
    return _Chosen(wanted).statement("count(*)", "")


def counts(wanted: Wanted, by: By) -> Statement:
    """How many runs there are by a group and what was decided."""
    chosen = _Chosen(wanted)
    if by in _LISTED:
        chosen.join(_LISTED[by])
    groups = "1" if by == "effect" else "1, 2"
    return chosen.statement(f"{_GROUPS[by]}, run.effect, count(*)", f"GROUP BY {groups}")


def names(field: Field) -> Statement:
    """All that runs have in a field."""
    if field in LIST_OF:
        return Statement("SELECT DISTINCT name FROM named WHERE what = ?", (LIST_OF[field],))
    column = COLUMN_OF[field]
    return Statement(f"SELECT DISTINCT {column} FROM run WHERE {column} IS NOT NULL", ())


class _Chosen:
    """The tables and conditions that choose runs; `place` is the column to order by."""

    def __init__(self, wanted: Wanted) -> None:
        self.place = "run.place"
        self._tables = ["run"]
        self._conditions: list[str] = []
        self._parameters: list[Any] = []
        self._list_filters(wanted)
        self._column_filters(wanted)
        self._time(wanted)
        if wanted.after is not None:
            self._where(f"{self.place} {'<' if wanted.newest_first else '>'} ?", wanted.after)

    def statement(self, columns: str, rest: str, *parameters: Any) -> Statement:
        """`SELECT columns … rest`."""
        where = " AND ".join(self._conditions) or "1"
        sql = f"SELECT {columns} FROM {' CROSS JOIN '.join(self._tables)} WHERE {where} {rest}"
        return Statement(sql, (*self._parameters, *parameters))

    def join(self, what: str) -> None:
        """A row for each name in a list of a run, as `it.name`; names lead, since they lie by name."""
        self._tables.insert(0, "named AS it")
        self._where("it.run = run.place AND it.what = ?", what)

    def _where(self, condition: str, *parameters: Any) -> None:
        if any(isinstance(one, str) and not _can_be_recorded(one) for one in parameters):
            condition, parameters = "0", ()
        self._conditions.append(condition)
        self._parameters += parameters

    def _list_filters(self, wanted: Wanted) -> None:
        for field, what in LIST_OF.items():
            name = getattr(wanted, field)
            if name is None:
                continue
            if self.place == "run.place":  # the first one leads: its rows are in the order of runs
                self.place = "its.run"
                self._tables = ["named AS its", "run"]
                self._where("its.what = ? AND its.name = ? AND run.place = its.run", what, name)
            else:
                exists = "SELECT 1 FROM named WHERE what = ? AND name = ? AND run = run.place"
                self._where(f"EXISTS ({exists.replace('= run.place', '= its.run')})", what, name)

    def _column_filters(self, wanted: Wanted) -> None:
        rare = self.place != "run.place"  # whether what was asked before leaves few runs
        for field, column in COLUMN_OF.items():
            value = getattr(wanted, field, None)
            if value is not None:
                self._where(f"{'+' if rare else ''}run.{column} = ?", value)  # a plus asks for no index
                rare |= field == "tenant"
        if wanted.run:
            self._where("run.run_id >= ?", wanted.run)
            if (end := _following(wanted.run)) is not None:
                self._where("run.run_id < ?", end)

    def _time(self, wanted: Wanted) -> None:
        if wanted.since is not None:
            self._where("run.time >= ?", wanted.since)
            bound = "SELECT coalesce(min(first), 9223372036854775807) FROM hour WHERE hour >= ?"
            self._where(f"{self.place} >= ({bound})", wanted.since[:13])
        if wanted.until is not None:
            self._where("run.time < ?", wanted.until)
            bound = "SELECT coalesce(max(last), -1) FROM hour WHERE hour <= ?"
            self._where(f"{self.place} <= ({bound})", wanted.until[:13])


def _can_be_recorded(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _following(text: str) -> str | None:
    """The least text that is greater than all that begin with `text`; None if there is none."""
    for end in range(len(text), 0, -1):
        code = ord(text[end - 1])
        if code < 0x10FFFF:
            following = code + 1
            return text[: end - 1] + chr(0xE000 if 0xD800 <= following < 0xE000 else following)
    return None


def grouped(rows: Iterator[tuple[str | None, str | None, int]], by: By) -> list[tuple[str, dict[str, int]]]:
    """Counts by group and effect, times in order, all else the most frequent first; `?` is unknown."""
    found: dict[str, dict[str, int]] = {}
    for group, effect, number in rows:
        effects = found.setdefault("?" if group is None else str(group), {})
        name = "?" if effect is None else effect
        effects[name] = effects.get(name, 0) + number
    ordered = sorted((group, dict(sorted(effects.items()))) for group, effects in found.items())
    if by not in ("day", "hour"):
        ordered.sort(key=lambda one: -sum(one[1].values()))
    return ordered
