"""Putting a test case to a policy: the very functions that decide a run answer it.

Rules this module keeps:

- every document decides, managed bounds too; votes of plugins are not asked for, since they may differ
  tomorrow;
- nothing of this host comes in but the links of paths: no clock, no environment, no user, no backend;
- what happens on the way to a call of a tool is the run and then the call: the more severe answer counts.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from licet import paths
from licet.decide import Decision, Verdict, decide_call
from licet.digests import no_digest
from licet.errors import InvalidPolicy, InvalidRequest, Position
from licet.plan import Opened
from licet.policy import PolicyStack
from licet.policy.cases import Case, MadeCall
from licet.policy.conditions import check_calls
from licet.policy.expectations import State, Wish
from licet.policy.facts import CallFacts, Facts
from licet.policy.parts import Approval
from licet.policy.patterns import WORKDIR, Effect, canonical_target
from licet.policy.references import PACK_PREFIX
from licet.policy.rule import Rule
from licet.policy.signatures import Signature, Type, bind, mismatch
from licet.policy.truth import Truth
from licet.prepare import Prepared, prepare
from licet.request import ExecutionRequest, Intent, Limits
from licet.rules import SEVERITY, answer_of_rule
from licet.units import duration


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a policy says of a case. `facts` is what conditions read, at the call if there is one."""

    case: Case
    prepared: Prepared
    facts: Facts
    call: Decision | None

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """On the run, and on the call if there is one."""
        return (self.prepared.decision,) if self.call is None else (self.prepared.decision, self.call)

    @property
    def effect(self) -> Effect:
        """The most severe of all decisions."""
        return max((one.effect for one in self.decisions), key=SEVERITY.__getitem__)

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self.prepared.request.limits

    @property
    def demands(self) -> tuple[Approval, ...]:
        """Every approval that is needed, equal ones once."""
        return tuple(dict.fromkeys(demand for one in self.decisions for demand in one.demands))

    @property
    def opened(self) -> Opened:
        """What a sandbox may open; nothing, where the answer is deny."""
        return Opened() if self.effect == "deny" else self.prepared.decision.opened

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The answers for what was asked: not for what is open to every run, nor for later calls."""
        of_run = self.prepared.decision.verdicts
        asked = [v for v in of_run if v.intent.source != "granted" and v.intent.when != "call"]
        return (*asked, *(self.call.verdicts if self.call else ()))

    def state(self, rule: Rule) -> State:
        """Whether a rule applies here; what is not known counts as a hit."""
        call = self.facts.call
        if rule.condition.reads_call:
            if call is None:
                return "pending"
            if not rule.matches_tool(call.tool):
                return "miss"
        return "miss" if rule.condition.truth(self.facts) is Truth.false else "hit"

    def own(self, rule: Rule) -> Effect:
        """What a rule by itself says of all that was asked; `allow` means that it stands in nobody's way."""
        if self.state(rule) != "hit":
            return "allow"
        workdir = self.facts.request.workdir
        votes = (answer_of_rule(rule, verdict.intent, workdir) for verdict in self.verdicts)
        effects: list[Effect] = [vote.effect for vote in votes if vote is not None]
        return max(effects, key=SEVERITY.__getitem__, default="allow")


def ask(case: Case, stack: PolicyStack) -> Answer:
    """Put `case` to `stack`.

    Raises:
        InvalidPolicy: the case can't be understood under this policy; with its place.
    """
    beside = beside_of(case)
    workdir = _workdir(case, beside)
    _check_signatures(case, stack)
    names = dict.fromkeys((*(case.tools or {}), *((case.call.tool,) if case.call else ())), _PASSED)
    try:
        prepared = prepare(
            ExecutionRequest(
                code=case.code,
                inputs=case.inputs or {},
                limits=case.limits,
                intents=None if case.intents is None else tuple(_intents(case.intents, beside, workdir)),
                tools=names,
                subject=case.subject,
                metadata=case.metadata or {},
            ),
            stack,
            (),
            at=case.at,
            directory=workdir,
            host_environment={},
            digest=no_digest,
        )
    except InvalidRequest as problem:
        raise InvalidPolicy(problem.message, where=case.where, advice=problem.advice) from None
    if (broken := prepared.syntax_error) is not None:
        raise InvalidPolicy(f"line {broken.line} of the code: {broken.message}", where=case.where)
    if case.call is None:
        return Answer(case, prepared, prepared.facts, None)
    facts = replace(prepared.facts, call=_called(case.call, case, prepared.stack))
    return Answer(case, prepared, facts, decide_call(facts, prepared.stack))


def beside_of(case: Case) -> str:
    """The directory that relative paths of a case start at: that of its file, or for a pack the current."""
    file = case.where.file
    if file.startswith(PACK_PREFIX):
        return paths.current_directory()
    return os.path.realpath(Path(file).parent)


def canonical(wish: Wish, beside: str, workdir: str) -> str | None:
    """The target of a wish, its relative path taken from `beside`, and from `workdir` after that word.

    Raises:
        InvalidPolicy: it is no target; with its place.
    """
    target, base = wish.target, beside
    if wish.action in ("read", "write") and (target == WORKDIR or target.startswith(WORKDIR + "/")):
        target, base = target.removeprefix(WORKDIR).lstrip("/") or ".", workdir
    try:
        return canonical_target(wish.action, target, base=base)
    except ValueError as problem:
        raise InvalidPolicy(f"`{wish}` can't be understood: {problem}", where=wish.where) from None


def _intents(wished: tuple[Wish, ...], beside: str, workdir: str) -> Iterator[Intent]:
    for wish in wished:
        yield Intent(wish.action, canonical(wish, beside, workdir))


def _workdir(case: Case, beside: str) -> str:
    try:
        return paths.canonical(case.workdir or ".", base=beside)
    except ValueError as problem:
        raise InvalidPolicy(f"`workdir` can't be used: {problem}", where=case.where) from None


class _Passed:
    """Stands for a tool of the host, of which Python says nothing: it is decided on, and never called."""

    __signature__ = 0  # no signature, so that `inspect` finds none

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Be a callable."""


_PASSED = _Passed()


def _check_signatures(case: Case, stack: PolicyStack) -> None:
    """Check what a case says of tools as a run checks what Python says of them."""
    for name, signature in (case.tools or {}).items():
        if signature is None:
            continue
        if (declared := stack.tools.get(name)) is None:
            for rule in stack.rulebook.about_calls:
                if rule.matches_tool(name):
                    check_calls(rule.condition, {name: signature})
        elif (how := mismatch(declared, signature)) is not None:
            raise InvalidPolicy(
                f"the tool `{name}` is not what `tools` of {stack.root.file} declares: {how}",
                where=case.where,
            )


def _called(call: MadeCall, case: Case, stack: PolicyStack) -> CallFacts:
    signature = stack.tools.get(call.tool) or (case.tools or {}).get(call.tool)
    args = call.args
    if signature is not None:
        try:
            args = bind(signature, (), typed(call, signature))
        except ValueError as problem:
            raise InvalidPolicy(f"`{call.tool}` {problem}", where=call.where) from None
    return CallFacts(call.tool, args, signature)


def typed(call: MadeCall, signature: Signature) -> Mapping[str, Any]:
    """Arguments as the types of their parameters, where YAML has no such type; others stay as they are.

    Raises:
        InvalidPolicy: a text can't be read as what its parameter takes.
    """
    types = signature.types
    return {
        name: _typed(value, types[name], name, call.where) if name in types else value
        for name, value in call.args.items()
    }


def _typed(value: Any, kind: Type, name: str, where: Position) -> Any:
    if isinstance(value, list) and kind.item is not None:
        return [_typed(one, kind.item, name, where) for one in value]
    if kind.kind == "decimal" and isinstance(value, float):
        return Decimal(str(value))
    read = _READ.get(kind.kind)
    if read is None or not isinstance(value, str):
        return value
    try:
        return read(value)
    except ValueError as problem:
        raise InvalidPolicy(f"`{name}` is no {kind.kind}: {problem}", where=where) from None


_READ: Mapping[str, Callable[[str], Any]] = {
    "bytes": str.encode,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "duration": lambda text: timedelta(seconds=duration(text)),
}
