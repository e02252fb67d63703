"""Lines of cards that say what a decision rests on: rules, approvals, rehearsals, further deciders.

Rules this module keeps:

- lines are made of the form of `licet explain --json`, so that a decision and its record read alike;
- a rule that counts because something is not known says what nobody said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from licet import units
from licet.cli.nearby import near, nearby
from licet.output import bounded
from licet.request import Intent

Row = tuple[str, str]
_MOST = 300  # characters of what a leaf says
_WOULD = {"deny": "denied", "ask": "asked about", "allow": "allowed"}
_SOURCES = {"declared": "asked", "granted": "granted", "inferred": "seen"}
_VERBS = {"deny": "denies it", "ask": "asks about it"}


def rows(told: Mapping[str, Any], *, everything: bool = False) -> Iterable[Row]:
    """All that follows below; `everything` lists every rule with every leaf."""
    yield from of_approvals(told["demands"])
    yield from of_rules(told["rules"], everything=everything)
    yield from of_ballots(told["ballots"])
    yield from of_rehearsals(told["rehearsals"])
    yield from of_enforcers(told.get("enforced", ()))


def of_enforcers(enforced: Sequence[Mapping[str, Any]]) -> Iterable[Row]:
    """Who keeps which settings; a record has none of it."""
    kept: dict[str, dict[str, None]] = {}
    for one in enforced:
        kept.setdefault(one["who"], {})[one["setting"]] = None
    label = "kept by"
    for who, settings in kept.items():
        yield label, f"{who}: {', '.join(settings)}"
        label = ""


def of_rules(rules: Sequence[Mapping[str, Any]], *, everything: bool = False) -> Iterable[Row]:
    """The rules that apply, and why; of the others how many there are, or all with `everything`."""
    label = "rules"
    for rule in rules:
        if everything or rule["outcome"] in ("hit", "unknown"):
            yield label, _rule(rule)
            label = ""
            if everything:
                yield from (("", f"    {_leaf(leaf)}") for leaf in rule["leaves"])
    counted = Counter(rule["outcome"] for rule in rules)
    rest = [
        text
        for outcome, text in (
            ("missed", f"{counted['missed']} did not apply"),
            ("pending", f"{counted['pending']} will look at the arguments of a call"),
        )
        if counted[outcome]
    ]
    if rest and not everything:
        yield label, ", ".join(rest)


def _rule(rule: Mapping[str, Any]) -> str:
    name = f"`{rule['rule']}`" + (f" ({rule['where']})" if rule["where"] else "")
    match rule["outcome"]:
        case "unknown":
            unknown = [leaf for leaf in rule["leaves"] if leaf.get("truth") == "unknown"]
            return f"{name} counts as a hit: {_reasons(unknown) or 'its condition could not be decided'}"
        case "hit":
            because = _reasons(rule["leaves"])
            return f"{name} applies" + (f": {because}" if because else "")
        case "pending":
            return f"{name} waits for the arguments of a call"
    return f"{name} does not apply"


def _reasons(leaves: Iterable[Mapping[str, Any]]) -> str:
    """What leaves found; one that has no words for it is quoted."""
    said = (leaf.get("why") or f"`{leaf.get('text')}` is {leaf.get('truth')}" for leaf in leaves)
    return bounded("; ".join(map(str, said)), _MOST)


def _leaf(leaf: Mapping[str, Any]) -> str:
    why = f", {bounded(str(leaf['why']), _MOST)}" if leaf.get("why") else ""
    return f"{leaf.get('clause')} {bounded(str(leaf.get('text')), _MOST)}: {leaf.get('truth')}{why}"


def of_approvals(demands: Sequence[Any]) -> Iterable[Row]:
    """Who has to approve, within what time, and what happens where nobody can be asked."""
    label = "approval"
    for demand in demands:
        yield label, demand if isinstance(demand, str) else _demand(demand)
        label = ""


def _demand(demand: Mapping[str, Any]) -> str:
    people = "person" if demand["count"] == 1 else "persons"
    kind = "human " if demand["reviewer"] == "human" else ""
    group = f" of {' or '.join(demand['from'])}" if demand["from"] else ""
    waiting = "waits" if demand["unattended"] == "queue" else "is denied"
    within = units.show_limit("wall_time", demand["expires"])
    return f"by {demand['count']} {kind}{people}{group}, within {within}; {waiting} where nobody is there"


def of_ballots(ballots: Sequence[Mapping[str, Any]]) -> Iterable[Row]:
    """What further deciders said against it."""
    for ballot in ballots:
        if (vote := _VERBS.get(str(ballot.get("effect")))) is not None:
            yield "decider", f"`{ballot.get('decider')}` {vote}: {bounded(str(ballot.get('reason')), _MOST)}"


def of_rehearsals(rehearsals: Sequence[Mapping[str, Any]]) -> Iterable[Row]:
    """What documents that only rehearse would have decided otherwise."""
    label = "dry run"
    for rehearsal in rehearsals:
        for verdict in rehearsal["verdicts"]:
            would_be = _WOULD.get(str(verdict["effect"]), "?")
            by = " and ".join(map(_who, verdict["by"])) or near(str(rehearsal["document"]))
            yield label, f"`{spelled(verdict['intent'])}` would be {would_be} by {by}"
            label = ""


def reason(said: str, effect: str, by: Iterable[Mapping[str, Any]]) -> str:
    """Why an intent got its answer: what one document said, and each other one that says the same."""
    if effect == "allow":
        return said
    return "; ".join(dict.fromkeys((nearby(said), *(_other(one, effect) for one in [*by][1:]))))


def _other(by: Mapping[str, Any], effect: str) -> str:
    if not by["line"]:
        return f"{near(str(by['document']))} leaves it out"
    part = str(by["rule"]).startswith("allow: ")
    return f"{_who(by)} {'allows only a part of it' if part else _VERBS.get(effect, '?')}"


def _who(by: Mapping[str, Any]) -> str:
    """An entry by its place; a rule by its name too."""
    rule = str(by["rule"])
    entry = not by["line"] or rule.startswith(("allow: ", "ask: ", "deny: "))
    return _place(by) if entry else f"the rule `{rule}` ({_place(by)})"


def label(intent: Mapping[str, Any]) -> str:
    """Where an intent comes from, at the left of a card."""
    return f"line {intent['line']}" if intent["line"] else _SOURCES.get(str(intent["source"]), "asked")


def spelled(intent: Mapping[str, Any]) -> str:
    """An intent as policies and cards spell it."""
    return str(Intent(intent["action"], intent["target"]))


def _place(by: Mapping[str, Any]) -> str:
    place = near(str(by["document"]))
    return f"{place}:{by['line']}" if by["line"] else place
