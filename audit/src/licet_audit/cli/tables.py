"""Runs as lines of a table and as JSON.

Rules this module keeps: what a record does not say is `?`, what did not happen is `-`.
"""

from __future__ import annotations

from typing import Any

from licet_audit.index.rows import RunRow

COLUMNS = ("audit", "time (UTC)", "run", "for", "decision", "backend", "ended")
RUN = COLUMNS.index("run")


def cells(run: RunRow) -> tuple[str, ...]:
    """One line, for `COLUMNS`."""
    return (
        f"#{run.last_seq}",
        run.time[:19].replace("T", " "),
        run.run_id,
        (run.subject or "?") + (f", for {run.on_behalf_of}" if run.on_behalf_of else ""),
        run.effect or "?",
        run.backend or ("?" if run.executed else "-"),
        run.termination or "?",
    )


def as_json(run: RunRow) -> dict[str, Any]:
    """All that the index knows of a run; its place means nothing to others."""
    return {name: getattr(run, name) for name in RunRow.__slots__ if name != "place"}
