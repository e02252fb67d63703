"""What somebody is asked, as one document: all that decides what runs, whole, and the digest of it.

Rules this module keeps:

- nothing is shortened and nothing is left out that decides what runs; texts stand as they are, so whoever
  shows them escapes them;
- two matters that differ in anything that is here never have one document: what JSON can't say has a form
  of its own, as values have that cross into a sandbox;
- an answer names `shown`, the keyed digest of the document; what runs is bound by the digest of the plan or
  of the call, which the document holds;
- `fields` are digests of its parts one by one, and the policy is none of them: it can't vary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from licet import units
from licet.approvals.clocks import Moment
from licet.approvals.comparing import difference
from licet.approvals.deceptions import suspicions
from licet.approvals.forms import ApprovalRequest, StoredApproval
from licet.approvals.occasions import Call, Connection, tool_shown, wired
from licet.approvals.spelling import exact, key
from licet.contract import Level
from licet.decide import Decision, Verdict
from licet.digests import Digest
from licet.plain import canonical, plain
from licet.plan import ExecutionPlan, Opened
from licet.policy.parts import DEFAULT_APPROVAL, Approval
from licet.prepare import Prepared
from licet.request import Subject
from licet.select import Chosen
from licet.waiting import WaitingCall

_LAST_INSTANT = 253402300799.0  # the end of the year 9999, beyond which RFC 3339 has no dates


def of_run(
    prepared: Prepared,
    run_id: str,
    approval_id: str,
    asked: Moment,
    digest: Digest,
    previous: StoredApproval | None = None,
) -> ApprovalRequest:
    """What is asked about a run before it begins; `previous` is what was approved before it, to compare with.

    Raises:
        ValueError: no backend was chosen, so nothing is known that could be approved.
    """
    chosen = _chosen(prepared)
    matter = _Matter("run", prepared, chosen, prepared.decision, chosen.plan_digest, chosen.opened)
    return matter.request(run_id, approval_id, asked, digest, previous)


def of_call(
    prepared: Prepared,
    plan: ExecutionPlan,
    waiting: WaitingCall,
    decision: Decision,
    approval_id: str,
    asked: Moment,
    digest: Digest,
    previous: StoredApproval | None = None,
) -> ApprovalRequest:
    """What is asked about a tool call or a connection that waits; `decision` is that on it.

    Raises:
        ValueError: the tool is not passed, or the arguments don't fit it.
    """
    chosen = _chosen(prepared)
    about = Call.of(prepared, waiting) if waiting.kind == "tool" else Connection.of(waiting)
    matter = _Matter("call", prepared, chosen, decision, waiting.digest, plan.opened, about)
    return matter.request(plan.run_id, approval_id, asked, digest, previous)


def is_whole(request: ApprovalRequest, digest: Digest) -> bool:
    """Whether a request that was kept is about the run and the approval that its document was shown for."""
    told = request.document
    same = (told.get("id"), told.get("run_id")) == (request.id, request.run_id)
    return same and digest("shown", canonical(told)) == request.shown


def _chosen(prepared: Prepared) -> Chosen:
    if prepared.selection.chosen is None:
        raise ValueError("no backend was chosen, so there is nothing to approve")
    return prepared.selection.chosen


@dataclass(frozen=True, slots=True)
class _Matter:
    """What is asked about, before it has an id and a time."""

    kind: Literal["run", "call"]
    prepared: Prepared
    chosen: Chosen
    decision: Decision
    digest: str
    opened: Opened
    about: Call | Connection | None = None

    @property
    def call(self) -> Call | None:
        """The call of a tool that this is about."""
        return self.about if isinstance(self.about, Call) else None

    @property
    def connection(self) -> Connection | None:
        """The connection that this is about."""
        return self.about if isinstance(self.about, Connection) else None

    def request(
        self,
        run_id: str,
        approval_id: str,
        asked: Moment,
        digest: Digest,
        previous: StoredApproval | None,
    ) -> ApprovalRequest:
        demands = self.decision.demands or (DEFAULT_APPROVAL,)
        requirements = tuple(dict.fromkeys(one.over(DEFAULT_APPROVAL) for one in demands))
        expires = min(_expires(one) for one in requirements)
        about = exact(self._about())
        document = {
            "licet": 1,
            "id": approval_id,
            "run_id": run_id,
            "kind": self.kind,
            "digest": self.digest,
            "asked_at": _instant(asked.wall),
            "expires_at": _instant(asked.wall + expires),
            "requirements": exact([_requirement(one) for one in requirements]),
            **about,
            "previous": None if previous is None else exact(_compared(previous, about)),
        }
        return ApprovalRequest(
            id=approval_id,
            run_id=run_id,
            kind=self.kind,
            digest=self.digest,
            shown=digest("shown", canonical(document)),
            document=document,
            fields=self._fields(about, digest),
            policy_digest=self.decision.policy_digest,
            requirements=requirements,
            requester=self.prepared.request.subject,
            asked=asked,
            expires=expires,
        )

    def _about(self) -> dict[str, Any]:
        """All that the document says of the matter itself."""
        request, stack = self.prepared.request, self.prepared.stack
        return {
            "requester": _requester(request.subject),
            "policy": {"name": stack.name, "digest": self.decision.policy_digest},
            "intents": None if request.intents is None else sorted({str(one) for one in request.intents}),
            **_verdicts(self.decision, at_once=self.kind == "call"),
            "ballots": [asdict(one) for one in self.decision.ballots],
            "code": request.code,
            "code_bytes": len(request.code.encode("utf-8", "surrogatepass")),
            "code_lines": request.code.removesuffix("\n").count("\n") + 1 if request.code else 0,
            "inputs": wired(request.inputs),
            "stdin": request.stdin,
            "files": [{"path": one.path, "host": one.host} for one in request.files],
            "limits": request.limits.stated(),
            "workdir": request.workdir,
            "environment": request.environment,
            "tools": {name: tool_shown(tool, self.prepared) for name, tool in request.tools.items()},
            "learn": self.decision.learn,
            "surroundings": {"clock": stack.clock, "random": stack.random, **self._python()},
            "call": self.call.shown() if self.call else None,
            "connection": self.connection.shown() if self.connection else None,
            "sandbox": _sandbox(self.chosen, self.opened),
            "metadata": request.metadata,
            "suspicious": self._suspicious(),
        }

    def _python(self) -> dict[str, Any]:
        python = self.prepared.python
        return {"python": python.as_json()} if python is not None else {}

    def _suspicious(self) -> list[dict[str, Any]]:
        request, subject = self.prepared.request, self.prepared.request.subject
        beside = {
            "metadata": [request.metadata],
            "requester": [subject.model_dump()],
            "intents": [verdict.intent.target for verdict in self.decision.verdicts],
            "reasons": [verdict.reason for verdict in self.decision.verdicts],
            "ballots": [(one.decider, one.reason) for one in self.decision.ballots],
            "files": [(one.path, one.host) for one in request.files],
            "environment": [request.environment],
            "workdir": [request.workdir],
            "call": [*self.call.kwargs] if self.call else [],
        }
        arguments = self.call.arguments() if self.call else {}
        return [
            *suspicions("code", [request.code], code=True),
            *suspicions("stdin", [request.stdin.decode("utf-8", "replace")]),
            *(one for name, value in request.inputs.items() for one in _inside(f"input {name}", value)),
            *(one for name, value in arguments.items() for one in _inside(f"argument {name}", value)),
            *(one for where, parts in beside.items() for one in _inside(where, parts)),
        ]

    def _fields(self, about: Mapping[str, Any], digest: Digest) -> dict[str, str]:
        """The digest of each part, so that a grant can tell what may vary."""
        sandbox, contract = about["sandbox"], self.chosen.descriptor.sandbox_enforcement_contract
        parts = {
            "code": about["code"],
            "workdir": about["workdir"],
            "backend": [sandbox["backend"], sandbox["version"]],
            "contract": exact(contract.levels),
        }
        if self.connection is not None:
            parts["target"] = self.connection.target
        elif self.call is not None:
            parts["tool"] = [self.call.tool.name, exact(self.call.about)]
            arguments = wired(self.call.arguments())
            parts |= {f"arg:{key(name)}": wire for name, wire in arguments.items()}
        else:
            named = ("intents", "stdin", "limits", "files", "environment", "tools", "learn", "surroundings")
            parts |= {name: about[name] for name in named}
            parts |= {f"input:{name}": wire for name, wire in about["inputs"].items()}
            parts["opened"] = sandbox["opened"]
        return {name: digest(f"field {name}", canonical(part)) for name, part in parts.items()}


def _verdicts(decision: Decision, *, at_once: bool) -> dict[str, Any]:
    """What asks, what is allowed with it, and what is decided later, when it happens."""
    now: list[Verdict] = []
    later: list[Verdict] = []
    for one in decision.verdicts:
        (now if at_once or one.intent.when == "start" else later).append(one)
    return {
        "asks": [_verdict(one) for one in now if one.effect == "ask"],
        "also": [_verdict(one) for one in now if one.effect == "allow"],
        "later": [{**_verdict(one), "effect": one.effect} for one in later],
    }


def _verdict(one: Verdict) -> dict[str, Any]:
    intent = one.intent
    return {
        "intent": {
            "action": intent.action,
            "target": intent.target,
            "source": intent.source,
            "line": intent.line,
            "when": intent.when,
        },
        "by": [{"document": by.document, "line": by.line, "rule": by.rule} for by in one.by],
        "reason": one.reason,
    }


def _requester(subject: Subject) -> dict[str, Any]:
    """Who asks; a number among the properties is told from a text that spells it."""
    said = subject.model_dump(exclude_none=True)
    said["properties"] = {name: _number(value) for name, value in subject.properties.items()}
    return said


def _number(value: object) -> object:
    if type(value) is float:
        return {"$type": "float", "value": repr(value)}
    if type(value) is int and type(plain(value)) is str:
        return {"$type": "int", "hex": hex(value)}
    return value


def _requirement(one: Approval) -> dict[str, Any]:
    return {
        "count": one.count,
        "from": one.sources,
        "reviewer": one.reviewer,
        "expires": one.expires,
        "unattended": one.unattended,
    }


def _expires(one: Approval) -> float:
    assert one.expires is not None  # the default states all
    return one.expires


def _sandbox(chosen: Chosen, opened: Opened) -> dict[str, Any]:
    """What the code runs in, and what that holds: `partial/probed` is a level and what it rests on."""
    contract = chosen.descriptor.sandbox_enforcement_contract
    weak = (Level.not_enforced, Level.planned)
    held = {control.value: claim for control, claim in contract.items() if claim.level not in weak}
    return {
        "backend": chosen.descriptor.name,
        "version": chosen.descriptor.version,
        "isolation": chosen.isolation,
        "opened": opened.as_json(),
        "enforces": {name: f"{claim.level.value}/{claim.evidence.value}" for name, claim in held.items()},
        "gaps": {name: claim.gaps for name, claim in held.items() if claim.gaps},
        "not_enforced": [control.value for control, claim in contract.items() if claim.level in weak],
    }


def _compared(previous: StoredApproval, about: Mapping[str, Any]) -> dict[str, Any]:
    """The last that was approved, by whom, and what is different now."""
    approving = [given for given in previous.given if given.answer.approve]
    return {
        "approval": previous.request.id,
        "answered_at": _instant(max(given.at.wall for given in approving)) if approving else None,
        "by": [given.answer.person.id for given in approving],
        "diff": difference(previous.request.document, about),
    }


def _inside(where: str, value: object) -> list[dict[str, Any]]:
    return suspicions(where, _texts(value))


def _texts(value: object) -> Iterable[str]:
    """All texts in a value, in whatever it is nested."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            pending += (*one.keys(), *one.values())
        elif isinstance(one, (list, tuple, set, frozenset)):
            pending += one


def _instant(seconds: float) -> str:
    return units.show_moment(min(seconds, _LAST_INSTANT))
