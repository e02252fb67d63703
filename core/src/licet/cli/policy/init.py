"""`licet policy init`: start a policy."""

from __future__ import annotations

from pathlib import Path

import click

from licet.cli.policy.stacks import stack_of
from licet.errors import UsageError

_TEMPLATE = """\
licet: 1
name: {name}
extends: {pack}
# allow: [read ./data, write ./out, network api.example.com:443]
# deny: [read ./data/secrets]
# limits: {{wall_time: 10s, memory: 128MiB}}
"""


@click.command()
@click.argument("pack", default="licet:compute")
@click.option("--file", default="licet.yaml", show_default=True, help="Where to write it.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def init(pack: str, file: str, as_json: bool) -> int:
    """Write a policy that starts from PACK (default licet:compute); never overwrites."""
    from licet.cli.terminal import Card, put_json, show_card

    if not pack.startswith("licet:"):
        pack = f"licet:{pack}"
    stack_of(pack)
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
