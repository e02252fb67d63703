"""Known gaps: what an author knows to fail. Each is a strict expected failure: one that is closed fails.

Rules this module keeps: a gap is named by its test, by its test with the variant in brackets, or, for a claim
that an attack refutes, by `CONTROL/VARIANT`; it has a reason; a name that is none is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from licet.probe.attacks import ATTACKS


def reason(gaps: Mapping[str, str], test: str, variant: str | None, attacked: bool) -> str | None:
    """Why this test is known to fail, or None. `attacked` says that `variant` names an attack."""
    names = [test, f"{test}[{variant}]", *([variant] if attacked and variant else [])]
    return next((gaps[name] for name in names if name in gaps), None)


def faults(gaps: Mapping[str, str], tests: Iterable[str]) -> list[str]:
    """What is wrong with the gaps themselves, in words; `tests` are the names of all tests there are."""
    known = {*tests, *map(str, ATTACKS)}
    unknown = [
        f"`{name}` is no test and no CONTROL/VARIANT of an attack"
        for name in gaps
        if name.partition("[")[0] not in known
    ]
    return unknown + [f"the gap `{name}` has no reason" for name, why in gaps.items() if not why.strip()]
