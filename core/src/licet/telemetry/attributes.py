"""What a span says: the attributes of each kind of record, from its body alone.

Rules this module keeps: nothing that is not in the record; nothing here fails, whatever a body holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from licet.telemetry import names as n
from licet.telemetry.values import Attributes, at, mapped, objects, text, texts, value_of

Body = Mapping[str, Any]

_WHO = {
    "subject.id": n.USER_ID,
    "subject.session": n.SESSION_ID,
    "subject.type": n.SUBJECT_TYPE,
    "subject.groups": n.SUBJECT_GROUPS,
    "subject.tenant": n.SUBJECT_TENANT,
    "subject.on_behalf_of": n.SUBJECT_ON_BEHALF_OF,
    "subject.asserted_by": n.SUBJECT_ASSERTED_BY,
}
_REQUEST = _WHO | {
    "digests.code": n.CODE_DIGEST,
    "code_bytes": n.CODE_SIZE,
    "stdin_bytes": n.STDIN_SIZE,
    "inputs": n.REQUEST_INPUTS,
    "tools": n.REQUEST_TOOLS,
    "intents": n.REQUEST_INTENTS,
    "learn": n.LEARN,
    "licet": n.VERSION,
    "screen": n.SCREEN_VERSION,
}
_METADATA = (n.CONVERSATION_ID, n.AGENT_ID, n.AGENT_NAME, n.TOOL_CALL_ID)
_DECISION = {
    "effect": n.EFFECT,
    "policy": n.RULESET_NAME,
    "policy_digest": n.POLICY_DIGEST,
    "policy_stale": n.POLICY_STALE,
}
_PROBE = {
    "backend": n.BACKEND,
    "version": n.BACKEND_VERSION,
    "contract": n.CONTRACT,
    "held": n.HELD,
    "leaked": n.LEAKED,
    "inconclusive": n.INCONCLUSIVE,
}
_SELECTION = {"backend": n.BACKEND, "evidence": n.EVIDENCE, "plan_digest": n.PLAN_DIGEST}
_AUTHORIZATION = {
    "state": n.AUTHORIZATION,
    "reason": n.AUTHORIZATION_REASON,
    "approval": n.APPROVAL_ID,
}
_APPROVAL = {
    "approval": n.APPROVAL_ID,
    "event": n.APPROVAL_EVENT,
    "of": n.APPROVAL_OF,
    "digest": n.APPROVAL_DIGEST,
    "shown": n.APPROVAL_SHOWN,
    "expires": n.APPROVAL_EXPIRES,
    "services": n.APPROVAL_SERVICES,
    "answer": n.APPROVAL_ANSWER,
    "counts": n.APPROVAL_COUNTS,
    "scope": n.APPROVAL_SCOPE,
    "reach.scope": n.APPROVAL_SCOPE,
    "reach.expires": n.APPROVAL_EXPIRES,
    "use": n.APPROVAL_USE,
    "suspended": n.APPROVAL_SUSPENDED,
    "person.id": n.APPROVER,
    "person.reviewer": n.APPROVER_REVIEWER,
    "person.asserted_by": n.APPROVER_ASSERTED_BY,
}
_EXECUTION = {
    "backend": n.BACKEND,
    "version": n.BACKEND_VERSION,
    "plan_digest": n.PLAN_DIGEST,
    "isolation": n.ISOLATION,
    "contract": n.CONTRACT,
}
_CALL = {
    "tool": n.TOOL_NAME,
    "sequence": n.CALL_SEQUENCE,
    "call_digest": n.CALL_DIGEST,
    "outcome": n.CALL_OUTCOME,
    "result_digest": n.CALL_RESULT,
    "touches": n.CALL_TOUCHES,
    "idempotent": n.CALL_IDEMPOTENT,
    "argument_bytes": n.CALL_ARGUMENT_SIZE,
    "result_bytes": n.CALL_RESULT_SIZE,
}
_ACCESS = {"action": n.ACTION, "target": n.TARGET, "allowed": n.ALLOWED}
_RESULT = {
    "termination": n.TERMINATION,
    "success": n.SUCCESS,
    "exit_code": n.EXIT_CODE,
    "error.type": n.GUEST_ERROR,
    "stdout_bytes": n.STDOUT_SIZE,
    "stderr_bytes": n.STDERR_SIZE,
    "digests.stdout": n.STDOUT_DIGEST,
    "digests.stderr": n.STDERR_DIGEST,
    "digests.value": n.VALUE_DIGEST,
    "usage.wall_time": n.WALL_TIME,
    "usage.cpu_time": n.CPU_TIME,
    "usage.peak_memory": n.PEAK_MEMORY,
    "usage.bytes_written": n.BYTES_WRITTEN,
    "unknown": n.UNKNOWN,
    "tool_calls": n.TOOL_CALLS,
    "accesses": n.ACCESSES,
    "detail": n.DETAIL,
}
_OPENED = ("read", "write", "network", "tools")


def who(body: Body) -> Attributes:
    """For whom a run is, from the body of its request: what every root span says, too."""
    metadata = body.get("metadata")
    found = mapped(body, _WHO)
    if isinstance(metadata, Mapping):
        named = ((name, value_of(name, metadata.get(name))) for name in _METADATA)
        found |= {name: value for name, value in named if value is not None}
    return found


def ended(body: Body) -> Attributes:
    """How a run ended, from the body of its result: what its root span says, too."""
    return mapped(body, {"termination": n.TERMINATION, "success": n.SUCCESS})


def attributes(kind: str, body: Body) -> Attributes:
    """What the record of this kind and body says."""
    made = _BY_KIND.get(kind)
    return made(body) if made is not None else {}


def _request(body: Body) -> Attributes:
    found = mapped(body, _REQUEST) | who(body)
    if changes := [one.get("field") for one in objects(body, "changes")]:
        found[n.REQUEST_CHANGES] = texts(changes)
    return found


def decision(body: Body) -> Attributes:
    """What was decided on a request, or in a record of a tool call on that call."""
    found = mapped(body, _DECISION)
    verdicts = list(verdicts_of(body))
    found[n.VERDICTS] = len(verdicts)
    for effect, name in (("deny", n.DENIED), ("ask", n.ASKED)):
        if intents := [one.get("intent") for one in verdicts if one.get("effect") == effect]:
            found[name] = texts(intents)
    if reasons := [one.get("reason") for one in verdicts if one.get("effect") != "allow"]:
        found[n.REASONS] = texts(dict.fromkeys(map(str, reasons)))
    if rules := [one.get("rule") for one in objects(body, "rules")]:
        found |= {n.RULES: texts(rules), n.RULE_NAME: text(rules[0])}
    if violations := [one.get("code") for one in objects(body, "violations")]:
        found[n.VIOLATIONS] = texts(dict.fromkeys(map(str, violations)))
    if deciders := [one.get("decider") for one in objects(body, "ballots")]:
        found[n.DECIDERS] = texts(deciders)
    return found


def verdicts_of(body: Body) -> Iterator[Body]:
    """The verdicts of a decision: on a request, or on one call."""
    yield from objects(body, "verdicts")
    if isinstance(one := body.get("verdict"), Mapping):
        yield one
    yield from objects(body, "objections")


def _probe(body: Body) -> Attributes:
    found = mapped(body, _PROBE)
    if isinstance(planned := body.get("attacks"), (list, tuple)):
        found[n.ATTACKS] = len(planned)
    if refuted := [one.get("attack") for one in objects(body, "results") if is_refuted(one)]:
        found[n.REFUTED] = texts(refuted)
    return found


def is_refuted(result: Body) -> bool:
    """Whether an attack got through what the backend claims."""
    return result.get("claimed") is True and result.get("outcome") == "leaked"


def _selection(body: Body) -> Attributes:
    found = mapped(body, _SELECTION) | _levels(body, "required", n.REQUIRED)
    candidates = objects(body, "candidates")
    if candidates:
        found[n.CANDIDATES] = texts(one.get("name") for one in candidates)
    short = [
        (one.get("name"), one["blockers"]) for one in candidates if isinstance(one.get("blockers"), list)
    ]
    if rejected := [f"{name}: {blockers[0]}" for name, blockers in short if blockers]:
        found[n.REJECTED] = texts(rejected)
    return found


def _approval(body: Body) -> Attributes:
    found = mapped(body, _APPROVAL)
    by = body.get("by")
    if who := [by] if isinstance(by, str) else _listed(by):
        found[n.APPROVERS] = texts(who)
    return found


def _execution(body: Body) -> Attributes:
    found = mapped(body, _EXECUTION) | _levels(body, "claimed", n.CLAIMED)
    opened = [
        f"{action.removesuffix('s')} {target}"
        for action in _OPENED
        for target in _listed(at(body, f"opened.{action}"))
    ]
    if at(body, "opened.shell") is True:
        opened.append("shell")
    return found | ({n.OPENED: texts(opened)} if opened else {})


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _call(body: Body) -> Attributes:
    return {n.OPERATION: n.EXECUTE_TOOL, n.TOOL_TYPE: "function"} | mapped(body, _CALL)


def _access(body: Body) -> Attributes:
    found = mapped(body, _ACCESS)
    target = body.get("target")
    if body.get("action") == "network" and isinstance(target, str):
        host, _, port = target.rpartition(":")
        if host and port.isascii() and port.isdigit() and len(port) <= 5:
            found |= {n.SERVER_ADDRESS: text(host.strip("[]")), n.SERVER_PORT: int(port)}
    return found


def _result(body: Body) -> Attributes:
    found = mapped(body, _RESULT)
    for key, name in (("configured", n.CONFIGURED), ("observed", n.OBSERVED)):
        if isinstance(controls := body.get(key), Mapping) and controls:
            found[name] = texts(controls)
    return found


def _levels(body: Body, key: str, name: str) -> Attributes:
    levels = body.get(key)
    if not isinstance(levels, Mapping) or not levels:
        return {}
    return {name: texts(f"{control}={level}" for control, level in levels.items())}


_BY_KIND: Mapping[str, Callable[[Body], Attributes]] = {
    "request": _request,
    "decision": decision,
    "probe": _probe,
    "selection": _selection,
    "authorization": lambda body: mapped(body, _AUTHORIZATION),
    "approval": _approval,
    "execution": _execution,
    "tool_call": _call,
    "access": _access,
    "result": _result,
    "log": lambda body: mapped(body, {"event": n.EVENT}),
}
