"""`licet run` and `licet explain`: the same input, run or only explained."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from licet.errors import UsageError

if TYPE_CHECKING:
    from licet.cli.learning import Lesson
    from licet.cli.progress import AttackProgress
    from licet.request import ExecutionRequest
    from licet.result import ExecutionResult
    from licet.runtime import Runtime

F = TypeVar("F", bound=Callable[..., Any])

_CANCELLED = 130

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
    click.option(
        "--file",
        "files",
        multiple=True,
        metavar="NAME=PATH",
        help="Let the code read the file PATH as NAME in its working directory, and nothing undeclared.",
    ),
    click.option("--network", multiple=True, metavar="HOST:PORT", help="Declare a connection."),
    click.option("--shell", is_flag=True, help="Declare that the code starts other programs."),
    click.option("--timeout", metavar="DURATION", help="A lower limit than the policy's, such as 5s."),
    click.option(
        "--tools", metavar="FILE", help="A Python file of yours, whose `@licet.tool` functions code may call."
    ),
    click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout."),
)


def _with_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@_with_options
@click.option(
    "--learn",
    is_flag=True,
    help="Where policy says nothing of what the code wants, go on without opening it, and suggest lines.",
)
@click.option(
    "--wait",
    metavar="DURATION",
    help="How long to stay for an approval; without it, as long as somebody is asked who can answer now.",
)
@click.option("--resume", metavar="RUN", help="Go on with a run that waited for an approval.")
@click.pass_context
def run(
    context: click.Context,
    /,
    policy: str,
    as_json: bool,
    learn: bool,
    wait: str | None,
    resume: str | None,
    **given: Any,
) -> int:
    """Run code under a policy.

    FILE is a Python file, or `-` for standard input; or give code with -c. A .json or .yaml file holds a
    whole request. The code's output and the repr of its last expression go to stdout, what licet says to
    stderr. Declaring any --read, --write, --file, --network or --shell narrows the run to exactly what is
    declared.

    With --learn, where the policy says `learn: true` and no bound objects, an intent that nobody allows does
    not stop the run: it stays closed, and the lines are suggested that would allow what the code wanted.

    Where policy asks, the terminal is asked, or whom the settings name. A run that waits ends with exit code
    4; once it is approved, --resume goes on with it, exactly as it was asked for.

    \b
    Exit codes: 0 success · 1 the code failed · 2 usage or invalid policy · 3 denied · 4 approval pending ·
    5 no backend · 6 a limit was hit · 7 audit unavailable · 8 backend or launch error · 130 cancelled
    """
    from licet.cli import cards, resuming
    from licet.cli.learning import Lesson
    from licet.cli.progress import AttackProgress
    from licet.cli.terminal import show_card, warn

    if resume is not None:
        resuming.refuse_more(context)
    request = _request(**given).model_copy(update={"learn": learn}) if resume is None else None
    stay = _duration("--wait", wait)
    progress = AttackProgress()
    runtime = _runtime(policy, progress, stdin_is_taken=_takes_stdin(given))
    for problem in runtime.plugins.problems:
        warn(problem)

    async def work() -> ExecutionResult:
        if request is None:
            return await resuming.resume(runtime, str(resume))
        return await runtime.run(request, wait=stay)

    try:
        with progress:
            result = _run(runtime, work)
    except KeyboardInterrupt:
        show_card(cards.of_cancelled(runtime.state_path))
        return _CANCELLED
    lesson = Lesson(runtime, result, policy) if learn else None
    if request is not None and not as_json:
        result = _with_repairs(result, runtime, request)
    named = policy if _is_stated(context, "policy") else None
    _tell(runtime, result, lesson, named, as_json=as_json)
    return result.process_exit_code


def _tell(
    runtime: Runtime, result: ExecutionResult, lesson: Lesson | None, policy: str | None, *, as_json: bool
) -> None:
    """Write what a run left to stdout, and what is to say about it to stderr."""
    from licet.cli import cards
    from licet.cli.terminal import put, put_json, show_card

    if as_json:
        put_json(result.as_json() | (lesson.as_json() if lesson else {}))
        return
    put(result.stdout)
    if result.value_repr is not None:
        if result.stdout and not result.stdout.endswith("\n"):
            put("\n")
        put(f"{result.value_repr}\n")
    put(result.stderr, err=True)
    show_card(cards.of_result(result, runtime.state_path, runtime.plugins.disabled, policy=policy))
    if lesson is not None:
        lesson.show()


@click.command()
@_with_options
@click.option("--state", metavar="DIR", help="The state directory whose log has the run.")
@click.option("--all", "everything", is_flag=True, help="Every document, every rule and what each leaf said.")
@click.option("--types", is_flag=True, help="Also what a type checker objects to in the code.")
@click.pass_context
def explain(
    context: click.Context,
    /,
    policy: str,
    as_json: bool,
    state: str | None,
    everything: bool,
    types: bool,
    **given: Any,
) -> int:
    """Decide about FILE and choose a sandbox, without running it; or say how a run was decided.

    Takes the same input as `licet run`; nothing is executed and nothing recorded. For a refusal it searches
    for the smallest change of the request that passes. FILE may also be the id of a run, or its beginning:
    then its decision is shown as it was recorded.

    With --types, the type checker of the sandbox that would run the code looks at it too. What it finds is
    advice: it changes neither the decision nor the exit code.

    \b
    Exit codes: 0 allow · 2 usage or invalid policy · 3 deny · 4 ask · 5 no backend
    """
    from licet.cli import cards, checking, recorded
    from licet.cli.terminal import put_json, show_card
    from licet.runtime import Runtime

    file = given["file"]
    if given["code"] is None and recorded.is_run(file):
        named = policy if _is_stated(context, "policy") else None
        if types:
            raise UsageError("`--types` looks at code, and this is a run", advice="give the file of its code")
        return recorded.explain_run(file, named, state, as_json=as_json, everything=everything)
    if state is not None:
        raise UsageError("`--state` names the log of a run, and this is none", advice="give the id of a run")
    request = _request(**given)
    runtime = Runtime.from_policy(policy)
    explanation = runtime.decide(request)
    checked = checking.checked(runtime, request) if types else None
    if as_json:
        put_json(explanation.as_json() | (checked.as_json() if checked else {}))
    else:
        card = cards.of_explanation(explanation, runtime.plugins.disabled, everything=everything)
        rows = checked.rows(everything=everything) if checked else ()
        show_card(replace(card, rows=(*card.rows, *rows)))
    return explanation.exit_code


def _request(
    file: str | None,
    code: str | None,
    inputs: tuple[str, ...],
    stdin: str | None,
    read: tuple[str, ...],
    write: tuple[str, ...],
    files: tuple[str, ...],
    network: tuple[str, ...],
    shell: bool,
    timeout: str | None,
    tools: str | None,
) -> ExecutionRequest:
    """The request that a command line makes, with the tools of a file.

    Raises:
        UsageError: something in it can't be understood, read or imported.
    """
    from licet.cli import inputs as reading
    from licet.cli import requests, tool_files

    if file is not None and code is None and requests.is_request(file):
        others = {
            "input": inputs,
            "read": read,
            "write": write,
            "file": files,
            "network": network,
            "stdin": stdin,
            "shell": shell,
            "timeout": timeout,
        }
        stated = [name for name, value in others.items() if value not in ((), None, False)]
        if stated:
            raise UsageError(
                f"`{file}` is a request and says everything itself; `--{stated[0]}` can't be added",
                advice="write it into the file",
            )
        return tool_files.given(requests.read_request(file), tools)
    request = reading.request(
        reading.read_code(file, code),
        inputs=reading.read_inputs(inputs),
        stdin=reading.read_stdin(stdin, file),
        files=reading.named_files(files),
        declared=reading.intents(read, write, network, shell),
        timeout=timeout,
    )
    return tool_files.given(request, tools)


def _is_stated(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not ParameterSource.DEFAULT


def _duration(option: str, text: str | None) -> float | None:
    from licet import units

    try:
        return units.duration(text) if text is not None else None
    except ValueError as problem:
        raise UsageError(f"`{option}`: {problem}") from None


def _takes_stdin(given: Mapping[str, Any]) -> bool:
    """Whether standard input is the code, or something that it gets."""
    inputs = (text.partition("=")[2] for text in given["inputs"])
    return "-" in (given["file"], given["stdin"]) or "@-" in inputs


def _runtime(policy: str, progress: AttackProgress, *, stdin_is_taken: bool) -> Runtime:
    from licet.cli import asking, places
    from licet.runtime import Runtime

    own = asking.services(places.found(policy)[1], stdin_is_taken=stdin_is_taken, before=progress.pause)
    return Runtime.from_policy(policy, approvals=own, progress=progress)


def _with_repairs(result: ExecutionResult, runtime: Runtime, request: ExecutionRequest) -> ExecutionResult:
    """A refusal with what would pass, which a run does not search for."""
    from licet.cli.cards import REFUSALS

    decision = result.decision
    if decision is None or result.termination not in REFUSALS or decision.exit_code == 0:
        return result
    found = runtime.decide(request)
    if found.policy_digest != decision.policy_digest or found.effect != decision.effect:
        return result  # another instant, or another policy: advice for this refusal it is not
    return replace(result, decision=replace(decision, repair=found.repair))


def _run(runtime: Runtime, work: Callable[[], Awaitable[ExecutionResult]]) -> ExecutionResult:
    """Do the work of a run; what was cancelled is recorded before this raises.

    Raises:
        KeyboardInterrupt: it was cancelled, by whatever signal.
    """
    from licet.cli import signals

    async def main() -> ExecutionResult:
        task = asyncio.current_task()
        assert task is not None
        with signals.cancelling(task):
            async with runtime:
                return await work()

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
