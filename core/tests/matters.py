"""Runs and calls that have to be asked about, made in memory as the runtime makes them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from licet.approvals.clocks import Moment
from licet.approvals.forms import Answer, ApprovalRequest, Given, Person, StoredApproval
from licet.approvals.showing import of_call, of_run
from licet.backend import Descriptor, Language, ToolCall
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.host import RunHost
from licet.policy import PolicyStack
from licet.prepare import Prepared, plan_of, prepare
from licet.request import ExecutionRequest, Subject
from licet.select import Offer
from licet.testing.strategies import document_of
from licet.trail import Trail

AT = datetime(2026, 3, 7, 12, tzinfo=UTC)
ASKED = Moment(AT.timestamp(), 100.0, "boot")
ANN = Subject(id="ann", groups=("shop",), asserted_by="os")
HELD = Enforcement(Level.enforced, "kernel", "a wall", (), Evidence.probed)
EVERY = {control.value: HELD for control in Control}
OPENS = frozenset({"read", "write", "network", "shell", "tool"})
POLICY = "name: acme\nask: [read ./data, run]\nallow: [network api.example.com:443]\n"
CALLS = """\
name: acme
allow: [tool find]
ask: [tool refund]
tools: {refund: {order: string, amount: decimal}}
approval: {count: 2, from: [finance], reviewer: human, expires: 1d}
"""


def digest(name: str, content: bytes) -> str:
    return "hmac-sha256:" + hashlib.sha256(b"key" + name.encode() + b"\0" + content).hexdigest()


def stack_of(policy: str) -> PolicyStack:
    return PolicyStack(document_of(f"licet: 1\n{policy}\n", "root", "/p"), (), ())


def offer(version: str = "1.0", claims: Mapping[str, Enforcement] = EVERY) -> Offer:
    contract = SandboxEnforcementContract(**claims)
    return Offer(Descriptor("strong", version, contract, Language("python"), OPENS, mounts=True))


def prepared(
    code: str = "1\n",
    policy: str = POLICY,
    *,
    host: Mapping[str, str] | None = None,
    backend: Offer | None = None,
    directory: str = "/",
    **fields: Any,
) -> Prepared:
    return prepare(
        ExecutionRequest(code=code, **{"subject": ANN, **fields}),
        stack_of(policy),
        (backend or offer(),),
        at=AT,
        directory=directory,
        host_environment=host or {},
        digest=digest,
    )


def about_run(
    code: str = "1\n", policy: str = POLICY, *, previous: StoredApproval | None = None, **fields: Any
) -> ApprovalRequest:
    return of_run(prepared(code, policy, **fields), "RUN", "APPROVAL", ASKED, digest, previous)


def refund(order: str, amount: Any) -> str:
    return f"{order} {amount}"


class _Trail:
    """Takes whatever it is told."""

    def step(self, *args: object, **kwargs: object) -> None: ...

    async def commit(self) -> None: ...

    def inside(self, key: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


def about_call(
    *args: Any,
    code: str = "refund()\n",
    policy: str = CALLS,
    tools: Any = refund,
    line: int | None = 1,
    called: Mapping[str, Any] | None = None,
    previous: StoredApproval | None = None,
    fields: Mapping[str, Any] | None = None,
) -> ApprovalRequest:
    """What is asked when code calls the tool of that policy, as its host comes to wait for the answer."""
    named = tools if isinstance(tools, dict) else {tools.__name__: tools}
    made = prepared(code, policy, tools=named, **(fields or {}))
    assert made.selection.chosen is not None
    plan = plan_of(made, made.selection.chosen, "RUN")
    host = RunHost(plan, made, cast("Trail", _Trail()), digest, obstacle=lambda demands: None)
    asyncio.run(host.call(ToolCall(next(iter(named)), args, called or {}, line)))
    assert host.asked_about is not None
    return of_call(made, plan, *host.asked_about, "APPROVAL", ASKED, digest, previous)


def approved(request: ApprovalRequest, *people: str) -> StoredApproval:
    """What the store would have of it, once these have approved it an hour later each."""
    given = tuple(
        Given(
            Answer(Person(name), True, request.shown, "callback"),
            Moment(ASKED.wall + 3600 * hours, 100.0 + 3600 * hours, "boot"),
        )
        for hours, name in enumerate(people, 1)
    )
    return StoredApproval(request, "consumed", given)


Made = Callable[..., ApprovalRequest]
