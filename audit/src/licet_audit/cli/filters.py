"""Which runs a command line asks for.

Rules this module keeps:

- a word of a closed list that is no word of it is an error, with the nearest one; a name that no run of the
  log has is none, since nothing was found is an answer, but the nearest one is told;
- times are UTC unless they say otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click
from licet.errors import UsageError
from licet.output import bounded

if TYPE_CHECKING:
    from licet_audit.index import Field, Index, Wanted

F = TypeVar("F", bound=Callable[..., Any])

_AGO = re.compile(r"\d{1,9}(?:\.\d{1,3})?(?:s|m|min|h|d)", re.ASCII)
_DECISIONS = ("allow", "ask", "deny", "probe")
APPROVAL_STATES = ("pending", "granted", "denied", "expired", "withdrawn", "revoked", "consumed")
"""What may have become of an approval, as far as records tell."""
_SHOWN = 200  # characters of what was given
_OPTIONS = (
    ("run", "ID", "Runs whose id begins so."),
    ("decision", "WORD", "What was decided: allow, ask, deny; probe for attacks on a backend."),
    ("subject", "ID", "For whom it was, itself or on behalf of it."),
    ("tenant", "ID", "The tenant of the subject."),
    ("backend", "NAME", "The backend that ran it."),
    ("rule", "ID", "A rule that applied, to the request or to a call."),
    (
        "termination",
        "WORD",
        "How it ended, such as exited, timeout, policy_denied, unknown, unfinished, waiting.",
    ),
    ("host", "NAME", "A host that it asked for or connected to, without a port."),
    ("tool", "NAME", "A tool that it asked for or called."),
    ("approval", "ID", "An approval that it asked for or used, by its whole id."),
    ("approver", "ID", "A person whose answer to an approval of it counts."),
    (
        "approval-state",
        "WORD",
        "What became of its last approval: pending, granted, denied, expired, withdrawn, revoked, consumed.",
    ),
    ("since", "TIME", "Begun then or later: a date, a time (UTC), or an age such as 2h or 7d."),
    ("until", "TIME", "Begun before then."),
)
NAMES = tuple(name.replace("-", "_") for name, _, _ in _OPTIONS)


def filters(command: F) -> F:
    """Let a command be told which runs, by the keyword arguments `NAMES`."""
    for name, metavar, text in reversed(_OPTIONS):
        command = click.option(f"--{name}", metavar=metavar, help=text)(command)
    return command


def wanted(given: dict[str, str | None], now: datetime) -> Wanted:
    """What these options ask for.

    Raises:
        UsageError: a time or a word can't be understood.
    """
    from licet_audit.index import Wanted

    values = dict(given)
    for name, value in given.items():
        if value is not None and not _is_text(value):
            option = name.replace("_", "-")
            raise UsageError(f"`--{option}` is no valid text", advice="give it in UTF-8")
    _check("decision", values["decision"], _DECISIONS)
    _check("approval-state", values["approval_state"], APPROVAL_STATES)
    if values["run"] is not None:
        values["run"] = values["run"].upper()
    for name in ("since", "until"):
        text = values[name]
        values[name] = None if text is None else moment(text, now, name)
    check_period(values["since"], values["until"])
    return Wanted(**values)  # type: ignore[arg-type]


def check_period(since: str | None, until: str | None) -> None:
    """Refuse a period that nothing can be in; both are as `moment` spells them.

    Raises:
        UsageError: so it is.
    """
    if since and until and since >= until:
        raise UsageError("`--until` is not later than `--since`, so that no run can be between them")


def check_words(asked: Wanted, index: Index) -> None:
    """Refuse a termination that is no word for one and that no run of the log has.

    Raises:
        UsageError: so it is.
    """
    from licet.backend import Termination

    from licet_audit.index.rows import UNFINISHED, WAITING

    own = (UNFINISHED, WAITING)
    if asked.termination not in (None, *own, *Termination):
        _check("termination", asked.termination, [*Termination, *own, *index.names("termination")])


def unknown_names(asked: Wanted, index: Index) -> Iterable[str]:
    """For each name that no run of the log has a sentence, with the nearest one."""
    from licet.policy.advice import nearest

    from licet_audit.index import Wanted

    fields: tuple[Field, ...] = (
        "subject",
        "tenant",
        "backend",
        "rule",
        "host",
        "tool",
        "approval",
        "approver",
    )
    for field in fields:
        name = getattr(asked, field)
        if name is not None and not any(index.runs(Wanted(limit=1, **{field: name}))):
            known = index.names(field)
            advice = f"; {nearest(name, known[:1000])}" if known else f"; no run has any {field}"
            yield f"no run in this log has the {field} `{bounded(name, _SHOWN)}`{advice}"


def moment(text: str, now: datetime, name: str) -> str:
    """A time as records spell it, from a date, a time, or an age.

    Raises:
        UsageError: it is none of them.
    """
    shown = bounded(text, _SHOWN)
    try:
        if _AGO.fullmatch(text):
            from licet.units import duration

            found = now - timedelta(seconds=duration(text))
        else:
            found = datetime.fromisoformat(text)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"`--{name} {shown}` is no time",
            advice="give a date (2026-11-30), a time in UTC (2026-11-30T17:00), or an age (2h, 7d)",
        ) from None
    return f"{found:%Y-%m-%dT%H:%M:%S}.{found.microsecond:06d}000Z" if found.year > 999 else "0"


def as_moment(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Read the value of an option that is a time; spell it as records do.

    Raises:
        UsageError: it is none, or no time that a record could have.
    """
    if value is None:
        return None
    found = moment(value, datetime.now(UTC), str(parameter.name))
    if len(found) == 1:
        raise UsageError(f"`--{parameter.name}` is before any record", advice="give a time that records have")
    return found


def _check(name: str, given: str | None, known: Iterable[str]) -> None:
    from licet.policy.advice import nearest

    words = dict.fromkeys(map(str, known))
    if given is not None and given not in words:
        raise UsageError(f"`--{name} {bounded(given, _SHOWN)}` is unknown", advice=nearest(given, words))


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
