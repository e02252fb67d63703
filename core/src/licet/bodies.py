"""What each record says: one function a kind, from stage values to plain content.

Rules this module keeps:

- content (code, inputs, output, arguments, values of variables, excerpts) is never here, only digests;
- what was claimed by a contract, what was configured for the run, what was observed of it, and what is
  unknown stand apart;
- what runs of one shape have in common is made plain once for all of them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from licet import keeping
from licet.applying import Hit
from licet.approvals.forms import StoredApproval
from licet.backend import Descriptor, Termination
from licet.calling import of_python
from licet.contract import Blocker
from licet.decide import Decision, Verdict
from licet.digests import Digest
from licet.plain import Plain, plain, plain_body
from licet.plan import ExecutionPlan, Opened
from licet.policy import PolicyStack
from licet.prepare import Prepared
from licet.report import versions
from licet.request import CodeNeeds, Limits, NormalizedRequest, Subject, Tool
from licet.result import Protection
from licet.scrubbing import Clean, Finding
from licet.select import Candidate, Chosen, Selection
from licet.writes.settling import Recovered
from licet.writes.staged import Change, Written

if TYPE_CHECKING:
    from licet.probe.attack import Attack
    from licet.probe.results import ProbeResult


def request(prepared: Prepared, caller_span: str | None = None, rerun_of: str | None = None) -> Plain:
    """Who asks for what, and when: with the decision, all that it takes to decide it again."""
    body = Plain(prepared.shared.once("request", lambda: _asked(prepared)))
    body["at"] = prepared.facts.at.isoformat()
    body["took_ns"] = Plain(prepared.took_ns)
    if caller_span:
        body["caller_span"] = plain(caller_span)
    if rerun_of:
        body["rerun_of"] = plain(rerun_of)
    return body


def _asked(prepared: Prepared) -> Plain:
    normalized = prepared.request
    return plain_body(
        {
            "subject": normalized.subject.model_dump(exclude_none=True),
            "digests": normalized.digests.as_json(),
            "code_bytes": normalized.code_bytes,
            "stdin_bytes": normalized.stdin_bytes,
            "inputs": sorted(normalized.inputs),
            "tools": sorted(normalized.tools),
            **_signatures(normalized),
            "environment": sorted(normalized.environment),
            "workdir": normalized.workdir,
            "limits": _limits(normalized.limits),
            "asked_limits": _limits(normalized.asked),
            "learn": normalized.learn,
            "intents": None if normalized.intents is None else [str(intent) for intent in normalized.intents],
            "needs": _needs(prepared.needs),
            "imports": prepared.report.imports,
            "numbers": _numbers(normalized.subject),
            "requirements": normalized.requirements,
            "changes": normalized.changes,
            "metadata": normalized.metadata,
            **({"files": normalized.files} if normalized.files else {}),
            **keeping.left_out(prepared),
            **versions(),
        }
    )


def _signatures(normalized: NormalizedRequest) -> dict[str, Any]:
    """What Python says that the tools take: a call can't be understood again without it."""
    if not normalized.tools:
        return {}
    found = {name: of_python(tool.handler) for name, tool in sorted(normalized.tools.items())}
    return {"signatures": {name: one.as_json() for name, one in found.items() if one is not None}}


def _needs(needs: CodeNeeds) -> dict[str, Any]:
    """What the code needs of an interpreter; names of the language, none of the code's own."""
    return {
        "syntax": sorted(needs.syntax),
        "modules": sorted(needs.modules),
        "builtins": sorted(needs.builtins),
        "members": sorted(needs.members),
        "stdin": needs.stdin,
    }


def _numbers(subject: Subject) -> list[str]:
    """The properties whose numbers a record can only hold as texts, so that a reader can tell."""
    properties = subject.properties.items()
    return sorted(name for name, value in properties if _is_number(value) and type(plain(value)) is str)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@lru_cache(maxsize=64)
def _limits(limits: Limits) -> Plain:
    return plain_body(limits.stated())


@lru_cache(maxsize=256)
def decision(decided: Decision, stack: PolicyStack) -> Plain:
    """What was decided, by which entries of which policy."""
    return plain_body(
        {
            "effect": decided.effect,
            "learn": decided.learn,
            "policy": stack.name,
            "policy_digest": decided.policy_digest,
            "policy_stale": stack.stale,
            **versions(),
            "documents": [document.file for document in stack.documents],
            "verdicts": [verdict(one) for one in decided.verdicts],
            "violations": [
                {"code": found.code, "line": found.line, "refused": found in decided.refusals}
                for found in decided.violations
            ],
            "opened": decided.opened,
            "clock": stack.clock,
            "random": stack.random,
            **_beside(decided),
        }
    )


def call(decided: Decision, tool: Tool | None) -> dict[str, Any]:
    """The decision on one call of a tool, and what its author says of it."""
    about, *objections = decided.verdicts
    return {
        "effect": decided.effect,
        "verdict": verdict(about),
        "objections": [verdict(one) for one in objections],
        "touches": [str(act) for act in tool.touches] if tool else [],
        "idempotent": tool is not None and tool.idempotent,
        **_beside(decided),
    }


def connection(decided: Decision) -> dict[str, Any]:
    """The decision on one connection that the plan does not open."""
    about, *objections = decided.verdicts
    return {
        "effect": decided.effect,
        "verdict": verdict(about),
        "objections": [verdict(one) for one in objections],
        **_beside(decided),
    }


def _beside(decided: Decision) -> dict[str, Any]:
    """What rules, documents that only rehearse and other deciders said."""
    return {
        "rules": [hit(one) for one in decided.hits],
        "pending": [rule.id for rule in decided.pending],
        "demands": [str(demand) for demand in decided.demands],
        "rehearsals": [
            {
                "document": one.document,
                "effect": one.effect,
                "verdicts": [verdict(each) for each in one.verdicts],
                "rules": [hit(each) for each in one.hits],
            }
            for one in decided.rehearsals
        ],
        "ballots": decided.ballots,
    }


def hit(one: Hit) -> dict[str, Any]:
    """A rule that applies, with the value of each leaf of its condition."""
    return {
        "rule": one.rule.id,
        "where": str(one.rule.where),
        "truth": one.truth,
        "leaves": [
            {"clause": answer.leaf.clause, "text": answer.leaf.text, "truth": answer.truth, "why": answer.why}
            for answer in one.answers
        ],
    }


def verdict(one: Verdict) -> dict[str, Any]:
    """The answer for one intent."""
    intent = one.intent
    return {
        "intent": str(intent),
        "source": intent.source,
        "line": intent.line,
        "when": intent.when,
        "effect": one.effect,
        "by": [f"{by} {by.rule}" for by in one.by],
        "reason": one.reason,
    }


def attacks(backend: Descriptor, planned: Sequence[Attack]) -> dict[str, Any]:
    """What is about to be tried on a backend, for evidence."""
    return {
        "backend": backend.name,
        "version": backend.version,
        "contract": backend.sandbox_enforcement_contract.digest,
        "attacks": [str(attack) for attack in planned],
    }


def receipts(backend: Descriptor, results: Sequence[tuple[ProbeResult, bool]]) -> dict[str, Any]:
    """What came of it, each result with whether a claim covers it; digests are those of the receipts."""
    counts = Counter(result.outcome.value for result, claimed in results if claimed)
    return {
        "backend": backend.name,
        "version": backend.version,
        **{outcome: counts[outcome] for outcome in ("held", "leaked", "inconclusive")},
        "unclaimed": len(results) - counts.total(),
        "results": [
            {
                "attack": f"{result.control}/{result.variant}",
                "outcome": result.outcome,
                "claimed": claimed,
                "observed": result.observed,
                "twin": result.twin,
                "when": result.date,
                "fingerprint": result.fingerprint,
                "digest": result.digest,
            }
            for result, claimed in results
        ],
    }


def selection(selected: Selection) -> dict[str, Any]:
    """Which backend was chosen, and what every other fell short of."""
    chosen = selected.chosen
    return {
        "backend": selected.backend,
        "candidates": [_candidate(one) for one in selected.candidates],
        "required": chosen.levels if chosen else {},
        "evidence": chosen.proof.digest if chosen and chosen.proof else None,
        "plan_digest": chosen.plan_digest if chosen else None,
    }


@lru_cache(maxsize=256)
def _candidate(candidate: Candidate) -> Plain:
    return plain_body(
        {
            "name": candidate.name,
            "satisfies": candidate.satisfies,
            "blockers": [_shortfall(blocker) for blocker in candidate.blockers],
            "refuted": candidate.refuted,
        }
    )


def authorization(
    state: Literal["not_needed", "granted", "denied"], reason: str, approval: StoredApproval | None = None
) -> Plain:
    """Whether the run, or the call that waits, may go on, and by which approval."""
    by = {"approval": approval.request.id} if approval is not None else {}
    return plain_body({"state": state, "reason": reason, **by})


def execution(plan: ExecutionPlan, chosen: Chosen) -> dict[str, Any]:
    """What is about to run, and what the sandbox claims to enforce."""
    return {
        "backend": plan.backend,
        "version": chosen.descriptor.version,
        "plan_digest": plan.plan_digest,
        "isolation": chosen.isolation,
        "contract": plan.contract.digest,
        "claimed": plan.contract.levels,
        "opened": _opened(plan.opened),
        "governs": sorted(chosen.descriptor.governs),
        **({"python": plan.python.as_json()} if plan.python is not None else {}),
    }


@lru_cache(maxsize=256)
def _opened(opened: Opened) -> Plain:
    return plain_body(opened.as_json())


def commit(changes: Sequence[Change], digest: Digest) -> dict[str, Any]:
    """What is about to be written to the host."""
    return {
        "changes": [
            {
                "path": one.path,
                "change": one.change,
                "bytes": one.file.bytes if one.file else None,
                "digest": digest("file", bytes.fromhex(one.file.sha256)) if one.file else None,
            }
            for one in changes
        ]
    }


def recovered(one: Recovered) -> dict[str, Any]:
    """What became of a commit that a process left open by dying."""
    return {
        "event": "writes_recovered",
        "run": one.run_id,
        "outcome": one.outcome,
        "paths": one.paths,
        "reason": one.reason,
    }


def result(
    clean: Clean,
    protection: Protection,
    written: Written,
    digest: Digest,
    *,
    scrubbers: Sequence[str],
    tool_calls: int,
    accesses: int,
    surroundings: Mapping[str, int],
) -> dict[str, Any]:
    """How it ended, and what was seen of its protection: apart from what was claimed before it.

    `scrubbers` are those who looked at what is `clean` now. `took_ns` is how long the digests took, which
    are made after the code has ended.
    """
    began_ns = time.monotonic_ns()
    outcome, output = clean.outcome, clean.output
    error = outcome.error
    content = contents(output.stdout, output.stderr, outcome.value_repr)
    return {
        "termination": outcome.termination,
        "success": outcome.succeeded and written.refused is None,
        "writes": written.state,
        "writes_refused": written.refused,
        "exit_code": outcome.exit_code,
        "error": {"type": error.type, "line": error.line} if error else None,
        "usage": outcome.usage,
        "stdout_bytes": output.stdout_bytes,
        "stderr_bytes": output.stderr_bytes,
        "stdout_truncated": output.stdout_truncated,
        "stderr_truncated": output.stderr_truncated,
        "digests": digests_of(content, digest),
        "configured": protection.configured,
        "observed": protection.observed,
        "unknown": protection.unknown,
        "scrubbers": scrubbers,
        "scrubbed": [finding(one) for one in clean.findings],
        "tool_calls": tool_calls,
        "accesses": accesses,
        "surroundings": surroundings,
        "took_ns": time.monotonic_ns() - began_ns,
    }


def contents(stdout: str, stderr: str, value: str | None) -> dict[str, str]:
    """What code leaves that is digested, by name; `value` is a repr."""
    return {"stdout": stdout, "stderr": stderr, "value": value or ""}


def digests_of(content: Mapping[str, str], digest: Digest) -> dict[str, str]:
    """The digests of `contents`."""
    return {name: digest(name, text.encode("utf-8", "surrogatepass")) for name, text in content.items()}


def refusal(termination: Termination, detail: str) -> dict[str, Any]:
    """A run that ended before anything ran."""
    return {"termination": termination, "success": False, "detail": detail, "executed": False}


def finding(one: Finding) -> dict[str, Any]:
    """What was taken out of one channel; never the secret."""
    return {"channel": one.channel, "kind": one.kind, "count": one.count, "reason": one.reason}


def _shortfall(blocker: Blocker) -> str:
    return f"{blocker.what}: asked {blocker.asked}, offered {blocker.offered}"
