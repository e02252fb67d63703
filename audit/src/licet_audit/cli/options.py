"""Options that commands about a log share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")

_PLACE = (
    click.option("--state", metavar="DIR", help="The state directory that holds the log."),
    click.option(
        "--policy", metavar="FILE", help="Take the log of this policy; default: of the current directory."
    ),
)


def of_a_log(command: F) -> F:
    """Let a command be told which log is meant, as `state` and `policy`."""
    for option in reversed(_PLACE):
        command = option(command)
    return command
