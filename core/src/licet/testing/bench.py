"""A backend under test, and runs of code on it as the runtime makes them.

Rules this module keeps:

- plans look like those of the runtime, and runs go through `licet.backend.execute` as its runs do;
- code that needs what the language lacks is skipped: the descriptor says so, and selection reads it alike;
- a program ends by itself, so that a backend that ends nothing can't hang the suite.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from licet import plan as plans
from licet.backend import Backend, Descriptor, Language, Outcome, execute
from licet.contract import Control
from licet.plan import ExecutionPlan, Opened
from licet.probe.standing import claims
from licet.request import DEFAULT_LIMITS
from licet.screen import screen
from licet.testing.host import RecordingHost
from licet.ulid import new_run_id

_LASTS_S = 4

_POLICY_CLASS = "sha256:" + "5e" * 32
_WALL_TIME = 30.0


@dataclass(frozen=True)
class Ran:
    """What a run came to, and what it wrote."""

    outcome: Outcome
    stdout: bytes
    stderr: bytes

    @property
    def ended(self) -> tuple[str, int | None]:
        """Termination and exit code."""
        return self.outcome.termination.value, self.outcome.exit_code


class Bench:
    """One backend, and a working directory for what it runs."""

    def __init__(self, backend: Backend, workdir: Path) -> None:
        self.backend = backend
        self.workdir = workdir

    @property
    def descriptor(self) -> Descriptor:
        """What the backend says of itself."""
        return self.backend.describe()

    @property
    def busy(self) -> str:
        """Code that computes for seconds: a run of it that ends early was ended."""
        return _lasting(self.descriptor.language, "pass")

    @property
    def flood(self) -> str:
        """Code that prints for seconds, without pause."""
        return _lasting(self.descriptor.language, f"print('{'x' * 99}')")

    def plan(self, code: str, **fields: Any) -> ExecutionPlan:
        """A sealed plan; `limits` and every other field of a plan can be given."""
        limits = {"wall_time": _WALL_TIME, **fields.pop("limits", {})}
        descriptor = self.descriptor
        given: dict[str, Any] = {
            "run_id": new_run_id(),
            "backend": descriptor.name,
            "code": code,
            "inputs": {},
            "stdin": b"",
            "environment": {},
            "workdir": str(self.workdir),
            "limits": DEFAULT_LIMITS.model_copy(update=limits),
            "opened": Opened(),
            "contract": descriptor.sandbox_enforcement_contract,
            "plan_digest": "sha256:" + "d1" * 32,
            "policy_class": _POLICY_CLASS,
        }
        return plans.seal(ExecutionPlan(**(given | fields)))

    async def execute(self, code: str, host: RecordingHost | None = None, **fields: Any) -> Ran:
        """Run `code` in a sandbox of its own, on this loop."""
        host = host or RecordingHost()
        try:
            outcome = await execute(self.backend, self.plan(code, **fields), host)
        finally:
            host.over = True
        return Ran(outcome, host.stdout, host.stderr)

    def run(self, code: str, host: RecordingHost | None = None, **fields: Any) -> Ran:
        """Run `code` on a loop of its own; skip the test if the language lacks what it needs."""
        self.needs(code)
        return asyncio.run(self.execute(code, host, **fields))

    def needs(self, *programs: str, stdin: bool = False) -> None:
        """Skip the test if the language can't run one of `programs`."""
        language = self.descriptor.language
        lacking = sorted({name for code in programs for name in lacks(language, code)})
        if stdin and not language.stdin:
            lacking.append("standard input")
        if lacking:
            pytest.skip(f"{language.name} lacks {', '.join(lacking)}")

    def claims(self, control: Control) -> None:
        """Skip the test if the backend does not claim `control`: it may do as it likes then."""
        if not claims(self.descriptor.sandbox_enforcement_contract[control]):
            pytest.skip(f"`{self.descriptor.name}` does not claim `{control}`")

    def works(self) -> None:
        """Fail unless an ordinary run gives what it should: nothing before it has broken the backend."""
        assert asyncio.run(self.execute("6 * 7")).outcome.value == 42


def _lasting(language: Language, act: str) -> str:
    """A loop that ends by itself: after some time, or, in a language without clock, after many turns."""
    if language.modules is None or "time" in language.modules:
        end = f"end = time.monotonic() + {_LASTS_S}"
        return f"import time\n{end}\nwhile time.monotonic() < end:\n    {act}\n"
    return f"count = 0\nwhile count < 50000000:\n    count += 1\n    {act}\n"


def lacks(language: Language, code: str) -> list[str]:
    """What `code` needs and `language` says it lacks, as selection sees it."""
    needs = screen(code).needs
    missing = [f"syntax `{feature}`" for feature in needs.syntax if feature in language.lacks_syntax]
    missing += _absent("module", needs.modules, language.modules)
    missing += _absent("built-in", needs.builtins, language.builtins)
    missing += [f"member `{path}`" for path in needs.members if language.missing_member(path)]
    return missing


def _absent(kind: str, needed: Mapping[str, int], there: frozenset[str] | None) -> list[str]:
    return [f"{kind} `{name}`" for name in needed if there is not None and name not in there]
