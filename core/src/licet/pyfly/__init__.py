"""A bridge for programs written for PyFly's script execution: its names and signatures, over `Runtime`.

It is for the way over: change the import, keep the rest, then move on to `Runtime` step by step. What
differs, and why, is in `docs/how-to/migrate-from-pyfly.md`.

Rules this package keeps:

- it uses `Runtime` as any program does: policy decides, a sandbox enforces, the trail records;
- where PyFly loosens (a limit, a screen that is skipped), the bridge tightens or refuses;
- the code gets the functions that a call hands over and nothing else, whatever else the policy would open.
"""

from __future__ import annotations

from licet.errors import LaunchFailed as SandboxUnavailableError
from licet.errors import LicetError as ExecutionError
from licet.errors import RunFailed as CodeSafetyError
from licet.pyfly.environment import Capability, ExecutionEnvironment, MontyEnvironment
from licet.pyfly.outcomes import ExecutionLimits, ExecutionResult
from licet.pyfly.runner import SecureScriptRunner, toolkit_external_functions
from licet.pyfly.safety import CodeViolation, SafetyPolicy, SafetyReport, analyze_code

__all__ = [
    "Capability",
    "CodeSafetyError",
    "CodeViolation",
    "ExecutionEnvironment",
    "ExecutionError",
    "ExecutionLimits",
    "ExecutionResult",
    "MontyEnvironment",
    "SafetyPolicy",
    "SafetyReport",
    "SandboxUnavailableError",
    "SecureScriptRunner",
    "analyze_code",
    "toolkit_external_functions",
]
