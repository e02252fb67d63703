"""The page: one HTML file without a script, a font, an image or a link to anywhere else.

Rules this module keeps:

- everything is escaped; the only markup that is not written in a template is the style sheet, whose digest is
  the one thing that the page's content security policy lets in;
- a page is made piece by piece, so that memory does not grow with it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from licet.output import bounded
from licet.record import Record
from markupsafe import Markup

from licet_audit.report import charts, events, run, safe, standing, waiting, words
from licet_audit.report.population import Population

_BRIEF = 120  # characters of what a bar is called
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Made:
    """How a report came to be: `selection` is what was asked of runs, by field."""

    title: str
    at: str
    version: str
    by: str
    reader: str | None
    log_id: str
    path: str
    selection: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of a filter on the page."""

    key: str
    text: str
    count: int


@dataclass(frozen=True, slots=True)
class Page:
    """All that a page says; the records of runs come one run at a time, while it is written.

    `unread` says why there are no runs, where the log could not be read far enough to find them.
    """

    made: Made
    standing: standing.Standing
    population: Population
    attention: Iterable[run.RunCard]
    others: Iterable[run.RunCard]
    waits: waiting.Waits
    own: Iterable[Record]
    unread: str | None = None


def render(page: Page) -> Iterator[str]:
    """The pieces of the HTML document, in order."""
    population = page.population
    sheet = style()
    return (
        _environment()
        .get_template("page.html.j2")
        .generate(
            style=Markup(sheet),
            style_hash=base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode("ascii"),
            made=page.made,
            standing=page.standing,
            population=population,
            attention=page.attention,
            others=page.others,
            waits=page.waits,
            events=events.events(page.own),
            unread=page.unread,
            choices=choices(population),
            tones=_TONE_OF,
            over_time=charts.over_time(population.minutes, _names(population)),
            ends=charts.bars(_named_ends(population), _END_TONES),
            denied=charts.bars(population.denied),
            glossary=words.GLOSSARY,
        )
    )


def choices(population: Population) -> dict[str, list[Choice]]:
    """What the filters of a page offer: only what one of its cards is."""
    rows = (*population.attention, *population.others)
    found: dict[str, dict[str, Choice]] = {"effects": {}, "ends": {}}
    for row in rows:
        for name, label in (("effects", words.effect(row.effect)), ("ends", words.end(row.termination))):
            key = label.style[2:]
            text = "other" if key == "other" else label.text
            before = found[name].get(key)
            found[name][key] = Choice(key, text, before.count + 1 if before else 1)
    return {
        name: sorted(kinds.values(), key=lambda one: (-one.count, one.text)) for name, kinds in found.items()
    }


@cache
def style() -> str:
    """The style sheet, as a browser hashes it."""
    source, _, _ = PackageLoader("licet_audit", "report/templates").get_source(_environment(), "style.css")
    return source.replace("\r\n", "\n")


_TONE_OF = {label.style: label.tone for label in words.EFFECTS.values()} | {"e-other": "dark"}
_END_TONES = {label.text: label.tone for label in words.ENDS.values()} | {"other": "dark"}


def _names(population: Population) -> list[tuple[str, str]]:
    texts = {label.style: label.text for label in words.EFFECTS.values()} | {"e-other": "undecided"}
    return [(style, text) for style, text in texts.items() if population.effects[style]]


def _named_ends(population: Population) -> dict[str, int]:
    return {
        words.ENDS[name].text if name in words.ENDS else name: count
        for name, count in population.ends.items()
    }


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("licet_audit", "report/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=safe.shown,
        auto_reload=False,
    )
    environment.filters |= {
        "answer": {True: "✓ ok", False: "✗ FAILED", None: "? unknown"}.__getitem__,
        "tone": {True: "good", False: "bad", None: "warn"}.__getitem__,
        "brief": lambda text: bounded(str(text), _BRIEF),
        "moment": _moment,
        "number": lambda value: f"{value:,}",
        "oddities": lambda value: safe.oddities(str(value)),
        "share": lambda count, total: f"{100 * count / total:.1f} %" if total else "",
        "words": lambda name: None if name is None else str(name).replace("_", " "),
    }
    return environment


def _moment(text: object) -> object:
    """A time as records have it, to the second; anything else as it is."""
    found = _MOMENT.fullmatch(str(text)) if text is not None else None
    return f"{found[1]} {found[2]} UTC" if found else text
