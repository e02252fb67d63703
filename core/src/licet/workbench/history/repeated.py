"""What a repeated run differs in from the recorded one, and what could be the reason.

Rules this module keeps:

- what counts is what the code made: output, value, exception, ending; time and memory never do;
- contents are compared by their digests under the host's key, so also where none was kept; where one was,
  the difference is shown line by line;
- the first difference while it ran is the first one told: what comes later may follow from it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from licet import bodies as recording
from licet.digests import Digest
from licet.output import bounded
from licet.record import Record
from licet.result import ExecutionResult
from licet.workbench.history import bodies
from licet.workbench.history.past import Content, execution_of, result_of

_MOST_LINES = 2000
_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as recorded: `what` it is, in words how, and where there are any, its lines."""

    what: str
    how: str
    lines: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """By name."""
        return {"what": self.what, "how": self.how, "diff": list(self.lines)}


def differences(
    records: Sequence[Record],
    result: ExecutionResult,
    met: Sequence[str],
    digest: Digest,
    content: Content,
) -> tuple[Difference, ...]:
    """All that `result` differs in from the run of `records`; `met` are differences while it ran."""
    then = result_of(records)
    found = [Difference("course", how) for how in met]
    found += _endings(then, result)
    found += _contents(records, then, result, digest, content)
    return tuple(found)


def _endings(then: Mapping[str, Any], result: ExecutionResult) -> Iterator[Difference]:
    was, now = bodies.text(then, "termination"), result.termination.value
    if was != now:
        yield Difference("termination", f"it ended as {was}, and now as {now}")
    elif then.get("exit_code") != result.exit_code:
        yield Difference("exit code", f"it was {then.get('exit_code')}, and is {result.exit_code} now")
    error = then.get("error")
    raised = (bodies.text(error, "type"), bodies.line(error.get("line"))) if isinstance(error, dict) else None
    raises = (result.error.type, result.error.line) if result.error else None
    if raised != raises:
        yield Difference("error", f"it raised {_shown(raised)}, and now {_shown(raises)}")


def _shown(error: tuple[str | None, int | None] | None) -> str:
    return "nothing" if error is None else f"`{error[0]}`" + (f" in line {error[1]}" if error[1] else "")


def _contents(
    records: Sequence[Record],
    then: Mapping[str, Any],
    result: ExecutionResult,
    digest: Digest,
    content: Content,
) -> Iterator[Difference]:
    digests = then.get("digests")
    told = digests if isinstance(digests, Mapping) else {}
    now = recording.contents(result.stdout, result.stderr, result.value_repr)
    made = recording.digests_of(now, digest)
    for name, text in now.items():
        if told.get(name) != made[name]:
            before = _kept(records, name, content) if name != "value" else None
            lines = () if before is None else tuple(_diff(before, text))
            yield Difference(name, f"{_CALLED[name]} is another", lines)


_CALLED = {"stdout": "standard output", "stderr": "standard error", "value": "the value"}


def _kept(records: Sequence[Record], name: str, content: Content) -> str | None:
    """What is kept of an output of the recorded run; empty output is never kept."""
    last = next((one for one in records if one.entry.kind == "result"), None)
    if last is None or bodies.text(last.entry.body, "termination") is None:
        return None
    if (committed := last.kept.get(name)) is None:
        return "" if last.entry.body.get(f"{name}_bytes") == 0 else None
    try:
        data = content(committed)
    except ValueError:
        return None
    return None if data is None else data.decode("utf-8", "replace")


def _diff(then: str, now: str) -> Iterator[str]:
    before, after = (text.splitlines()[:_MOST_LINES] for text in (then, now))
    lines = difflib.unified_diff(before, after, "then", "now", lineterm="")
    for number, line in enumerate(lines):
        if number == _MOST_SHOWN:
            yield "and more"
            return
        yield bounded(line, 1000)


def reasons(records: Sequence[Record], result: ExecutionResult, now: Mapping[str, str]) -> Iterator[str]:
    """What is another than it was before the code began, which may be why something differs.

    `now` are the digests of the parts of the new request.
    """
    then = execution_of(records)
    used = result.backend
    if used is not None and used.version != then.get("version"):
        yield f"`{used.name}` is another version: {then.get('version')} then, {used.version} now"
    decision = next((one.entry.body for one in records if one.entry.kind == "decision"), {})
    if result.decision is not None and decision.get("policy_digest") != result.decision.policy_digest:
        yield "the policy has changed since"
    request = next((one.entry.body for one in records if one.entry.kind == "request"), {})
    told = request.get("digests")
    for name, called in (("environment", "the environment"), ("limits", "limits"), ("workdir", "directory")):
        if isinstance(told, Mapping) and now and told.get(name) != now.get(name):
            yield f"its {called.removeprefix('the ')} {'are' if name == 'limits' else 'is'} not what it was"
    governed = bodies.texts(then.get("governs"))
    for what, called in (("clock", "clock"), ("random", "random bytes")):
        if what not in governed:
            yield f"`{then.get('backend')}` does not take its {called} from licet: they are others each time"
    opened = then.get("opened")
    if isinstance(opened, Mapping):
        closed = [one for one in ("write", "network", "shell") if opened.get(one)]
        if closed:
            yield f"{', '.join(closed)} was open then, and is closed here: effects are not repeated"
        if opened.get("read"):
            yield "files are read as they are now"
