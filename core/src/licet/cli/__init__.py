"""The command line. Each command lives in a module of its own, imported when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

_COMMANDS = {
    "run": ("licet.cli.run", "run"),
    "explain": ("licet.cli.run", "explain"),
    "policy": ("licet.cli.policy", "policy"),
    "backends": ("licet.cli.backends", "backends"),
    "audit": ("licet.cli.audit", "audit"),
}


class _LazyGroup(click.Group):
    """A group that imports a command's module only when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="licet", prog_name="licet")
def licet() -> None:
    """Run Python that nobody has reviewed: policy decides, a sandbox enforces, a trail proves.

    `licet run FILE` runs code under a policy, `licet explain FILE` says what would happen.
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line and exit with the code that the documentation states."""
    from licet.cli.terminal import fail, say, unbreakable_streams
    from licet.errors import LicetError

    unbreakable_streams()
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = licet.main(given, prog_name="licet", standalone_mode=False)
    except LicetError as problem:
        code = fail(problem, as_json="--json" in given)
    except click.ClickException as problem:
        problem.show()
        code = problem.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("✗ cancelled; what had begun is recorded, see `licet audit list`")
        code = 130
    except BrokenPipeError:
        sys.stderr.close()
        code = 141
    sys.exit(code if isinstance(code, int) else 0)
