"""Why no sandbox can run something, said as a colleague would: what is demanded, and who lacks what of it.

Rules this module keeps: shortfalls that are alike share a line; of each kind a few are shown, and the rest is
counted: `licet explain --json` has them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from licet.contract import Blocker, Control
from licet.report import Explanation
from licet.select import Candidate

_CONTROLS = frozenset(control.value for control in Control)
Row = tuple[str, str]

SHOWN = 5
"""Lines of one kind on a card."""


def rows(explanation: Explanation, policy: str, disabled: Iterable[str] = ()) -> Iterable[Row]:
    """What is demanded, what each backend lacks, and why nothing weaker takes its place.

    `policy` is the name of the policy, `disabled` the plugins that are installed and not enabled.
    """
    candidates = explanation.selection.candidates
    if not candidates:
        yield "because", "no backend is installed and enabled"
    elif reasons := _reasons(candidates):
        yield "demanded", f"by {policy}: {'; '.join(reasons)}"
    for candidate in candidates:
        label = candidate.name
        shown = list(_shortfalls(candidate.blockers))
        for text in shown[:SHOWN]:
            yield label, text
            label = ""
        if len(shown) > SHOWN:
            yield "", f"and {len(shown) - SHOWN} more"
    if candidates:
        yield "no fallback", "what policy keeps closed has to be held, so nothing weaker is used instead"
    if names := ", ".join(f"`{name}`" for name in disabled):
        yield "not enabled", f"{names}: installed, see `enabled` in the settings"


def _reasons(candidates: Iterable[Candidate]) -> list[str]:
    """Why controls are demanded, each reason once."""
    found = (b.because for c in candidates for b in c.blockers if b.what in _CONTROLS)
    return list(dict.fromkeys(found))


def _shortfalls(blockers: Sequence[Blocker]) -> Iterable[str]:
    alike: dict[tuple[str, str], list[str]] = {}
    for blocker in blockers:
        if blocker.what in _CONTROLS:
            alike.setdefault((blocker.asked, blocker.offered), []).append(blocker.what)
    for (asked, offered), names in alike.items():
        yield f"{', '.join(names)}: asked {asked}, offered {offered}"
    for blocker in blockers:
        if blocker.what not in _CONTROLS:
            yield f"{blocker.what}: asked {blocker.asked}, offered {blocker.offered} ({blocker.because})"
