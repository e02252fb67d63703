"""Every name of OpenTelemetry that licet writes: spans, attributes, metrics. No other module has one.

Rules this module keeps:

- every name of ours begins with `licet.`; all others are those of the semantic conventions, and mean there
  what they mean here; `SCHEMA_URL` is pinned to the version that was looked at;
- `gen_ai.*` names are still in development there, so nothing but this module would have to follow them;
- each name has its meaning beside it; the page `docs/reference/telemetry.md` is made from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from licet import telemetry

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
SCOPE = "licet"

Type = Literal["string", "int", "double", "boolean", "string[]"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a span: its type there, and what it means."""

    name: str
    type: Type
    meaning: str


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its instrument, its unit, what it counts or measures, and its attributes."""

    name: str
    instrument: Literal["counter", "gauge", "histogram"]
    unit: str
    meaning: str
    attributes: tuple[str, ...] = ()


ATTRIBUTES: dict[str, Attribute] = {}
"""All attributes, in the order of the page."""


def _attribute(name: str, type: Type, meaning: str) -> str:
    ATTRIBUTES[name] = Attribute(name, type, meaning)
    return name


# -- spans

RUN = telemetry.RUN
VERIFY = telemetry.VERIFY
NORMALIZE = "licet.normalize"
DECIDE = "licet.decide"
PROBE = "licet.probe"
SELECT = "licet.select"
AUTHORIZE = "licet.authorize"
APPROVAL = "licet.approval"
APPROVAL_REQUEST = "licet.approval.request"
APPROVAL_RESOLVE = "licet.approval.resolve"
EXECUTE = "licet.execute"
EXECUTE_TOOL = "execute_tool"
ACCESS = "licet.access"
COMMIT = "licet.commit"
RESULT = "licet.result"
LOG_SPAN = "licet.log"

SPANS: dict[str, str] = {
    RUN: "a whole run, from its request to its result; child of the caller's current span",
    VERIFY: "a whole `licet backends verify`",
    NORMALIZE: "the request is normalised and its code screened",
    DECIDE: "policy decides on the request; below `execute_tool`, on one call",
    PROBE: "attacks on one backend, from the record before them to the one after",
    SELECT: "a backend is selected",
    AUTHORIZE: "whether the run may go on",
    APPROVAL_REQUEST: "somebody is asked to approve; it ends at once, and waits for nobody",
    APPROVAL_RESOLVE: "it is granted, or over; linked to the span that asked, where that is known",
    APPROVAL: "another step of an approval: an answer, a run that waits or is resumed, a use",
    EXECUTE: "the code runs in the sandbox",
    f"{EXECUTE_TOOL} NAME": "one call of the tool NAME by running code; what the tool does is below it",
    ACCESS: "a file access, a connection or a reading of the clock that a backend surfaced",
    COMMIT: "what the code wrote is about to be written to the host",
    RESULT: "output is digested and the result recorded",
    LOG_SPAN: "what the log says of itself; only in an export, since it belongs to no run",
}
"""The meaning of each span."""

STEPS = {
    "request": NORMALIZE,
    "decision": DECIDE,
    "probe": PROBE,
    "selection": SELECT,
    "authorization": AUTHORIZE,
    "approval": APPROVAL,
    "execution": EXECUTE,
    "tool_call": EXECUTE_TOOL,
    "access": ACCESS,
    "commit": COMMIT,
    "result": RESULT,
    "log": LOG_SPAN,
}
"""The span of each kind of record."""

# -- attributes: where in the trail

RUN_ID = _attribute("licet.run.id", "string", "the run")
RECORD_ID = _attribute("licet.record.id", "string", "LOG/SEQ of the record that ends this span")
LOG = _attribute("licet.audit.log", "string", "the log that holds the record")
SEQ = _attribute("licet.audit.seq", "int", "the number of that record")
LEAF = _attribute("licet.audit.leaf", "string", "its leaf hash; `licet audit verify` proves it")
KIND = _attribute("licet.record.kind", "string", "logs: the kind of the record")
PHASE = _attribute("licet.record.phase", "string", "logs: `before` or `after` an effect")

# -- attributes: who asks, and for what

USER_ID = _attribute("user.id", "string", "`subject.id`: for whom the run happens")
SESSION_ID = _attribute("session.id", "string", "`subject.session`")
SUBJECT_TYPE = _attribute("licet.subject.type", "string", "`subject.type`")
SUBJECT_GROUPS = _attribute("licet.subject.groups", "string[]", "`subject.groups`")
SUBJECT_TENANT = _attribute("licet.subject.tenant", "string", "`subject.tenant`")
SUBJECT_ON_BEHALF_OF = _attribute("licet.subject.on_behalf_of", "string", "`subject.on_behalf_of`")
SUBJECT_ASSERTED_BY = _attribute("licet.subject.asserted_by", "string", "who vouches for the subject")
CONVERSATION_ID = _attribute("gen_ai.conversation.id", "string", "`metadata` of that name")
AGENT_ID = _attribute("gen_ai.agent.id", "string", "`metadata` of that name")
AGENT_NAME = _attribute("gen_ai.agent.name", "string", "`metadata` of that name")
TOOL_CALL_ID = _attribute("gen_ai.tool.call.id", "string", "`metadata` of that name")
CODE_DIGEST = _attribute("licet.code.digest", "string", "keyed digest of the code")
CODE_SIZE = _attribute("licet.code.size", "int", "bytes of the code")
STDIN_SIZE = _attribute("licet.stdin.size", "int", "bytes of standard input")
REQUEST_INPUTS = _attribute("licet.request.inputs", "string[]", "names of the inputs")
REQUEST_TOOLS = _attribute("licet.request.tools", "string[]", "names of the tools that the caller brings")
REQUEST_INTENTS = _attribute("licet.request.intents", "string[]", "what the caller declares")
REQUEST_CHANGES = _attribute("licet.request.changes", "string[]", "fields that normalising changed")
LEARN = _attribute("licet.request.learn", "boolean", "whether the run is to learn intents")
VERSION = _attribute("licet.version", "string", "version of licet")
SCREEN_VERSION = _attribute("licet.screen.version", "string", "version of what the screen knows")

# -- attributes: the decision

EFFECT = _attribute("licet.decision.effect", "string", "`allow`, `ask` or `deny`")
DENIED = _attribute("licet.decision.denied", "string[]", "intents that are denied")
ASKED = _attribute("licet.decision.asked", "string[]", "intents that need an approval")
REASONS = _attribute("licet.decision.reasons", "string[]", "why they are")
VERDICTS = _attribute("licet.decision.verdicts", "int", "how many intents were decided")
RULES = _attribute("licet.decision.rules", "string[]", "ids of the rules that apply")
VIOLATIONS = _attribute("licet.decision.violations", "string[]", "what the screen found")
DECIDERS = _attribute("licet.decision.deciders", "string[]", "plugins that voted")
RULE_NAME = _attribute("security_rule.name", "string", "id of the first rule that applies")
RULESET_NAME = _attribute("security_rule.ruleset.name", "string", "name of the policy")
POLICY_DIGEST = _attribute("licet.policy.digest", "string", "digest of the policy with its bounds")
POLICY_STALE = _attribute("licet.policy.stale", "string", "why newer text of the policy is not in force")

# -- attributes: the sandbox

BACKEND = _attribute("licet.backend.name", "string", "the backend")
BACKEND_VERSION = _attribute("licet.backend.version", "string", "its version")
CANDIDATES = _attribute("licet.backend.candidates", "string[]", "backends that were weighed")
REJECTED = _attribute("licet.backend.rejected", "string[]", "`NAME: what it falls short of`, the first each")
REQUIRED = _attribute("licet.contract.required", "string[]", "`CONTROL=LEVEL` that the decision demands")
CLAIMED = _attribute("licet.contract.claimed", "string[]", "`CONTROL=LEVEL` that the sandbox claims")
CONFIGURED = _attribute("licet.contract.configured", "string[]", "controls that were set up for this run")
OBSERVED = _attribute("licet.contract.observed", "string[]", "controls that were read back in this run")
UNKNOWN = _attribute("licet.contract.unknown", "string[]", "controls required of which nothing was seen")
CONTRACT = _attribute("licet.contract.digest", "string", "digest of the contract")
EVIDENCE = _attribute("licet.contract.evidence", "string", "digest of the receipts relied on")
ISOLATION = _attribute("licet.isolation", "string", "the weakest boundary that holds files and network")
PLAN_DIGEST = _attribute("licet.plan.digest", "string", "digest of what is executed")
OPENED = _attribute("licet.opened", "string[]", "what is opened, as intents")
ATTACKS = _attribute("licet.probe.attacks", "int", "attacks made")
HELD = _attribute("licet.probe.held", "int", "claims that held")
LEAKED = _attribute("licet.probe.leaked", "int", "claims that are refuted")
INCONCLUSIVE = _attribute("licet.probe.inconclusive", "int", "attacks that prove nothing")
REFUTED = _attribute("licet.probe.refuted", "string[]", "attacks that got through a claim")
AUTHORIZATION = _attribute("licet.authorization.state", "string", "whether the run may go on")
AUTHORIZATION_REASON = _attribute("licet.authorization.reason", "string", "why")

# -- attributes: approvals

APPROVAL_ID = _attribute("licet.approval.id", "string", "the approval; also of an authorization")
APPROVAL_EVENT = _attribute("licet.approval.event", "string", "the step, such as `asked` or `granted`")
APPROVAL_OF = _attribute("licet.approval.of", "string", "`run` or `call`")
APPROVAL_DIGEST = _attribute("licet.approval.digest", "string", "digest of the plan or of the call")
APPROVAL_SHOWN = _attribute("licet.approval.shown.digest", "string", "keyed digest of what people are shown")
APPROVAL_EXPIRES = _attribute("licet.approval.expires", "double", "seconds from asking to use")
APPROVAL_SERVICES = _attribute("licet.approval.services", "string[]", "who is asked, as settings call them")
APPROVAL_ANSWER = _attribute("licet.approval.answer", "string", "`approve` or `deny`")
APPROVAL_COUNTS = _attribute("licet.approval.counts", "boolean", "whether the answer counts")
APPROVAL_SCOPE = _attribute("licet.approval.scope", "string", "how far it reaches: `once session shape`")
APPROVAL_USE = _attribute("licet.approval.use", "int", "the number of a use, from 1")
APPROVAL_SUSPENDED = _attribute("licet.approval.suspended", "boolean", "whether the code had begun")
APPROVER = _attribute("licet.approver.id", "string", "who answered")
APPROVER_REVIEWER = _attribute("licet.approver.reviewer", "string", "`human` or `auto`")
APPROVER_ASSERTED_BY = _attribute("licet.approver.asserted_by", "string", "who vouches for that")
APPROVERS = _attribute("licet.approval.by", "string[]", "whose answers counted")

# -- attributes: calls and accesses

OPERATION = _attribute("gen_ai.operation.name", "string", "`execute_tool`")
TOOL_NAME = _attribute("gen_ai.tool.name", "string", "the tool")
TOOL_TYPE = _attribute("gen_ai.tool.type", "string", "`function`")
CALL_SEQUENCE = _attribute("licet.call.sequence", "int", "the number of the call in its run, from 1")
CALL_DIGEST = _attribute("licet.call.digest", "string", "keyed digest of plan, sequence, tool and arguments")
CALL_RESULT = _attribute("licet.call.result.digest", "string", "keyed digest of what it returned")
CALL_TOUCHES = _attribute("licet.call.touches", "string[]", "what the tool itself reaches on the host")
CALL_IDEMPOTENT = _attribute("licet.call.idempotent", "boolean", "whether a call may be repeated")
CALL_ARGUMENT_SIZE = _attribute("licet.call.arguments.size", "int", "bytes of the arguments in wire form")
CALL_RESULT_SIZE = _attribute("licet.call.result.size", "int", "bytes of the result in wire form")
CALL_OUTCOME = _attribute(
    "licet.call.outcome",
    "string",
    "`returned`, `raised`, `withheld`, `denied`, `refused`, `timed_out`, `unknown` or `unknown tool`",
)
ACTION = _attribute("licet.access.action", "string", "`read`, `write`, `network` or `clock`")
TARGET = _attribute(
    "licet.access.target", "string", "the path, HOST:PORT or what reads the clock, at most 256 characters"
)
ALLOWED = _attribute("licet.access.allowed", "boolean", "the answer")
SERVER_ADDRESS = _attribute("server.address", "string", "host of a connection")
SERVER_PORT = _attribute("server.port", "int", "its port")

# -- attributes: the end

TERMINATION = _attribute("licet.termination", "string", "why the run ended")
SUCCESS = _attribute("licet.success", "boolean", "whether the code ran to a good end")
ERROR_TYPE = _attribute("error.type", "string", "faults of a backend or the log; the status is ERROR then")
EXIT_CODE = _attribute("process.exit.code", "int", "exit code of the code")
GUEST_ERROR = _attribute("licet.code.error.type", "string", "type of the exception that ended the code")
STDOUT_SIZE = _attribute("licet.stdout.size", "int", "bytes written to standard output")
STDERR_SIZE = _attribute("licet.stderr.size", "int", "bytes written to standard error")
STDOUT_DIGEST = _attribute("licet.stdout.digest", "string", "keyed digest of what is kept of it")
STDERR_DIGEST = _attribute("licet.stderr.digest", "string", "keyed digest of what is kept of it")
VALUE_DIGEST = _attribute("licet.value.digest", "string", "keyed digest of the `repr` of the value")
WALL_TIME = _attribute("licet.usage.wall_time", "double", "seconds")
CPU_TIME = _attribute("licet.usage.cpu_time", "double", "seconds")
PEAK_MEMORY = _attribute("licet.usage.peak_memory", "int", "bytes")
BYTES_WRITTEN = _attribute("licet.usage.bytes_written", "int", "bytes")
TOOL_CALLS = _attribute("licet.result.tool_calls", "int", "how many tools were called")
ACCESSES = _attribute("licet.result.accesses", "int", "how many accesses were surfaced")
DETAIL = _attribute("licet.result.detail", "string", "why nothing ran, or what is unknown")
EVENT = _attribute("licet.log.event", "string", "what the log says of itself")

# -- attributes of metrics alone

INTENT_ACTION = _attribute("licet.intent.action", "string", "metrics: `run read write network shell tool`")
OUTCOME = _attribute("licet.probe.outcome", "string", "metrics: `held`, `leaked` or `inconclusive`")

# -- metrics

RUNS = Metric("licet.runs", "counter", "{run}", "runs that ended", (EFFECT, TERMINATION, BACKEND))
RUN_DURATION = Metric(
    "licet.run.duration", "histogram", "s", "from request to result", (EFFECT, TERMINATION, BACKEND)
)
DECISIONS = Metric("licet.decisions", "counter", "{decision}", "decisions on requests and calls", (EFFECT,))
DENIALS = Metric("licet.denials", "counter", "{intent}", "intents denied, by action", (INTENT_ACTION,))
DECISION_DURATION = Metric(
    "licet.decision.duration", "histogram", "s", "normalising, screening and deciding a request", (EFFECT,)
)
EXECUTION_DURATION = Metric(
    "licet.execution.duration", "histogram", "s", "code in its sandbox", (TERMINATION, BACKEND)
)
CALL_DURATION = Metric(
    "licet.call.duration", "histogram", "s", "calls of tools, from the call to its answer", (CALL_OUTCOME,)
)
APPROVALS = Metric(
    "licet.approvals", "counter", "{approval}", "steps of approvals, in runs", (APPROVAL_EVENT,)
)
APPROVAL_DURATION = Metric(
    "licet.approval.duration",
    "histogram",
    "s",
    "from asking to the end of asking, where one process did both",
    (APPROVAL_EVENT,),
)
CLAIMS = Metric(
    "licet.probe.claims", "counter", "{attack}", "attacks on claims of a backend", (BACKEND, OUTCOME)
)
APPEND_DURATION = Metric(
    "licet.log.append.duration", "histogram", "s", "how long a run waited until its records were durable"
)
RECORDS = Metric("licet.log.records", "counter", "{record}", "records that are durable", (KIND,))
UNSIGNED = Metric(
    "licet.log.unsigned",
    "gauge",
    "{record}",
    "durable records that no checkpoint covers yet: when one is due, and once it is made or has failed",
)
LOG_FAILURES = Metric("licet.log.failures", "counter", "{failure}", "appends that failed", (ERROR_TYPE,))
DROPPED = Metric(
    "licet.telemetry.dropped",
    "counter",
    "{item}",
    "live views not made, since a processor is slow",
)

METRICS = (
    RUNS,
    RUN_DURATION,
    DECISIONS,
    DENIALS,
    DECISION_DURATION,
    EXECUTION_DURATION,
    CALL_DURATION,
    APPROVALS,
    APPROVAL_DURATION,
    CLAIMS,
    APPEND_DURATION,
    RECORDS,
    UNSIGNED,
    LOG_FAILURES,
    DROPPED,
)
"""All metrics."""
