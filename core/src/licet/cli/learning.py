"""What a run that learned would have needed, read back from its own records.

Rules this module keeps: a run that left no record, or did not learn, has nothing to suggest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from licet.cli.policy import suggest
from licet.errors import LicetError

if TYPE_CHECKING:
    from licet.result import ExecutionResult
    from licet.runtime import Runtime
    from licet.workbench.history.suggest import Suggestion


class Lesson:
    """What a run taught, as programs and people read it; `policy` is the name that the run was given."""

    def __init__(self, runtime: Runtime, result: ExecutionResult, policy: str) -> None:
        self._suggestion = learned(runtime, result)
        self._policy = policy

    def as_json(self) -> dict[str, Any]:
        """The field that `licet run --learn --json` adds."""
        found = self._suggestion
        return {"suggestion": found and suggest.as_document(found, self._policy)}

    def show(self) -> None:
        """Say it on stderr."""
        if self._suggestion is not None:
            suggest.show(self._suggestion, self._policy, err=True)


def learned(runtime: Runtime, result: ExecutionResult) -> Suggestion | None:
    """The lines that would give the run `result` what it wanted; None if it was not let to learn."""
    from licet import state
    from licet.workbench.history import recorded
    from licet.workbench.history.suggest import Suggester

    if result.audit is None or not runtime.stack.may_learn:
        return None
    try:
        reader = runtime.plugins.audit_reader(state.read_state(runtime.state_path))
        records = reader.records_of(result.run_id)
    except LicetError:  # the card of the run tells what is wrong with its trail
        return None
    found = Suggester(runtime.stack, runtime.offers(), suggest.text_of(runtime.stack))
    for run in recorded.runs(str(runtime.state_path), records):
        found.add(run)
    return found.finish()
