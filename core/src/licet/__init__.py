"""licet: decide whether and how unreviewed Python may run, in a sandbox that proves it."""

from typing import TYPE_CHECKING

from licet.lazy import attribute_importer

if TYPE_CHECKING:
    from licet.backend import Termination
    from licet.errors import LicetError
    from licet.report import Explanation
    from licet.request import ExecutionRequest, Intent, Limits, Subject
    from licet.result import ExecutionResult
    from licet.runtime import Runtime
    from licet.settings import Settings

__all__ = [
    "ExecutionRequest",
    "ExecutionResult",
    "Explanation",
    "Intent",
    "LicetError",
    "Limits",
    "Runtime",
    "Settings",
    "Subject",
    "Termination",
]

_HOMES = {
    "ExecutionRequest": "request",
    "ExecutionResult": "result",
    "Explanation": "report",
    "Intent": "request",
    "LicetError": "errors",
    "Limits": "request",
    "Runtime": "runtime",
    "Settings": "settings",
    "Subject": "request",
    "Termination": "backend",
}

__getattr__ = attribute_importer(__name__, _HOMES)
