"""Who else could let a request pass: approvers, other people, the owners of documents.

Rules this module keeps:

- of people, only what a rule names is said, and only after the engine has let such a person pass;
- nobody is told to pretend: the subject of a request is not the caller's to change;
- what belongs to licet itself nobody can open, and that is said too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from licet.applying import Hit
from licet.decide import Verdict
from licet.edits import Asked
from licet.errors import LicetError
from licet.policy import PolicyStack
from licet.policy.leaves import KeyTest, reader
from licet.policy.patterns import Effect
from licet.prepare import Prepared
from licet.report import ENABLE_BACKEND, Repair, approvals, repairs_by_the_owner
from licet.request import Subject
from licet.rules import LANGUAGE, By

_SOMEBODY = "(somebody)"
_ANOTHER = "(another)"


def others(asked: Asked, prepared: Prepared, attempt: Callable[[Asked], Prepared]) -> Iterator[Repair]:
    """What people other than the caller could do about `asked`, decided as `prepared`."""
    decision = prepared.decision
    if decision.effect == "ask":
        yield from approvals(decision)
    yield from _people(asked, prepared, attempt)
    for verdict in decision.verdicts:
        if verdict.effect == "deny" and verdict.intent.when == "start":
            yield from repairs_by_the_owner(verdict)
            for by in verdict.by:
                yield from _owner(by, verdict, prepared.stack)
    for ballot in decision.ballots:
        if ballot.effect == "deny":
            yield Repair("ask_decider", f"ask whoever runs the decider `{ballot.decider}`: {ballot.reason}")
    if decision.effect != "deny" and prepared.selection.chosen is None:
        yield ENABLE_BACKEND


def _people(asked: Asked, prepared: Prepared, attempt: Callable[[Asked], Prepared]) -> Iterator[Repair]:
    before = prepared.decision.effect
    persons = [person for hit in prepared.decision.hits for person in _persons(hit, prepared)]
    for text, subject in {(text, repr(subject)): (text, subject) for text, subject in persons}.values():
        request = asked.request.model_copy(update={"subject": subject})
        try:
            after = attempt(replace(asked, request=request))
        except LicetError:
            continue
        if after.selection.chosen is not None and _is_better(after.decision.effect, before):
            yield Repair("other_person", text, leads_to=after.decision.effect)


def _is_better(effect: Effect, before: Effect) -> bool:
    return effect == "allow" or (effect == "ask" and before == "deny")


def _persons(hit: Hit, prepared: Prepared) -> Iterator[tuple[str, Subject]]:
    """Who would not be met by a rule that applies, as far as its conditions name people."""
    subject = prepared.request.subject
    for leaf, test in zip(hit.rule.condition.leaves, hit.rule.condition.tests, strict=True):
        if not isinstance(test, KeyTest):
            continue
        words = [word for word in test.words if isinstance(word, str)]
        if leaf.clause == "unless" and words:
            for word in words:
                if (person := _with(subject, test.key, word)) is not None:
                    yield f"have somebody run it who {_IS[_head(test.key)].format(test.key, word)}", person
        elif leaf.clause == "if" and reader(test.key)(subject, prepared.facts.language) is None:
            if (person := _with(subject, test.key, _ANOTHER)) is not None:
                named = " or ".join(f"`{word}`" for word in words)
                text = f"say the {test.key}, if it is not {named}: nobody did, so `{hit.rule.id}` counts"
                yield text, person
        elif leaf.clause == "if" and test.key == "group":
            kept = tuple(group for group in subject.groups if group not in words)
            names = " or ".join(f"`{word}`" for word in words)
            person = subject.model_copy(update={"groups": kept})
            yield f"have somebody run it who is not of {names}", person


_IS = {
    "group": "is of the {0} `{1}`",
    "subject": "is `{1}`",
    "type": "is a `{1}`",
    "tenant": "belongs to the {0} `{1}`",
    "property": "has the {0} `{1}`",
}


def _head(key: str) -> str:
    return key.partition(".")[0]


def _with(subject: Subject, key: str, word: str) -> Subject | None:
    """The subject with `word` under a key of conditions."""
    named = subject.model_copy(update={"id": _SOMEBODY}) if subject.id in ("", "unknown") else subject
    match _head(key):
        case "group":
            return named.model_copy(update={"groups": (*subject.groups, word)})
        case "subject":
            return subject.model_copy(update={"id": word})
        case "type":
            return named.model_copy(update={"type": word})
        case "tenant":
            return subject.model_copy(update={"tenant": word})
        case "property":
            properties = {**subject.properties, key.partition(".")[2]: word}
            return subject.model_copy(update={"properties": properties})
    return None


def _owner(by: By, verdict: Verdict, stack: PolicyStack) -> Iterator[Repair]:
    line = verdict.intent.line
    if by.document == LANGUAGE:
        if by.rule.startswith("never grantable"):
            yield Repair("nobody", f"nobody can open this: {verdict.reason}", line)
        return
    owner = "the administrator" if by.document in stack.managed else "the owner"
    if by.rule.startswith("deny: "):
        yield Repair("change_policy", f"have {owner} of {by} take `{by.rule}` back", line)
    elif by.rule.startswith("allow: ") or (by.document != stack.root.file and by.rule.startswith(_OMITS)):
        yield Repair("change_policy", f"have {owner} of {by} allow all of `{verdict.intent}`", line)
    elif not by.rule.startswith(_OMITS):
        yield Repair("change_policy", f"have {owner} of {by} change the rule `{by.rule}`", line)


_OMITS = ("no `", "tools")
