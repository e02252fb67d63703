"""`licet policy check`: whether a policy and all around it is sound, and who enforces it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from licet.cli.nearby import near
from licet.cli.policy.stacks import plain_run

if TYPE_CHECKING:
    from licet.enforcers import Enforcer
    from licet.errors import InvalidPolicy
    from licet.policy import PolicyStack
    from licet.workbench.lint.findings import Finding

_SHOWN = 20


@click.command()
@click.argument("file", default="licet.yaml")
@click.option("--fail-on-warn", is_flag=True, help="Exit with 1 if there is any warning.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def check(file: str, fail_on_warn: bool, as_json: bool) -> int:
    """Check FILE and everything it extends and is bound by, and say who enforces each setting.

    Beyond what makes a run refuse it, finds what could never matter: dead and shadowed entries and rules,
    conditions that nothing meets, superfluous bounds, entries that no enabled backend opens.
    Exit codes: 0 good · 1 warnings, with --fail-on-warn · 2 invalid.
    """
    from licet.enforcers import enforcers
    from licet.errors import InvalidPolicy
    from licet.runtime import Runtime
    from licet.workbench.lint import lint

    try:
        runtime = Runtime.from_policy(file)
    except InvalidPolicy as problem:
        if not as_json:
            raise
        return _refused(problem)
    plain = plain_run(runtime)
    findings = lint(runtime.stack, datetime.now(UTC), plain, runtime.offers())
    broken = any(one.severity == "error" for one in findings)
    code = 2 if broken else 1 if findings and fail_on_warn else 0
    held = enforcers(plain.stack, plain.decision, plain.request.limits, plain.selection.chosen)
    if as_json:
        _put_json(runtime.stack, findings, held, plain.selection.backend, valid=not broken)
    else:
        _show(file, runtime.stack, findings, held, plain.selection.backend, code)
    return code


def _refused(problem: InvalidPolicy) -> int:
    from licet.cli.terminal import put_json
    from licet.errors import Position
    from licet.workbench.lint.findings import Finding

    where = problem.where or Position("command line")
    finding = Finding("error", "invalid-policy", where, problem.message, problem.advice or "")
    put_json({"valid": False, "findings": [finding.as_json()]})
    return problem.exit_code


def _put_json(
    stack: PolicyStack,
    findings: Sequence[Finding],
    held: Iterable[Enforcer],
    backend: str | None,
    *,
    valid: bool,
) -> None:
    from licet.cli.terminal import put_json

    content: dict[str, Any] = {
        "valid": valid,
        "digest": stack.digest,
        "documents": [document.file for document in stack.documents],
        "findings": [one.as_json() for one in findings],
        "backend": backend,
        "enforced": [one.as_json() for one in held],
    }
    put_json(content)


def _show(
    file: str,
    stack: PolicyStack,
    findings: Sequence[Finding],
    held: Iterable[Enforcer],
    backend: str | None,
    code: int,
) -> None:
    from licet.cli.terminal import Card, put_table, show_card

    put_table(("setting", "kept by", "control", "evidence", "how"), map(_row, held), prose=1)
    rows = [("bound by", near(bound.file)) for bound in stack.bounds]
    rows += [("rehearses", f"{near(bound.file)} (decides nothing)") for bound in stack.rehearsed]
    rows.append(("sandbox", backend or "no enabled backend holds what a plain run demands"))
    rows += _told(findings[:_SHOWN])
    if len(findings) > _SHOWN:
        rows.append(("", f"and {len(findings) - _SHOWN} more: --json has them all"))
    errors = sum(one.severity == "error" for one in findings)
    warnings = len(findings) - errors
    if errors:
        heading = f"{file} is invalid: {_counted(errors, 'error')}"
    elif warnings:
        heading = f"{file} is valid, with {_counted(warnings, 'warning')}"
    else:
        heading = f"{file} is valid"
    show_card(Card("bad" if code else "warn" if findings else "good", heading, stack.digest, rows))


def _told(findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """Each finding; what several in a row have in common is said once, below them."""
    for one, following in zip_longest(findings, findings[1:]):
        yield one.severity, f"{one.where}: {one.message}"
        if following is None or (following.advice, following.witness) != (one.advice, one.witness):
            if one.witness:
                yield "seen", one.witness
            yield "you can", one.advice


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def _row(one: Enforcer) -> tuple[str, str, str, str, str]:
    control = f"{one.control} {one.level}" if one.control and one.level else str(one.control or "")
    how = one.mechanism + (" (with gaps: `licet backends show`)" if one.gaps else "")
    return one.setting, one.who, control, one.evidence or "", how
