"""What a recorded run would need that policy does not give it, and who forbids the rest.

Rules this module keeps:

- a line of the policy can only help where nothing but the root's silence denies; what a deny, a bound, a
  rule, a decider or the screen denies, and what belongs to licet itself, is told with whoever denies it;
- a run whose start is denied by any of these needs no line: none would let it through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from licet.decide import Decision, Verdict, verdict_of
from licet.prepare import Prepared
from licet.request import TARGETLESS, Action, Intent
from licet.rules import LANGUAGE, Rules
from licet.screen import VIOLATIONS
from licet.workbench.history.recorded import RecordedCall, RecordedRun
from licet.workbench.history.replay import Replayer, is_opened


@dataclass(frozen=True, slots=True)
class Want:
    """One intent that a line would allow; `how` says from what it is known."""

    intent: Intent
    how: str


@dataclass(frozen=True, slots=True)
class Forbidden:
    """Something that no line of the policy can allow, by whom, and where in the code, if that is known."""

    what: str
    by: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Wants:
    """What one run would need: `wants` by lines, `forbidden` otherwise.

    `hidden` are intents whose targets are not known before the code runs, so that no line can name them.
    """

    wants: tuple[Want, ...] = ()
    forbidden: tuple[Forbidden, ...] = ()
    hidden: tuple[Intent, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.wants or self.forbidden or self.hidden)


_BY_CODE = {
    "module_denied": "`screen.modules.deny` of the policy",
    "code_too_large": "the limit `code`",
    "stdin_too_large": "the limit `stdin`",
}
_SEEN_BY = {"inferred": "seen in the code", "declared": "declared by the request"}


def wants_of(run: RecordedRun, replayer: Replayer) -> Wants:
    """What `run` would need under the policy of `replayer`.

    Raises:
        NotReplayable: the record lacks something that a decision needs.
    """
    prepared = replayer.request(run)
    wants, hidden = list[Want](), list[Intent]()
    forbidden = list(_besides(prepared.decision))
    stopped = bool(forbidden)
    for verdict in prepared.decision.verdicts:
        if verdict.effect != "deny":
            continue
        if not verdict.omitted:
            stopped |= verdict.intent.when == "start"
            forbidden.append(_forbidden(verdict, replayer.stack.root.file))
        elif verdict.intent.target is None and verdict.intent.action not in TARGETLESS:
            hidden.append(verdict.intent)
        else:
            wants.append(Want(verdict.intent, _SEEN_BY[verdict.intent.source]))
    if stopped:
        return Wants(forbidden=tuple(forbidden))
    for found in (*_accesses(run, prepared), *_calls(run, prepared, replayer)):
        if isinstance(found, Want):
            wants.append(found)
        else:
            forbidden.append(found)
    return Wants(tuple(_once(wants)), tuple(dict.fromkeys(forbidden)), tuple(hidden))


def _once(wants: Iterable[Want]) -> Iterator[Want]:
    """Each intent once, as it was seen first."""
    seen: dict[tuple[Action, str | None], Want] = {}
    for want in wants:
        seen.setdefault((want.intent.action, want.intent.target), want)
    yield from seen.values()


def _besides(decision: Decision) -> Iterator[Forbidden]:
    for violation in decision.refusals:
        by = _BY_CODE.get(violation.code) or (
            "the screen" if violation.code in VIOLATIONS else "the request's form"
        )
        yield Forbidden(violation.message, by, violation.line)
    for ballot in decision.ballots:
        if ballot.effect == "deny":
            yield Forbidden("the request", f"the decider `{ballot.decider}`: {ballot.reason}")


def _forbidden(verdict: Verdict, root: str) -> Forbidden:
    """A denial by more than the silence of the document `root`."""
    others = [by for by in verdict.by if by.document not in (LANGUAGE, root) or by.line]
    by = " and ".join(f"{by} ({by.rule})" for by in others) or verdict.reason
    return Forbidden(f"`{verdict.intent}`", by, verdict.intent.line)


def _accesses(run: RecordedRun, prepared: Prepared) -> Iterator[Want | Forbidden]:
    """What was refused while it ran, and still would be."""
    rules = Rules.of(prepared.stack, prepared.request.workdir)
    for access in run.accesses:
        if access.allowed or (intent := access.intent) is None or is_opened(access, prepared):
            continue
        verdict = verdict_of(intent, rules)
        if verdict.effect == "deny":
            yield _denied(verdict, "refused while it ran", prepared)
        elif verdict.effect == "ask" and prepared.request.intents is None:
            by = " and ".join(map(str, verdict.by))
            yield Forbidden(f"`{verdict.intent}`", f"{by} asks about it, and the request does not name it")
        elif prepared.request.intents is not None:
            yield Forbidden(f"`{verdict.intent}`", "the request itself, which lists its intents without it")


def _calls(run: RecordedRun, prepared: Prepared, replayer: Replayer) -> Iterator[Want | Forbidden]:
    for call in run.calls:
        if call.effect == "deny" and (verdict := _denied_call(call, prepared, replayer)) is not None:
            yield _denied(verdict, "refused when it was called", prepared)


def _denied(verdict: Verdict, how: str, prepared: Prepared) -> Want | Forbidden:
    return Want(verdict.intent, how) if verdict.omitted else _forbidden(verdict, prepared.stack.root.file)


def _denied_call(call: RecordedCall, prepared: Prepared, replayer: Replayer) -> Verdict | None:
    """The answer for a call that is denied whatever its arguments are; None for any other."""
    again = replayer.call(prepared, call)
    [verdict] = again.least.verdicts
    return verdict if verdict.effect == "deny" else None
