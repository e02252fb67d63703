"""`licet policy check`: whether a policy and all around it is sound."""

from __future__ import annotations

import click

from licet.cli.policy.stacks import stack_of


@click.command()
@click.argument("file", default="licet.yaml")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def check(file: str, as_json: bool) -> int:
    """Check FILE and everything it extends and is bound by. Exit codes: 0 good · 2 invalid."""
    from licet.cli.terminal import Card, put_json, show_card

    stack = stack_of(file)
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
