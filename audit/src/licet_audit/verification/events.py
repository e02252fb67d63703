"""What the log says of itself: gaps, tails set aside, content erased, segments pruned.

Rules this module keeps: a body that is not what the event should have says nothing; its bytes are judged
elsewhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from licet_audit.removals import commitments_of
from licet_audit.verification.kept import Kept, StateOf
from licet_audit.verification.runs import Runs

MOST_TAILS = 1000  # that are compared with what was set aside


class Tail(NamedTuple):
    """A torn tail that record `seq` says was set aside in `file`."""

    seq: int
    file: str
    sha256: str


class Pruned(NamedTuple):
    """Record `seq` says that all before record `begins` were pruned, and why."""

    seq: int
    begins: int
    reason: str


class Events:
    """Follows the records that the log makes about itself."""

    def __init__(self, runs: Runs, kept: Kept, state_of: StateOf) -> None:
        self.missing = 0
        """How many records the log says are missing."""
        self.gaps = 0
        self.tails: list[Tail] = []
        self.pruned: Pruned | None = None
        """The pruning that reached furthest."""
        self.cut: set[str] = set()
        """Runs whose beginning was pruned."""
        self._runs = runs
        self._kept = kept
        self._state_of = state_of

    def follow(self, seq: int, body: Mapping[str, Any]) -> None:
        """Follow one of them."""
        event = body.get("event")
        if event == "gap":
            missing = body.get("missing")
            self.gaps += 1
            self.missing += missing if type(missing) is int else 0
            self._runs.gap(missing if type(missing) is int else 0)
        elif event == "torn_tail_quarantined" and len(self.tails) < MOST_TAILS:
            self.tails.append(Tail(seq, str(body.get("file")), str(body.get("sha256"))))
        elif event == "erased":
            with contextlib.suppress(KeyError, TypeError, AttributeError):
                self._kept.erase(commitments_of(body), self._state_of)
        elif event == "pruned":
            self._prune(seq, body)

    def _prune(self, seq: int, body: Mapping[str, Any]) -> None:
        begins, cut = body.get("begins"), body.get("cut")
        if type(begins) is int and (self.pruned is None or begins >= self.pruned.begins):
            self.pruned = Pruned(seq, begins, str(body.get("reason")))
        if isinstance(cut, list):
            self.cut.update(one for one in cut if isinstance(one, str))
