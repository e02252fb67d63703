"""What of a run's content is kept beside its records, under a policy that says `audit: {content: kept}`.

Rules this module keeps:

- under `digest` nothing is kept, and nothing is looked at;
- what is kept is what the digest beside it covers: code as normalised, inputs and arguments as JSON, output
  as it was decoded and shortened to its limits; but of the value, not its repr, which is short: its JSON;
- what is empty is not kept, since the record tells its size; what was refused for its size is named in the
  record instead;
- every size is bounded by a limit of the run, or by the budget of values that cross.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from licet import values
from licet.approvals import telling
from licet.approvals.forms import ApprovalRequest
from licet.backend import Outcome, Reply
from licet.prepare import Prepared
from licet.record import Kept
from licet.result import Output


def of_request(prepared: Prepared) -> tuple[Kept, ...]:
    """Code, standard input and inputs."""
    if not _keeps(prepared):
        return ()
    request = prepared.request
    parts = [("code", _bytes(request.code)), ("stdin", request.stdin)]
    if request.inputs:
        # by name, as they were digested
        parts.append(("inputs", values.to_json(dict(sorted(request.inputs.items()))).encode()))
    return _kept(parts)


def left_out(prepared: Prepared) -> Mapping[str, Mapping[str, str]]:
    """What a record says of the parts of a request that would be kept and were refused for their size."""
    if not _keeps(prepared):
        return {}
    request = prepared.request
    parts = (("code", request.code_bytes, request.code), ("stdin", request.stdin_bytes, request.stdin))
    refused = {name: "larger than its limit" for name, sent, here in parts if sent and not here}
    return {"not_kept": refused} if refused else {}


def of_shown(prepared: Prepared, request: ApprovalRequest) -> tuple[Kept, ...]:
    """What people are shown who are asked for an approval."""
    return (telling.shown(request),) if _keeps(prepared) else ()


def of_call(prepared: Prepared, arguments: str) -> tuple[Kept, ...]:
    """The arguments of a tool call, which are JSON here."""
    return (Kept("arguments", arguments.encode()),) if _keeps(prepared) else ()


def of_reply(prepared: Prepared, reply: Reply) -> tuple[Kept, ...]:
    """What a tool returned or raised."""
    if not _keeps(prepared) or reply.fatal is not None:
        return ()
    if reply.error is not None:
        return _kept([("error", _bytes(reply.error.message))])
    return (Kept("result", values.to_json(reply.value).encode()),)


def of_result(prepared: Prepared, outcome: Outcome, output: Output) -> tuple[Kept, ...]:
    """What the code wrote, its value as JSON, and the message of what it raised."""
    if not _keeps(prepared):
        return ()
    parts = [("stdout", _bytes(output.stdout)), ("stderr", _bytes(output.stderr))]
    if outcome.value_repr is not None:
        parts.append(("value", values.to_json(outcome.value).encode()))
    if outcome.error is not None:
        parts.append(("error", _bytes(outcome.error.message)))
    return _kept(parts)


def _keeps(prepared: Prepared) -> bool:
    return prepared.stack.content_mode == "kept"


def _kept(parts: Iterable[tuple[str, bytes]]) -> tuple[Kept, ...]:
    return tuple(Kept(name, data) for name, data in parts if data)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
