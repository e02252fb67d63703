"""Trials as JUnit XML, which build servers read.

Rules this module keeps:

- whatever a policy or a test holds, what comes out is well-formed: characters that XML can't hold are shown
  as escapes;
- a case is a `testcase` with the place that it stands in; what was not met is one `failure`.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from licet.output import escape
from licet.workbench.trials.trial import Trial


def to_junit(suites: Sequence[tuple[str, Sequence[Trial]]]) -> bytes:
    """One document: for each policy, by name, all its trials. UTF-8."""
    root = ElementTree.Element("testsuites", name="licet policy test")
    for name, trials in suites:
        failed = sum(not trial.passed for trial in trials)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_held(name),
            tests=str(len(trials)),
            failures=str(failed),
            errors="0",
            skipped="0",
        )
        for trial in trials:
            _case(suite, name, trial)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _case(suite: ElementTree.Element, policy: str, trial: Trial) -> None:
    where = trial.case.where
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_held(policy),
        name=_held(trial.case.label),
        file=_held(where.file),
        line=str(where.line),
    )
    if not trial.passed:
        lines = list(map(str, trial.shortfalls))
        failure = ElementTree.SubElement(case, "failure", type="expectation", message=_held("; ".join(lines)))
        failure.text = "\n".join(map(_held, (str(where), *lines, *trial.notes)))


def _held(text: str) -> str:
    """In one line; `escape` shows all that XML can't hold, and more."""
    return escape(text, newlines=False)
