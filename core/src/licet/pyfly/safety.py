"""The pre-screen under PyFly's names: licet's own screen, and the names that a caller denies besides.

Rules this module keeps:

- a policy of this module only adds refusals; what licet's screen finds is unsafe under any of them;
- code that is no Python, or too complex to be read, is unsafe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from licet.request import Intent, ScreenReport, Violation
from licet.screen import screen, syntax_tree
from licet.screen.judge import is_denied


@dataclass(frozen=True, slots=True)
class SafetyPolicy:
    """Names that code must not use, besides what licet's screen refuses by itself.

    `denied_modules` are dotted names; `allowed_modules`, if it is set, takes their place: nothing else may be
    imported. `denied_builtins` may not be read, not even as names of the code's own.

    Raises:
        ValueError: `deny_dunder_access` is off; the screen has no such switch.
    """

    denied_modules: frozenset[str] = frozenset()
    denied_builtins: frozenset[str] = frozenset()
    deny_dunder_access: bool = True
    allowed_modules: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if not self.deny_dunder_access:
            raise ValueError("`deny_dunder_access` can't be switched off")


@dataclass(frozen=True, slots=True)
class CodeViolation:
    """One thing that makes code unsafe; `line` is None where it is the code as a whole."""

    line: int | None
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


@dataclass(frozen=True, slots=True)
class SafetyReport:
    """What makes a piece of code unsafe.

    `denied` is the part that the `SafetyPolicy` adds; the rest of `violations` licet's screen found.
    """

    violations: tuple[CodeViolation, ...] = ()
    denied: tuple[CodeViolation, ...] = ()

    @property
    def safe(self) -> bool:
        """Whether nothing was found."""
        return not self.violations

    def messages(self) -> list[str]:
        """All that was found, one text each."""
        return [str(violation) for violation in self.violations]


def analyze_code(code: str, policy: SafetyPolicy | None = None) -> SafetyReport:
    """Screen `code` without running it; never raises for what the code is."""
    policy = policy or SafetyPolicy()
    by_name = policy.denied_modules if policy.allowed_modules is None else frozenset[str]()
    report = screen(code, denied_modules=by_name)
    denied = tuple(_denied(code, report, policy))
    found = [of_violation(one) for one in report.violations if one.code != "module_denied"]
    found += [of_intent(intent) for intent in report.intents]
    if report.syntax_error is not None:
        found.append(CodeViolation(report.syntax_error.line, f"syntax error: {report.syntax_error.message}"))
    everything = sorted({*found, *denied}, key=lambda one: (one.line or 0, one.message))
    return SafetyReport(tuple(everything), denied)


def of_violation(violation: Violation) -> CodeViolation:
    """A refusal of the screen, or of the form of a request."""
    return CodeViolation(violation.line, violation.message)


def of_intent(intent: Intent) -> CodeViolation:
    """What the screen saw the code do to the host."""
    return CodeViolation(intent.line, f"`{intent.excerpt}` needs `{intent}`")


def _denied(code: str, report: ScreenReport, policy: SafetyPolicy) -> Iterator[CodeViolation]:
    for violation in report.violations:
        if violation.code == "module_denied":
            yield of_violation(violation)
    if policy.allowed_modules is not None:
        for name in report.imports:
            told = name.rpartition(".")[0] in report.imports  # with the module that it is taken from
            if not told and not is_denied(name, policy.allowed_modules):
                yield CodeViolation(report.needs.modules.get(name), f"the module `{name}` is not allowed")
    tree = syntax_tree(code) if policy.denied_builtins else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Name) and node.id in policy.denied_builtins:
            yield CodeViolation(node.lineno, f"the built-in `{node.id}` is denied")
