"""The commands. Each lives in a module of its own, imported when it is called."""

from __future__ import annotations

import contextlib
import gc
import logging
import re
from collections.abc import Sequence

import click

from licet.cli import streams
from licet.cli.lazily import LazyGroup
from licet.cli.terminal import fail, warn
from licet.errors import LicetError, UsageError, reason_of

_COMMANDS = {
    "run": ("licet.cli.run", "run"),
    "explain": ("licet.cli.run", "explain"),
    "doctor": ("licet.cli.doctor", "doctor"),
    "approvals": ("licet.cli.approvals", "approvals"),
    "policy": ("licet.cli.policy", "policy"),
    "backends": ("licet.cli.backends", "backends"),
    "env": ("licet.cli.env", "env"),
}

# A command is short and makes what stays, modules above all, so looking for garbage often finds none.
_GC_THRESHOLDS = (200_000, 20, 20)


class _Licet(LazyGroup):
    """Its own commands, and those of enabled plugins, imported only when one of them may be meant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of help."""
        return [*super().list_commands(ctx), *self._of_plugins()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; no plugin can take the place of one of licet's own."""
        return super().get_command(ctx, cmd_name) or self._of_plugins().get(cmd_name)

    def _of_plugins(self) -> dict[str, click.Command]:
        from licet.cli import places
        from licet.plugins import Plugins

        plugins = Plugins(places.found()[1])
        found = {str(one.name): one for one in plugins.commands() if one.name not in _COMMANDS}
        for problem in plugins.problems:
            warn(problem)
        return found


@click.group(cls=_Licet, modules=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="licet", prog_name="licet")
def licet() -> None:
    """Run Python that nobody has reviewed: policy decides, a sandbox enforces, a trail proves.

    `licet run FILE` runs code under a policy, `licet explain FILE` says what would happen.
    """


_QUOTED = re.compile(r"'([^']*)'")  # as click quotes


class _Loud(logging.Handler):
    """Shows what licet logs as a problem, escaped like everything else."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write it to stderr."""
        warn(record.getMessage())


_LOUD = _Loud(logging.WARNING)


def execute(arguments: Sequence[str]) -> int:
    """Carry out a command line; return the exit code that the documentation states.

    Raises:
        KeyboardInterrupt: the command was cancelled.
    """
    gc.set_threshold(*_GC_THRESHOLDS)
    logging.getLogger("licet").addHandler(_LOUD)  # the same one again adds nothing
    as_json = "--json" in arguments
    try:
        code = _carried_out(arguments, as_json=as_json)
    except OSError as problem:
        code = LicetError.exit_code
        _told(_refused_by_the_system(problem), as_json=as_json)
    gc.freeze()  # what is left goes with the process: nobody searches it for cycles first
    return code if isinstance(code, int) else 0


def _told(problem: LicetError, *, as_json: bool) -> None:
    """Show it wherever there is room: it may be stdout, or stderr, that is full."""
    for document in (True, False) if as_json else (False,):
        with contextlib.suppress(OSError):
            fail(problem, as_json=document)
            return


def _carried_out(arguments: Sequence[str], *, as_json: bool) -> object:
    """The exit code of a command, whose errors are told."""
    try:
        code = licet.main(list(arguments), prog_name="licet", standalone_mode=False)
        streams.finish()
    except LicetError as problem:
        return fail(problem, as_json=as_json)
    except click.exceptions.NoArgsIsHelpError as problem:
        problem.show()
        return problem.exit_code
    except click.ClickException as problem:
        return fail(_usage(problem), as_json=as_json)
    except click.Abort:
        raise KeyboardInterrupt from None
    return code


def _usage(problem: click.ClickException) -> UsageError:
    message = _QUOTED.sub(r"`\1`", problem.format_message().removesuffix("."))
    context = getattr(problem, "ctx", None)
    path = context.command_path if context is not None else "licet"
    return UsageError(message[:1].lower() + message[1:], advice=f"see `{path} --help`")


def _refused_by_the_system(problem: OSError) -> LicetError:
    """An error of the operating system that no module expected: a full disk under stdout, for one."""
    where = problem.filename if isinstance(problem.filename, str) else "something"
    return LicetError(f"`{where}` can't be used: {reason_of(problem)}")
