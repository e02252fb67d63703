"""Legal holds: what must stay until somebody releases it.

Rules this module keeps:

- the log alone says which holds there are: a hold is set and released by a record, never by a file beside it;
- a record of a hold that can't be understood holds everything, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from licet.errors import LicetError, UsageError
from licet.record import Entry

from licet_audit.chain import log_entry
from licet_audit.retention.choosing import Choice, Run, choice_of


class Held(LicetError):
    """What was to go is on hold, and stays."""

    slug = "held"
    exit_code = 1


class RunUnfinished(LicetError):
    """What was to go belongs to a run that is still under way."""

    slug = "run-unfinished"
    exit_code = 1


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold that is in force; `what` None stands for one that can't be understood. `seq` is its record."""

    id: str
    what: Choice | None
    reason: str
    by: str
    since: str
    seq: int

    def keeps(self, run: Run) -> bool:
        """Whether a run has to stay."""
        return self.what is None or self.what.touches(run)

    def as_json(self) -> dict[str, Any]:
        """As `licet audit hold --list --json` has it."""
        return {
            "hold": self.id,
            "what": self.what and self.what.as_json(),
            "reason": self.reason,
            "by": self.by,
            "since": self.since,
            "seq": self.seq,
        }

    def entry(self) -> Entry:
        """The entry that sets it, or sets it again where its record is about to be pruned.

        Raises:
            ValueError: it was not understood.
        """
        if self.what is None:
            raise ValueError(f"the hold `{self.id}` can't be understood")
        return log_entry(
            "held",
            hold=self.id,
            what=self.what.as_json(),
            reason=self.reason,
            by=self.by,
            since=self.since,
        )

    def __str__(self) -> str:
        return f"hold {self.id}, set {self.since[:10]} by {self.by}: {self.reason}"


def follow(holds: dict[str, Hold], seq: int, time: str, body: Mapping[str, Any]) -> None:
    """Take in one `log` record; others than `held` and `released` change nothing."""
    event, name = body.get("event"), str(body.get("hold"))
    if event == "released":
        holds.pop(name, None)
    elif event == "held":
        try:
            what = choice_of(body.get("what"))
        except ValueError:
            what = None
        reason, by, since = (
            str(body.get(key, other)) for key, other in (("reason", "?"), ("by", "?"), ("since", time))
        )
        holds[name] = Hold(name, what, reason, by, since, seq)


def release(hold: Hold, reason: str, by: str) -> Entry:
    """The entry that ends a hold."""
    return log_entry("released", hold=hold.id, reason=reason, by=by)


def named(holds: Mapping[str, Hold], beginning: str) -> Hold:
    """The one hold whose id begins so.

    Raises:
        UsageError: there is none, or more than one.
    """
    found = [hold for name, hold in holds.items() if name.startswith(beginning)]
    if len(found) == 1:
        return found[0]
    several = f"`{beginning}` may mean {' or '.join(f'`{hold.id}`' for hold in found[:3])}"
    raise UsageError(
        several if found else f"no hold in force has an id that begins with `{beginning}`",
        advice="`licet audit hold --list` shows those in force",
    )


def refusal(keeping: Iterable[tuple[Run, Hold]], what: str) -> Held:
    """Say what is on hold, by whom, why, and what would let it go."""
    pairs = list(keeping)
    holds = list({hold.id: hold for _, hold in pairs}.values())
    runs = {run.run_id for run, _ in pairs}
    first = holds[0]
    others = f", and {len(holds) - 1} more" if len(holds) > 1 else ""
    which = f"the run {min(runs)} is" if len(runs) == 1 else f"{len(runs)} runs are"
    return Held(
        f"{what}: {which} on hold ({first}{others})",
        advice=f"have `licet audit release {first.id} --reason …` end the hold once its reason is gone",
    )
