"""What keeps a request from passing, and for each such thing the edits that could take it away.

Rules this module keeps:

- a set of edits that makes a request pass holds, for each blocker, one of the edits that stand here with it;
- an edit is only proposed: it counts once the engine has decided about the edited request;
- what a rule or a further decider denies may hang on anything that it can read, so every edit stands with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from licet.contract import Control
from licet.decide import Verdict
from licet.edits import Asked, Edit
from licet.edits.statements import span_of
from licet.policy.patterns import Effect, canonical_target
from licet.prepare import Prepared
from licet.repair.waiting import releases, shown
from licet.request import Intent
from licet.rules import SEVERITY, Rules, includes
from licet.select import Candidate

_MOST_PARTS = 20
_LANGUAGE = ("syntax", "module", "builtin", "member")
_LIMIT = re.compile(r"\blimits\.([a-z_]+)\s*(>=?)\s*([0-9]+(?:\.[0-9]+)?)")
_NAMED_LINE = re.compile(r"line (\d+)")


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that is in the way; `alone` says that no edit for it takes another blocker away too."""

    edits: tuple[Edit, ...]
    alone: bool = False


def blockers(asked: Asked, prepared: Prepared, tolerated: Effect) -> tuple[Blocker, ...]:
    """What keeps `asked`, decided as `prepared`, from an answer no worse than `tolerated`, with a sandbox."""
    return tuple(_Finder(asked, prepared).blockers(tolerated))


class _Finder:
    def __init__(self, asked: Asked, prepared: Prepared) -> None:
        self._asked = asked
        self._prepared = prepared
        self._decision = prepared.decision
        self._declared = asked.request.intents

    def blockers(self, tolerated: Effect) -> Iterator[Blocker]:
        for violation in self._decision.refusals:
            if violation.code == "stdin_too_large":
                yield Blocker((_drop_stdin(), *self._if_ruled()))
            else:
                yield Blocker((*self._without_line(violation.line), *self._if_ruled()))
        for verdict in self._decision.verdicts:
            too_severe = SEVERITY[verdict.effect] > SEVERITY[tolerated]
            if too_severe and verdict.intent.when == "start":
                yield self._of_verdict(verdict)
        ballots = [one.effect for one in self._decision.ballots if one.effect is not None]
        if any(SEVERITY[effect] > SEVERITY[tolerated] for effect in ballots):
            yield Blocker(self._everything)
        if self._decision.effect != "deny" and self._prepared.selection.chosen is None:
            yield Blocker(tuple(dict.fromkeys((*self._for_a_sandbox(), *self._if_ruled()))))

    def _of_verdict(self, verdict: Verdict) -> Blocker:
        own = tuple(self._of_intent(verdict))
        if self._is_ruled(verdict):
            return Blocker(tuple(dict.fromkeys((*own, *self._everything))))
        return Blocker(own, alone=verdict.intent.source == "declared")

    def _is_ruled(self, verdict: Verdict) -> bool:
        """Whether rules alone, and no entry of a document, made this answer."""
        rules = {(hit.rule.where.file, hit.rule.where.line, hit.rule.id) for hit in self._decision.hits}
        return any((by.document, by.line, by.rule) in rules for by in verdict.by)

    def _of_intent(self, verdict: Verdict) -> Iterator[Edit]:
        intent = verdict.intent
        if intent.action == "run":
            return
        if intent.source == "inferred":
            yield from self._without_line(intent.line)
            if intent.target is not None or intent.action == "shell":
                yield from self._declaring(intent)
            return
        yield _drop(intent)
        yield from self._narrowed(intent)

    def _without_line(self, line: int | None) -> Iterator[Edit]:
        if line is None or (span := span_of(self._prepared.request.code, line)) is None:
            return
        first, last = span
        spelled = f"line {first}" if first == last else f"lines {first} to {last}"
        yield Edit("remove_line", str(first) if first == last else f"{first}-{last}", f"remove {spelled}")

    def _declaring(self, intent: Intent) -> Iterator[Edit]:
        """Listing what the code does, where the request lists its intents and forgot this one."""
        if self._declared is not None and not any(includes(one, intent) for one in self._declared):
            yield Edit("add_intent", str(intent), f"declare `{intent}` too")

    def _narrowed(self, intent: Intent) -> Iterator[Edit]:
        """The parts of an intent that are permitted: those allowed, and those with what is asked about."""
        if intent.target is None or intent.action == "tool":
            return
        answers = [(part, self._rules.vote(part).effect) for part in self._parts(intent)]
        allowed = _widest([part for part, effect in answers if effect == "allow"])
        obtainable = _widest([part for part, effect in answers if effect != "deny"])
        for parts in dict.fromkeys((allowed, obtainable)):
            if parts and len(parts) <= _MOST_PARTS:
                spelled = tuple(map(str, parts))
                text = f"narrow `{intent}` to {' and '.join(f'`{one}`' for one in spelled)}"
                yield Edit("narrow_intent", str(intent), text, spelled)

    def _parts(self, intent: Intent) -> Iterator[Intent]:
        for point in sorted(self._rules.points(intent.action)):
            part = Intent(intent.action, point)
            if point != intent.target and _can_be_asked_for(part) and includes(intent, part):
                yield part

    @cached_property
    def _rules(self) -> Rules:
        return Rules.of(self._prepared.stack, self._prepared.request.workdir)

    def _if_ruled(self) -> tuple[Edit, ...]:
        return self._everything if self._decision.hits else ()

    @cached_property
    def _everything(self) -> tuple[Edit, ...]:
        """Every edit that a condition could notice."""
        found: list[Edit] = [*self._waits(), *map(_drop, self._declared or ())]
        for verdict in self._decision.verdicts:
            intent = verdict.intent
            if intent.source == "declared":
                found += self._narrowed(intent)
            elif intent.source == "inferred":
                found += self._without_line(intent.line)
        found += self._lower_limits()
        return tuple(dict.fromkeys((*found, *self._drops())))

    def _drops(self) -> Iterator[Edit]:
        request = self._asked.request
        yield from (Edit("drop_limit", n, f"ask for no `{n}` of its own") for n in request.limits.stated())
        yield from (Edit("drop_tool", name, f"do without the tool `{name}`") for name in request.tools)
        yield from (Edit("drop_input", name, f"do without the input `{name}`") for name in request.inputs)
        if request.stdin:
            yield _drop_stdin()
        if self._declared is None:
            yield self._declare()

    def _declare(self) -> Edit:
        """A request that lists what its code shows, so that nothing else is opened to it."""
        seen = [v.intent for v in self._decision.verdicts if v.intent.source == "inferred"]
        known = (i for i in seen if i.target is not None or i.action == "shell")
        needed = tuple(dict.fromkeys(map(str, known)))
        names = " and ".join(f"`{one}`" for one in needed)
        text = (
            f"declare that it needs {names} alone"
            if needed
            else "declare that it needs no access (`intents: []`)"
        )
        return Edit("declare_intents", "intents", text, needed)

    def _waits(self) -> Iterator[Edit]:
        rules = [hit.rule for hit in self._decision.hits]
        for at in releases(rules, self._prepared.facts):
            yield Edit("wait", "at", f"wait until {shown(at, rules)}", (at.isoformat(),))

    def _lower_limits(self) -> Iterator[Edit]:
        """A limit just low enough for a condition that compares it with a number."""
        for hit in self._decision.hits:
            for answer in hit.answers:
                for name, sign, number in _LIMIT.findall(answer.leaf.text):
                    fraction = "." in number
                    value = float(number) if fraction else int(number)
                    value -= 0 if sign == ">" else 0.001 if fraction else 1
                    current = self._prepared.request.limits.stated().get(name)
                    if value > 0 and current is not None and value < current:
                        text = f"ask for the limit `{name}` of {value}"
                        yield Edit("lower_limit", name, text, (str(value),))

    def _for_a_sandbox(self) -> Iterator[Edit]:
        """What any of the backends would need to be gone before it qualifies."""
        request = self._asked.request
        for control in request.requirements:
            yield Edit("drop_requirement", control.value, f"do not require `{control.value}`")
        for candidate in self._prepared.selection.candidates:
            yield from self._for_candidate(candidate)
        if any(self._is_about_openings(one) for one in self._prepared.selection.candidates):
            yield from map(_drop, self._declared or ())
            for verdict in self._decision.verdicts:
                if verdict.intent.source == "inferred":
                    yield from self._without_line(verdict.intent.line)
        yield from self._drops()

    def _for_candidate(self, candidate: Candidate) -> Iterator[Edit]:
        for blocker in candidate.blockers:
            if blocker.what in _LANGUAGE and (found := _NAMED_LINE.search(blocker.because)):
                yield from self._without_line(int(found[1]))

    @staticmethod
    def _is_about_openings(candidate: Candidate) -> bool:
        controls = frozenset(control.value for control in Control)
        return any(one.what.startswith("opens ") or one.what in controls for one in candidate.blockers)


def _drop(intent: Intent) -> Edit:
    return Edit("drop_intent", str(intent), f"do without `{intent}`")


def _drop_stdin() -> Edit:
    return Edit("drop_stdin", "stdin", "do without standard input")


def _can_be_asked_for(intent: Intent) -> bool:
    """Whether a request can name it: patterns stand in policies only."""
    if intent.action != "network":
        return True
    try:
        return canonical_target("network", intent.target or "", base="/") == intent.target
    except ValueError:
        return False


def _widest(intents: Iterable[Intent]) -> tuple[Intent, ...]:
    """Those that no other one includes."""
    found = list(intents)
    return tuple(one for one in found if not any(o != one and includes(o, one) for o in found))
