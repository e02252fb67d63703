"""The request of a recorded run as it was sent, where the log has kept its content.

Rules this module keeps: a request is put together whole or not at all; the reason why not is told; tools are
there by name and do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from licet import values
from licet.policy import PolicyStack
from licet.record import Record
from licet.request import ExecutionRequest
from licet.workbench.history.recorded import NotReplayable, restore, runs

_NOTHING: Mapping[str, bytes] = MappingProxyType({})


def request_of(
    records: Sequence[Record],
    content: Callable[[str], bytes | None],
    stack: PolicyStack,
    given: Mapping[str, bytes] = _NOTHING,
) -> ExecutionRequest:
    """What was asked in the run of these records; `content` has what is kept under a commitment.

    What is `given`, by name, need not be kept.

    Raises:
        NotReplayable: the log lacks something of it, or never kept it.
        AuditUnavailable: content can't be read.
    """
    request = next((one for one in records if one.entry.kind == "request"), None)
    run = next(runs("", records), None)
    if request is None or run is None:
        raise NotReplayable("the log has no request of it")
    restored = restore(run, stack).request

    def part(name: str, *, wanted: bool) -> bytes:
        return given[name] if name in given else _part(request, name, content, wanted=wanted)

    code = part("code", wanted=restored.code_bytes > 0)
    stdin = part("stdin", wanted=restored.stdin_bytes > 0)
    inputs = part("inputs", wanted=bool(restored.inputs))
    try:
        given = values.from_json(inputs) if inputs else {}
        return ExecutionRequest(
            code=code if "code" in given else code.decode("utf-8", "surrogatepass"),
            inputs=given,
            stdin=stdin,
            workdir=restored.workdir,
            limits=restored.asked,
            intents=restored.intents,
            tools=restored.tools,
            subject=restored.subject,
            requirements=restored.requirements,
            metadata=restored.metadata,
            learn=restored.learn,
        )
    except ValueError:
        raise NotReplayable("what is kept of it can't be understood") from None


def _part(request: Record, name: str, content: Callable[[str], bytes | None], *, wanted: bool) -> bytes:
    if not wanted:
        return b""
    committed = request.kept.get(name)
    if not isinstance(committed, str):
        raise NotReplayable(f"its {_CALLED[name]} not kept")
    try:
        found = content(committed)
    except ValueError:  # no commitment
        raise NotReplayable("its record can't be understood") from None
    if found is None:
        raise NotReplayable(f"its {_CALLED[name]} erased")
    return found


_CALLED = {"code": "code is", "stdin": "standard input is", "inputs": "inputs are"}
