"""What a report calls things: decisions, ends of runs, claims, and the glossary at its end.

Rules this module keeps:

- every class that a page uses comes from here, never from a record: what is not known maps to `other`.
"""

from __future__ import annotations

from dataclasses import dataclass

from licet.backend import Termination

from licet_audit.index.rows import UNFINISHED, WAITING


@dataclass(frozen=True, slots=True)
class Label:
    """A text, the class that a page gives it, and its tone: `good`, `warn`, `bad` or `dark` (not known)."""

    text: str
    style: str
    tone: str


EFFECTS = {
    "allow": Label("allowed", "e-allow", "good"),
    "ask": Label("asks", "e-ask", "warn"),
    "deny": Label("denied", "e-deny", "bad"),
    "probe": Label("attacks for evidence", "e-probe", "quiet"),
}
"""By what a decision answers; `probe` are attacks by themselves, for no run."""

_TONES = {
    Termination.exited: "good",
    Termination.policy_denied: "bad",
    Termination.approval_denied: "bad",
    Termination.backend_error: "bad",
    Termination.backend_lost: "dark",
    Termination.audit_unavailable: "bad",
    Termination.launch_failed: "bad",
    Termination.unknown: "dark",
}

ENDS = {
    one.value: Label(one.value.replace("_", " "), f"t-{one.value.replace('_', '-')}", _TONES.get(one, "warn"))
    for one in Termination
} | {
    UNFINISHED: Label("unfinished", "t-unfinished", "dark"),
    WAITING: Label("waits for an approval", "t-waiting", "warn"),
}
"""By termination."""

_NEEDS_A_LOOK = frozenset(
    {
        Termination.policy_denied.value,
        Termination.approval_denied.value,
        Termination.backend_lost.value,
        Termination.backend_error.value,
        Termination.launch_failed.value,
        Termination.audit_unavailable.value,
        Termination.unknown.value,
        UNFINISHED,
    }
)


def effect(value: str | None) -> Label:
    """What to call a decision."""
    return EFFECTS.get(value or "", Label(value or "undecided", "e-other", "dark"))


def end(value: str | None) -> Label:
    """What to call the end of a run."""
    return ENDS.get(value or UNFINISHED, Label(value or UNFINISHED, "t-other", "dark"))


def needs_a_look(decided: str | None, ended: str | None) -> bool:
    """Whether a run comes first: it was denied, nobody knows how it ended, or attacks refuted a claim."""
    if decided == "probe":
        return not (ended or "").startswith("0 ")
    return decided in ("deny", None) or (ended or UNFINISHED) in _NEEDS_A_LOOK


STATUS = {
    "proven": "The log is proven, within what is listed below.",
    "tampered": "The log was tampered with. Do not rely on what follows.",
    "incomplete": "The log is incomplete. What follows may lack records.",
    "unverifiable": "The log can't be verified. What follows is unproven.",
}
"""By status of a verification: the first sentence of a report."""

GLOSSARY = (
    ("run", "One execution that somebody asked for, whether or not it was carried out."),
    ("record", "One entry of the log, on one line, written before or after what it tells of."),
    ("leaf", "SHA-256 of a zero byte and the line of a record; the name of that record in the Merkle tree."),
    ("root", "The hash over all leaves; it changes if any record is changed, removed, added or moved."),
    ("checkpoint", "Size and root of the tree at one moment, signed with the key of the log."),
    ("anchor", "A party outside this host that saw a checkpoint, and can say so."),
    ("intent", "One thing that code wants: run, read, write, network, shell or tool, with its target."),
    ("declared, inferred, granted", "Who says so: the caller, the screen that read the code, or the policy."),
    ("effect", "What the policy answers: allow, ask (a person must approve first), or deny."),
    ("approval", "A person's yes to one thing that was shown: it is spent on just that, as often as agreed."),
    ("rule", "A condition in a policy that tightens it. One whose truth is unknown applies."),
    ("asked", "How far a control has to be enforced for this run, as its decision requires."),
    ("offered", "How far the contract of the backend claims to enforce it."),
    ("configured, observed", "What was set for this run, and what was read back of it while it ran."),
    ("unknown", "Asked for, and not observed in this run: the claim and its evidence are all there is."),
    ("evidence", "Attacks on the backend on this host, each beside a twin without walls that must succeed."),
    ("termination", "Why a run ended. `unknown`: the process that ran it died before it could say."),
    ("digest", "A keyed hash (HMAC) of content that is not in the log, so that it can't be guessed from it."),
    ("commitment", "A salted hash of content that is kept beside the log, and can be erased."),
)  # fmt: skip
"""Words of a report, and what they mean."""
