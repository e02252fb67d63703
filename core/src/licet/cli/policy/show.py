"""`licet policy show`: what is in force."""

from __future__ import annotations

from typing import Any

import click

from licet.cli import amounts
from licet.cli.policy.stacks import stack_of
from licet.policy import PolicyStack


@click.command()
@click.argument("file", default="licet.yaml")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def show(file: str, as_json: bool) -> int:
    """Show what FILE says together with all that it extends and every bound in force."""
    from licet.cli.terminal import put_json, put_table

    stack = stack_of(file)
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
