"""`licet policy schema`: the JSON Schema of the policy language."""

from __future__ import annotations

import click


@click.command()
@click.option("--tests", is_flag=True, help="That of files of tests, *.test.yaml, instead.")
@click.option("--json", "as_json", is_flag=True, help="Changes nothing: a schema is JSON.")
def schema(tests: bool, as_json: bool) -> int:
    """Write the JSON Schema of policies (draft 2020-12) to stdout.

    Put it beside a policy as licet.schema.json, and begin the policy with
    `# yaml-language-server: $schema=./licet.schema.json`; `licet policy init` does both. Exit code: 0.
    """
    from licet.cli.terminal import put_json
    from licet.workbench.schema import schema as of_policies
    from licet.workbench.schema import schema_of_tests

    put_json(schema_of_tests() if tests else of_policies())
    return 0
