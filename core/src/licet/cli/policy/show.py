"""`licet policy show`: what is in force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from licet.cli.nearby import near
from licet.cli.policy.stacks import stack_of

if TYPE_CHECKING:
    from licet.workbench.effective import Effective, Part, Setting

Row = tuple[str, str, str]


@click.command()
@click.argument("file", default="licet.yaml")
@click.option(
    "--effective", "whole", is_flag=True, help="Every setting with its default and what it outweighs."
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def show(file: str, whole: bool, as_json: bool) -> int:
    """Show what FILE says together with all that it extends and every bound in force.

    Each line names the document and the line it comes from; each document comes with the digest of what it
    says. Exit codes: 0 shown · 2 invalid.
    """
    from licet.cli.terminal import put_json, put_table
    from licet.workbench.effective import effective

    found = effective(stack_of(file))
    if as_json:
        put_json(_json(found))
    else:
        put_table(("what", "value", "from"), _rows(found, whole=whole))
    return 0


def _rows(found: Effective, *, whole: bool) -> Iterator[Row]:
    from licet.workbench import words

    for part in found.parts:
        mark = " (dry run: decides nothing)" if part.role == "dry_run" else ""
        yield from ((entry.effect, entry.text, f"{near(entry.where)}{mark}") for entry in part.entries)
        yield from (
            ("rule", f"{rule.id}: {words.sentence(rule)}", f"{near(rule.where)}{mark}") for rule in part.rules
        )
    for setting in found.settings:
        if whole or setting.stated:
            yield setting.key, setting.shown, _origin(setting)
        if whole:
            yield from (("", f"not {text}", near(where)) for text, where in setting.outweighed)
    yield from (_document(part) for part in found.parts)
    yield from (("sealed", near(path), "never opened") for path in found.sealed)
    yield "digest", found.digest, "of all of this"


def _origin(setting: Setting) -> str:
    if setting.stated:
        return ", ".join(map(near, setting.stated))
    return f"default, in {near(setting.document)}" if setting.document else "default"


def _document(part: Part) -> Row:
    what = {"root": "root", "bound": "bound", "dry_run": "dry run"}[part.role]
    shown = near(part.file) if part.name is None else f"{near(part.file)} ({part.name})"
    return what, shown, f"sha256 {part.sha256}" if part.sha256 else part.digest


def _json(found: Effective) -> dict[str, Any]:
    from licet.workbench import words

    return {
        "digest": found.digest,
        "documents": [
            {
                "role": part.role,
                "file": part.file,
                "name": part.name,
                "digest": part.digest,
                "sha256": part.sha256,
                **{
                    effect: [
                        {"entry": entry.text, "where": asdict(entry.where)}
                        for entry in part.entries
                        if entry.effect == effect
                    ]
                    for effect in ("allow", "ask", "deny")
                },
                "rules": [
                    {
                        "id": rule.id,
                        "does": list(words.effects(rule)),
                        "when": words.condition(rule),
                        "where": asdict(rule.where),
                    }
                    for rule in part.rules
                ],
            }
            for part in found.parts
        ],
        "settings": [
            {
                "key": setting.key,
                "value": setting.value,
                "document": setting.document,
                "stated": [asdict(where) for where in setting.stated],
                "outweighed": [{"value": text, **asdict(where)} for text, where in setting.outweighed],
            }
            for setting in found.settings
        ],
        "sealed": list(found.sealed),
    }
