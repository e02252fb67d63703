"""Reading a log for its judge: once if its records are those that were signed, else again line by line.

Rules this module keeps:

- records below a checkpoint are taken as they were signed only if a key signed it that the verifier brings or
  saw before, and only if they turn out to have its root;
- if they don't, nothing counts of what was found that way: all of it is judged again, each line by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

from licet.state import StateDirectory

from licet_audit import contents, tiles
from licet_audit.segments import Segment, lines
from licet_audit.verification import signed
from licet_audit.verification.judge import Judge
from licet_audit.verification.outside import Outside
from licet_audit.verification.parts import Part, parts
from licet_audit.verification.roots import Roots
from licet_audit.verification.workers import Log, scanned


class Reading:
    """Shows the files of a log to a judge; `hear` is told how many parts there are, and when one is done."""

    def __init__(
        self,
        state: StateDirectory,
        listed: Sequence[Segment],
        workers: int,
        hear: Callable[[int | None], None],
    ) -> None:
        self._state = state
        self._listed = listed
        self._workers = workers
        self._hear = hear

    def judged(self, outside: Outside) -> Judge:
        """A judge who has seen every line, and has not finished.

        Raises:
            OSError: a file can't be read.
            AuditUnavailable: content can't be looked at.
        """
        owned = [(segment, part) for segment in self._listed for part in parts(segment)]
        head = signed.relied_on(outside)
        if head is not None:
            self._hear(len(owned))
            judge = self._shown(owned, outside, head.size)
            if not judge.as_signed or judge.roots.at.get(head.size) == head.root:
                return judge
        self._hear(len(owned) * (1 if head is None else 2))
        return self._shown(owned, outside, 0)

    def _shown(self, owned: Sequence[tuple[Segment, Part]], outside: Outside, as_signed: int) -> Judge:
        judge = Judge(
            self._state.log_id,
            Roots(outside.sizes, partial(tiles.read_tile, self._state)),
            partial(contents.state_of, self._state),
        )
        begun = -1
        log = Log(self._state, as_signed)
        with closing(scanned([part for _, part in owned], log, self._workers)) as answers:
            for (segment, _), (part, found) in zip(owned, answers, strict=True):
                begun = self._begin(begun, segment, judge)
                if found is None or not judge.accept(found):
                    for line in lines(segment.resized(part.stop), part.start):
                        judge.check(line)
                self._hear(None)
        self._begin(begun, None, judge)
        return judge

    def _begin(self, begun: int, segment: Segment | None, judge: Judge) -> int:
        """Start the segments up to `segment`, those without a line included."""
        stop = self._listed.index(segment) if segment is not None else len(self._listed) - 1
        for each in self._listed[begun + 1 : stop + 1]:
            judge.start(each)
        return max(begun, stop)
