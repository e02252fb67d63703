"""`licet run --resume RUN`: a run that waited goes on, as it was asked for.

Rules this module keeps:

- nothing of the request is said again: only whose run it is, and how it is told, may be given;
- a run is named by its id, or by a beginning that only one run has which still waits;
- its tools come from the file that was named to who approved, with the same digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from licet.approvals.forms import OPEN
from licet.approvals.store import ApprovalStore
from licet.cli import tool_files
from licet.cli.approvals import office
from licet.errors import NoApproval, UsageError
from licet.output import bounded

if TYPE_CHECKING:
    from licet.request import Tool
    from licet.result import ExecutionResult
    from licet.runtime import Runtime

_MAY_BE_SAID = frozenset({"resume", "policy", "as_json"})


def refuse_more(context: click.Context) -> None:
    """Refuse whatever else a command line says of a run that is approved as it was asked for.

    Raises:
        UsageError: it says more; the message names it.
    """
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in _MAY_BE_SAID or context.get_parameter_source(name) is ParameterSource.DEFAULT:
            continue
        said = parameter.opts[-1] if isinstance(parameter, click.Option) else name.upper()
        raise UsageError(
            f"`{said}` can't be given with `--resume`: what was asked about is what runs",
            advice="give `--policy` and options of output alone, or run the code again",
        )


async def resume(runtime: Runtime, named: str) -> ExecutionResult:
    """Let the run go on whose id is, or begins with, `named`.

    Raises:
        NoApproval: no run that waits is called so, or several are.
        SuspensionVoid: its tools can't be had as they were.
    """
    run_id, tools = _found(runtime, named.upper())
    return await runtime.resume(run_id, tools=tools)


def _found(runtime: Runtime, named: str) -> tuple[str, Mapping[str, Tool]]:
    state = office.in_directory(runtime.state_path)
    if state is None:
        raise _nothing(named, ())
    with ApprovalStore(state) as store:
        asked = store.of_run(named)
        if not asked:
            waiting = {one.request.run_id for one in store.listed(tuple(OPEN))}
            fitting = sorted(run for run in waiting if run.startswith(named))
            if len(fitting) != 1:
                raise _nothing(named, fitting)
            asked = store.of_run(fitting[0])
    newest = asked[-1].request
    return newest.run_id, tool_files.again(newest.document)


def _nothing(named: str, fitting: Sequence[str]) -> NoApproval:
    name = bounded(named, 80)
    if fitting:
        return NoApproval(
            f"{len(fitting)} runs that wait begin with `{name}`",
            advice=f"write more of the id: {bounded(', '.join(fitting), 300)}",
        )
    return NoApproval(
        f"no run that waits for an approval begins with `{name}`",
        advice="`licet approvals list` shows what waits; name the policy of the run with `--policy`",
    )
