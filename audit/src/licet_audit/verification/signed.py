"""Claims about signatures: that checkpoints are the log's own, and records those that were signed or seen.

Rules this module keeps:

- it decides and reads nothing; roots come from the lines (see `roots`);
- a checkpoint counts only with both signatures of the log's key: over its text, and over text and time;
- what is missing (records, a checkpoint) makes a log incomplete, what contradicts makes it tampered.
"""

from __future__ import annotations

from collections.abc import Iterator

from licet_audit.claims import Claim
from licet_audit.notes import Head, VerifierKey
from licet_audit.verification.outside import Kept, Outside
from licet_audit.verification.roots import Roots


def trusted(outside: Outside) -> Kept | None:
    """The newest checkpoint, if the key that counts signed it."""
    found = outside.newest
    if found is None or outside.key is None or _unsigned(found, outside.key) is not None:
        return None
    return found


def relied_on(outside: Outside) -> Head | None:
    """The head of the newest checkpoint, if a key signed it that the verifier brings or saw before.

    The records below it are then what that key's owner wrote, if they have its root.
    """
    found = trusted(outside) if outside.source in ("given", "pinned") else None
    return None if found is None else found.head


def signatures(outside: Outside) -> Claim:
    """Whether every checkpoint is signed by the key of the log."""
    name, key, newest = "signatures", outside.key, outside.newest
    broken = [one for one in (newest, *outside.kept) if one is not None and one.problem is not None]
    if broken:
        return Claim(name, False, f"`{broken[0].name}` holds no checkpoint: {broken[0].problem}")
    if key is None:
        return _without_key(outside)
    for one in (newest, *outside.kept):
        if one is not None and (why := _unsigned(one, key)) is not None:
            return Claim(
                name, False, f"`{one.name}` {why} (SHA-256 {key.fingerprint}, {_WHENCE[outside.source]})"
            )
    if newest is None:
        if outside.source == "beside":
            return Claim(name, None, "there is no checkpoint: nothing in this log is signed")
        return Claim(
            name, False, "its checkpoint is gone: nothing says how many records were signed", "incomplete"
        )
    assert newest.note is not None
    assert newest.head is not None
    told = f"{newest.head.size} records are signed as of {newest.note.moment_by(key)} by the log's clock"
    fingerprint = f"SHA-256 of the key {key.fingerprint}"
    if outside.source == "beside":
        compare = "with the key that lies beside it: compare its fingerprint with its owner's"
        return Claim(name, None, f"{told}, {compare}; {fingerprint}")
    other = "" if outside.beside in (None, key) else "; `log.vkey` beside the log is another key"
    return Claim(name, True, f"{told}, {_WHENCE[outside.source]}; {fingerprint}{other}")


_WHENCE = {
    "given": "with the key that was given",
    "pinned": "with the key that was seen before",
    "beside": "beside the log",
    "none": "",
}


def _without_key(outside: Outside) -> Claim:
    name = "signatures"
    if outside.newest is None and outside.key_problem is None and outside.seen_problem is None:
        return Claim(name, None, "there is no checkpoint: nothing in this log is signed")
    why = outside.key_problem or outside.seen_problem or "there is no key of this log: give it as `--key`"
    return Claim(name, False, f"no key to check them with: {why}", "unverifiable")


def _unsigned(one: Kept, key: VerifierKey) -> str | None:
    if one.note is None or one.note.signed_by(key) is None:
        return "is not signed by the key of this log"
    return None if one.note.time_by(key) is not None else "lacks the signature over its time"


def tree(outside: Outside, roots: Roots, records: int) -> Claim:
    """Whether the records are those of every checkpoint, and the tiles those of the records."""
    name = "tree"
    good: int | None = 0
    for one in sorted(_heads(outside), key=lambda kept: kept.head.size if kept.head else 0):
        assert one.head is not None
        size, found = one.head.size, roots.at.get(one.head.size)
        if found is None:
            return Claim(name, False, _cut(one, roots, records), "incomplete")
        if found != one.head.root:
            where = f"a record from #{good} to #{size - 1} is not the one that was signed"
            if roots.differs is not None and roots.differs[0] is not None:
                where = f"{where}; the first that differs from its tile is #{roots.differs[0]}"
            return Claim(name, False, f"{where}: the records have not the root that `{one.name}` says")
        good = size
    if roots.differs is not None:
        return Claim(name, False, roots.differs[1])
    if roots.lost is not None:
        why = f"neither lines nor tiles hold the leaves from #{roots.lost} on, so there is no root"
        return Claim(name, False, why, "incomplete")
    missing = f"; {roots.missing} tiles are missing, and can be made again" if roots.missing else ""
    if not good:
        return Claim(name, None, f"nothing says what the root of the records should be{missing}")
    return Claim(name, True, f"the root of the first {good} records is the one of the checkpoint{missing}")


def _cut(one: Kept, roots: Roots, records: int) -> str:
    assert one.head is not None
    if roots.lost is not None:
        return f"neither lines nor tiles hold the leaves from #{roots.lost} on"
    return f"`{one.name}` covers {one.head.size} records, and the log ends after {roots.size}"


def _heads(outside: Outside) -> Iterator[Kept]:
    return (one for one in (outside.newest, *outside.kept) if one is not None and one.head is not None)


def consistency(outside: Outside, roots: Roots) -> Claim:
    """Whether the log continues the checkpoint that this user saw last."""
    name = "consistency"
    if outside.seen_problem is not None:
        return Claim(name, False, outside.seen_problem, "unverifiable")
    if outside.seen is None or (head := outside.seen.head) is None:
        if outside.seen is not None and not roots.size:
            why = f"it is in use here since {outside.seen.opened}, and now it holds no record"
            return Claim(name, False, why, "incomplete")
        return Claim(name, None, "this user never saw a checkpoint of this log before")
    size, found = head.size, roots.at.get(head.size)
    if found is None:
        if roots.lost is not None:
            return Claim(name, False, f"the leaves from #{roots.lost} on are gone", "incomplete")
        end = f"now the log ends with #{roots.size - 1}" if roots.size else "now the log holds no record"
        return Claim(name, False, f"{size} records were seen before, {end}", "incomplete")
    if found != head.root:
        return Claim(name, False, f"the first {size} records are not the ones that were seen before")
    newest = trusted(outside)
    if newest is not None and newest.head is not None and newest.head.size < size:
        why = f"a checkpoint of {size} records was seen before, this older one has {newest.head.size}"
        return Claim(name, False, why, "incomplete")
    return Claim(name, True, f"the first {size} records, seen before, are still there")


def unsigned_tail(outside: Outside, roots: Roots, since: str | None) -> Claim:
    """How many records came after the newest checkpoint; `since` is when the first of them was written."""
    name, newest = "unsigned_tail", trusted(outside)
    size = newest.head.size if newest is not None and newest.head is not None else 0
    count = roots.size - size
    if count <= 0:
        return Claim(name, True, "the newest checkpoint covers every record")
    when = f", the first of them of {since}" if since else ""
    return Claim(name, None, f"{count} records are not signed yet{when}: only the chain holds them together")
