"""`licet policy init`: start a policy."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from licet.cli.policy.stacks import stack_of
from licet.errors import UsageError, reason_of

if TYPE_CHECKING:
    from licet.request import Action
    from licet.workbench.start import Wishes

_PACK = "licet:compute"


@click.command()
@click.argument("pack", required=False)
@click.option("--file", default="licet.yaml", show_default=True, help="Where to write it.")
@click.option("--no-schema", is_flag=True, help="Write no schema and no line for editors.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def init(pack: str | None, file: str, no_schema: bool, as_json: bool) -> int:
    """Write a policy that starts from PACK, and the schema for editors beside it; never overwrites.

    Without PACK a terminal is asked a few questions; elsewhere it starts from licet:compute.
    Exit codes: 0 written · 2 it can't be written, or there is no such pack.
    """
    from licet.cli.terminal import Card, put_json, show_card, warn
    from licet.workbench.schema import FILE_NAME
    from licet.workbench.start import text

    start = pack if pack is None or pack.startswith("licet:") else f"licet:{pack}"
    stack_of(start or _PACK)
    path = Path(file)
    asks = start is None and not as_json and sys.stdin.isatty() and sys.stderr.isatty()
    if asks:
        _refuse_existing(path, file)
    wishes = _wishes(path, start or _PACK, asks=asks, editor=not no_schema)
    _write(path, file, text(wishes))
    schema = None if no_schema else _schema_beside(path)
    warnings = stack_of(file).warnings
    if as_json:
        beside = path.resolve().parent / FILE_NAME
        written = str(beside) if schema and beside.is_file() else None
        put_json({"file": str(path.resolve()), "extends": wishes.pack, "schema": written})
        return 0
    rows = [("starts", f"from {wishes.pack}")]
    rows += [("schema", schema)] if schema else []
    typed = shlex.quote(file)
    rows.append(("next", f"licet policy check {typed}, then licet run --policy {typed} …"))
    show_card(Card("good", f"wrote {file}", "", rows))
    for warning in warnings:
        warn(warning)
    return 0


def _wishes(path: Path, pack: str, *, asks: bool, editor: bool) -> Wishes:
    from licet.workbench.start import Wishes

    base = path.resolve().parent
    name = base.name.encode(errors="replace").decode() or "policy"
    if not asks:
        return Wishes(name, pack, editor=editor)
    allow, limits, within = _answers(base)
    return Wishes(name, pack, allow, limits, within, editor)


def _answers(base: Path) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """What the code needs, asked one by one."""
    from licet.workbench import start

    click.echo("What does the code need? Separate several by commas; empty means none.", err=True)
    asked: tuple[tuple[Action, str], ...] = (
        ("read", "files or folders to read"),
        ("write", "folder to write into"),
        ("network", "hosts to reach, as HOST:PORT"),
        ("tool", "tools of yours to call"),
    )
    allow: list[str] = []
    for action, question in asked:
        allow += _several(question, partial(start.entry, action, base=str(base)))
    limits = [
        ("wall_time", _asked("longest time a run may take", "30s", start.duration)),
        ("memory", _asked("most memory it may use", "256MiB", start.size)),
    ]
    within = _several("policies of your organisation to stay within", partial(_bound, base=base))
    return allow, limits, within


def _bound(answer: str, base: Path) -> str:
    if not answer.startswith("licet:") and not (base / answer).is_file():
        raise ValueError(f"there is no file `{answer}` in {base}")
    return answer


def _several(question: str, read: Callable[[str], str]) -> list[str]:
    def every(answer: str) -> str:
        return "\n".join(dict.fromkeys(read(one.strip()) for one in answer.split(",") if one.strip()))

    return _asked(question, "", every).splitlines()


def _asked(question: str, default: str, read: Callable[[str], str]) -> str:
    """Ask until the answer can be read."""
    from licet.cli.terminal import warn

    while True:
        answer = click.prompt(f"  {question}", default=default, show_default=bool(default), err=True)
        try:
            return read(str(answer).strip())
        except ValueError as problem:
            warn(str(problem))


def _refuse_existing(path: Path, shown: str) -> None:
    """Before anything is asked."""
    if path.exists() or path.is_symlink():
        raise _unwritable(shown, "it exists already")


def _unwritable(shown: str, reason: str) -> UsageError:
    return UsageError(f"`{shown}` can't be written: {reason}", advice="name another with --file")


def _write(path: Path, shown: str, content: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as opened:
            opened.write(content)
    except FileExistsError:
        raise _unwritable(shown, "it exists already") from None
    except OSError as problem:
        raise _unwritable(shown, reason_of(problem)) from None


def _schema_beside(path: Path) -> str:
    """Write the schema beside a policy, unless there is one; in words, what was done."""
    import json

    from licet.workbench.schema import FILE_NAME, schema

    beside = path.parent / FILE_NAME
    try:
        with beside.open("x", encoding="utf-8") as opened:
            opened.write(json.dumps(schema(), indent=1) + "\n")
    except FileExistsError:
        return f"{FILE_NAME} was there already; `licet policy schema` writes it anew"
    except OSError as problem:
        return f"{FILE_NAME} can't be written: {reason_of(problem)}"
    return f"{FILE_NAME}, for editors"
