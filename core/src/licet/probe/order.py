"""What a probe asks of a sandbox, in a form that can be sent to another process, and the plan made of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from licet import plan as plans
from licet.backend import Descriptor
from licet.plan import ExecutionPlan, Opened
from licet.request import DEFAULT_LIMITS

POLICY_CLASS = "licet probe"
"""Probes share warm workers with each other, and with no run of anybody else."""


@dataclass(frozen=True, slots=True)
class Order:
    """One run: the code, and what it gets; `opened` is what its backend can open, and no more."""

    code: str
    environment: Mapping[str, str]
    workdir: str
    limits: Mapping[str, Any]
    opened: Opened

    def as_json(self) -> dict[str, Any]:
        """By name."""
        return {
            "code": self.code,
            "environment": dict(self.environment),
            "workdir": self.workdir,
            "limits": dict(self.limits),
            "opened": self.opened.as_json(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Order:
        """Read back what `as_json` has written."""
        opened: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in content["opened"].items()
        }
        return cls(**{**content, "opened": Opened(**opened)})

    def plan(self, descriptor: Descriptor) -> ExecutionPlan:
        """The plan for a backend, sealed as the runtime seals its own."""
        run_id = f"probe-{secrets.token_hex(8)}"
        return plans.seal(
            ExecutionPlan(
                run_id=run_id,
                backend=descriptor.name,
                code=self.code,
                inputs={},
                stdin=b"",
                environment=dict(self.environment),
                workdir=self.workdir,
                limits=DEFAULT_LIMITS.model_copy(update=dict(self.limits)),
                opened=self.opened,
                contract=descriptor.sandbox_enforcement_contract,
                plan_digest=run_id,
                policy_class=POLICY_CLASS,
                tenant=POLICY_CLASS,
            )
        )
