"""Which runs an erasure or a hold is about.

Rules this module keeps:

- all that a choice states has to be met; a choice that states nothing is none;
- erasing takes a run only if it is certain that the choice is met, by the whole of it; a hold keeps every run
  of which that is not certainly wrong, because its request is lost, or as far as it overlaps;
- moments are RFC 3339 in UTC with nanoseconds, as in records, so that texts compare like times.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", re.ASCII)


@dataclass(slots=True)
class Run:
    """What the records of one run say that matters here.

    `began` and `went_on` are the times of its first and its last record. `known` says whether it is known for
    whom it was: a log that begins late, or that lost records, may not have its request. `kept` has what its
    records name, each with its number. `instance` is the writer of its last record, as far as those of the
    run go. `asked` is the number of the last record by which it asked for an approval, -1 if it never did.
    """

    run_id: str
    first_seq: int
    last_seq: int
    began: str
    went_on: str
    instance: str
    known: bool
    finished: bool = False
    subject: str | None = None
    on_behalf_of: str | None = None
    tenant: str | None = None
    kept: list[tuple[int, Mapping[str, str]]] = field(default_factory=list)
    asked: int = -1

    def left(self, erased: Container[str]) -> list[tuple[int, dict[str, str]]]:
        """What its records name and was not erased, with their numbers."""
        each = (
            (seq, {name: one for name, one in kept.items() if one not in erased}) for seq, kept in self.kept
        )
        return [(seq, kept) for seq, kept in each if kept]


@dataclass(frozen=True, slots=True)
class Choice:
    """Runs by id, by subject (itself, or the one it acted for), by tenant, by time; None leaves it open."""

    runs: tuple[str, ...] | None = None
    subject: str | None = None
    tenant: str | None = None
    since: str | None = None
    before: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is stated, so that nothing is chosen."""
        return all(one is None for one in asdict(self).values())

    def covers(self, run: Run) -> bool:
        """Whether the whole of a run certainly meets all of it."""
        return (
            not self.is_empty
            and self._is_for(run) is True
            and (self.since is None or run.began >= self.since)
            and (self.before is None or run.went_on < self.before)
        )

    def touches(self, run: Run) -> bool:
        """Whether some of a run may meet all of it."""
        return (
            not self.is_empty
            and self._is_for(run) is not False
            and (self.since is None or run.went_on >= self.since)
            and (self.before is None or run.began < self.before)
        )

    def _is_for(self, run: Run) -> bool | None:
        """Whether a run is one of those named; None if its records don't say for whom it was."""
        if self.runs is not None and run.run_id not in self.runs:
            return False
        if self.subject is None and self.tenant is None:
            return True
        if not run.known:
            return None
        by_subject = self.subject is None or self.subject in (run.subject, run.on_behalf_of)
        return by_subject and (self.tenant is None or self.tenant == run.tenant)

    def as_json(self) -> dict[str, Any]:
        """As records have it."""
        return {**asdict(self), "runs": None if self.runs is None else list(self.runs)}

    def __str__(self) -> str:
        parts = [
            f"{name} {value[:19].replace('T', ' ') if name in ('since', 'before') else value}"
            for name, value in asdict(self).items()
            if name != "runs" and value is not None
        ]
        if self.runs is not None:
            parts.insert(0, f"run {', '.join(self.runs)}" if len(self.runs) < 4 else f"{len(self.runs)} runs")
        return ", ".join(parts)


def choice_of(content: object) -> Choice:
    """Read a choice back.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(content, dict) or content.keys() != Choice.__dataclass_fields__.keys():
        raise ValueError("it names no runs in a way that is known here")
    runs = content["runs"]
    if runs is not None and not (isinstance(runs, list) and all(isinstance(one, str) for one in runs)):
        raise ValueError("its `runs` are no list of run ids")
    for name in ("subject", "tenant", "since", "before"):
        value = content[name]
        if value is None:
            continue
        if not isinstance(value, str):
            raise ValueError(f"its `{name}` is no text")
        if name in ("since", "before") and not _MOMENT.fullmatch(value):
            raise ValueError(f"its `{name}` is no moment")
    return Choice(**{**content, "runs": None if runs is None else tuple(runs)})
