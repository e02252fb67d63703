"""The rules of a house: whom it has suspended, what somebody looks at first, how much may be paid at once."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from licet.decide import Ballot, Decision
from licet.hookspecs import hookimpl
from licet.policy.facts import CallFacts
from licet.request import NormalizedRequest

Vote = tuple[Literal["ask", "deny"], str]


@hookimpl
def licet_decide(request: NormalizedRequest, decision: Decision) -> Sequence[Ballot]:
    """Vote by the policy of the house; whatever fails in here is a vote to deny."""
    text = Path(os.environ["HOUSE_POLICY"]).read_bytes()
    house = json.loads(text)
    digest = "sha256:" + hashlib.sha256(text).hexdigest()
    votes = _on_run(house, request) if decision.call is None else _on_call(house, decision.call)
    return [Ballot("house", effect, reason, digest) for effect, reason in votes]


def _on_run(house: Any, request: NormalizedRequest) -> Iterator[Vote]:
    tenant = request.subject.tenant
    if tenant is None or tenant in house["suspended"]:
        yield "deny", f"the tenant `{tenant}` is suspended" if tenant else "it names no tenant"
    for module in house["ask_for"]:
        if module in request.code:
            yield "ask", f"somebody looks at `{module}` first"


def _on_call(house: Any, call: CallFacts) -> Iterator[Vote]:
    amount = call.args.get("amount")
    if call.tool == "pay" and not (isinstance(amount, int) and amount <= house["most_paid"]):
        yield "deny", f"at most {house['most_paid']} are paid at once"
