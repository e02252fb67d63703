"""Verifying a log: gather what is known of it, read it, and say what that proves.

Rules this module keeps:

- nothing in the state directory is written; the only trace is the checkpoint that is remembered in the user's
  own state directory, if all holds, and only for a log that is this user's or that nobody here registered;
- checkpoints are read before the records are listed, so that a writer who goes on meanwhile takes nothing
  away; nor does who erases or prunes meanwhile: its record is read before anything counts as missing;
- a pass says what it does not prove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from licet.errors import AuditUnavailable
from licet.state import StateDirectory, may_pin

from licet_audit import inventory, seen
from licet_audit.anchors.checked import CheckedAnchor, Trust, checked
from licet_audit.chain import MAX_LINE, decode
from licet_audit.claims import Claim, Verification, status_of
from licet_audit.leaves import Snapshot
from licet_audit.notes import VerifierKey
from licet_audit.segments import Segment, lines, snapshot
from licet_audit.tiles import LogHashes
from licet_audit.verification import anchored, around, signed
from licet_audit.verification.findings import Place
from licet_audit.verification.judge import Judge
from licet_audit.verification.outside import Outside, known
from licet_audit.verification.reading import Reading

_TRIES = 5  # to follow who removes meanwhile
_OUTSIDE = "that the clock of the host was right, or that a writer told the truth when it wrote"
_BOTH = (
    "that nobody who can write both the log and this user's state directory rewrote both: the key that signs "
    "it is there, and {}"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a verifier brings: the key of the log, whom to trust outside, how many processes to use.

    `require_anchor`: unless an anchor proves something, the log is incomplete. `inventory`: tell of other
    logs of this host that are missing. `hear` is told how many parts there are, and of each that is done.
    """

    key: VerifierKey | None = None
    trust: Trust = field(default_factory=Trust)
    require_anchor: bool = False
    inventory: bool = False
    workers: int = 1
    hear: Callable[[int | None], None] = lambda total: None


def verify(state: StateDirectory, wanted: Wanted | None = None) -> Verification:
    """Check the whole log, and remember its newest checkpoint if all holds."""
    wanted, tries = wanted or Wanted(), _TRIES
    while True:
        tries -= 1
        try:
            outside = known(state, wanted.key)
            return _remembered(state, outside, _verified(state, outside, wanted))
        except FileNotFoundError as problem:
            if not tries:  # else it was pruned after it was listed, and a record says so by now
                return _unread(problem)
        except OSError as problem:
            return _unread(problem)
        except AuditUnavailable as problem:
            return unreadable(problem.message)


def _verified(state: StateDirectory, outside: Outside, wanted: Wanted) -> Verification:
    listed = snapshot(state)
    judge = Reading(state, listed, wanted.workers, wanted.hear).judged(outside)
    read = _read_on(state, listed, judge)
    judge.finish()
    return _Result(state, read, judge, outside, wanted).verification()


def _unread(problem: OSError) -> Verification:
    return unreadable(f"`{problem.filename}`: {(problem.strerror or str(problem)).lower()}")


def unreadable(why: str, *claims: Claim) -> Verification:
    """The answer where there is nothing to check."""
    told = (Claim("readable", False, why, "unverifiable"), *claims)
    return Verification(status_of(told), 0, told, ("anything",))


def _read_on(state: StateDirectory, listed: Sequence[Segment], judge: Judge) -> Sequence[Segment]:
    """Show the judge what was written meanwhile, while content is missing that it may explain."""
    for _ in range(_TRIES):
        ends = {segment.first: segment.size for segment in listed}
        grown = [one for one in snapshot(state) if one.size > ends.get(one.first, -1)]
        if not judge.kept.missing or judge.torn is not None or not grown:
            break
        for segment in grown:
            if segment.first not in ends:
                judge.start(segment)
            for line in lines(segment, ends.get(segment.first, 0)):
                judge.check(line)
        after = {segment.first: segment for segment in (*listed, *grown)}
        listed = [after[first] for first in sorted(after)]
    return listed


class _Result:
    """Makes the claims, once every line was judged."""

    def __init__(
        self, state: StateDirectory, listed: Sequence[Segment], judge: Judge, outside: Outside, wanted: Wanted
    ) -> None:
        self._state = state
        self._listed = listed
        self._judge = judge
        self._outside = outside
        self._wanted = wanted

    def verification(self) -> Verification:
        """All of them, and what they come to."""
        judge = self._judge
        consistency = signed.consistency(self._outside, judge.roots)
        if judge.first is None:
            cut = () if self._outside.newest is None else (signed.tree(self._outside, judge.roots, 0),)
            return unreadable("there is no log", consistency, *cut)
        anchors = self._anchors()
        claims = (
            *(finding.claim(self._locate) for finding in judge.findings),
            around.start(judge),
            self._tail(),
            around.gaps(judge.events, judge.runs),
            signed.tree(self._outside, judge.roots, judge.records),
            signed.signatures(self._outside),
            consistency,
            signed.unsigned_tail(self._outside, judge.roots, self._since()),
            *anchored.claims(anchors, judge.roots.size, required=self._wanted.require_anchor),
            around.content(judge.kept, around.stored(self._state), self._locate),
            around.tails(self._state, judge.events),
            self._version(),
            around.outcomes(judge.runs),
            around.clock(judge.moments, self._locate),
            *(_inventory(self._state.log_id) if self._wanted.inventory else ()),
        )
        worst = self._worst()
        return Verification(
            status_of(claims),
            judge.records,
            claims,
            tuple(self._not_proven(any(one.ok for one in anchors))),
            worst.seq if worst else None,
            worst.offset if worst and worst.offset >= 0 else None,
        )

    def _worst(self) -> Place | None:
        """Where the first record is that something is wrong with; its byte is -1 where no file has it."""
        judge = self._judge
        seqs = [finding.seq for finding in judge.findings if finding.seq is not None]
        if judge.roots.differs is not None and judge.roots.differs[0] is not None:
            seqs.append(judge.roots.differs[0])
        if seqs:
            return self._locate(min(seqs)) or Place(min(seqs), "", -1)
        return judge.torn

    def _locate(self, seq: int) -> Place | None:
        for segment in reversed(self._listed):
            if segment.first <= seq:
                for number, line in enumerate(lines(segment), segment.first):
                    if number == seq:
                        return Place(seq, segment.path.name, line.offset)
                return None
        return None

    def _tail(self) -> Claim:
        torn = self._judge.torn
        if torn is None:
            return Claim("tail", True, "the last record is whole", "incomplete")
        why = f"{torn} has no end: a writer was interrupted, or somebody cut the file"
        return Claim("tail", False, why, "incomplete")

    def _version(self) -> Claim:
        from licet.record import VERSION

        found = self._judge.unknown_version
        if found is None:
            return Claim("version", True, "every version is known", "unverifiable")
        place = self._locate(found[0]) or f"record #{found[0]}"
        why = f"{place} has version {found[1]}, this verifier knows {VERSION}"
        return Claim("version", False, why, "unverifiable")

    def _anchors(self) -> Sequence[CheckedAnchor]:
        judge = self._judge
        trust = replace(self._wanted.trust, log=self._wanted.trust.log or self._outside.key)
        held = Snapshot(tuple(self._listed), judge.roots.size, sealed=False)
        return checked(self._state, LogHashes(self._state, held), judge.roots.size, trust)

    def _since(self) -> str | None:
        """When the first record that is not signed was written, as it says itself."""
        newest = signed.trusted(self._outside)
        size = newest.head.size if newest is not None and newest.head is not None else 0
        place = self._locate(size) if size < self._judge.roots.size else None
        if place is None:
            return None
        path = self._listed[0].path.with_name(place.file)
        found = next(lines(Segment(path, size, place.offset + MAX_LINE), place.offset), None)
        try:
            return str(decode(found.data).get("time")) if found is not None else None
        except ValueError:
            return None

    def _not_proven(self, anchored_by: bool) -> Iterator[str]:
        judge, outside = self._judge, self._outside
        head = outside.seen.head if outside.seen else None
        was_seen = head is not None and judge.roots.at.get(head.size) == head.root
        size = head.size if head is not None and was_seen else 0
        unseen = judge.roots.size - size
        if unseen > 0:
            pinned = f"no record after #{size - 1}" if size else "no record"
            why = f"{pinned} was seen by this user before"
            if head is not None and not was_seen:
                why = "they do not continue what this user saw before"
            yield (
                f"that the last {unseen} records are the ones that were written, or that none came after "
                f"them: {why}"
            )
        else:
            yield "that no record came after the last one and was cut off before anybody saw it"
        yield _BOTH.format(
            "anchors outside this host have not seen every record"
            if anchored_by
            else "no anchor outside this host has seen it"
        )
        yield _OUTSIDE


def _inventory(log_id: str) -> Iterator[Claim]:
    """Tell of other logs that are not what was seen of them; it never changes what this one is."""
    try:
        gone = inventory.missing(besides=log_id)
    except AuditUnavailable as problem:
        yield Claim("inventory", None, problem.message)
        return
    if not gone:
        yield Claim("inventory", True, "every other log that this user knows is where it was")
        return
    first = f"{gone[0].log_id} in `{gone[0].path}` is {gone[0].found} ({gone[0].detail})"
    more = f", and {len(gone) - 1} more" if len(gone) > 1 else ""
    yield Claim("inventory", None, f"{first}{more}: `licet audit list --logs`")


def _remembered(state: StateDirectory, outside: Outside, result: Verification) -> Verification:
    """Remember the newest checkpoint of a log that proves."""
    newest = signed.trusted(outside)
    if result.status != "proven" or newest is None or newest.note is None or outside.key is None:
        return result
    try:
        if may_pin(state):
            seen.remember(state, outside.key, newest.note)
        return result
    except AuditUnavailable as problem:
        claim = Claim("pinned", None, f"the checkpoint could not be remembered: {problem.message}")
        return Verification(result.status, result.records, (*result.claims, claim), result.not_proven)
