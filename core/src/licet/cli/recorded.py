"""`licet explain RUN`: a decision as it was recorded, what has changed since, and what would help.

Rules this module keeps:

- the log is only read; that a policy can't be loaded any more hides nothing of it;
- what would let it pass is found only where the log has kept the whole request, and decided about under the
  policy as it is now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from licet.cli import advising, because
from licet.cli.refusals import SHOWN
from licet.cli.terminal import Card, Tone, put_json, show_card
from licet.errors import LicetError, UsageError
from licet.report import Explanation, exit_code

if TYPE_CHECKING:
    from licet.record import AuditReader, Record

_RUN = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{5,25}", re.ASCII | re.IGNORECASE)
_HEADINGS: dict[int, tuple[Tone, str]] = {
    0: ("good", "was allowed"),
    3: ("bad", "was denied"),
    4: ("warn", "needed an approval"),
    5: ("bad", "was allowed, but no sandbox could run it"),
}

_AGAIN = "{}: `licet explain FILE`, with FILE as it was, finds what would pass"


def is_run(name: str | None) -> bool:
    """Whether `name` is the id of a run, or the beginning of one, and no file."""
    return name is not None and _RUN.fullmatch(name) is not None and not Path(name).exists()


def explain_run(run: str, policy: str | None, state: str | None, *, as_json: bool, everything: bool) -> int:
    """Tell how `run` was decided; returns the exit code of that decision.

    `policy` is what to compare with (None: the policy that decided), and whose log it is; `state` names the
    log instead.

    Raises:
        UsageError: there is no such run, or several, or it has no decision.
        AuditUnavailable: the log can't be read.
    """
    from licet.cli.logs import reader_of
    from licet.workbench.history.recounting import recounted

    reader = reader_of(state, None if state is not None else policy)
    records = reader.records_of(run.upper())
    told = recounted(records)
    if told is None:
        raise UsageError(
            f"no decision is recorded for the run `{run}`", advice=f"see `licet audit show {run}`"
        )
    deciding = policy or next((one["file"] for one in told["documents"]), None)
    told["policy_now"] = now = _now(deciding)
    now["changed"] = now["policy_digest"] != told["policy_digest"] if now["policy_digest"] else None
    code = exit_code(told["effect"], told["selection"]["backend"])
    again = _again(deciding, records, reader) if code and now["policy_digest"] else None
    if isinstance(again, Explanation):
        told["repair"] = again.as_json()["repair"]
        now["effect"] = again.effect
    if as_json:
        put_json(told)
        return code
    tone, heading = _HEADINGS[code]
    note = f"run {told['run_id']} · audit #{told['recorded']['seq']}"
    rows = [*rows_of(told, everything=everything)]
    if code:
        rows += _helping(again, everything=everything)
    show_card(Card(tone, heading, note, rows))
    return code


def _again(policy: str | None, records: Sequence[Record], reader: AuditReader) -> Explanation | str:
    """The request of a run decided again under `policy` as it is now; or why that can't be done."""
    from licet.runtime import Runtime
    from licet.workbench.history.kept import request_of
    from licet.workbench.history.recorded import NotReplayable

    assert policy is not None
    try:
        with Runtime.from_policy(policy) as runtime:
            return runtime.decide(request_of(records, reader.content, runtime.stack))
    except NotReplayable as problem:
        return str(problem)
    except LicetError as problem:
        return f"it can't be decided again here ({problem.message})"


def _helping(again: Explanation | str | None, *, everything: bool) -> Iterable[tuple[str, str]]:
    """What would let a run pass that did not."""
    if not isinstance(again, Explanation):
        yield "more", _AGAIN.format(again or "its policy can't be loaded any more")
    elif again.exit_code == 0:
        yield "now", "it would be allowed under the policy as it is now"
    else:
        yield from advising.rows(again.repair, None if everything else SHOWN)


def _now(policy: str | None) -> dict[str, Any]:
    """What the policy that decided says now; its digest is None if nobody can tell."""
    from licet.cli.policy.stacks import stack_of

    found: dict[str, Any] = {"policy": None, "policy_digest": None, "problem": None}
    if policy is None:
        return found | {"problem": "the record does not name it"}
    try:
        stack = stack_of(policy)
    except LicetError as problem:
        return found | {"problem": str(problem)}
    return found | {"policy": stack.name, "policy_digest": stack.digest}


def rows_of(told: Mapping[str, Any], *, everything: bool) -> Iterable[tuple[str, str]]:
    """The lines of its card; `everything` shows what was allowed, and the rules with every leaf, too."""
    yield "decided", str(told["at"] or told["recorded"]["time"])[:19].replace("T", " ") + " UTC"
    for violation in [one for one in told["violations"] if one.get("refused")][:SHOWN]:
        line = violation.get("line")
        yield f"line {line}" if line else "code", str(violation.get("code"))
    verdicts = told["verdicts"] if everything else [v for v in told["verdicts"] if v["effect"] != "allow"]
    for verdict in verdicts if everything else verdicts[:SHOWN]:
        yield because.label(verdict["intent"]), because.spelled(verdict["intent"])
        yield "because", because.reason(str(verdict["reason"]), verdict["effect"], verdict["by"])
    if len(verdicts) > SHOWN and not everything:
        yield "", f"and {len(verdicts) - SHOWN} more: `--all` shows them"
    yield from because.rows(told, everything=everything)
    if told["selection"]["backend"] is not None:
        yield "sandbox", str(told["selection"]["backend"])
    yield "ended", str(told["termination"] or "unfinished")
    yield "policy", _since(told)


def _since(told: Mapping[str, Any]) -> str:
    now = told["policy_now"]
    if now["changed"] is None:
        return f"{told['policy']}; whether it has changed since can't be told: {now['problem']}"
    if now["changed"]:
        return f"{told['policy']}, which has changed since: now it is {now['policy']}"
    return f"{told['policy']}, unchanged since"
