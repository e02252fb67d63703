"""`licet policy`: start a policy, check one, and see what is in force."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from licet.cli import amounts
from licet.errors import UsageError

if TYPE_CHECKING:
    from licet.policy import PolicyStack

_TEMPLATE = """\
licet: 1
name: {name}
extends: {pack}
# allow: [read ./data, write ./out, network api.example.com:443]
# deny: [read ./data/secrets]
# limits: {{wall_time: 10s, memory: 128MiB}}
"""


@click.group()
def policy() -> None:
    """Start, check and show policies."""


@policy.command()
@click.argument("pack", default="licet:compute")
@click.option("--file", default="licet.yaml", show_default=True, help="Where to write it.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def init(pack: str, file: str, as_json: bool) -> int:
    """Write a policy that starts from PACK (default licet:compute); never overwrites."""
    from licet.cli.terminal import Card, put_json, show_card

    if not pack.startswith("licet:"):
        pack = f"licet:{pack}"
    _stack(pack)
    path = Path(file)
    try:
        with path.open("x", encoding="utf-8") as opened:
            opened.write(_TEMPLATE.format(name=path.resolve().parent.name, pack=pack))
    except OSError as problem:
        reason = (
            "it exists already" if isinstance(problem, FileExistsError) else str(problem.strerror).lower()
        )
        raise UsageError(f"`{file}` can't be written: {reason}", advice="name another with --file") from None
    if as_json:
        put_json({"file": str(path.resolve()), "extends": pack})
    else:
        show_card(
            Card(
                "good",
                f"wrote {file}",
                "",
                [("starts", f"from {pack}"), ("next", f"licet run --policy {file} …")],
            )
        )
    return 0


@policy.command()
@click.argument("file", default="licet.yaml")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def check(file: str, as_json: bool) -> int:
    """Check FILE and everything it extends and is bound by. Exit codes: 0 good · 2 invalid."""
    from licet.cli.terminal import Card, put_json, show_card

    stack = _stack(file)
    if as_json:
        put_json(
            {
                "valid": True,
                "digest": stack.digest,
                "documents": [d.file for d in stack.documents],
                "warnings": list(stack.warnings),
            }
        )
    else:
        rows = [("bound by", bound.file) for bound in stack.bounds]
        rows += [("warning", warning) for warning in stack.warnings]
        show_card(Card("good", f"{file} is valid", stack.digest, rows))
    return 0


@policy.command()
@click.argument("file", default="licet.yaml")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def show(file: str, as_json: bool) -> int:
    """Show what FILE says together with all that it extends and every bound in force."""
    from licet.cli.terminal import put_json, put_table

    stack = _stack(file)
    if as_json:
        put_json(_json(stack))
        return 0
    rows: list[tuple[str, str, str]] = []
    for document in stack.documents:
        rows += [
            (entry.effect, entry.text, str(entry.where))
            for entry in (*document.deny, *document.ask, *document.allow)
        ]
    rows += [
        ("limit", f"{name} {amounts.limit(name, value)}", "lowest of all")
        for name, value in stack.limits.stated().items()
    ]
    rows += [("env", f"{name}={value}", stack.root.file) for name, value in stack.environment.items()]
    rows += [
        ("require", f"{control} {level}", "highest of all") for control, level in stack.requirements.items()
    ]
    rows += [("screen", stack.screen_mode, ""), ("audit", f"{stack.audit_mode}, {stack.content_mode}", "")]
    rows += [("bound", bound.file, f"sha256 {stack.sources[bound.file]}") for bound in stack.bounds]
    rows += [("sealed", path, "never opened") for path in stack.sealed]
    rows.append(("digest", stack.digest, ""))
    put_table(("what", "value", "from"), rows)
    return 0


def _stack(name: str) -> PolicyStack:
    from licet.runtime import Runtime

    return Runtime.from_policy(os.fspath(name)).stack


def _json(stack: PolicyStack) -> dict[str, Any]:
    return {
        "digest": stack.digest,
        "documents": [
            {
                "file": document.file,
                "name": document.name,
                "sha256": stack.sources[document.file],
                **{
                    effect: [{"entry": entry.text, "where": str(entry.where)} for entry in entries]
                    for effect, entries in (
                        ("allow", document.allow),
                        ("ask", document.ask),
                        ("deny", document.deny),
                    )
                },
            }
            for document in stack.documents
        ],
        "limits": stack.limits.stated(),
        "env": dict(stack.environment),
        "require": dict(stack.requirements),
        "evidence": stack.evidence,
        "only": sorted(stack.only) if stack.only is not None else None,
        "prefer": list(stack.prefer),
        "screen": {"mode": stack.screen_mode, "modules": {"deny": sorted(stack.denied_modules)}},
        "audit": {"mode": stack.audit_mode, "content": stack.content_mode},
        "sealed": list(stack.sealed),
    }
