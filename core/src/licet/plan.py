"""The execution plan: all that a backend may know of a run, under a seal that only licet makes.

Rules this module keeps:

- a plan is frozen, and made by `seal` alone; `check` accepts each seal once;
- what a plan does not open is closed: a backend opens `opened` or less, never more.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from licet.contract import SandboxEnforcementContract
from licet.errors import PlanNotSealed
from licet.request import Limits


@dataclass(frozen=True, slots=True)
class Opened:
    """What a decision opens to the sandbox, in canonical form.

    `read` and `write` are absolute roots. Inside them, `masked` are paths that policy keeps closed, and
    `sealed` paths of licet itself. `network` holds `HOST:PORT` patterns or `any`. `tools` are the names of
    the callables passed.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    shell: bool = False
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """One run, decided and authorised.

    `policy_class` and `tenant` say which runs may share a warm worker: two plans may do so only if both
    are equal. `limits` states every limit in force; a limit that is None was asked for by nobody.
    """

    run_id: str
    backend: str
    code: str
    inputs: Mapping[str, Any]
    stdin: bytes
    environment: Mapping[str, str]
    workdir: str
    limits: Limits
    opened: Opened
    contract: SandboxEnforcementContract
    plan_digest: str
    policy_class: str
    tenant: str | None = None
    seal: str = field(default="", repr=False)


_KEY = secrets.token_bytes(32)
_outstanding: set[str] = set()
_guard = threading.Lock()


def seal(plan: ExecutionPlan) -> ExecutionPlan:
    """Return `plan` with a seal that `check` will accept once; for the runtime and the prober."""
    nonce = secrets.token_hex(16)
    with _guard:
        _outstanding.add(nonce)
    return replace(plan, seal=f"{nonce}:{_mac(plan, nonce)}")


def check(plan: ExecutionPlan) -> None:
    """Accept a sealed plan once.

    Raises:
        PlanNotSealed: the seal is missing, forged, made for another plan, or was accepted before.
    """
    nonce, _, mac = plan.seal.partition(":")
    if not mac or not hmac.compare_digest(mac, _mac(plan, nonce)):
        raise PlanNotSealed(
            f"the plan of run `{plan.run_id}` was not made by the runtime",
            advice="call `Runtime.run`; backends take no plans from anybody else",
        )
    with _guard:
        fresh = nonce in _outstanding
        _outstanding.discard(nonce)
    if not fresh:
        raise PlanNotSealed(
            f"the plan of run `{plan.run_id}` was used before", advice="every run needs a plan of its own"
        )


def _mac(plan: ExecutionPlan, nonce: str) -> str:
    text = "\0".join((nonce, plan.run_id, plan.backend, plan.plan_digest, plan.contract.digest, plan.code))
    return hmac.digest(_KEY, text.encode("utf-8", "surrogatepass"), "sha256").hex()
