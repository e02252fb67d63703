"""All cases of one policy, tried, with what they cover."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from licet.policy import PolicyStack
from licet.policy.cases import Case
from licet.workbench.trials.coverage import Coverage, Ledger
from licet.workbench.trials.mutants import Mutant
from licet.workbench.trials.suites import Suite
from licet.workbench.trials.trial import Trial, try_case


@dataclass(frozen=True, slots=True, eq=False)
class Tested:
    """One policy after its trials.

    `warnings` are what is no failure and should not stay. `unnoticed` are the changes of its rules that no
    test notices, None where that was not asked for.
    """

    policy: str
    stack: PolicyStack
    trials: tuple[Trial, ...]
    coverage: Coverage
    warnings: tuple[str, ...]
    unnoticed: tuple[Mutant, ...] | None = None

    @property
    def failures(self) -> tuple[Trial, ...]:
        """The trials that did not pass."""
        return tuple(trial for trial in self.trials if not trial.passed)


def try_suite(
    suite: Suite,
    stack: PolicyStack,
    *,
    picked: Callable[[Case], bool] = lambda case: True,
    heard: Callable[[], None] = lambda: None,
) -> Tested:
    """Try the cases of `suite` that are `picked` under its policy, loaded as `stack`; `heard` is called
    after each.

    Raises:
        InvalidPolicy: one of them can't be tried, or could not fail; with its place.
    """
    ledger, trials = Ledger(stack), []
    for case in suite.cases(stack):
        if picked(case):
            trial = try_case(case, stack)
            ledger.see(trial.answer)
            trials.append(trial)
            heard()
    warnings = (*stack.warnings, *_warnings(trials))
    return Tested(suite.policy, stack, tuple(trials), ledger.coverage(), warnings)


def _warnings(trials: list[Trial]) -> Iterator[str]:
    if not trials:
        yield "no test is about this policy"
    for trial in trials:
        if trial.rule is None and trial.managed:
            bounds = " and ".join(f"`{bound}`" for bound in trial.managed)
            yield f"{trial.case.where}: the managed bound {bounds} decides it, so elsewhere it may differ"
