"""Which runs a report is about: how many there are, were selected, and are shown, counted in one pass.

Rules this module keeps:

- every figure of a page comes from one pass over the selection, so that figures agree with each other;
- a run that began after what was verified is not in the population, and is counted apart;
- denials and unknown ends are shown first, and are the last that a limit leaves out;
- memory grows with what is shown and with how many different things are counted, not with the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from licet_audit.index import RunRow
from licet_audit.index.rows import UNFINISHED
from licet_audit.report import words

MOST_NAMES = 10_000
"""How many different denied intents are counted by name; what comes after is counted together."""
OTHER = "all others"
MOST_ASKING = 2000
"""How many runs that ask are looked at for how long the answer took, the newest."""

Hear = Callable[[], None]


@dataclass(slots=True)
class Population:
    """The runs of a report; `later` began after the proof; `first` and `last` are times."""

    total: int
    selected: int = 0
    later: int = 0
    first: str | None = None
    last: str | None = None
    attention: list[RunRow] = field(default_factory=list)
    others: list[RunRow] = field(default_factory=list)
    asking: list[str] = field(default_factory=list)
    of_attention: int = 0
    effects: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    denied: Counter[str] = field(default_factory=Counter)
    minutes: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def shown(self) -> int:
        """How many runs have a card."""
        return len(self.attention) + len(self.others)

    @property
    def of_others(self) -> int:
        """How many of the selected runs need no look."""
        return self.selected - self.of_attention

    def _count(self, row: RunRow, limit: int) -> None:
        self.selected += 1
        self.first = min(self.first or row.time, row.time)
        self.last = max(self.last or row.time, row.time)
        effect, ended = words.effect(row.effect).style, row.termination or UNFINISHED
        self.effects[effect] += 1
        self.ends[ended if ended in words.ENDS else "other"] += 1
        self.minutes[row.time[:16], effect] += 1
        for intent in dict.fromkeys(row.denied):
            self.denied[intent if intent in self.denied or len(self.denied) < MOST_NAMES else OTHER] += 1
        if row.effect == "ask" and len(self.asking) < MOST_ASKING:
            self.asking.append(row.run_id)
        looked_at = bool(row.denied) or words.needs_a_look(row.effect, row.termination)
        self.of_attention += looked_at
        kept = self.attention if looked_at else self.others
        if len(kept) < limit:
            kept.append(row)


def gather(rows: Iterable[RunRow], *, total: int, limit: int, end: int | None, heard: Hear) -> Population:
    """Count the selected `rows`, newest first, and keep those that get a card, at most `limit`.

    `end` is the number of the first record that was not verified, None if that is unknown; `heard` is called
    for each run.
    """
    found = Population(total)
    for row in rows:
        heard()
        if end is not None and row.first_seq >= end:
            found.later += 1
        else:
            found._count(row, limit)
    del found.attention[limit:]
    del found.others[limit - len(found.attention) :]
    return found
