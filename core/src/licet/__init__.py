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
    from licet.tooling import Tool, tool, toolkit

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
    "Tool",
    "tool",
    "toolkit",
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
    "Tool": "request",
    "tool": "tooling",
    "toolkit": "tooling",
}

__getattr__ = attribute_importer(__name__, _HOMES)
