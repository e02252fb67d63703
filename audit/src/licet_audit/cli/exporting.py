"""`licet audit export`: records in a format for somebody else.

Rules this module keeps: an option that the format does not take is an error, never ignored.
"""

from __future__ import annotations

from typing import Any

import click
from licet.errors import UsageError

from licet_audit.cli import filters, options
from licet_audit.exports import FORMATS, Export

_FORMATS = "\n".join(f"  {name:<8} {one.summary}" for name, one in FORMATS.items())


@click.command(epilog="\b\nFormats:\n" + _FORMATS)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--since",
    metavar="TIME",
    callback=filters.as_moment,
    help="Runs that began then or later: a date, a time (UTC), or an age such as 2h or 7d.",
)
@click.option("--until", metavar="TIME", callback=filters.as_moment, help="Runs that began before then.")
@click.option(
    "--format",
    "name",
    type=click.Choice(list(FORMATS)),
    default="bundle",
    show_default=True,
    help="See below.",
)
@click.option(
    "-o", "--output", metavar="PATH", help="Where to write: a file, for a bundle a directory or FILE.zip."
)
@click.option("--content", is_flag=True, help="bundle: also what is kept of code, inputs and output.")
@click.option("--to", metavar="URL", help="otlp: the collector, such as https://collector.example.com:4318")
@click.option(
    "--header",
    multiple=True,
    metavar="NAME=VALUE",
    help="otlp: sent with each request; secrets better come in OTEL_EXPORTER_OTLP_HEADERS.",
)
@click.option(
    "--signal",
    type=click.Choice(["logs", "traces"]),
    default="logs",
    show_default=True,
    help="otlp: each record as a log record, or the spans of the runs.",
)
@click.option("--follow", is_flag=True, help="otlp: do not end; send what is recorded from now on, too.")
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="otlp: how long a dead collector is tried again; default: 300, for ever with --follow.",
)
@click.option("--again", is_flag=True, help="otlp: send all of it again; ids are the same.")
@options.of_a_log
@options.as_json
@click.pass_context
def export(
    ctx: click.Context,
    /,
    runs: tuple[str, ...],
    since: str | None,
    until: str | None,
    name: str,
    state: str | None,
    policy: str | None,
    as_json: bool,
    **others: Any,
) -> int:
    """Export runs of the log; without RUN, --since and --until all of it.

    RUN is a run's id or the beginning of one. Nothing that exists is overwritten.

    Exit codes: 0 written · 2 usage · 7 the log can't be used · 8 it can't be written or sent; ocsf: 1 the log
    is tampered with; otlp: 3 the collector did not take some
    """
    from licet_audit.cli.readers import reader_of
    from licet_audit.selection import select

    filters.check_period(since, until)
    chosen = FORMATS[name]
    given = {key: value for key, value in others.items() if key in chosen.takes}
    for key in others.keys() - given.keys():
        if ctx.get_parameter_source(key) is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(
                f"the format `{name}` takes no `--{key.replace('_', '-')}`", advice="leave it out"
            )
    reader = reader_of(state, policy)
    return chosen.write(Export(reader, select(reader, runs, since or "", until or ""), given, as_json))
