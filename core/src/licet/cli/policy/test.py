"""`licet policy test`: whether policies behave as their tests say, and what the tests leave open.

Rules this module keeps:

- everything is loaded and read before anything is tried, so that a mistake is told at once;
- what fails comes with what was found and why; what is not covered comes with the reason;
- a run that was narrowed by `-k` says nothing of coverage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from licet.cli.nearby import near
from licet.cli.policy.stacks import stack_of
from licet.errors import UsageError, reason_of

if TYPE_CHECKING:
    from licet.cli.terminal import Tone
    from licet.policy import PolicyStack
    from licet.policy.cases import Case
    from licet.workbench.trials.coverage import Coverage
    from licet.workbench.trials.suites import Suite
    from licet.workbench.trials.tested import Tested
    from licet.workbench.trials.trial import Trial

_MOST_SHOWN = 20  # outcomes that are not covered, of one policy


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--min-coverage", type=click.FloatRange(0, 100), metavar="PERCENT", help="Fail below this coverage."
)
@click.option("-k", "words", metavar="TEXT", help="Only the tests whose name, or rule, holds TEXT.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML to FILE too.")
@click.option("--mutate", is_flag=True, help="Change each rule, and tell which changes no test notices.")
@click.option("--fail-on-warn", is_flag=True, help="Let a warning fail the tests.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def test(
    paths: tuple[str, ...],
    min_coverage: float | None,
    words: str | None,
    junit: Path | None,
    mutate: bool,
    fail_on_warn: bool,
    as_json: bool,
) -> int:
    """Try the tests of policies: those inside their rules, and those in `*.test.yaml`.

    PATH is a policy, licet:PACK, a `*.test.yaml`, or a directory that holds some of them; without one, the
    current directory. Managed bounds and all other bounds are in force.

    Exit codes: 0 good · 1 a test failed, or too little is covered · 2 invalid.
    """
    from licet.workbench.trials.suites import suites_of

    if words is not None and (min_coverage is not None or mutate):
        option = "--mutate" if mutate else "--min-coverage"
        raise UsageError(f"`-k` tries some tests, so nothing can be said of `{option}`")
    loaded = [(suite, stack_of(suite.policy)) for suite in suites_of(paths or (".",))]
    tested = _tried(loaded, words)
    if mutate:
        tested = _mutated(tested)
    if junit is not None:
        _write(junit, tested)
    low = [one for one in tested if min_coverage is not None and not one.coverage.reaches(min_coverage)]
    doubtful = fail_on_warn and any(one.warnings or one.unnoticed for one in tested)
    bad = any(one.failures for one in tested) or bool(low) or doubtful
    if as_json:
        from licet.cli.terminal import put_json

        put_json({"passed": not bad, "policies": [_json(one, partly=words is not None) for one in tested]})
    else:
        for one in tested:
            _show(one, min_coverage, partly=words is not None)
    return 1 if bad else 0


def _tried(loaded: Sequence[tuple[Suite, PolicyStack]], words: str | None) -> list[Tested]:
    from licet.cli.progress import Steps
    from licet.workbench.trials.tested import try_suite

    picked = _picking(words)
    total = sum(map(picked, (case for suite, stack in loaded for case in suite.cases(stack))))
    if not total:
        reason = "no test" if words is None else f"no test whose name or rule holds `{words}`"
        raise UsageError(
            f"there is {reason} in {', '.join(f'`{near(suite.policy)}`' for suite, _ in loaded)}",
            advice="write `tests` in a rule, or a `*.test.yaml`",
        )
    with Steps("tests tried", total) as steps:
        return [try_suite(suite, stack, picked=picked, heard=steps.step) for suite, stack in loaded]


def _mutated(tested: Sequence[Tested]) -> list[Tested]:
    from licet.cli.progress import Steps
    from licet.workbench.trials.mutants import count, unnoticed

    with Steps("changes tried", sum(count(one.stack) for one in tested)) as steps:
        return [replace(one, unnoticed=unnoticed(one.stack, one.trials, steps.step)) for one in tested]


def _picking(words: str | None) -> Callable[[Case], bool]:
    wanted = (words or "").casefold()
    return lambda case: wanted in case.label.casefold()


def _write(file: Path, tested: Sequence[Tested]) -> None:
    from licet.workbench.trials.junit import to_junit

    document = to_junit([(near(one.policy), one.trials) for one in tested])
    try:
        file.write_bytes(document)
    except OSError as problem:
        raise UsageError(f"`{file}` can't be written: {reason_of(problem)}") from None


def _show(tested: Tested, least: float | None, *, partly: bool) -> None:
    from licet.cli.terminal import Card, put_blocks, put_table, show_card

    put_blocks((f"✗ {trial.case.label}", _told(trial)) for trial in tested.failures)
    coverage, failed = tested.coverage, len(tested.failures)
    missing = () if partly else coverage.missing
    if missing:
        rows = [(str(one), one.why, near(one.where)) for one in missing[:_MOST_SHOWN]]
        if len(missing) > _MOST_SHOWN:
            rows.append((f"and {len(missing) - _MOST_SHOWN} more", "`--json` has them all", ""))
        put_table(("not covered", "why", "where"), rows)
    if tested.unnoticed:
        put_table(("no test notices", "where"), [(str(one), near(one.where)) for one in tested.unnoticed])
    low = least is not None and not coverage.reaches(least)
    count = (
        f"{failed} of {_tests(len(tested.trials))} failed"
        if failed
        else f"{_tests(len(tested.trials))} passed"
    )
    lines = [("warning", warning) for warning in tested.warnings]
    if not partly:
        lines.insert(0, ("coverage", _percent(coverage) + (f", {least:g} % are asked for" if low else "")))
    doubtful = tested.warnings or tested.unnoticed
    tone: Tone = "bad" if failed or low else "warn" if doubtful else "good"
    show_card(Card(tone, f"{near(tested.policy)}: {count}", tested.stack.name, lines))


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count} tests"


def _percent(coverage: Coverage) -> str:
    return f"{coverage.percent:g} %, {coverage.covered} of {coverage.possible} outcomes"


def _told(trial: Trial) -> Iterator[str]:
    yield from map(str, trial.shortfalls)
    yield from trial.notes
    yield f"in {near(trial.case.where)}"


def _json(tested: Tested, *, partly: bool) -> dict[str, Any]:
    coverage = tested.coverage
    return {
        "policy": tested.policy,
        "policy_digest": tested.stack.digest,
        "tests": [_trial(trial) for trial in tested.trials],
        "failed": len(tested.failures),
        "coverage": None
        if partly
        else {
            "percent": coverage.percent,
            "covered": coverage.covered,
            "possible": coverage.possible,
            "missing": [{**asdict(one), "where": str(one.where)} for one in coverage.missing],
        },
        "unnoticed": None
        if tested.unnoticed is None
        else [{**asdict(one), "where": str(one.where)} for one in tested.unnoticed],
        "warnings": list(tested.warnings),
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "name": trial.case.name,
        "rule": trial.rule.id if trial.rule else None,
        "where": str(trial.case.where),
        "passed": trial.passed,
        "effect": trial.answer.effect,
        "own": trial.answer.own(trial.rule) if trial.rule else None,
        "state": trial.answer.state(trial.rule) if trial.rule else None,
        "shortfalls": [asdict(one) for one in trial.shortfalls],
        "notes": list(trial.notes),
        "managed": list(trial.managed),
    }
