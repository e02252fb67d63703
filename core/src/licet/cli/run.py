"""`licet run` and `licet explain`: the same input, run or only explained."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from licet.request import ExecutionRequest
    from licet.result import ExecutionResult
    from licet.runtime import Runtime

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.argument("file", required=False),
    click.option("-c", "code", metavar="CODE", help="Code to take instead of a file."),
    click.option(
        "--policy", default="licet:compute", show_default=True, help="A policy file, or a pack as licet:NAME."
    ),
    click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="NAME=JSON|@FILE",
        help="A value that the code sees as NAME.",
    ),
    click.option("--stdin", metavar="FILE", help="What the code reads as standard input; `-` for ours."),
    click.option("--read", multiple=True, metavar="PATH", help="Declare that the code reads PATH."),
    click.option("--write", multiple=True, metavar="PATH", help="Declare that the code writes PATH."),
    click.option("--network", multiple=True, metavar="HOST:PORT", help="Declare a connection."),
    click.option("--shell", is_flag=True, help="Declare that the code starts other programs."),
    click.option("--timeout", metavar="DURATION", help="A lower limit than the policy's, such as 5s."),
    click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout."),
)


def _with_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@_with_options
def run(policy: str, as_json: bool, **given: Any) -> int:
    """Run code under a policy.

    FILE is a Python file, or `-` for standard input; or give code with -c. The code's output and the repr of
    its last expression go to stdout, what licet says to stderr. Declaring any --read, --write, --network or
    --shell narrows the run to exactly what is declared.

    \b
    Exit codes: 0 success · 1 the code failed · 2 usage or invalid policy · 3 denied · 4 approval pending ·
    5 no backend · 6 a limit was hit · 7 audit unavailable · 8 backend or launch error · 130 cancelled
    """
    from licet.backend import Termination
    from licet.cli import cards
    from licet.cli.progress import AttackProgress
    from licet.cli.terminal import put, put_json, show_card, warn
    from licet.result import EXIT_CODES
    from licet.runtime import Runtime

    request = _request(**given)
    progress = AttackProgress()
    runtime = Runtime.from_policy(policy, progress=progress)
    for problem in runtime.plugins.problems:
        warn(problem)
    try:
        with progress:
            result = _run(runtime, request)
    except KeyboardInterrupt:
        show_card(cards.of_cancelled(runtime.state_path))
        return EXIT_CODES[Termination.cancelled]
    if as_json:
        put_json(result.as_json())
        return result.process_exit_code
    put(result.stdout)
    if result.value_repr is not None:
        if result.stdout and not result.stdout.endswith("\n"):
            put("\n")
        put(f"{result.value_repr}\n")
    put(result.stderr, err=True)
    show_card(cards.of_result(result, runtime.state_path, runtime.plugins.disabled))
    return result.process_exit_code


@click.command()
@_with_options
def explain(policy: str, as_json: bool, **given: Any) -> int:
    """Decide about FILE and choose a sandbox, without running it.

    Takes the same input as `licet run`; nothing is executed and nothing recorded.

    \b
    Exit codes: 0 allow · 2 usage or invalid policy · 3 deny · 4 ask · 5 no backend
    """
    from licet.cli import cards
    from licet.cli.terminal import put_json, show_card
    from licet.runtime import Runtime

    request = _request(**given)
    runtime = Runtime.from_policy(policy)
    explanation = runtime.decide(request)
    if as_json:
        put_json(explanation.as_json())
    else:
        show_card(cards.of_explanation(explanation, runtime.plugins.disabled))
    return explanation.exit_code


def _request(
    file: str | None,
    code: str | None,
    inputs: tuple[str, ...],
    stdin: str | None,
    read: tuple[str, ...],
    write: tuple[str, ...],
    network: tuple[str, ...],
    shell: bool,
    timeout: str | None,
) -> ExecutionRequest:
    from licet.cli import inputs as reading

    return reading.request(
        reading.read_code(file, code),
        inputs=reading.read_inputs(inputs),
        stdin=reading.read_stdin(stdin, file),
        declared=reading.intents(read, write, network, shell),
        timeout=timeout,
    )


def _run(runtime: Runtime, request: ExecutionRequest) -> ExecutionResult:
    """Run; what was cancelled is recorded before this raises.

    Raises:
        KeyboardInterrupt: it was cancelled, by whatever signal.
    """
    from licet.cli import signals

    async def main() -> ExecutionResult:
        task = asyncio.current_task()
        assert task is not None
        with signals.cancelling(task):
            async with runtime:
                return await runtime.run(request)

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
